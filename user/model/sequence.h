/* SPDX-License-Identifier: BSD-2-Clause */
/* A job's calls as a sequence of tokens, and how far apart each token lies (steps.h). */
#ifndef GBPF_MODEL_SEQUENCE_H
#define GBPF_MODEL_SEQUENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/map.h"
#include "model/rhythm.h"
#include "model/session.h"

/* A function, a kernel whatever launched it, or an executable graph. */
struct token {
	uint32_t times, first, last; /* positions in the sequence */
	uint32_t usual, votes;	     /* distance between two of them: majority vote; or period */
	uint32_t regular;	     /* distances that are the usual one, about */
	uint32_t rhythm;	     /* index + 1, if its distances come again after several */
	int64_t pause;		     /* ns, sum of the time since the token before */
};

/* All zero but s before it is made. */
struct sequence {
	const struct session *s;
	struct map ids;
	struct token *tokens;
	size_t tokens_count, tokens_cap;
	struct rhythm *rhythms; /* of the tokens without a usual distance */
	size_t rhythms_count;
	uint16_t *at;	/* token of each position: jobs have tens of millions */
	uint32_t *call; /* and the first call of its run; not owned */
	size_t count;
};

/* Overwrites calls (indices, by begin), and keeps them. 0 or -ENOMEM; to be freed either way. */
int sequence_make(struct sequence *q, uint32_t *calls, size_t count);
/* How far the tokens lie apart. 0 or -ENOMEM. */
int sequence_measure(struct sequence *q);
void sequence_free(struct sequence *q);

/* Comes once a period of usual tokens, or with a rhythm of as many, over half of the sequence. */
bool token_is_periodic(const struct sequence *q, const struct token *t);
/* Share of its distances that are as usual: 0..1. */
double token_regularity(const struct sequence *q, const struct token *t);

/* ns, of the call at a position. */
static inline int64_t sequence_begin(const struct sequence *q, size_t position)
{
	return q->s->calls[q->call[position]].begin;
}

/* NULL: it has none. */
static inline struct rhythm *rhythm_of(const struct sequence *q, const struct token *t)
{
	return t->rhythm ? &q->rhythms[t->rhythm - 1] : NULL;
}

#endif
