/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of struct merge, shared by the files of this folder. */
#ifndef GBPF_MERGE_PRIVATE_H
#define GBPF_MERGE_PRIVATE_H

#include "bpf/gbpf.h"
#include "merge/merge.h"
#include "model/grow.h"
#include "model/map.h"

/* A collective's kernel that no rank leaves before all have entered: times of its own host. */
struct collective {
	int64_t begin, end;
	uint32_t line;	/* index into lines */
	uint32_t order; /* as read */
	uint64_t name;	/* hash */
};

/* What came one after the other: a stream of a process. */
struct collective_line {
	uint32_t source, pid, device, stream;
	size_t first, count; /* in collectives, once sorted */
};

struct scan_clock { /* CLOCK_REALTIME less CLOCK_MONOTONIC, ns */
	int64_t low, high; /* over all readings; low > high: there are none */
	int64_t error;	   /* the widest bracket */
};

struct scan_rank {
	uint32_t pid; /* as recorded */
	char *rank;   /* "": no label */
};

struct source {
	struct merge_source about;
	struct scan_clock clock;
	int64_t first_event, last_event;
	int64_t max_error;  /* clock_max_error_ns, -1: not said */
	uint32_t shapes;    /* one more than the highest id */
	struct map busy;    /* pid to itself: it has events or work */
	struct map shape_comm; /* (pid, shape) to 1: of a collective that binds all ranks */
	struct map rank_of; /* pid to ranks */
	struct scan_rank *ranks;
	size_t ranks_count, ranks_cap;
	struct record_info *infos; /* strings owned */
	size_t infos_count, infos_cap;
	struct record_window *windows;
	size_t windows_count, windows_cap;
	bool actives; /* it has ACTIVE windows, beside which nothing counts */
	uint32_t *busy_pids;
	size_t busy_count, busy_cap;
};

struct merge {
	struct source **sources;
	size_t count, cap;
	bool actives; /* any of them has */
	struct collective *collectives;
	size_t collectives_count, collectives_cap;
	struct collective_line *lines;
	size_t lines_count, lines_cap;
	struct map line_of; /* (source and pid, device and stream) */
};

/* scan.c */
const char *scan_info(const struct source *s, const char *key); /* NULL: not there */

/* collectives.c */
/*
 * What may be added to times of host to be those of host 0, as matching collectives allow:
 * [*low, *high], of *matched of them. near: what the clocks of the hosts say, within
 * bound (-1: not known). -ENODATA: nothing matches, or more than one way would.
 */
int collectives_align(const struct merge *m, uint32_t host, int64_t near, int64_t bound,
		      int64_t *low, int64_t *high, size_t *matched);

/* infos.c */
struct writer;
int infos_write(const struct merge *m, struct writer *w);

/* Clamped instead of wrapping round: files may hold any number. */
static inline int64_t shift_ts(int64_t ts, int64_t by)
{
	int64_t sum;

	if (__builtin_add_overflow(ts, by, &sum))
		return by < 0 ? INT64_MIN : INT64_MAX;
	return sum;
}

#endif
