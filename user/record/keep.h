/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The last part of a recording, in memory: chunks as a file has them, the oldest thrown away,
 * and what they refer to however old it is. Any part of it can be written as a file while
 * more comes in.
 */
#ifndef GBPF_RECORD_KEEP_H
#define GBPF_RECORD_KEEP_H

#include <stdbool.h>

#include "record/writer.h"

#define KEEP_BYTES_MIN (16u << 20) /* less does not hold two chunks for sure */

struct keep;

struct keep_options {
	int64_t ns;	/* how long events are kept, at least, as long as bytes suffice */
	uint64_t bytes; /* at most KEEP_BYTES_MIN or more; buffers of fixed size not counted */
};

int keep_new(struct keep **out, const struct keep_options *o); /* 0 or -ENOMEM */
void keep_free(struct keep *k);				       /* NULL is accepted */

/* As writer_events() and writer_add(). No call of the system, no allocation but a chunk's. */
int keep_events(struct keep *k, const struct event *events, size_t count);
/*
 * Records with a time of their own (clocks, losses, samples) are kept as long as events;
 * names, processes and the like as long as something kept may refer to them: until ns after
 * they were replaced, or their process ended.
 */
int keep_add(struct keep *k, const struct record *record);

/* Threads that ended, and all of whose events were added: ended() is asked of each. */
void keep_threads_ended(struct keep *k, bool (*ended)(uint32_t pid, uint32_t tid, void *ctx),
			void *ctx);

/* Throws away what is older than now - ns. To be called once in a while. 0 or -ENOMEM. */
int keep_round(struct keep *k, int64_t now);

struct keep_stats {
	uint64_t bytes;	   /* in use, of those that are limited */
	uint64_t events;   /* in whole chunks */
	uint64_t refused;  /* names and the like there was no room for, ever */
	int64_t complete;  /* nothing at or after this is missing, ns; INT64_MIN: nothing at all */
	bool short_of;	   /* bytes did not suffice for ns, ever */
};
void keep_stats(const struct keep *k, struct keep_stats *out);

/*
 * Begins to write what happened in [*begin, end) to w, which stays the caller's; *begin is
 * moved to where the kept part begins, if that is later. What is added from here on is not
 * part of it. 0 or the writer's failure.
 */
int keep_write(struct keep *k, struct writer *w, int64_t *begin, int64_t end);
/* Writes on, a chunk at the most. 1: there is more; 0: all is in w; or the writer's failure. */
int keep_write_step(struct keep *k);
void keep_write_stop(struct keep *k); /* w is not used any more; idempotent */

#endif
