/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What processes count becomes what label sets count by its increments, so that a
 * set keeps what a process that ended has added.
 */
#include <stdlib.h>
#include <string.h>

#include "export/series.h"

struct series_process {
	uint32_t pid;
	int64_t start;
	struct series_api *apis; /* ordered by id */
	size_t apis_count;
	uint64_t count[SERIES_COUNTS];
	struct histogram histogram[SERIES_HISTOGRAMS];
};

struct series_process *series_process_new(const struct snapshot_process *p)
{
	struct series_process *known = calloc(1, sizeof(*known));

	if (known) {
		known->pid = p->pid;
		known->start = p->start;
	}
	return known;
}

void series_process_free(struct series_process *p)
{
	if (p)
		free(p->apis);
	free(p);
}

int series_process_order(const struct series_process *known, const struct snapshot_process *p)
{
	if (known->pid != p->pid)
		return known->pid < p->pid ? -1 : 1;
	return known->start < p->start ? -1 : known->start > p->start;
}

/* What was counted since; a counter that went back was started anew. */
static uint64_t increment(uint64_t *last, uint64_t now)
{
	uint64_t before = *last;

	*last = now;
	return now >= before ? now - before : now;
}

static void count_histogram(struct histogram *last, const struct histogram *now,
			    struct histogram *to)
{
	if (!now || (now->count == last->count && now->sum_ns == last->sum_ns))
		return;
	if (now->count < last->count)
		memset(last, 0, sizeof(*last));
	for (unsigned i = 0; i < GBPF_BUCKETS; i++) {
		uint64_t before = last->bucket[i];
		uint64_t more = now->bucket[i] > before ? now->bucket[i] - before : 0;

		/* the count is the sum of the buckets, whatever the snapshot says */
		to->bucket[i] += more;
		to->count += more;
	}
	if (now->sum_ns > last->sum_ns)
		to->sum_ns += now->sum_ns - last->sum_ns;
	*last = *now;
}

static int compare_api(const void *a, const void *b)
{
	uint16_t x = ((const struct series_api *)a)->api, y = ((const struct series_api *)b)->api;

	return x < y ? -1 : x > y;
}

/* Where the process's API is counted; a new one is put in. NULL: out of memory. */
static struct series_api *api_of_process(struct series_process *p, uint16_t id)
{
	struct series_api key = { .api = id }, *found, *grown;
	size_t at = p->apis_count;

	found = at ? bsearch(&key, p->apis, at, sizeof(key), compare_api) : NULL;
	if (found)
		return found;
	grown = realloc(p->apis, (p->apis_count + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	p->apis = grown;
	while (at && grown[at - 1].api > id)
		at--;
	memmove(grown + at + 1, grown + at, (p->apis_count - at) * sizeof(*grown));
	grown[at] = key;
	p->apis_count++;
	return &grown[at];
}

static struct series_api *api_of_set(struct series_set *set, uint16_t id)
{
	struct series_api *a;

	for (size_t i = 0; i < set->apis_count; i++)
		if (set->apis[i].api == id)
			return &set->apis[i];
	if (set->apis_count > SERIES_APIS)
		return &set->apis[SERIES_APIS];
	a = &set->apis[set->apis_count++];
	memset(a, 0, sizeof(*a));
	a->api = set->apis_count > SERIES_APIS ? 0 : id;
	return a;
}

/* Without memory for it, an API is counted the next time, with what it has by then. */
static void count_api(struct series_process *known, const struct family_source *from,
		     struct series_set *set)
{
	struct series_api *last = api_of_process(known, from->api->api);
	struct family_walk w = { 0 };
	struct series_api *to;

	if (!last)
		return;
	to = api_of_set(set, from->api->api);
	while (family_walk(&w) && w.family->scope == SCOPE_API) /* they come first */
		to->count[w.slot] += increment(&last->count[w.slot], w.family->count(from));
}

static void count_process(struct series_process *known, const struct family_source *from,
			  struct series_set *set)
{
	struct family_walk w = { 0 };

	while (family_walk(&w)) {
		const struct family *f = w.family;

		if (f->scope != SCOPE_PROCESS)
			continue;
		if (f->histogram)
			count_histogram(&known->histogram[w.slot], f->histogram(from),
					&set->histogram[w.slot]);
		else if (f->count && f->interval)
			set->count[w.slot] += f->count(from);
		else if (f->count)
			set->count[w.slot] += increment(&known->count[w.slot], f->count(from));
	}
}

void series_process_count(struct series_process *known, const struct family_source *from,
			  struct series_set *set)
{
	struct family_source one = *from;

	count_process(known, from, set);
	for (size_t i = 0; i < from->process->apis_count; i++) {
		one.api = &from->process->apis[i];
		if (one.api->api) /* 0 stands for all others */
			count_api(known, &one, set);
	}
}
