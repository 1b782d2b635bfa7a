/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Jobs that launch, as arithmetic: pieces of time with a rate each, run through
 * piece by piece, so that what truly happened in any stretch of time is known.
 */
#ifndef LAUNCHING_H
#define LAUNCHING_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define MS 1e6

enum job_kind {
	JOB_STEADY,   /* steps of 1 ms */
	JOB_BURSTY,   /* on a tenth of the time, 50..500 ms each */
	JOB_PERIODIC, /* on for the first 30 % of its period */
	JOB_LONG,     /* steps of 100 ms, then 5 ms of waiting */
	JOB_JUMP,     /* idle until jump_ns, then steady */
};

struct job {
	enum job_kind kind;
	bool poisson;	  /* launches at random; else evenly */
	double rate;	  /* of launches a second while it is on */
	double period_ns; /* JOB_PERIODIC */
	double jump_ns;	  /* JOB_JUMP */
	double slowing;	  /* launching takes this share longer while probed */
	uint64_t random;
	/* where it is */
	double left_ns, burst_ns, launched;
	bool on, started, anchor_at_end;
};

struct happened {
	double launches, anchors, lost_ns, on_ns;
};

static inline double random_part(uint64_t *state) /* 0..1 */
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (double)(*state >> 11) / 9007199254740992.0;
}

/* How many of a Poisson process of that mean; by the normal law where that fits. */
static inline double random_poisson(uint64_t *state, double mean)
{
	double product = 1, limit = exp(-mean), count = 0;

	if (mean > 30) {
		double angle = 6.283185307179586 * random_part(state);
		double length = sqrt(-2 * log(1 - random_part(state)));

		return fmax(0, round(mean + sqrt(mean) * length * cos(angle)));
	}
	while ((product *= random_part(state)) > limit)
		count++;
	return count;
}

static inline void job_next_burst(struct job *j)
{
	if (j->burst_ns > 0) {
		j->left_ns = fmin(j->burst_ns, 2 * MS);
		j->burst_ns -= j->left_ns;
		j->on = j->anchor_at_end = true;
		return;
	}
	j->on = j->anchor_at_end = false;
	j->left_ns = -9 * 275 * MS * log(1 - random_part(&j->random));
	j->burst_ns = (50 + 450 * random_part(&j->random)) * MS;
}

static inline void job_next_piece(struct job *j)
{
	bool first = !j->started;

	j->started = true;
	switch (j->kind) {
	case JOB_BURSTY:
		job_next_burst(j);
		return;
	case JOB_PERIODIC:
	case JOB_LONG:
		j->on = !j->on;
		j->anchor_at_end = !j->on;
		if (j->kind == JOB_LONG)
			j->left_ns = j->on ? 100 * MS : 5 * MS;
		else
			j->left_ns = j->period_ns * (j->on ? 0.3 : 0.7);
		return;
	case JOB_JUMP:
	case JOB_STEADY:
		j->on = j->anchor_at_end = j->kind == JOB_STEADY || !first;
		j->left_ns = j->on ? MS : j->jump_ns;
		return;
	}
}

static inline void job_launch(struct job *j, double ns, struct happened *h)
{
	double mean = j->rate * ns / 1e9, before = floor(j->launched);

	j->launched += mean;
	h->launches += j->poisson ? random_poisson(&j->random, mean) :
				    floor(j->launched) - before;
}

/* Lets the job run for wall_ns and adds what it did. */
static inline void job_run(struct job *j, double wall_ns, bool probed, struct happened *h)
{
	while (wall_ns > 1e-3) {
		double slower, ns;

		while (j->left_ns <= 0)
			job_next_piece(j);
		slower = probed && j->on ? 1 + j->slowing : 1;
		ns = fmin(j->left_ns, wall_ns / slower);
		if (j->on) {
			job_launch(j, ns, h);
			h->on_ns += ns * slower;
		}
		h->lost_ns += ns * (slower - 1);
		j->left_ns -= ns;
		wall_ns -= ns * slower;
		if (j->left_ns <= 1e-3) {
			j->left_ns = 0;
			h->anchors += j->anchor_at_end;
		}
	}
}

#endif
