/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From short windows at random times to a rate over the whole interval, with a
 * 95 % interval that says how much the windows can tell. Pure arithmetic.
 *
 * What is counted in windows (launches) is estimated from what was counted there
 * and, where there is one, from an anchor: something of the same process that comes
 * with them and is known exactly over the whole interval, such as the time its
 * threads worked (ns), or calls that are probed all the time.
 *
 * What the windows saw counts as seen; only the rest of the interval is estimated,
 *   total = seen + rate of the rest x its length,
 * by one of two, whichever has the smaller variance:
 *   mean   rates of the interval's windows, count / (length - lost), each weighed by
 *          the stratum that it stands for. Variance: successive differences of the
 *          last 64 windows, or of this interval's where these differ more;
 *   ratio  launches an anchor, over the last 64 windows, times the anchors of the
 *          rest. Only where windows hold two anchors or more on average.
 * Student's t gives the interval; nothing seen at all gives the rule of three. The
 * formulas and their sources are with the functions in estimate.c.
 *
 * What it cannot know, by simulation (tests/unit/test_estimate.c):
 * - Placement must give every moment the same chance. A window that always ends
 *   within its stratum covers the stratum's ends less, and a job locked to the strata
 *   is then told up to half too low: let windows reach beyond (window_offset()).
 * - Lengths that follow what was seen need both: strata whose place does not depend on
 *   it, and stands_for. Weighed by length, windows four times longer where nothing
 *   happens tell 40 % too little of bursts; with stands_for but a gap counted from the
 *   end of the window before, still 18 % of a job whose period is the spacing.
 * - Where probes slow launching by 20 % that no waiting absorbs, and windows are not
 *   much shorter than the job's period, the mean is up to 4 % too high: windows that
 *   meet more launches cover less of the job. 2 % where they are a fifth of it.
 * - In the interval in which an idle job begins to launch, its own few windows are all
 *   there is (right in 95 % of 300 jumps to 200 k/s with ten windows); a start after the
 *   last of them is not noticed before the next interval.
 * - A job that is on for a share p of its long periods takes about
 *   4 (1 - p) / p / e^2 windows at random until their mean is within e: some ten
 *   thousand for 3 % at p = 0.3, a few hundred with window_offset() where the period
 *   is the spacing. Intervals say so: they are wide.
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
	int64_t lost;	/* of these, ns the busiest thread spent on our probes, not in waiting */
	double count;	/* of what is estimated */
	double anchor;	/* of the anchor; 0 where there is none */
	double spent;	/* of the anchor, ns that were not work but our probes */
	/*
	 * ns of the stratum it was placed in (its part of it, if the end of an interval cut
	 * it in two). Needed where lengths follow what was seen; 0: in proportion to length.
	 */
	int64_t stands_for;
};

struct series {
	struct window_count windows[SERIES_WINDOWS];
	size_t next, count;
};

/* Windows without length are ignored; a negative or infinite count or anchor is 0. */
void series_add(struct series *s, const struct window_count *w);

/* The interval that is estimated. */
struct interval_facts {
	int64_t length;	 /* ns */
	int64_t covered; /* of these, ns within windows */
	size_t windows;	 /* newest ones of the series that lie in it */
	double anchor;	 /* anchors counted in all of it, */
	double spent;	 /* probes among them */
	/*
	 * What probes cost, of what `lost` and `spent` say, and the standard deviation of
	 * that: how well it is known limits what windows can tell. Both 0: exactly so.
	 */
	double cost, cost_sd;
	double seen;	 /* counted in its windows: the total is at least this */
};

/*
 * Events a second. Not known when the series is empty or the interval has no length.
 * Exact (low == high) where covered is the whole interval, never otherwise. low is
 * never below what was seen. Without a window in the interval (windows == 0) the
 * series' mean stands for it, and the interval is as wide as windows differ.
 */
struct estimate estimate_rate(const struct series *s, const struct interval_facts *f);

/* The same for a share of time (count and seen in ns): clamped to 0..1. */
struct estimate estimate_share(const struct series *s, const struct interval_facts *f);

/*
 * Where in the k-th stratum (each `stratum` ns long) the middle of its window lies,
 * ns after the stratum begins: 0 .. stratum - 1. seed: a random number, one for all k.
 * Eight windows in a row lie in the eight eighths of their strata, in random order
 * (a Latin hypercube: McKay, Beckman and Conover 1979), so that they meet the phases
 * of a job whose period is the spacing more evenly than by chance, and nothing can
 * fall into step with them. Evenly spaced steps would do better until a job that the
 * probes delay beats with them. A window may reach into the strata beside it; push
 * its begin past the end of the one before. It is the middle because windows whose
 * length follows what the last one saw would otherwise see bursts begin early.
 */
int64_t window_offset(uint64_t seed, uint64_t k, int64_t stratum);

#endif
