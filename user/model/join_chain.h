/* SPDX-License-Identifier: BSD-2-Clause */
/* What join_chain.c, join_pieces.c and join_walk.c share; nobody else includes this. */
#ifndef GBPF_MODEL_JOIN_CHAIN_H
#define GBPF_MODEL_JOIN_CHAIN_H

#include "model/join.h"

#define LINK_NONE UINT32_MAX
#define LINK_OUTSIDE (UINT32_MAX - 1) /* known, and not in this part */

struct link { /* a call that causes work */
	int64_t begin, end, until; /* until: its work has begun by then */
	uint32_t call, key, group;
	bool taken;
};

struct piece { /* works of one call: small, for there are as many as launches */
	int64_t begin;
	uint32_t first, group;
	uint32_t stream, call; /* of its first work */
	uint32_t link; /* index, LINK_NONE or LINK_OUTSIDE */
	uint32_t count : 31;
	uint32_t still : 1; /* other calls' works have the same id */
};

/* A call that returns when all work has ended that was queued before: on one stream, or on all. */
struct wait {
	int64_t begin, end;
	uint64_t stream; /* chain_stream(), or WAIT_ALL */
};

#define WAIT_ALL UINT64_MAX

/* Streams that belong together. */
struct group {
	uint32_t keys; /* that calls name them by */
	size_t at;     /* in by_group: where its next piece goes */
	bool still;    /* some of their pieces are so */
};

struct chain {
	struct join *j;
	const bool *outer;
	uint8_t *marks;	  /* of apis: enum mark */
	uint32_t *link_of; /* of calls: index + 1 into links of this part */
	struct link *links;
	struct piece *pieces;
	struct wait *waits; /* by stream and begin; end: the first of those from here on */
	uint32_t *works, *parent;
	uint32_t *by_group; /* all pieces, each group's together and in their order */
	struct group *groups;
	struct map keys, nodes; /* nodes: of graphs, to the run or piece that has them last, */
	uint32_t serial;	/* which are numbered */
	size_t links_count, links_cap, pieces_count, pieces_cap, works_count, works_cap;
	size_t waits_count, waits_cap, parents_cap, groups_cap, by_group_cap;
	uint32_t keys_count, process;
	int64_t from, to;
	bool one_context;
	bool many;    /* works: worth a second thread */
	bool lossy;   /* works may be missing */
	bool unknown; /* in this part some are of streams that no anchor names */
};

static inline const struct work *chain_first_work(const struct chain *c, const struct piece *p)
{
	return &c->j->s->works[c->works[p->first]];
}

static inline const struct piece *chain_piece(const struct chain *c, size_t i)
{
	return &c->pieces[c->by_group[i]];
}

/* join_pieces.c: finds works and pieces of [from, to), in the order of their ids. 0 or -ENOMEM. */
int chain_pieces(void *chain);

/* Which stream a call means by this handle. */
uint64_t chain_stream(const struct chain *c, const struct call *call, uint64_t handle);
/* join_waits.c: waits are added, then set until of the links. 0 or -ENOMEM. */
int chain_wait_add(struct chain *c, uint64_t stream, const struct call *call);
int chain_waits(struct chain *c);

/* Can this call have caused these works, by all that is known of both? */
bool chain_fits(const struct chain *c, const struct link *l, const struct piece *p);
/* From now on they belong together. */
void chain_take(struct chain *c, struct piece *p, const struct link *l);

/*
 * join_numbers.c, in place of all that follows where CUPTI recorded no calls: matches by the
 * works' numbers. Links, by begin, and pieces are there. 0 or -ENOMEM.
 */
int chain_numbers(struct chain *c, const struct session_cover *cover);

/* join_walk.c: matches what the anchors of each group lead to. 0 or -ENOMEM. */
int chain_walk(struct chain *c);

#endif
