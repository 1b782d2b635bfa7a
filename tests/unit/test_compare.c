/* SPDX-License-Identifier: BSD-2-Clause */
/* Recordings of one job do not differ, those of a changed one do, and by how much. */
#include "labelled_jobs.h"

#include <math.h>

#include "diagnose/compare.h"

#define PAIRS 5

/* SplitMix64: neighbouring seeds have nothing in common. */
static double noise(uint64_t *state) /* -1..1 */
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	z ^= z >> 31;
	return (double)(z >> 11) / (double)(UINT64_C(1) << 52) - 1;
}

/* A training job; its dispatch takes `factor` times as long. drift: of this recording. */
static void record(struct job *j, uint64_t seed, double factor, double drift, bool folded)
{
	uint64_t state = seed * 1000003;
	double slow = factor * exp(drift * noise(&state));

	job_start(j, false);
	for (int i = 0; i < 40; i++) {
		for (unsigned k = 0; k < 20; k++) {
			double usual = (5000 + 500 * noise(&state)) * slow;

			job_between(j, 10 * USEC);
			if (k == 7 && folded)
				continue;
			job_kernel(j, k, (int64_t)usual, 3 * USEC);
		}
		job_sync(j);
	}
	job_finish(j);
}

/* n recordings of each, in turn; what compare() says of them. */
static struct comparison compared(uint64_t seed, size_t n, double factor, double drift)
{
	struct job before[PAIRS], after[PAIRS];
	const struct session *a[PAIRS], *b[PAIRS];
	struct comparison c;

	for (size_t i = 0; i < n; i++) {
		record(&before[i], seed * 100 + 2 * i, 1, drift, false);
		record(&after[i], seed * 100 + 2 * i + 1, factor, drift, false);
		a[i] = before[i].f.s;
		b[i] = after[i].f.s;
	}
	assert_int_equal(compare(a, b, n, &c), 0);
	for (size_t i = 0; i < n; i++) {
		feed_stop(&before[i].f);
		feed_stop(&after[i].f);
	}
	return c;
}

static bool any_differs(const struct comparison *c)
{
	for (int m = 0; m < MEASURES; m++)
		if (c->of[m].differs)
			return true;
	return false;
}

static void same_job(void **state)
{
	int differ[2] = { 0 };

	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct comparison c = compared(seed, 1, 1, 0.03);

		differ[0] += any_differs(&c);
		assert_true(c.of[MEASURE_DISPATCH].known && c.of[MEASURE_STEP].known);
		assert_int_equal(c.changes_count, 0);
		comparison_free(&c);
		c = compared(seed, PAIRS, 1, 0.03);
		differ[1] += any_differs(&c);
		comparison_free(&c);
	}
	assert_in_range(differ[0], 0, 2); /* of 40: 95 of 100 are right */
	assert_in_range(differ[1], 0, 2);
}

/* 3 % more dispatch time, recordings that drift by 0.5 %. */
static void small_change(void **state)
{
	int found = 0;

	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct comparison c = compared(seed, PAIRS, 1.03, 0.005);
		const struct difference *d = &c.of[MEASURE_DISPATCH];

		found += d->differs && d->change > 0;
		assert_true(fabs(d->change - 0.03) < 0.01);
		assert_true(!c.of[MEASURE_KERNEL].known);
		comparison_free(&c);
		/* From one of each no such thing is claimed, but what could be is told. */
		c = compared(seed, 1, 1.03, 0.005);
		d = &c.of[MEASURE_DISPATCH];
		assert_false(d->differs);
		assert_true(d->detectable > 0.05 && d->detectable < 0.3);
		comparison_free(&c);
	}
	assert_true(found >= 19);
}

static void large_change(void **state)
{
	struct comparison c = compared(3, 1, 1.5, 0.01);
	const struct difference *d = &c.of[MEASURE_DISPATCH];

	assert_true(d->differs && d->low < 0.5 && d->high > 0.5);
	comparison_free(&c);
}

/* One kernel fewer a step. */
static void what_is_called(void **state)
{
	struct job before, after;
	const struct session *a, *b;
	struct comparison c;

	record(&before, 1, 1, 0, false);
	record(&after, 2, 1, 0, true);
	a = before.f.s;
	b = after.f.s;
	assert_int_equal(compare(&a, &b, 1, &c), 0);
	assert_true(c.per_step);
	assert_int_equal(c.changes_count, 1);
	assert_string_equal(c.changes[0].name, "_Z8kernel07v");
	assert_true(fabs(c.changes[0].before - 1) < 0.05 && c.changes[0].after == 0);
	comparison_free(&c);
	feed_stop(&before.f);
	feed_stop(&after.f);
}

static void nothing_to_compare(void **state)
{
	struct job j;
	const struct session *s;
	struct comparison c;

	job_start(&j, false);
	job_finish(&j);
	s = j.f.s;
	assert_int_equal(compare(&s, &s, 1, &c), 0);
	for (int m = 0; m < MEASURES; m++)
		assert_false(c.of[m].known);
	comparison_free(&c);
	feed_stop(&j.f);
}

/* Two-sided, from the usual tables. */
static void tables(void **state)
{
	static const struct {
		double chance, df, t;
	} known[] = {
		{ 0.05, 1, 12.706 }, { 0.05, 2, 4.303 }, { 0.05, 3, 3.182 }, { 0.05, 4, 2.776 },
		{ 0.05, 10, 2.228 }, { 0.05, 30, 2.042 }, { 0.01, 1, 63.657 }, { 0.01, 3, 5.841 },
		{ 0.01, 4, 4.604 },  { 0.01, 9, 3.250 }, { 0.01, 19, 2.861 }, { 0.1, 5, 2.015 },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		double t = student_t(known[i].chance, known[i].df);

		if (fabs(t - known[i].t) > 0.002 * known[i].t)
			fail_msg("t(%g, %g) = %f, not %f", known[i].chance, known[i].df, t,
				 known[i].t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables),	    cmocka_unit_test(same_job),
		cmocka_unit_test(small_change),	    cmocka_unit_test(large_change),
		cmocka_unit_test(what_is_called), cmocka_unit_test(nothing_to_compare),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
