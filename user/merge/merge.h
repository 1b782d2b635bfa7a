/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several recordings of one job as one: ranks and nodes on one timeline. Each source is
 * read twice, once for what it says of itself and once to be copied, so that memory does
 * not grow with events.
 *
 * Recordings of one boot of one host share a clock and their process ids. Those of other
 * hosts get their times shifted to the first source's clock and their ids shifted by a
 * multiple of MERGE_ID_STEP, so that equal numbers of different hosts stay apart; labels
 * of each process say what it was called at home (docs/format.md).
 */
#ifndef GBPF_MERGE_MERGE_H
#define GBPF_MERGE_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/reader.h"

#define MERGE_ID_STEP (1u << 22) /* PID_MAX_LIMIT of linux/threads.h: above any pid or tid */
#define MERGE_HOSTS 500		 /* shifted ids stay below 2^31 */
#define MERGE_SOURCES 4096

enum merge_how {
	MERGE_SAME_CLOCK = 0,	/* the reference, or another recording of its boot */
	MERGE_BY_REALTIME,	/* the hosts' clocks were both kept in step: error_ns bounds it */
	MERGE_BY_REALTIME_UNSURE, /* nobody says how far the hosts' clocks are apart */
	MERGE_BY_COLLECTIVES,	/* no rank can leave a collective before all have entered it */
};

struct merge_source {
	const char *path;
	char *host, *boot; /* "" where the recording does not say */
	uint32_t host_index; /* 0: the first source's */
	uint32_t id_shift; /* added to its pids and tids */
	int64_t clock_shift; /* ns, added to its times */
	int64_t error_ns;  /* bound on how far that is off; -1: not known */
	enum merge_how how;
	size_t collectives; /* matched; BY_COLLECTIVES only */
	int64_t begin, end; /* of its windows, its own clock */
	uint64_t events;
	enum reader_end finish;
	uint64_t lost_bytes;
	uint64_t losses;
};

struct merge;

int merge_new(struct merge **out); /* -ENOMEM */
void merge_free(struct merge *m); /* NULL is accepted */

/*
 * Reads what path says of itself; path stays the caller's. Errors of reader_open() and
 * reader_next(); -E2BIG: too many sources. After a failure it can only be freed.
 */
int merge_add(struct merge *m, const char *path);
size_t merge_count(const struct merge *m);
const struct merge_source *merge_get(const struct merge *m, size_t i);

/*
 * Finds how the sources' clocks lie to each other. -EINVAL with a sentence in why:
 * recordings that cannot be of one job, or of one process at one time.
 */
int merge_align(struct merge *m, char *why, size_t size);

/*
 * Calls told for what a user ought to know of ranks: a rank that two processes say they
 * are, processes without one while others have one.
 */
void merge_tell_ranks(const struct merge *m, void (*told)(void *ctx, const char *text), void *ctx);

/*
 * Writes all of it to fd, which must be empty; owns fd. go_on is asked now and then, with
 * how far it is from 0 to 1; false ends it with -EINTR. NULL: nobody asks. Errors of the
 * reader and the writer; -EOVERFLOW with a sentence in why: more functions or libraries
 * than a file can number.
 */
int merge_write(struct merge *m, int fd, bool (*go_on)(void *ctx, double share), void *ctx,
		char *why, size_t size);

#endif
