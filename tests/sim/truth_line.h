/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a thread called, by time instead of call by call: for jobs that call too
 * often for every call to be kept. Per group of APIs and bin of time: calls,
 * errors, ns inside and bytes; per row of bins: a histogram of durations.
 *
 * In the file it is one run of chunks: struct truth_line_head, then, from the
 * next chunk on, for each group the four arrays of struct truth_line_group with
 * `bins` entries each, then for each group its `rows` histograms. The last bin
 * and the last row hold all that came after the time there was room for. Native
 * byte order; only the thread itself writes.
 */
#ifndef SIM_TRUTH_LINE_H
#define SIM_TRUTH_LINE_H

#include <stddef.h>
#include <stdint.h>

#define TRUTH_LINE_API_MAX 512
#define TRUTH_LINE_BUCKETS 1024u /* a page of them: 32 octaves from 64 ns, 32 buckets each */
#define TRUTH_LINE_ROW_NS 20000000 /* of time that share a histogram, if a bin is shorter */
#define TRUTH_NOT_READY 600 /* an answer of a query, no error */

/* Functions of the driver by what they are for; the runtime's and NCCL's are one group each. */
#define TRUTH_GROUPS(G)                                                                            \
	G(LAUNCH, "launch") G(GRAPH, "graph") G(SYNC, "sync") G(COPY, "copy") G(SET, "set")        \
	G(ALLOC, "alloc") G(FREE, "free") G(QUERY, "query") G(OTHER, "other")                      \
	G(RUNTIME, "runtime") G(NCCL, "nccl")

#define TRUTH_GROUP_ID(id, name) TRUTH_GROUP_##id,
enum truth_group { TRUTH_GROUPS(TRUTH_GROUP_ID) TRUTH_GROUP_COUNT };

struct truth_line_head {
	uint32_t kind, tid; /* as struct truth_chunk */
	uint32_t chunks;    /* this one and those that follow it */
	uint32_t groups, bins, rows, bins_a_row, last; /* last: the newest bin written to */
	int64_t start, bin_ns; /* ns, CLOCK_MONOTONIC; bin i begins at start + i * bin_ns */
	char names[16][16];    /* of the groups */
	uint8_t group_of[TRUTH_LINE_API_MAX]; /* by id of the API */
};

struct truth_line_group {
	uint32_t *calls, *errors; /* that returned in this bin */
	uint64_t *ns;		  /* inside calls, in the bin in which it was spent */
	uint64_t *bytes;	  /* of calls that succeeded */
	uint32_t *buckets;	  /* TRUTH_LINE_BUCKETS a row */
};

/* A thread's line; its current bin is [from, to). */
struct truth_line {
	/* Moves on to the bin of leave; of the call's time, what is spent in that bin. */
	uint64_t (*turn)(struct truth_line *l, struct truth_line_group *g, int64_t entry,
			 int64_t leave);
	struct truth_line_head *head;
	int64_t from, to;
	uint32_t bin, row;
	const uint8_t *group_of;
	struct truth_line_group group[TRUTH_GROUP_COUNT];
};

/* Chunks of chunk bytes that a line needs for ns of time in bins of bin_ns. */
uint32_t truth_line_chunks(size_t chunk, int64_t ns, int64_t bin_ns);
/* Lays a line out in that many chunks of zeros at at; it starts at start. */
void truth_line_begin(struct truth_line *l, void *at, size_t chunk, int64_t ns, int64_t bin_ns,
		      int64_t start);

static inline unsigned truth_line_bucket(uint64_t ns)
{
	unsigned octave = 63 - (unsigned)__builtin_clzll(ns | 64);

	if (ns < 64)
		return 0;
	if (octave > 37)
		return TRUTH_LINE_BUCKETS - 1;
	return (octave - 6) * 32 + (unsigned)(ns >> (octave - 5) & 31);
}

static inline void truth_line_add(struct truth_line *l, unsigned api, int64_t entry, int64_t leave,
				  int ret, uint64_t bytes)
{
	struct truth_line_group *g = &l->group[l->group_of[api]];
	uint64_t ns = (uint64_t)(leave - entry), here = ns;

	if (entry < l->from || leave >= l->to)
		here = l->turn(l, g, entry, leave);
	g->calls[l->bin]++;
	g->ns[l->bin] += here;
	g->buckets[(size_t)l->row * TRUTH_LINE_BUCKETS + truth_line_bucket(ns)]++;
	if (ret && ret != TRUTH_NOT_READY)
		g->errors[l->bin]++;
	else if (bytes)
		g->bytes[l->bin] += bytes;
}

#endif
