/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the clock of CUPTI's records to CLOCK_MONOTONIC. What is known of it are
 * readings: it said stamp at some moment between before and after. Between two
 * readings times are interpolated; nothing is extrapolated. How far a time can be off
 * follows from the readings on both sides (clock.c), whatever the clock did between
 * them: run on, drift, be slewed, or be set.
 */
#ifndef GBPF_SIDECAR_CLOCK_H
#define GBPF_SIDECAR_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CUPTI_CLOCK_SEGMENTS 1024	/* between the newest readings; older ones are forgotten */
#define CUPTI_CLOCK_ERROR_MAX 1000000LL /* ns; a time known no better is not known */

struct clock_reading {
	int64_t before, stamp, after; /* CLOCK_MONOTONIC, CUPTI's, CLOCK_MONOTONIC; ns */
};

struct clock_time {
	int64_t ns;    /* CLOCK_MONOTONIC */
	int64_t error; /* the true time is at most so far from ns */
};

/* Between two readings. An offset is CUPTI's clock less CLOCK_MONOTONIC, ns. */
struct clock_segment {
	int64_t begin, end;	    /* CLOCK_MONOTONIC: no earlier, no later */
	int64_t stamp, stamp_end;   /* what the readings said */
	int64_t offset, offset_end; /* then, in the middle of the readings */
	int64_t margin, margin_end; /* how far these can be off */
	int64_t error;		    /* of interpolated offsets */
	bool step;		    /* the clock was set: it had the one offset, or the other */
};

struct cupti_clock {
	struct clock_segment segments[CUPTI_CLOCK_SEGMENTS]; /* a ring */
	size_t count;	 /* ever made; the newest is count - 1 */
	size_t step_last; /* count after the last one with a step; 0: none */
	struct clock_reading last;
	bool any;	 /* there was a reading */
	bool steady;	 /* the last segment without a step showed no drift */
	bool rate_known;
	double rate, deviation; /* of that segment: drift, ns per ns; ns off what was expected */
	double rate_noise;	/* of rate, ns per ns */
};

/*
 * One reading more, now being CLOCK_MONOTONIC. -EINVAL: it cannot be one (times that are
 * in the future, run backwards, or are beyond any clock); it is not used.
 */
int cupti_clock_add(struct cupti_clock *c, const struct clock_reading *r, int64_t now);
/* Is there a reading after this moment (CLOCK_MONOTONIC, ns)? */
bool cupti_clock_after(const struct cupti_clock *c, int64_t moment);
/*
 * The time of a stamp. -ERANGE: it is in none of the segments, or can be off by
 * more than CUPTI_CLOCK_ERROR_MAX.
 */
int cupti_clock_convert(const struct cupti_clock *c, int64_t stamp, struct clock_time *out);

#endif
