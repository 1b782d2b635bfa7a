/* SPDX-License-Identifier: BSD-2-Clause */
/* What join_numbers.c, join_crowd.c and join_lanes.c share; nobody else includes this. */
#ifndef GBPF_MODEL_JOIN_NUMBERS_H
#define GBPF_MODEL_JOIN_NUMBERS_H

#include "model/join_chain.h"
#include "util/near.h"

/* A call that has a number, by the order of their begins. */
struct entry {
	int64_t begin;
	int64_t until;	      /* the work of each of those below has begun by then */
	uint32_t link;	      /* index into links */
	uint32_t first, past; /* entries that overlap it, or one that does, itself among them */
};

/* Pieces [from, to) are those of entries [from + offset, to + offset). */
struct stretch {
	size_t from, to;
	int64_t offset, lowest, highest; /* the last two: of all that fit */
	bool known, checked; /* checked: all of its pairs fit */
};

struct numbers {
	struct chain *c;
	const struct session_cover *cover;
	struct entry *entries;
	int64_t *offsets; /* that may be so of the stretch at hand */
	struct stretch *stretches;
	struct map kernels, streams; /* as an offset at hand would have them */
	size_t entries_count, entries_cap, offsets_count, offsets_cap, stretches_count,
		stretches_cap;
	uint64_t checks; /* of pairs, so far: bounded, whatever a file has */
	int64_t exact; /* what the window's begin says of the first one, or NOT_SAID */
};

#define NUMBERS_CHECKS 100000000 /* some seconds */

/* Is this piece of that entry, as far as one can see? Of those that overlap: only by time. */
bool numbers_fit(const struct numbers *n, size_t piece, int64_t entry);

/* The first entry that begins then or later; guess: near it, or anything. */
static inline size_t numbers_at(const struct numbers *n, int64_t when, size_t guess)
{
	return near_find(&n->entries->begin, sizeof(*n->entries), n->entries_count, when, guess);
}

/*
 * join_crowd.c: of calls of several threads that overlap, whose numbers can be in any order;
 * those of each stream that one thread has for itself are in order. 0 or -ENOMEM.
 */
int numbers_crowds(struct numbers *n);

/* Calls by handle, works by stream; launches and works of graphs by the graph's. */
struct lanes {
	uint32_t *entry_lane, *piece_lane, entry_lanes, piece_lanes; /* the last two: how many */
	/* Entries, those of one lane together; where each lane's begin; where each entry is. */
	uint32_t *entries, *entries_at, *entry_place;
	uint32_t *pieces, *pieces_at, *piece_place; /* likewise */
	bool *one_by_one; /* of lanes of entries: they do not overlap each other */
};

/* join_lanes.c. 0 or -ENOMEM; to be freed in any case. */
int numbers_lanes(struct numbers *n, struct lanes *l);
void numbers_lanes_free(struct lanes *l);

static inline const struct link *numbers_link(const struct numbers *n, size_t entry)
{
	return &n->c->links[n->entries[entry].link];
}

static inline bool numbers_alone(const struct entry *e)
{
	return e->past - e->first == 1;
}

#endif
