/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A recording in windows: asked for in tracer_options. Between windows no probe is there,
 * but for those that mark steps.
 */
#ifndef GBPF_TRACE_SCHEDULED_H
#define GBPF_TRACE_SCHEDULED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/schedule.h"

enum schedule_unit {
	SCHEDULE_AUTO = 0, /* steps where a marker fires, else time */
	SCHEDULE_STEPS,
	SCHEDULE_TIME,
};

#define SCHEDULE_MARKER_MAX 1024 /* bytes of the text of a marker */

/* When a marker fired, in one process. */
struct schedule_firing {
	int64_t ts;	 /* ns */
	uint64_t number; /* how often it had fired before */
	uint32_t pid, class;
};

/* How often a step fires its marker. */
struct schedule_learnt {
	uint64_t per_step, base; /* a step begins with each firing that is base modulo per_step */
	uint64_t steps;		 /* that this was seen in; 0: no steps were found */
	bool uneven;		 /* they were, but not all of them fire it as often */
};

struct schedule_options {
	struct schedule_plan steps, time; /* steps; ns */
	enum schedule_unit unit;
	const char *marker; /* as the user named it; NULL: those that are known */
	/*
	 * Finds the steps of a process in the recording that path names, and compares them
	 * with the firings of its marker, by time. 0 or -errno; out is set if 0.
	 */
	int (*learn)(const char *path, uint32_t pid, const struct schedule_firing *firings,
		     size_t count, struct schedule_learnt *out);
};

struct schedule_stats {
	bool asked;
	bool looking; /* for steps */
	bool steps;   /* else time; while looking: not decided */
	bool failed;  /* steps were asked for, and there is no marker */
	bool opened;  /* there was a window */
	enum schedule_phase phase;
	uint64_t windows; /* ended */
	int64_t at, until; /* steps or ns since the first cycle began: now, and the phase's end */
};

/*
 * Is this a marker that --step-marker can name? "SYMBOL", "LIBRARY:SYMBOL", the name of a
 * CUDA function, or "kernel:REGEX". If not, false and a sentence.
 */
bool schedule_marker_ok(const char *marker, char *why, size_t size);

struct tracer;
/* Is this time (ns) of a window, as far as windows go by now? True without a schedule. */
bool scheduled_covers(const struct tracer *t, int64_t ts);

#endif
