// SPDX-License-Identifier: BSD-2-Clause
/* Estimates against jobs whose every launch is known: bias, and how often the interval is right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "launching.h"
#include "monitor/estimate.h"

#define SECOND 1e9

enum placing { PLACE_SPREAD, PLACE_RANDOM };

/* How a job is watched: one window in each stratum, everything read once a second. */
struct watch {
	double window_ns, stratum_ns;
	enum placing placing;
	bool anchors;  /* are probed */
	bool adaptive; /* windows are four times longer where the last one saw nothing */
	uint64_t random;
	/* where it is */
	struct series launches, on_time;
	uint64_t k;
	double now, begin, end;
};

struct score {
	double intervals, right, truth, told, width;
	double busy, busy_right; /* of intervals in which anything happened */
};

/* One interval: what happened and what was told of it. */
struct told {
	struct happened h;
	struct estimate rate, share;
};

static void watch_next(struct watch *w, bool saw)
{
	double stratum = w->stratum_ns;
	double length = w->adaptive && !saw ? 4 * w->window_ns : w->window_ns;
	double begin = (double)w->k * stratum;

	if (w->placing == PLACE_SPREAD)
		begin += (double)window_offset(w->random, w->k, (int64_t)stratum);
	else
		begin += random_part(&w->random) * stratum;
	w->k++;
	w->begin = fmax(begin - length / 2, w->end + MS);
	w->end = w->begin + length;
}

static void watch_window(struct watch *w, struct job *j, double until, struct happened *seen,
			 struct interval_facts *f)
{
	double to = fmin(w->end, until), ns = to - w->now;
	struct happened h = {0};
	struct window_count c = {.length = (int64_t)ns};

	job_run(j, ns, true, &h);
	c.lost = (int64_t)h.lost_ns;
	c.count = h.launches;
	c.anchor = w->anchors ? h.anchors : 0;
	if (w->adaptive)
		c.stands_for = (int64_t)(w->stratum_ns * ns / (w->end - w->begin));
	series_add(&w->launches, &c);
	c.count = h.on_ns;
	c.anchor = c.lost = 0;
	series_add(&w->on_time, &c);
	f->windows += c.length > 0;
	f->covered += c.length;
	seen->launches += h.launches;
	seen->anchors += h.anchors;
	seen->on_ns += h.on_ns;
	w->now = to;
	if (to >= w->end)
		watch_next(w, h.launches > 0);
}

static struct told watch_second(struct watch *w, struct job *j)
{
	double until = w->now + SECOND;
	struct interval_facts f = {.length = (int64_t)SECOND};
	struct happened seen = {0};
	struct told t = {0};

	if (!w->k)
		watch_next(w, true);
	while (until - w->now > 0.5) {
		double ns = fmin(w->begin, until) - w->now;

		if (ns > 0) {
			job_run(j, ns, false, &t.h);
			w->now += ns;
		} else {
			watch_window(w, j, until, &seen, &f);
		}
	}
	w->now = until;
	t.h.launches += seen.launches;
	t.h.anchors += seen.anchors;
	t.h.on_ns += seen.on_ns;
	f.seen = seen.launches;
	f.anchor = w->anchors ? t.h.anchors : 0;
	t.rate = estimate_rate(&w->launches, &f);
	f.seen = seen.on_ns;
	f.anchor = 0;
	t.share = estimate_share(&w->on_time, &f);
	if (t.rate.known) {
		assert_true(t.rate.low >= seen.launches - 1e-6);
		assert_true(t.rate.low < t.rate.high);
		assert_true(t.rate.low <= t.rate.value && t.rate.value <= t.rate.high);
	}
	return t;
}

static bool score_add(struct score *s, double truth, const struct estimate *e)
{
	bool right = truth >= e->low * (1 - 1e-9) && truth <= e->high * (1 + 1e-9);

	assert_true(e->known);
	s->intervals++;
	s->right += right;
	s->busy += truth > 0;
	s->busy_right += truth > 0 && right;
	s->truth += truth;
	s->told += e->value;
	s->width += (e->high - e->low) / 2;
	return right;
}

static double percent(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 100;
}

/* The promise: off by 3 % at most over the run, right in 90 % of the intervals. */
static void expect_good(const char *name, const struct score *s, double most_bias)
{
	double bias = percent(s->told, s->truth) - 100;

	print_message("  %-52s %5.0f intervals: bias %+5.2f %%, right %5.1f %%, "
		      "busy ones %5.1f %%, +- %.1f %%\n",
		      name, s->intervals, bias, percent(s->right, s->intervals),
		      percent(s->busy_right, s->busy), percent(s->width, s->truth));
	assert_true(fabs(bias) <= most_bias);
	assert_true(s->intervals >= 200);
	assert_true(s->right >= 0.9 * s->intervals);
	assert_true(s->busy_right >= 0.9 * s->busy);
}

static void watch_job(const char *what, struct job job, struct watch watch, int seconds)
{
	struct score rate = {0};
	char name[80];

	job.random = 88172645463325252u;
	watch.random = 1181783497276652981u;
	for (int i = 0; i < seconds; i++) {
		struct told t = watch_second(&watch, &job);

		if (t.rate.known)
			score_add(&rate, t.h.launches, &t.rate);
	}
	snprintf(name, sizeof(name), "%s, %.0f x %.0f ms%s%s%s", what, SECOND / watch.stratum_ns,
		 watch.window_ns / MS, watch.anchors ? ", anchors" : "",
		 job.slowing > 0 ? ", slowed" : "", watch.placing ? ", random" : "");
	expect_good(name, &rate, 3);
}

/* With and without anchors, with and without the probes slowing the job. */
static void watch_all_ways(const char *what, struct job job, struct watch watch, int seconds)
{
	for (int way = 0; way < 4; way++) {
		watch.anchors = way & 1;
		job.slowing = way & 2 ? 0.2 : 0;
		watch_job(what, job, watch, seconds);
	}
}

static const struct watch often = {.window_ns = 10 * MS, .stratum_ns = 100 * MS};
static const struct watch shorter = {.window_ns = 5 * MS, .stratum_ns = 100 * MS};
static const struct watch seldom = {.window_ns = 5 * MS, .stratum_ns = 250 * MS};

static void test_steady(void **state)
{
	struct job even = {.kind = JOB_STEADY, .rate = 100000};
	struct job poisson = {.kind = JOB_STEADY, .rate = 100000, .poisson = true};
	struct job few = {.kind = JOB_STEADY, .rate = 500, .poisson = true};
	struct job rare = {.kind = JOB_STEADY, .rate = 20, .poisson = true};
	struct watch anchored = often;

	watch_all_ways("even", even, often, 300);
	watch_all_ways("even", even, seldom, 300);
	watch_all_ways("at random", poisson, often, 300);
	watch_all_ways("at random", poisson, seldom, 300);
	watch_all_ways("at random, 500/s", few, often, 600);
	anchored.anchors = true;
	watch_job("at random, 20/s", rare, anchored, 2500);
}

static void test_bursty(void **state)
{
	struct job job = {.kind = JOB_BURSTY, .rate = 200000};

	watch_all_ways("bursts", job, often, 2000);
	watch_all_ways("bursts", job, shorter, 2000);
}

static void test_periodic(void **state)
{
	static const struct {
		const char *name;
		double strata;
	} periods[] = {
		{"period = spacing", 1},
		{"period = 2 spacings", 2},
		{"period = 2.5 spacings", 2.5},
		{"period = half a spacing", 0.5},
		{"period = 1.618 spacings", 1.618034},
		{"period = 20 spacings", 20},
	};

	for (size_t i = 0; i < sizeof(periods) / sizeof(*periods); i++) {
		struct job job = {.kind = JOB_PERIODIC, .rate = 100000};

		job.period_ns = periods[i].strata * often.stratum_ns;
		watch_all_ways(periods[i].name, job, often, 1200);
	}
}

/* Windows at plain random in their strata do too, but need longer. */
static void test_random_placing(void **state)
{
	struct job job = {.kind = JOB_PERIODIC, .rate = 100000, .period_ns = 100 * MS};
	struct watch watch = often;

	watch.placing = PLACE_RANDOM;
	watch_job("period = spacing", job, watch, 3000);
}

static void test_long_steps(void **state)
{
	struct job job = {.kind = JOB_LONG, .rate = 10000};

	watch_all_ways("steps of 100 ms", job, often, 300);
	watch_all_ways("steps of 100 ms", job, seldom, 300);
}

/* From nothing to 200 k/s: the interval in which it happens, and those after it. */
static void test_jump(void **state)
{
	static const char *const names[] = {"jump, its interval", "jump, the next", "jump, then"};
	struct score score[3] = {0};
	uint64_t random = 77;

	for (int run = 0; run < 300; run++) {
		double at = 5 + random_part(&random);
		struct job job = {.kind = JOB_JUMP, .rate = 200000, .jump_ns = at * SECOND};
		struct watch watch = often;

		watch.random = 1181783497276652981u + (uint64_t)run;
		watch.k = (uint64_t)run * 10; /* as if it had been watched that long */
		watch.now = run * SECOND;
		watch.end = watch.now;
		watch_next(&watch, true);
		for (int i = 0; i < 8; i++) {
			struct told t = watch_second(&watch, &job);

			if (i >= 5)
				score_add(&score[i - 5], t.h.launches, &t.rate);
			else
				assert_true(t.rate.value == 0 && t.rate.high > 0);
		}
	}
	for (int i = 0; i < 3; i++)
		expect_good(names[i], &score[i], 3);
}

/* Launches an anchor change by half in the middle of a run: the ratio must not outlive it. */
static void test_ratio_changes(void **state)
{
	struct job job = {.kind = JOB_STEADY, .rate = 100000, .poisson = true, .random = 99};
	struct watch watch = often;
	struct score score = {0};

	watch.random = 4;
	watch.anchors = true;
	for (int i = 0; i < 600; i++) {
		struct told t;

		if (i % 15 == 14)
			job.rate = job.rate > 75000 ? 50000 : 100000;
		t = watch_second(&watch, &job);
		score_add(&score, t.h.launches, &t.rate);
	}
	expect_good("changing ratio", &score, 3);
}

/* Windows that are long where nothing happens would hide what happens. */
static void test_adaptive_windows(void **state)
{
	struct job job = {.kind = JOB_BURSTY, .rate = 200000};
	struct watch watch = often;

	watch.adaptive = true;
	watch_job("bursts, adaptive windows", job, watch, 2000);
	job = (struct job){.kind = JOB_PERIODIC, .rate = 100000, .period_ns = 100 * MS};
	watch_job("period = spacing, adaptive windows", job, watch, 1500);
	job.period_ns = 2300 * MS;
	watch_job("period = 23 spacings, adaptive windows", job, watch, 1500);
}

static void test_share(void **state)
{
	static const struct job jobs[] = {
		{.kind = JOB_STEADY, .rate = 100000},
		{.kind = JOB_BURSTY, .rate = 200000},
		{.kind = JOB_PERIODIC, .rate = 1000, .period_ns = 100 * MS},
		{.kind = JOB_LONG, .rate = 10000},
	};
	static const char *const names[] = {"share: all", "share: bursts", "share: periods",
					    "share: long steps"};

	for (int i = 0; i < 4; i++) {
		struct job job = jobs[i];
		struct watch watch = often;
		struct score score = {0};

		job.random = watch.random = 12345;
		for (int k = 0; k < 1500; k++) {
			struct told t = watch_second(&watch, &job);

			score_add(&score, t.h.on_ns / SECOND, &t.share);
			assert_true(t.share.low >= 0 && t.share.high <= 1);
			assert_true(t.share.low < t.share.high);
		}
		expect_good(names[i], &score, 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steady),
		cmocka_unit_test(test_bursty),
		cmocka_unit_test(test_periodic),
		cmocka_unit_test(test_random_placing),
		cmocka_unit_test(test_long_steps),
		cmocka_unit_test(test_jump),
		cmocka_unit_test(test_ratio_changes),
		cmocka_unit_test(test_adaptive_windows),
		cmocka_unit_test(test_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
