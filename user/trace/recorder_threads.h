/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that ended, of a recording that lasts: their names go, and their numbers may be
 * others'. The kernel does not tell of them, so that they are looked for once in a while.
 */
#ifndef GBPF_TRACE_RECORDER_THREADS_H
#define GBPF_TRACE_RECORDER_THREADS_H

#include "record/keep.h"
#include "trace/private.h"

struct ended_threads {
	struct idset ids; /* (pid, tid), seen to have ended before this round */
	int64_t looked;	  /* ns */
};

/*
 * After a round in which all that had happened before it was read. Those found in the round
 * before have no more events: the recorder and the tracer forget them. 0 or -ENOMEM.
 */
int ended_threads_round(struct ended_threads *e, struct tracer *t, struct keep *k, int64_t now);
void ended_threads_free(struct ended_threads *e);

#endif
