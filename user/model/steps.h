/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steps of a job, from the order of its calls alone: what repeats, and how often.
 *
 * The launching threads' calls that make or await GPU work are taken in the order in
 * which they began, as tokens (function, kernel or graph); a run of one token counts once,
 * but for graphs, of which each launch counts. A token that comes once a step lies the same
 * number of tokens apart each time; one that comes several times, or in steps that differ
 * by turns, has distances that come again after several (rhythm.h). Several periods nest
 * (layers, micro-batches, optimizer steps, logging): the outermost counts of which one token
 * in STEPS_OWN_TOKENS is its own, so that rare logging makes no step.
 */
#ifndef GBPF_MODEL_STEPS_H
#define GBPF_MODEL_STEPS_H

#include "model/session.h"

#define STEPS_REGULAR 0.9      /* of a token's distances must be the usual one */
#define STEPS_OWN_TOKENS 1000

struct steps {
	int64_t *begins;   /* ns, of each step; the last one is where the last whole step ends */
	size_t count;	   /* of begins; steps are one fewer; 0: no steps were found */
	uint8_t *cut;	   /* of each step: probes were away meanwhile, it is none */
	size_t cuts;	   /* how many */
	int64_t length;	   /* median, ns */
	int64_t shortest, longest;
	size_t calls;	   /* that make or await work, in a usual step */
	uint32_t anchor;   /* index of a call that begins a step */
	double confidence; /* 0..1: how regular, times how much of the time they cover */
};

struct feeders;

/* Steps of a process (index). 0 (count may be 0) or -ENOMEM; then nothing is to be freed. */
int steps_find(const struct session *s, uint32_t process, struct steps *out);
/* The same for whoever has its feeders already. */
int steps_of(const struct session *s, const struct feeders *f, struct steps *out);
void steps_free(struct steps *v); /* may be repeated */
/* Those that were seen from begin to end. */
size_t steps_whole(const struct steps *v);
/* Length of step i in ns; -1 where it is cut. */
int64_t steps_length(const struct steps *v, size_t i);

/* ---- what steps are found in, and what dispatching is judged by ---- */

/*
 * Indices into calls: those of a process's threads that launch work, outermost calls
 * only, by begin. Threads that only wait or copy are not among them unless nobody launches.
 */
struct feeders {
	uint32_t *calls;
	size_t count;
	uint32_t *thread; /* indices into threads */
	size_t threads_count;
};
int feeders_find(const struct session *s, uint32_t process, struct feeders *out);
void feeders_free(struct feeders *f); /* may be repeated */

#endif
