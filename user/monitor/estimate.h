/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From short windows at random times to a rate over the whole interval, with a
 * 95 % interval that says how much the windows can tell. Pure arithmetic.
 *
 * What is counted in windows (launches) is estimated from what was counted there
 * and, where there is one, from an anchor: calls of the same process that are
 * probed all the time and come with them (syncs, graph launches), whose number
 * over the interval is known exactly.
 */
#ifndef GBPF_MONITOR_ESTIMATE_H
#define GBPF_MONITOR_ESTIMATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "monitor/snapshot.h"

#define SERIES_WINDOWS 64 /* that are remembered, to know how much windows differ */

/* One window, in which probes were there from begin to begin + length. */
struct window_count {
	int64_t length; /* ns */
	int64_t lost;	/* of these, ns the busiest thread spent on our probes and would not have waited */
	double count;	/* of what is estimated */
	double anchor;	/* of the anchor; 0 where there is none */
};

struct series {
	struct window_count windows[SERIES_WINDOWS];
	size_t next, count;
};

void series_add(struct series *s, const struct window_count *w);

/* The interval that is estimated. */
struct interval_facts {
	int64_t length;	 /* ns */
	int64_t covered; /* of these, ns within windows */
	size_t windows;	 /* newest ones of the series that lie in it */
	double anchor;	 /* anchors counted in all of it */
	double seen;	 /* counted in its windows: the total is at least this */
};

/*
 * Events a second. Not known when the series is empty. Exact (low == high) where
 * covered is the whole interval.
 */
struct estimate estimate_rate(const struct series *s, const struct interval_facts *f);

/* The same for a share of time (count in ns): clamped to 0..1. */
struct estimate estimate_share(const struct series *s, const struct interval_facts *f);

#endif
