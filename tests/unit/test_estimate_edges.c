// SPDX-License-Identifier: BSD-2-Clause
/* Estimates of what can be worked out by hand, and of what makes no sense. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "launching.h"
#include "monitor/estimate.h"

#define SECOND 1e9

static void fill(struct series *s, size_t n, double count)
{
	struct window_count w = {.length = (int64_t)(10 * MS), .count = count};

	for (size_t i = 0; i < n; i++)
		series_add(s, &w);
}

static void test_exact(void **state)
{
	struct interval_facts f = {.length = (int64_t)SECOND, .covered = (int64_t)SECOND,
				   .windows = 2, .seen = 1234};
	struct series s = {0};
	struct estimate e = estimate_rate(&s, &f);

	assert_false(e.known);
	fill(&s, 2, 50);
	e = estimate_rate(&s, &f);
	assert_true(e.known && e.value == 1234 && e.low == e.value && e.high == e.value);
	f.seen = 0.25 * SECOND;
	e = estimate_share(&s, &f);
	assert_true(e.known && e.value == 0.25 && e.low == e.value && e.high == e.value);
	f.length = 0;
	assert_false(estimate_rate(&s, &f).known);
}

/* Expected values worked out by hand from the rule of three. */
static void test_nothing_seen(void **state)
{
	struct interval_facts f = {.length = (int64_t)SECOND, .covered = (int64_t)(100 * MS),
				   .windows = 10};
	struct series s = {0};
	struct estimate e;

	fill(&s, 60, 0); /* 0.6 s in all: fewer than 3 / 0.6 s, in 0.9 s of 1 s */
	e = estimate_rate(&s, &f);
	assert_true(e.known && e.value == 0 && e.low == 0);
	assert_true(fabs(e.high - 4.5) < 0.01);
	memset(&s, 0, sizeof(s));
	fill(&s, 10, 0); /* 3 / 10 of the time may be it */
	e = estimate_share(&s, &f);
	assert_true(e.value == 0 && e.high > 0 && e.high <= 0.27);
	memset(&s, 0, sizeof(s));
	fill(&s, 1, 1000);
	fill(&s, 63, 0); /* 100 k/s for 3 / 63 of the rest; the difference long ago adds little */
	e = estimate_rate(&s, &f);
	assert_true(e.value == 0 && e.high >= 100000 * 3 / 63.0 * 0.9 - 1);
	assert_true(e.high < 15000);
	memset(&s, 0, sizeof(s));
	fill(&s, 10, 10 * MS);
	f.seen = 100 * MS;
	e = estimate_share(&s, &f);
	assert_true(e.value == 1 && e.high == 1 && e.low < 0.75 && e.low > 0.1);
}

static void test_few_windows(void **state)
{
	struct interval_facts f = {.length = (int64_t)SECOND, .covered = (int64_t)(10 * MS),
				   .windows = 1, .seen = 1000};
	struct series s = {0};
	struct estimate e;

	fill(&s, 1, 1000);
	e = estimate_rate(&s, &f);
	assert_true(fabs(e.value - 100000) < 1e-6);
	assert_true(e.low == 1000 && e.high > 200000);
	f.windows = 0; /* none of them in this interval */
	f.covered = 0;
	f.seen = 0;
	e = estimate_rate(&s, &f);
	assert_true(fabs(e.value - 100000) < 1e-6);
	assert_true(e.low == 0 && e.high > 200000);
	fill(&s, 63, 1000);
	e = estimate_rate(&s, &f);
	assert_true(fabs(e.value - 100000) < 1e-6);
	assert_true(e.low > 95000 && e.high < 105000 && e.low < e.high);
}

/* 9 and 11 launches a window of 10 ms in turns: s^2 of a window is 2 by successive differences. */
static void fill_in_turns(struct series *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fill(s, 1, i % 2 ? 11 : 9);
}

static void expect_half(const struct estimate *e, double half)
{
	if (fabs((e->high - e->value) - half) > 0.03 * half)
		fail_msg("+- %g, should be %g", e->high - e->value, half);
}

static void test_width(void **state)
{
	struct interval_facts f = {.length = (int64_t)SECOND, .covered = (int64_t)(20 * MS),
				   .windows = 2, .seen = 20};
	const double ends = 1 / 6.0, rest = 0.98;
	struct series s = {0};
	struct estimate e;

	fill_in_turns(&s, 2); /* one difference: Student's t of one degree of freedom */
	e = estimate_rate(&s, &f);
	assert_true(fabs(e.value - 1000) < 1e-6);
	expect_half(&e, 12.706 * sqrt(2 / rest / 2 + ends / 2) * 100 * rest);
	fill_in_turns(&s, 62); /* about 40 degrees of freedom */
	e = estimate_rate(&s, &f);
	expect_half(&e, 2.03 * sqrt(2 / rest / 2 + ends / 2) * 100 * rest);
	f.windows = f.covered = 0;
	f.seen = 0; /* a window's own variance on top of that of the mean of 64 */
	e = estimate_rate(&s, &f);
	expect_half(&e, 2.03 * sqrt(2 + 2 / 64.0 + ends) * 100);
}

/* The last ten windows have half the launches an anchor: what was before does not count. */
static void test_ratio_contradicted(void **state)
{
	struct interval_facts f = {.length = (int64_t)SECOND, .covered = (int64_t)(100 * MS),
				   .windows = 10, .anchor = 1000, .seen = 5000};
	struct window_count w = {.length = (int64_t)(10 * MS)};
	struct series s = {0};

	for (int i = 0; i < 64; i++) {
		w.anchor = 9 + i % 3;
		w.count = (i < 54 ? 100 : 50) * w.anchor;
		series_add(&s, &w);
	}
	assert_true(fabs(estimate_rate(&s, &f).value - 50000) < 2500);
	memset(&s, 0, sizeof(s));
	for (int i = 0; i < 64; i++) {
		w.anchor = 9 + i % 3;
		w.count = 50 * w.anchor;
		series_add(&s, &w);
	}
	f.anchor = 1500; /* the rest was busier than the windows, the anchors say */
	assert_true(fabs(estimate_rate(&s, &f).value - 75000) < 1000);
}

/* An anchor in every other window: however well they agree, windows are too short for a ratio. */
static void test_ratio_of_too_few(void **state)
{
	struct interval_facts f = {.length = (int64_t)SECOND, .covered = (int64_t)(100 * MS),
				   .windows = 10, .anchor = 200, .seen = 500};
	struct window_count w = {.length = (int64_t)(10 * MS)};
	struct series s = {0};

	for (int i = 0; i < 64; i++) {
		w.anchor = i % 2;
		w.count = 100 * w.anchor;
		series_add(&s, &w);
	}
	assert_true(fabs(estimate_rate(&s, &f).value - 5000) < 1e-6);
}

/* Windows that met a job without a CPU say nothing of what it does when it has one. */
static void test_not_represented(void **state)
{
	struct interval_facts f = {.length = (int64_t)SECOND, .covered = (int64_t)(100 * MS),
				   .windows = 10, .anchor = 500 * MS, .seen = 0};
	struct window_count busy = {.length = (int64_t)(10 * MS), .count = 1000, .anchor = 10 * MS};
	struct window_count away = {.length = (int64_t)(10 * MS)}, some = away;
	struct series s = {0};
	struct estimate e;

	for (int i = 0; i < 10; i++)
		series_add(&s, &away);
	assert_false(estimate_rate(&s, &f).known);
	f.windows = 0; /* nor if these were in the interval before */
	f.covered = 0;
	assert_false(estimate_rate(&s, &f).known);
	f.anchor = 2; /* so little may well be between two windows */
	assert_true(estimate_rate(&s, &f).known);

	memset(&s, 0, sizeof(s));
	for (int i = 0; i < 20; i++)
		series_add(&s, &busy);
	for (int i = 0; i < 10; i++)
		series_add(&s, &away);
	f = (struct interval_facts){.length = (int64_t)SECOND, .covered = (int64_t)(100 * MS),
				    .windows = 10, .anchor = 500 * MS};
	e = estimate_rate(&s, &f); /* 100 launches a ms of work */
	assert_true(e.known && fabs(e.value - 50000) < 1 && e.low < 50000 && e.high > 50000);

	memset(&s, 0, sizeof(s));
	some.anchor = 3 * MS; /* it had a CPU, and did not launch */
	for (int i = 0; i < 10; i++)
		series_add(&s, &some);
	e = estimate_rate(&s, &f);
	assert_true(e.known && e.value == 0 && e.low == 0);
}

/* What the thread lost to probes it would have launched in. */
static void test_lost(void **state)
{
	struct interval_facts f = {.length = (int64_t)SECOND, .covered = (int64_t)(100 * MS),
				   .windows = 10, .seen = 8000};
	struct window_count w = {.length = (int64_t)(10 * MS), .lost = (int64_t)(2 * MS),
				 .count = 800};
	struct series s = {0};

	for (int i = 0; i < 10; i++)
		series_add(&s, &w);
	assert_true(fabs(estimate_rate(&s, &f).value - (8000 + 0.9 * 100000)) < 1e-6);
}

static double odd_number(uint64_t *random)
{
	static const double odd[] = {0, -1, 1, 1e300, INFINITY, -INFINITY, NAN};
	const size_t n = sizeof(odd) / sizeof(*odd);

	return odd[(size_t)(random_part(random) * (double)n)];
}

static int64_t odd_time(uint64_t *random)
{
	static const int64_t odd[] = {0, -1, 1, INT64_MIN, INT64_MAX, 10000000};
	const size_t n = sizeof(odd) / sizeof(*odd);

	return odd[(size_t)(random_part(random) * (double)n)];
}

static void expect_ordered(const struct estimate *e, double most)
{
	if (e->known)
		assert_true(e->low >= 0 && e->low <= e->value && e->value <= e->high &&
			    e->high <= most && isfinite(e->high));
}

static void test_hostile(void **state)
{
	uint64_t r = 3;

	for (int run = 0; run < 3000; run++) {
		struct series s = {0};
		struct interval_facts f;
		struct estimate e;

		for (int i = 0; i < run % 70; i++) {
			struct window_count w = {
				.length = odd_time(&r), .lost = odd_time(&r),
				.count = odd_number(&r), .anchor = odd_number(&r),
				.spent = odd_number(&r), .stands_for = odd_time(&r)};

			series_add(&s, &w);
		}
		f = (struct interval_facts){
			.length = odd_time(&r), .covered = odd_time(&r),
			.windows = (size_t)odd_time(&r), .anchor = odd_number(&r),
			.spent = odd_number(&r), .seen = odd_number(&r),
			.cost = odd_number(&r), .cost_sd = odd_number(&r)};
		e = estimate_share(&s, &f);
		expect_ordered(&e, 1);
		e = estimate_rate(&s, &f);
		expect_ordered(&e, INFINITY);
	}
}

/* Every moment the same chance, and phases met more evenly than by chance. */
static void test_window_offset(void **state)
{
	int64_t stratum = 100000;
	double apart = 0;
	int in[10] = {0};

	for (uint64_t k = 0; k < 16000; k += 16) {
		bool met[8] = {0};
		int phases = 0;

		for (uint64_t i = 0; i < 16; i++) {
			int64_t at = window_offset(1234, k + i, stratum);

			assert_in_range(at, 0, stratum - 1);
			in[at * 10 / stratum]++;
			met[at * 8 / stratum] = true;
		}
		for (int i = 0; i < 8; i++)
			phases += met[i];
		apart += phases / 1000.0;
	}
	for (int i = 0; i < 10; i++)
		assert_in_range(in[i], 1520, 1680);
	assert_true(apart > 7.4); /* of 8; by chance 8 (1 - (7/8)^16) = 7.06 */
	assert_int_equal(window_offset(1, 5, 0), 0);
	assert_int_equal(window_offset(1, 5, -7), 0);
	assert_in_range(window_offset(UINT64_MAX, UINT64_MAX, stratum), 0, stratum - 1);
	assert_true(window_offset(0, 3, INT64_MAX) >= 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_nothing_seen),
		cmocka_unit_test(test_few_windows),
		cmocka_unit_test(test_width),
		cmocka_unit_test(test_ratio_contradicted),
		cmocka_unit_test(test_ratio_of_too_few),
		cmocka_unit_test(test_not_represented),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_window_offset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
