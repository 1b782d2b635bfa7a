/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Distances that come again after several: those of a token that comes more than once a
 * period (every second step is longer, an optimizer after some micro-batches).
 *
 * Distance by distance, not by their sum: the sum of a few that only vary is nearly the
 * same each time. Two passes over a token's distances: rhythm_hear() of all of them and
 * rhythm_length(), then rhythm_learn() of all of them and rhythm_holds().
 */
#ifndef GBPF_MODEL_RHYTHM_H
#define GBPF_MODEL_RHYTHM_H

#include <stdbool.h>
#include <stdint.h>

#define RHYTHM_MOST 8	     /* distances after which they come again */
#define RHYTHM_REGULAR 0.9   /* of the distances must be the one so many before, about */
#define RHYTHM_LEAST 12	     /* comparisons, to speak of a rhythm */
#define RHYTHM_LEAST_WHOLE 4 /* times its length: of fewer, many a chance looks like one */
#define RHYTHM_WHOLE 0.75    /* of the distances must lie in whole rhythms, all as usual */

struct rhythm {
	uint32_t slack;		      /* what is no difference at any distance */
	uint32_t heard;		      /* distances in this pass */
	uint32_t before[RHYTHM_MOST]; /* distances, the newest first */
	uint32_t again[RHYTHM_MOST];  /* distances like the one i + 1 before */
	/* of the second pass */
	uint32_t length;		/* distances after which they come again */
	uint32_t usual[RHYTHM_MOST];	/* those distances: majority vote */
	uint32_t votes, since;		/* distances since it was last voted on */
	uint32_t whole;			/* rhythms that were as usual */
	int64_t waited[RHYTHM_MOST];	/* ns, before the token that a distance begins at */
	int64_t pauses[RHYTHM_MOST];	/* ns, sums of those in whole rhythms */
};

/* Like the usual one: within a fiftieth (a call more or less in fifty), or slack. */
static inline bool rhythm_about(uint32_t distance, uint32_t usual, uint32_t slack)
{
	uint32_t off = distance > usual ? distance - usual : usual - distance;

	return off <= usual / 50 || off <= slack;
}

/* slack: what is no difference even between short distances; a fiftieth of the mean one. */
void rhythm_start(struct rhythm *r, uint32_t slack);
void rhythm_hear(struct rhythm *r, uint32_t distance);
/* The fewest distances after which they come again, and makes ready to learn which. 0: none. */
uint32_t rhythm_length(struct rhythm *r);
/* waited: ns before the token that the distance begins at. */
void rhythm_learn(struct rhythm *r, uint32_t distance, int64_t waited);
/* It is the same throughout, and not a shorter one. */
bool rhythm_holds(const struct rhythm *r);
/* The last distances that were heard are the usual ones, the first of them usual[from]. */
bool rhythm_ends(const struct rhythm *r, uint32_t from);
/* Forgets what was heard, not what is usual. */
void rhythm_rewind(struct rhythm *r);
/* Sum of the usual distances. */
uint32_t rhythm_period(const struct rhythm *r);
/* Share of the distances that were the one a rhythm before, about. */
double rhythm_regularity(const struct rhythm *r);
/* Which of the usual distances begins where most time passes; ns on average to *pause. */
uint32_t rhythm_begin(const struct rhythm *r, double *pause);

#endif
