/* SPDX-License-Identifier: BSD-2-Clause */
/* What join_order.c and join_nodes.c share; nobody else includes this. */
#ifndef GBPF_MODEL_JOIN_ORDER_H
#define GBPF_MODEL_JOIN_ORDER_H

#include "model/join.h"

struct caller {
	int64_t begin, end;
	int64_t waited; /* its work has begun by then: of order_nodes() only */
	uint32_t call;
};

/* Works of one id (graphs: of one launch), the first to begin first. */
struct bunch {
	uint32_t key, work, count;
	int64_t begin;
};

struct ordering {
	struct join *j;
	const struct session_cover *cover;
	const bool *outer; /* of calls: another call that causes work is inside */
	const bool *used;  /* of calls: it has works */
	struct caller *callers;
	uint32_t *works; /* of the sort at hand, by key and begin */
	struct bunch *bunches;
	size_t callers_count, callers_cap, edges, works_count, works_cap, bunches_count,
		bunches_cap;
};

/* Calls of one sort in the window, by time. Those across its edges come only if asked for. */
int order_callers(struct ordering *o, enum sort sort, bool edges);
/* Works of one sort in the window that have no call, by id and begin. */
int order_works(struct ordering *o, enum sort sort);
/* The first call after those that overlap the one at from, or each other. */
size_t order_run_end(const struct ordering *o, size_t from);

/* join_nodes.c: works of a graph that was launched again and again, without ids. */
int order_nodes(struct ordering *o);

#endif
