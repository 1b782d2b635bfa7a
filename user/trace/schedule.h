/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * --wait --warmup --active --repeat: which phase it is, and when the next one comes. In
 * steps or in ns, which are "places" here: numbers that only grow. Knows nothing of probes.
 */
#ifndef GBPF_TRACE_SCHEDULE_H
#define GBPF_TRACE_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

struct schedule_plan {
	int64_t wait, warmup, active; /* lengths; active is at least 1 */
	uint64_t repeat;	      /* windows; 0: until ended */
};

enum schedule_phase {
	SCHEDULE_IDLE = 0, /* not begun */
	SCHEDULE_WAIT,	   /* nothing is done */
	SCHEDULE_WARMUP,   /* probes are on, or being put on; nothing is kept */
	SCHEDULE_ACTIVE,   /* recorded */
	SCHEDULE_DONE,
};

struct schedule {
	struct schedule_plan plan;
	enum schedule_phase phase;
	int64_t until;	/* where this phase is to end */
	int64_t begin;	/* where the last window really began */
	uint64_t windows; /* that have ended */
};

const char *schedule_phase_name(enum schedule_phase phase); /* "wait", … */

/* The first cycle begins here. */
void schedule_begin(struct schedule *s, const struct schedule_plan *plan, int64_t at);
/*
 * It is here now. True if WAIT ends with that: WARMUP follows, and the window is to be
 * opened at s->until, or at the first chance after.
 */
bool schedule_warm(struct schedule *s, int64_t at);
/* The window was opened here: ACTIVE, for the whole length, however late that is. */
void schedule_opened(struct schedule *s, int64_t at);
/* It ended here: DONE, or the next cycle begins. */
void schedule_closed(struct schedule *s, int64_t at);

#endif
