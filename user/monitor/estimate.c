// SPDX-License-Identifier: BSD-2-Clause
#include <math.h>
#include <string.h>

#include "monitor/estimate.h"

#define Z 1.959964	/* 97.5 % of a normal law lie below */
#define DECAY 0.985	/* what a window counts for, of the one after it */
#define RECENT 4	/* windows at least that tell how much they differ now */
#define PRIOR_SD 0.1	/* by which ratios of windows differ, as long as that is not seen; */
#define PRIOR_WINDOWS 2 /* it counts as much as so many windows */
#define MIN_ANCHORS 30	/* in windows, before launches are told by them */
#define MIN_LAUNCHES 100 /* likewise */
#define MIN_PER_WINDOW 2 /* anchors in windows with anything in them, on average */
#define CONTRADICTED 4	/* windows that differ so much more than expected mean a change */
#define MIN_GAIN 0.7	/* of the mean's variance, before another estimator is preferred */
#define SPREAD 8	/* windows in a row that are spread over their strata */
#define MAX_STRATUM INT64_C(1000000000000000) /* ns: days */
#define NEARLY_ALL 0.999 /* share of a window that may be all of it */
#define REPRESENTED 0.25 /* of the rest's anchors per time, what windows hold at least */
#define FEWEST_EXPECTED 3 /* anchors in windows, before that none came is no chance (5 %) */

/* What is estimated: events, or ns of a state. */
struct unit {
	double edge; /* what a window's ends leave in doubt: a call, a microsecond */
	double most; /* per ns; a rate cannot be more */
};

/* A series, newest window first, with rates per ns. */
struct rates {
	size_t all, now; /* windows; those in the interval */
	double length[SERIES_WINDOWS]; /* ns */
	double span[SERIES_WINDOWS];   /* without what was lost to probes */
	double weight[SERIES_WINDOWS]; /* of what was not covered, how much it stands for */
	double count[SERIES_WINDOWS], anchor[SERIES_WINDOWS];
};

/* Of the part of an interval that no window covered: its rate, and how sure that is. */
struct guess {
	double rate, variance, df;
};

struct rest {
	double length, covered, ns; /* of the interval, of its windows, of the rest */
	double anchors;		    /* in the rest */
	bool unseen;		    /* there was no window */
};

/* Numbers beyond all that can be counted would make infinities of their squares. */
static double positive(double v)
{
	return v > 0 && isfinite(v) ? fmin(v, 1e18) : 0;
}

void series_add(struct series *s, const struct window_count *w)
{
	if (w->length <= 0)
		return;
	s->next %= SERIES_WINDOWS;
	s->windows[s->next++] = *w;
	if (s->count < SERIES_WINDOWS)
		s->count++;
}

static void rates_take(struct rates *r, const struct series *s, size_t now, double cost)
{
	r->all = s->count < SERIES_WINDOWS ? s->count : SERIES_WINDOWS;
	r->now = now < r->all ? now : r->all;
	for (size_t i = 0; i < r->all; i++) {
		const struct window_count *w =
			&s->windows[(s->next + 2 * SERIES_WINDOWS - 1 - i) % SERIES_WINDOWS];

		r->length[i] = (double)w->length;
		r->span[i] = r->length[i] - positive(cost * (double)w->lost);
		if (r->span[i] < r->length[i] / 10) /* nothing slows a job tenfold: a wrong clock */
			r->span[i] = r->length[i] / 10;
		r->weight[i] = r->length[i];
		if (w->stands_for > 0) /* the rest of its stratum; not 0, lest all of them be */
			r->weight[i] = fmax((double)w->stands_for - r->length[i], 1e-6);
		r->count[i] = positive(w->count) / r->span[i];
		r->anchor[i] = positive(w->anchor - cost * w->spent) / r->span[i];
	}
}

static void rest_take(struct rest *rest, const struct rates *r, const struct interval_facts *f,
		      double cost)
{
	double anchors = positive(f->anchor - cost * f->spent);

	rest->length = (double)f->length;
	rest->covered = positive((double)f->covered);
	rest->ns = positive(rest->length - rest->covered);
	rest->unseen = r->now == 0;
	for (size_t i = 0; i < r->now; i++)
		anchors -= r->anchor[i] * r->span[i];
	rest->anchors = positive(anchors);
}

/*
 * Variance of the rate in a window of 1 ns, from the squared differences of
 * successive windows (von Neumann 1941), as if it fell with 1 / length. Each
 * difference counts for `decay` of the next one; df: chi-square degrees of freedom,
 * two thirds of the differences' number because neighbours share a window.
 */
static double differences(const struct rates *r, size_t n, double decay, double *df)
{
	double sum = 0, all = 0, squares = 0, weight = 1;

	for (size_t i = 0; i + 1 < n; i++) {
		double d = r->count[i] - r->count[i + 1];

		sum += weight * d * d / (1 / r->length[i] + 1 / r->length[i + 1]);
		all += weight;
		squares += weight * weight;
		weight *= decay;
	}
	*df = squares > 0 ? fmax(1, all * all / squares * 2 / 3) : 1;
	if (all > 0)
		return sum / all;
	return n ? r->count[0] * r->count[0] * r->length[0] : 0; /* one window: +- itself */
}

/* The larger of what all windows and those of this interval say: jobs change. */
static double spread(const struct rates *r, double *df)
{
	double ignored, pooled = differences(r, r->all, DECAY, df);
	size_t recent = r->now + 1 > RECENT ? r->now + 1 : RECENT;

	if (recent > r->all)
		recent = r->all;
	return fmax(pooled, differences(r, recent, 1, &ignored));
}

/*
 * Stratified mean (Cochran, Sampling Techniques, 3rd ed., eq. 5.1 and 5.6, one
 * window a stratum), its variance for what was not covered: (1 - f) s^2 / n is that
 * of the whole interval's total, which is (1 - f)^2 of the rest's rate.
 */
static struct guess guess_mean(const struct rates *r, const struct rest *rest)
{
	double sum = 0, all = 0, squares = 0, s2;
	size_t n = rest->unseen ? r->all : r->now;
	struct guess g;

	for (size_t i = 0; i < n; i++) {
		sum += r->count[i] * r->weight[i];
		all += r->weight[i];
		squares += r->weight[i] * r->weight[i] / r->length[i];
	}
	s2 = spread(r, &g.df);
	g.rate = sum / all;
	g.variance = s2 * squares / (all * all) * rest->length / rest->ns;
	if (rest->unseen) /* what windows differ by, intervals may */
		g.variance += s2 / r->length[0];
	return g;
}

/* What the ratio's variance is made of; sums over windows, d: what a window counts for. */
struct residues {
	double e2, de2, active; /* d e^2, d^2 e^2, windows with anything in them */
	double now, now_anchors;
};

/*
 * Residues of the launches against ratio times anchors. That of a window in use is
 * taken to be ratio^2 / 6 at least, the variance of what its ends cut off of a step:
 * a few windows may agree by chance, or because their length is a multiple of it.
 */
static void residues_take(struct residues *e, const struct rates *r, size_t n, double ratio)
{
	double decay = 1;

	memset(e, 0, sizeof(*e));
	for (size_t i = 0; i < n; i++, decay *= DECAY) {
		double anchors = r->anchor[i] * r->span[i];
		double residue = r->count[i] * r->span[i] - ratio * anchors;
		double square = residue * residue;

		if (i < r->now) {
			e->now += residue;
			e->now_anchors += anchors;
		}
		if (r->count[i] <= 0 && anchors <= 0)
			continue;
		square = fmax(square, ratio * ratio / 6);
		e->e2 += decay * square;
		e->de2 += decay * decay * square;
		e->active++;
	}
}

/*
 * Ratio to the anchors (Cochran, ch. 6), pooled over the newest n windows, as a prediction
 * of the rest: R = sum c / sum a; var(R) = sum (c - R a)^2 / (sum a)^2 (his eq. 6.13,
 * each window by its own residue, so that idle ones do not dilute it); and what the
 * rest's own launches differ by, in proportion to its anchors (Royall, On finite
 * population sampling theory under certain linear regression models, 1970).
 * A few windows may agree by chance: var(R) is pooled with what ratios may differ by.
 * False where too few anchors were in windows, because windows shorter than a step
 * make R biased and its variance a matter of luck; and where too few launches were, because
 * the windows that have one would then be those that contradict R. *against: how far
 * the windows of this interval do contradict it, 1 being what is to be expected.
 */
static bool guess_ratio(const struct rates *r, const struct rest *rest, size_t n,
			struct guess *g, double *against)
{
	double c = 0, a = 0, a2 = 0, seen = 0, launches = 0, decay = 1;
	double per_anchor, of_ratio, expected, windows;
	struct residues e;

	for (size_t i = 0; i < n; i++, decay *= DECAY) {
		double anchors = r->anchor[i] * r->span[i];

		launches += r->count[i] * r->span[i];
		c += decay * r->count[i] * r->span[i];
		a += decay * anchors;
		a2 += decay * anchors * decay * anchors;
		seen += anchors;
	}
	if (seen < MIN_ANCHORS || launches < MIN_LAUNCHES || rest->anchors <= 0)
		return false;
	residues_take(&e, r, n, c / a);
	windows = a * a / a2;
	g->df = fmax(windows - 1 + PRIOR_WINDOWS, 1);
	if (seen < MIN_PER_WINDOW * e.active)
		return false;
	per_anchor = e.e2 / a;
	of_ratio = (windows * e.de2 / (a * a) +
		    PRIOR_WINDOWS * PRIOR_SD * PRIOR_SD * c * c / (a * a) / windows) /
		   (windows + PRIOR_WINDOWS);
	expected = of_ratio + PRIOR_SD * PRIOR_SD * c * c / (a * a);
	expected *= e.now_anchors * e.now_anchors;
	expected += per_anchor * fmax(e.now_anchors, 1);
	*against = e.now * e.now / expected;
	g->rate = c / a * rest->anchors / rest->ns;
	g->variance = of_ratio * rest->anchors * rest->anchors + per_anchor * rest->anchors;
	g->variance /= rest->ns * rest->ns;
	return true;
}

/*
 * The pooled ratio; where this interval's windows contradict it, theirs, because the job
 * does something else now, or if they are too few for one, the pooled one with as much doubt.
 */
static bool guess_by_anchors(const struct rates *r, const struct rest *rest, struct guess *g)
{
	struct guess own;
	double against, ignored;

	if (!guess_ratio(r, rest, r->all, g, &against))
		return false;
	if (against <= CONTRADICTED)
		return true;
	if (r->now && guess_ratio(r, rest, r->now, &own, &ignored))
		*g = own;
	else
		g->variance *= against;
	return true;
}

/*
 * Windows that begin when we get a CPU may well meet a job that has just lost one: then they
 * hold far less of its work than the rest does, and their mean is none of the job's.
 */
static bool represented(const struct rates *r, const struct rest *rest)
{
	double held = 0, length = 0, expected;
	size_t n = rest->unseen ? r->all : r->now;

	for (size_t i = 0; i < n; i++) {
		held += r->anchor[i] * r->span[i];
		length += r->span[i];
	}
	expected = rest->anchors / rest->ns * length;
	return expected < FEWEST_EXPECTED || held >= REPRESENTED * expected;
}

/* Student's t at 0.975 (Abramowitz and Stegun, 26.7.5; below 3 from its tables). */
static double student(double df)
{
	double z2 = Z * Z;

	if (df < 2)
		return 12.706;
	if (df < 3)
		return 4.303;
	return Z * (1 + (z2 + 1) / (4 * df) + ((5 * z2 + 16) * z2 + 3) / (96 * df * df) +
		    (((3 * z2 + 19) * z2 + 17) * z2 - 15) / (384 * df * df * df));
}

/* Newest windows in a row whose rate is from low to high. */
static size_t run_between(const struct rates *r, double low, double high)
{
	size_t n = 0;

	while (n < r->all && r->count[n] >= low && r->count[n] <= high)
		n++;
	return n >= r->now ? n : 0;
}

/* What n windows in a row did not meet takes less of the time (95 %): the rule of three. */
static double share_missed(size_t n)
{
	return n ? fmin(1, 3 / (double)n) : 0;
}

/*
 * How fast the rest may have gone though all windows of the interval saw nothing:
 * for the time that they may have missed, as fast as when there last was something.
 * Never anything: fewer than three events in all that was covered.
 */
static double rate_missed(const struct rates *r, const struct unit *u)
{
	double share = share_missed(run_between(r, 0, 0)), rate = 0, length = 0;
	size_t active = 0;

	for (size_t i = 0; i < r->all; i++) {
		length += r->length[i];
		rate += r->count[i];
		active += r->count[i] > 0;
	}
	if (active)
		return share * rate / (double)active;
	return fmin(share * u->most, 3 / length);
}

/* Bounds of the rest's rate. */
static void bounds(const struct rates *r, const struct unit *u, const struct guess *g,
		   double *low, double *high)
{
	double half = student(g->df) * sqrt(g->variance);

	*low = g->rate - half;
	*high = fmax(g->rate + half, rate_missed(r, u));
	if (isfinite(u->most)) /* all of the time in every window: the same from above */
		*low = fmin(*low, u->most - share_missed(run_between(r, NEARLY_ALL, INFINITY)));
	*low = fmax(0, *low);
	*high = fmin(u->most, *high);
}

/*
 * What the ends of windows leave in doubt, so that windows that agree are not taken
 * for certain: 1/6 of a call's square a window (evenly spaced calls against a window
 * begun at random: the mean of p (1 - p)).
 */
static double ends(const struct rates *r, const struct rest *rest, const struct unit *u)
{
	double edge = u->edge / fmax(rest->covered, r->length[0]);
	size_t active = 0;

	for (size_t i = 0; i < r->now; i++)
		active += r->count[i] > 0;
	if (rest->unseen)
		active = 1;
	return (double)active * edge * edge / 6;
}

static struct estimate estimate_at(const struct series *s, const struct interval_facts *f,
				   const struct unit *u, double cost)
{
	double seen = positive(f->seen), low, high;
	struct estimate e = {0};
	struct guess best, other;
	struct rates r = {0};
	struct rest rest;
	bool mean, ratio;

	rates_take(&r, s, f->windows, cost);
	if (f->length <= 0 || !r.all)
		return e;
	rest_take(&rest, &r, f, cost);
	e.known = true;
	if (rest.ns <= 0) {
		e.value = e.low = e.high = seen / rest.length;
		return e;
	}
	best = guess_mean(&r, &rest);
	mean = represented(&r, &rest);
	ratio = guess_by_anchors(&r, &rest, &other);
	e.known = mean || ratio;
	if (ratio && (!mean || other.variance < MIN_GAIN * best.variance))
		best = other;
	best.variance += ends(&r, &rest, u);
	best.rate = fmin(u->most, best.rate);
	bounds(&r, u, &best, &low, &high);
	e.value = (seen + best.rate * rest.ns) / rest.length;
	e.low = (seen + low * rest.ns) / rest.length;
	e.high = (seen + high * rest.ns) / rest.length;
	return e;
}

/* What is not known of the probes' cost is in every window: it does not average out. */
static struct estimate estimate(const struct series *s, const struct interval_facts *f,
				const struct unit *u)
{
	double cost = f->cost > 0 ? f->cost : 1, doubt;
	struct estimate e = estimate_at(s, f, u, cost), other;

	if (!e.known || e.low >= e.high || f->cost_sd <= 0)
		return e;
	other = estimate_at(s, f, u, cost + f->cost_sd);
	doubt = Z * fabs(other.value - e.value);
	e.low = e.value - hypot(e.value - e.low, doubt);
	e.low = fmax(e.low, positive(f->seen) / (double)f->length);
	e.high = fmin(e.value + hypot(e.high - e.value, doubt), u->most);
	return e;
}

struct estimate estimate_rate(const struct series *s, const struct interval_facts *f)
{
	const struct unit events = {.edge = 1, .most = INFINITY};
	struct estimate e = estimate(s, f, &events);

	e.value *= 1e9;
	e.low *= 1e9;
	e.high *= 1e9;
	return e;
}

struct estimate estimate_share(const struct series *s, const struct interval_facts *f)
{
	const struct unit time = {.edge = 1000, .most = 1};
	struct estimate e = estimate(s, f, &time);

	e.value = fmin(1, e.value);
	e.low = fmin(1, e.low);
	e.high = fmin(1, e.high);
	return e;
}

/* 0..1, of any two numbers (the finisher of SplitMix64, Steele, Lea and Flood 2014). */
static double chance(uint64_t seed, uint64_t n)
{
	uint64_t v = seed + (n + 1) * UINT64_C(0x9e3779b97f4a7c15);

	v = (v ^ v >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	v = (v ^ v >> 27) * UINT64_C(0x94d049bb133111eb);
	v ^= v >> 31;
	return (double)(v >> 11) / 9007199254740992.0;
}

/* The i-th of a random order of 0 .. SPREAD - 1, another for each block of windows. */
static unsigned shuffled(uint64_t seed, uint64_t block, unsigned i)
{
	unsigned char order[SPREAD];

	for (unsigned k = 0; k < SPREAD; k++) {
		unsigned at = (unsigned)(chance(seed, block * SPREAD + k) * (k + 1));

		if (at != k)
			order[k] = order[at];
		order[at] = (unsigned char)k;
	}
	return order[i];
}

int64_t window_offset(uint64_t seed, uint64_t k, int64_t stratum)
{
	double at = shuffled(seed, k / SPREAD, k % SPREAD) + chance(~seed, k);

	if (stratum <= 0)
		return 0;
	if (stratum > MAX_STRATUM)
		stratum = MAX_STRATUM;
	return (int64_t)(at / SPREAD * (double)stratum);
}
