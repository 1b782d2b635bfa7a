/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of the join share; nobody outside model/ includes this. */
#ifndef GBPF_MODEL_JOIN_H
#define GBPF_MODEL_JOIN_H

#include "model/internal.h"

/* Until here the ids of graph launches are wrong after a process' first session with CUPTI. */
#define CUPTI_GRAPH_IDS 130101

/* A call that may cause works of this id. */
struct cause {
	uint32_t process, correlation;
	int64_t begin;
	uint32_t call;
};

/* Of a process. */
struct joining {
	uint32_t cupti;	       /* its version, 0: not known */
	uint32_t notes;	       /* CUPTI's records of calls */
	uint32_t sessions;     /* windows of the sidecar */
	int64_t graphs_wrong;  /* from here on the ids of graph launches mean nothing */
};

struct join {
	struct session_builder *b;
	struct session *s;
	int64_t slack; /* ns that times of the two sides may be apart */
	struct joining *of; /* as processes */
	struct cause *causes; /* by process, correlation, begin */
	size_t causes_count, causes_cap, work_calls_cap;
};

enum sort { SORT_KERNEL, SORT_GRAPH, SORT_COPY, SORTS, SORT_NONE = SORTS };

/* Each returns 0 or -ENOMEM. */
int join_notes(struct join *j);  /* join_notes.c: CUPTI's records to calls */
int join_chain(struct join *j);  /* join_chain.c: from those on, by each stream's order */
int join_order(struct join *j);  /* join_order.c: what has no ids to believe, by order */
int join_finish(struct join *j); /* join_finish.c: works by call, names, counts */

/* Could this call have caused this work? May be asked of any two of one process. */
bool join_fits(const struct join *j, const struct call *c, const struct work *w);

/* Likewise of a call and all works of one id, with names and bytes, but not times. */
bool join_fits_all(const struct join *j, const struct call *c, const uint32_t *works,
		   uint32_t count);
/* SORT_NONE: it causes no work, or failed. */
enum sort join_sort(const struct session *s, const struct call *c);
enum sort join_work_sort(const struct work *w);
/* The first call of the thread that begins then or later; the one after its last: none. */
uint32_t join_first(const struct session *s, const struct session_thread *t, int64_t when);
/* The first work of the stream that begins then or later; the one after its last: none. */
uint32_t join_first_work(const struct session *s, const struct session_stream *st, int64_t when);
/* The handle that the call was given, 0 if none. */
uint64_t join_stream(const struct session *s, const struct call *c);
/* The caller frees: of calls, whether another call that causes work is inside. NULL: no memory. */
bool *join_outer(const struct session *s);
/* Are all works of the process of one context? Then a wait for a context is one for all. */
bool join_one_context(const struct session *s, uint32_t process);
bool join_ids_are_wrong(const struct join *j, uint32_t process, const struct work *w);

/* The cover of a process that all of [from, to] is in; covers_count: none. */
size_t join_cover(const struct session *s, uint32_t process, int64_t from, int64_t to);

static inline uint32_t call_process(const struct session *s, const struct call *c)
{
	return s->threads[c->thread].process;
}

#endif
