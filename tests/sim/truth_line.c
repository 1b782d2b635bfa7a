/* SPDX-License-Identifier: BSD-2-Clause */
#include "truth_line.h"

#include <stdbool.h>
#include <string.h>

#include "truth.h"

_Static_assert(TRUTH_APIS <= TRUTH_LINE_API_MAX, "every API has a group");
_Static_assert(sizeof(struct truth_line_head) <= TRUTH_CHUNK, "the head is one chunk");
_Static_assert(TRUTH_GROUP_COUNT <= 16, "as many names");

#define NAME_OF(name) #name,
static const char *const api_names[TRUTH_APIS] = { "", TRUTH_DRIVER(NAME_OF) TRUTH_RUNTIME(NAME_OF)
							   TRUTH_NCCL(NAME_OF) };
#define GROUP_NAME(id, name) name,
static const char *const group_names[] = { TRUTH_GROUPS(GROUP_NAME) };

static bool begins(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

static enum truth_group group_of(const char *name)
{
	static const struct {
		const char *with;
		enum truth_group group;
	} prefixes[] = {
		{ "cuda", TRUTH_GROUP_RUNTIME },     { "nccl", TRUTH_GROUP_NCCL },
		{ "cuLaunch", TRUTH_GROUP_LAUNCH },  { "cuGraphLaunch", TRUTH_GROUP_GRAPH },
		{ "cuMemcpy", TRUTH_GROUP_COPY },    { "cuMemset", TRUTH_GROUP_SET },
		{ "cuMemAlloc", TRUTH_GROUP_ALLOC }, { "cuMemHostAlloc", TRUTH_GROUP_ALLOC },
		{ "cuMemFree", TRUTH_GROUP_FREE },
	};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
		if (begins(name, prefixes[i].with))
			return prefixes[i].group;
	if (strstr(name, "Synchronize"))
		return TRUTH_GROUP_SYNC;
	return strstr(name, "Query") ? TRUTH_GROUP_QUERY : TRUTH_GROUP_OTHER;
}

struct shape {
	uint32_t bins, rows, bins_a_row;
	uint64_t group_bytes, row_bytes; /* of one group's arrays, of one group's histograms */
};

static uint64_t rounded(uint64_t bytes, size_t to)
{
	return (bytes + to - 1) / to * to;
}

static struct shape shape_of(size_t chunk, int64_t ns, int64_t bin_ns)
{
	struct shape s = { .bins = (uint32_t)(ns / bin_ns) + 2 };

	s.bins_a_row = bin_ns < TRUTH_LINE_ROW_NS ? (uint32_t)(TRUTH_LINE_ROW_NS / bin_ns) : 1;
	s.rows = s.bins / s.bins_a_row + 2;
	s.group_bytes = rounded(s.bins * 24ull, chunk);
	s.row_bytes = rounded(s.rows * 4ull * TRUTH_LINE_BUCKETS, chunk);
	return s;
}

uint32_t truth_line_chunks(size_t chunk, int64_t ns, int64_t bin_ns)
{
	struct shape s = shape_of(chunk, ns, bin_ns);

	return (uint32_t)(1 + TRUTH_GROUP_COUNT * (s.group_bytes + s.row_bytes) / chunk);
}

static uint64_t spent(int64_t entry, int64_t leave, int64_t from, int64_t to)
{
	int64_t begin = entry > from ? entry : from, end = leave < to ? leave : to;

	return end > begin ? (uint64_t)(end - begin) : 0;
}

/* The bin of t, which becomes the current one. */
static void move(struct truth_line *l, int64_t t)
{
	struct truth_line_head *h = l->head;
	uint64_t bin = t > h->start ? (uint64_t)((t - h->start) / h->bin_ns) : 0;
	uint32_t end = h->bins - 1;

	l->bin = bin < end ? (uint32_t)bin : end;
	l->row = bin < end ? l->bin / h->bins_a_row : h->rows - 1;
	l->from = h->start + l->bin * h->bin_ns;
	l->to = bin < end ? l->from + h->bin_ns : INT64_MAX;
	if (l->bin > h->last)
		h->last = l->bin;
}

static uint64_t turn(struct truth_line *l, struct truth_line_group *g, int64_t entry,
		     int64_t leave)
{
	if (entry < l->from || entry >= l->to)
		move(l, entry);
	while (leave >= l->to) {
		g->ns[l->bin] += spent(entry, leave, l->from, l->to);
		move(l, l->to);
	}
	return spent(entry, leave, l->from, l->to);
}

void truth_line_begin(struct truth_line *l, void *at, size_t chunk, int64_t ns, int64_t bin_ns,
		      int64_t start)
{
	struct shape s = shape_of(chunk, ns, bin_ns);
	char *groups = (char *)at + chunk, *rows = groups + TRUTH_GROUP_COUNT * s.group_bytes;
	struct truth_line_head *h = at;

	h->chunks = truth_line_chunks(chunk, ns, bin_ns);
	h->groups = TRUTH_GROUP_COUNT;
	h->bins = s.bins;
	h->rows = s.rows;
	h->bins_a_row = s.bins_a_row;
	h->bin_ns = bin_ns;
	h->start = start;
	for (unsigned i = 0; i < TRUTH_GROUP_COUNT; i++) {
		uint64_t *wide = (uint64_t *)(groups + i * s.group_bytes);

		strcpy(h->names[i], group_names[i]);
		l->group[i] = (struct truth_line_group){
			.ns = wide,
			.bytes = wide + s.bins,
			.calls = (uint32_t *)(wide + 2ull * s.bins),
			.errors = (uint32_t *)(wide + 2ull * s.bins) + s.bins,
			.buckets = (uint32_t *)(rows + i * s.row_bytes),
		};
	}
	for (unsigned i = 1; i < TRUTH_APIS; i++)
		h->group_of[i] = (uint8_t)group_of(api_names[i]);
	l->head = h;
	l->group_of = h->group_of;
	l->turn = turn;
	move(l, start);
}
