// SPDX-License-Identifier: BSD-2-Clause
/*
 * Times of a clock that runs on, drifts, is slewed, or is set, as made up here: the true
 * time is within the stated bound, always, and the bound is as tight as the readings are.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "sidecar/clock.h"

#define EPOCH 1764457200000000000LL /* what the made-up clock says at 0 */
#define BOOT 86400000000000LL
#define MS 1000000LL
#define SECOND (1000 * MS)
#define US 1000LL

static uint64_t seed;

static uint64_t random_below(uint64_t n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (seed >> 33) % n;
}

/* A clock made up of pieces: from a moment on, how far it is ahead and how fast it runs. */
struct piece {
	int64_t from;	/* ns since BOOT */
	int64_t step;	/* ns, added then */
	double ppm;
};

static int64_t offset_at(const struct piece *pieces, size_t count, int64_t t)
{
	double offset = 0;
	size_t i;

	for (i = 0; i < count && pieces[i].from <= t; i++) {
		int64_t until = i + 1 < count && pieces[i + 1].from < t ? pieces[i + 1].from : t;

		offset += (double)pieces[i].step;
		offset += (double)(until - pieces[i].from) * pieces[i].ppm / 1e6;
	}
	return (int64_t)offset;
}

static int64_t says(const struct piece *pieces, size_t count, int64_t t)
{
	return EPOCH + t + offset_at(pieces, count, t);
}

struct trial {
	const struct piece *pieces;
	size_t count;
	int64_t every, bracket; /* between readings; at most, ns */
	int64_t seconds;
};

struct outcome {
	int64_t worst_bound, worst_error;
	size_t converted, refused;
};

static void read_clock(struct cupti_clock *c, const struct trial *t, int64_t at)
{
	struct clock_reading r = { .before = BOOT + at };
	int64_t width = 20 + (int64_t)random_below((uint64_t)t->bracket);
	int64_t when = at + (int64_t)random_below((uint64_t)width);

	r.stamp = says(t->pieces, t->count, when);
	r.after = r.before + width;
	assert_int_equal(cupti_clock_add(c, &r, r.after + 1), 0);
}

static void look_up(const struct cupti_clock *c, const struct trial *t, int64_t at,
		    struct outcome *o)
{
	struct clock_time time;
	int64_t off;

	if (cupti_clock_convert(c, says(t->pieces, t->count, at), &time)) {
		o->refused++;
		return;
	}
	off = llabs(time.ns - (BOOT + at));
	if (off > time.error)
		fail_msg("%lld ns off at %lld us, said to be within %lld", (long long)off,
			 (long long)(at / US), (long long)time.error);
	assert_true(time.error <= CUPTI_CLOCK_ERROR_MAX);
	o->converted++;
	if (time.error > o->worst_bound)
		o->worst_bound = time.error;
	if (off > o->worst_error)
		o->worst_error = off;
}

/* Looks up times of the last segments after each reading, as they come in real life. */
static struct outcome try_out(const struct trial *t)
{
	struct cupti_clock *c = calloc(1, sizeof(*c));
	struct outcome o = { 0 };
	int64_t at, i;

	assert_non_null(c);
	for (at = 0; at < t->seconds * SECOND; at += t->every) {
		read_clock(c, t, at);
		for (i = 0; i < 20 && at; i++) {
			int64_t back = 1 + (int64_t)random_below((uint64_t)(3 * t->every));

			if (back < at)
				look_up(c, t, at - back, &o);
		}
	}
	free(c);
	assert_true(o.converted > 0);
	return o;
}

static void steady(void **state)
{
	const struct piece p[] = { { 0, 0, 0 } };
	struct outcome o = try_out(&(struct trial){ p, 1, 100 * MS, 400, 60 });

	assert_int_equal(o.refused, 0);
	assert_true(o.worst_bound <= US); /* three half brackets */
}

static void drift(void **state)
{
	const double ppm[] = { 0.1, 20, -37, 500, -500 };
	size_t i;

	for (i = 0; i < sizeof(ppm) / sizeof(*ppm); i++) {
		const struct piece p[] = { { 0, 0, ppm[i] } };
		struct outcome o = try_out(&(struct trial){ p, 1, SECOND, 300, 120 });

		assert_true(o.converted > 2000);
		assert_true(o.refused == 0);
		assert_true(o.worst_error < 2 * US || ppm[i] >= 500 || ppm[i] <= -500);
	}
}

/* After two readings the drift is known: the bound is that of the brackets again. */
static void drift_is_followed(void **state)
{
	struct cupti_clock *c = calloc(1, sizeof(*c));
	const struct piece p[] = { { 0, 0, 80 } };
	const struct trial t = { p, 1, SECOND, 200, 0 };
	struct outcome o = { 0 };
	int64_t at;

	for (at = 0; at < 5 * SECOND; at += SECOND)
		read_clock(c, &t, at);
	for (at = 3 * SECOND + MS; at < 4 * SECOND; at += MS)
		look_up(c, &t, at, &o);
	assert_true(o.worst_bound < 2 * US);
	free(c);
}

static void slews(void **state)
{
	const struct piece p[] = {
		{ 0, 0, 0 },		     { 7300 * MS, 0, 500 },  { 12550 * MS, 0, -500 },
		{ 19999 * MS, 0, 3 },	     { 25010 * MS, 0, -12 }, { 31500 * MS, 0, 0 },
		{ 40 * SECOND, 0, 250 },
	};
	struct outcome o = try_out(&(struct trial){ p, 7, 500 * MS, 500, 60 });

	assert_int_equal(o.refused, 0);
}

static void steps(void **state)
{
	const int64_t by[] = { 3 * US, 90 * US, 700 * US, 20 * MS, SECOND, 3600 * SECOND };
	size_t i, back;

	for (i = 0; i < sizeof(by) / sizeof(*by); i++)
		for (back = 0; back < 2; back++) {
			const struct piece p[] = {
				{ 0, 0, 0 },
				{ 10 * SECOND + 333 * MS, back ? -by[i] : by[i], 0 },
				{ 20 * SECOND + 50 * MS, back ? by[i] : -by[i], 7 },
			};
			struct outcome o = try_out(&(struct trial){ p, 3, 250 * MS, 300, 40 });

			/* what lies around a step, or is said twice, may be refused */
			assert_true(o.refused < o.converted / 4);
		}
}

static void step_in_a_bracket(void **state)
{
	struct cupti_clock *c = calloc(1, sizeof(*c));
	const struct clock_reading readings[] = {
		{ BOOT, EPOCH + 50, BOOT + 100 },
		/* set 5 us ahead just before it was read, in a bracket of 9 us */
		{ BOOT + SECOND, EPOCH + SECOND + 8 * US, BOOT + SECOND + 9 * US },
		{ BOOT + 2 * SECOND, EPOCH + 2 * SECOND + 5 * US, BOOT + 2 * SECOND + 100 },
	};
	struct clock_time t;
	size_t i;

	for (i = 0; i < 3; i++)
		assert_int_equal(cupti_clock_add(c, &readings[i], readings[i].after), 0);
	assert_int_equal(cupti_clock_convert(c, EPOCH + 500 * MS, &t), 0);
	assert_true(llabs(t.ns - (BOOT + 500 * MS)) <= t.error);
	assert_true(t.error >= 4 * US);
	assert_int_equal(cupti_clock_convert(c, EPOCH + 1500 * MS + 5 * US, &t), 0);
	assert_true(llabs(t.ns - (BOOT + 1500 * MS)) <= t.error);
	free(c);
}

static void nothing_is_extrapolated(void **state)
{
	struct cupti_clock *c = calloc(1, sizeof(*c));
	const struct piece p[] = { { 0, 0, 0 } };
	const struct trial t = { p, 1, SECOND, 100, 0 };
	struct clock_time time;

	assert_int_equal(cupti_clock_convert(c, EPOCH + MS, &time), -ERANGE);
	assert_false(cupti_clock_after(c, BOOT));
	read_clock(c, &t, SECOND);
	assert_int_equal(cupti_clock_convert(c, EPOCH + SECOND, &time), -ERANGE);
	read_clock(c, &t, 2 * SECOND);
	assert_int_equal(cupti_clock_convert(c, EPOCH + SECOND - MS, &time), -ERANGE);
	assert_int_equal(cupti_clock_convert(c, EPOCH + 2 * SECOND + MS, &time), -ERANGE);
	assert_int_equal(cupti_clock_convert(c, EPOCH + SECOND + MS, &time), 0);
	assert_true(cupti_clock_after(c, BOOT + 2 * SECOND));
	assert_false(cupti_clock_after(c, BOOT + 2 * SECOND + 1));
	free(c);
}

static void old_segments_are_forgotten(void **state)
{
	struct cupti_clock *c = calloc(1, sizeof(*c));
	const struct piece p[] = { { 0, 0, 0 } };
	const struct trial t = { p, 1, SECOND, 100, 0 };
	struct clock_time time;
	int64_t at;

	for (at = 0; at < (CUPTI_CLOCK_SEGMENTS + 10) * SECOND; at += SECOND)
		read_clock(c, &t, at);
	assert_int_equal(cupti_clock_convert(c, EPOCH + 5 * SECOND, &time), -ERANGE);
	assert_int_equal(cupti_clock_convert(c, EPOCH + 15 * SECOND, &time), 0);
	assert_true(llabs(time.ns - (BOOT + 15 * SECOND)) <= time.error);
	free(c);
}

static void impossible_readings(void **state)
{
	struct cupti_clock *c = calloc(1, sizeof(*c));
	const struct clock_reading bad[] = {
		{ 0, EPOCH, BOOT },		      { -5, EPOCH, BOOT },
		{ BOOT + 10, EPOCH, BOOT },	      { BOOT, 0, BOOT + 1 },
		{ BOOT, -1, BOOT + 1 },		      { BOOT, INT64_MAX, BOOT + 1 },
		{ BOOT, INT64_MIN, BOOT + 1 },	      { BOOT, EPOCH, BOOT + SECOND },
		{ INT64_MIN, EPOCH, INT64_MAX },      { 1, EPOCH, INT64_MAX },
	};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(cupti_clock_add(c, &bad[i], BOOT + MS), -EINVAL);
	assert_int_equal(
		cupti_clock_add(c, &(struct clock_reading){ BOOT, EPOCH, BOOT + 9 }, BOOT + MS), 0);
	/* the same again, and one that began before the last was over */
	assert_int_equal(
		cupti_clock_add(c, &(struct clock_reading){ BOOT, EPOCH, BOOT + 9 }, BOOT + MS),
		-EINVAL);
	assert_int_equal(cupti_clock_add(c, &(struct clock_reading){ BOOT + 8, EPOCH, BOOT + 20 },
					 BOOT + MS),
			 -EINVAL);
	free(c);
}

/* Anything that a clock can do, at once; bounds may be wide, but hold. */
static void anything(void **state)
{
	struct piece p[12];
	size_t round, i;

	for (round = 0; round < 20; round++) {
		for (i = 0; i < 12; i++) {
			p[i].from = i ? p[i - 1].from + (int64_t)random_below(9 * SECOND) : 0;
			p[i].step = 0;
			if (i && random_below(4) == 0)
				p[i].step = (int64_t)random_below(50 * MS) - 25 * MS;
			p[i].ppm = i ? p[i - 1].ppm : 0;
			if (!p[i].step && random_below(2))
				p[i].ppm = (double)random_below(80) - 40;
		}
		try_out(&(struct trial){ p, 12, (int64_t)(50 + random_below(900)) * MS,
					 50 + (int64_t)random_below(3000), 40 });
	}
}

static int start(void **state)
{
	seed = 20260101;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(steady, start),
		cmocka_unit_test_setup(drift, start),
		cmocka_unit_test_setup(drift_is_followed, start),
		cmocka_unit_test_setup(slews, start),
		cmocka_unit_test_setup(steps, start),
		cmocka_unit_test_setup(step_in_a_bracket, start),
		cmocka_unit_test_setup(nothing_is_extrapolated, start),
		cmocka_unit_test_setup(old_segments_are_forgotten, start),
		cmocka_unit_test_setup(impossible_readings, start),
		cmocka_unit_test_setup(anything, start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
