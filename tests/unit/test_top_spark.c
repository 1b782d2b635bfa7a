/* SPDX-License-Identifier: BSD-2-Clause */
/* Sparklines and the bars of histograms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "top/bars.h"
#include "top/spark.h"

static void draws(const float *values, size_t count, size_t columns, bool utf8,
		  const char *expected)
{
	char buf[256];

	assert_string_equal(spark_draw(values, count, 0, columns, utf8, buf, sizeof(buf)),
			    expected);
}

static void from_zero_to_the_largest(void **state)
{
	const float ramp[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
	const float flat[] = {5, 5, 5};
	const float nothing[] = {0, 0};

	draws(ramp, 9, 9, true, "▁▁▂▃▄▅▆▇█");
	draws(ramp, 9, 9, false, "__.:-=+*#");
	draws(flat, 3, 3, true, "███");
	draws(nothing, 2, 2, true, "▁▁");
	draws(ramp, 0, 3, true, "   ");
	draws(ramp, 9, 0, true, "");
}

static void unknown_is_blank_and_the_newest_at_the_right(void **state)
{
	const float values[] = {4, NAN, 8};

	draws(values, 3, 5, true, "  ▄ █");
	draws(values, 1, 3, true, "  █");
}

static void groups_are_averaged(void **state)
{
	float values[12];

	for (int i = 0; i < 12; i++)
		values[i] = i < 6 ? 8 : 2;
	draws(values, 12, 4, true, " █▅▂");
	draws(values, 12, 1, true, "▅");
}

/* 300 samples in 10 columns, scrolling by: 34 are a group, and always the same ones. */
static void groups_stay_while_samples_come(void **state)
{
	static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	float values[300];
	char expected[64], drawn[64];

	for (uint64_t first = 1000; first < 1100; first++) {
		uint64_t from = first / 34, to = (first + 299) / 34;

		for (uint64_t i = 0; i < 300; i++)
			values[i] = (float)((first + i) / 34 % 8 + 1);
		snprintf(expected, sizeof(expected), "%*s", (int)(10 - (to - from + 1)), "");
		for (uint64_t group = from; group <= to; group++)
			strcat(expected, blocks[group % 8]);
		spark_draw(values, 300, first, 10, true, drawn, sizeof(drawn));
		assert_string_equal(drawn, expected);
	}
}

static void a_small_buffer_is_not_overrun(void **state)
{
	const float values[] = {8, 8, 8};
	char buf[8];

	spark_draw(values, 3, 0, 3, true, buf, sizeof(buf));
	assert_string_equal(buf, "██");
}

static void ranges(void **state)
{
	const float values[] = {NAN, 3, 1, NAN, 2};
	double low = 0, high = 0;

	assert_true(spark_range(values, 5, &low, &high));
	assert_true(low == 1 && high == 3);
	assert_false(spark_range(values, 1, &low, &high));
	assert_false(spark_range(values, 0, &low, &high));
}

static uint64_t sum(const struct bar *bars, size_t count)
{
	uint64_t total = 0;

	for (size_t i = 0; i < count; i++)
		total += bars[i].count;
	return total;
}

static void bars_cover_everything(void **state)
{
	static const uint64_t durations[] = {0, 63, 64, 1000, 4213, 4300, 1 << 20, 1ull << 40};
	struct histogram h = {0};
	struct bar bars[GBPF_BUCKETS];

	assert_int_equal(bars_make(&h, bars, 10), 0);
	for (size_t i = 0; i < sizeof(durations) / sizeof(durations[0]); i++)
		histogram_count(&h, durations[i]);
	for (size_t max = 4; max <= GBPF_BUCKETS; max++) {
		size_t count = bars_make(&h, bars, max);

		assert_in_range(count, 1, max);
		assert_int_equal(sum(bars, count), 8);
		assert_int_equal(bars[0].low, 0);
		assert_true(bars[count - 1].high == INT64_MAX);
		for (size_t i = 1; i < count; i++)
			assert_int_equal(bars[i].low, bars[i - 1].high);
		for (size_t i = 0; i < 8; i++)
			assert_in_range(bars_find(bars, count, (int64_t)durations[i]), 0,
					count - 1);
	}
}

static void narrow_ones_are_told_apart(void **state)
{
	struct histogram h = {0};
	struct bar bars[16];

	histogram_count(&h, 4100);
	histogram_count(&h, 8100);
	/* An octave in eight where there is room, in one bar where there is not. */
	assert_int_equal(bars_make(&h, bars, 16), 8);
	assert_int_equal(bars[0].low, 4096);
	assert_int_equal(bars[0].high, 4608);
	assert_int_equal(bars_make(&h, bars, 7), 4);
	assert_int_equal(bars_make(&h, bars, 1), 1);
	assert_int_equal(bars[0].low, 4096);
	assert_int_equal(bars[0].high, 8192);
}

static void lengths(void **state)
{
	char buf[64];

	assert_int_equal(bars_length(0, 100, 10, false), 0);
	assert_int_equal(bars_length(100, 100, 10, false), 80);
	assert_int_equal(bars_length(50, 100, 10, false), 40);
	/* One of a million is seen. */
	assert_int_equal(bars_length(1, 1000000, 10, false), 1);
	assert_int_equal(bars_length(1000000, 1000000, 10, true), 80);
	assert_in_range(bars_length(1000, 1000000, 10, true), 38, 42);
	assert_string_equal(bars_draw(12, true, buf, sizeof(buf)), "█▌");
	assert_string_equal(bars_draw(12, false, buf, sizeof(buf)), "##");
	assert_string_equal(bars_draw(0, true, buf, sizeof(buf)), "");
	assert_string_equal(bars_draw(64, true, buf, 8), "██");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(from_zero_to_the_largest),
		cmocka_unit_test(unknown_is_blank_and_the_newest_at_the_right),
		cmocka_unit_test(groups_are_averaged),
		cmocka_unit_test(groups_stay_while_samples_come),
		cmocka_unit_test(a_small_buffer_is_not_overrun),
		cmocka_unit_test(ranges),
		cmocka_unit_test(bars_cover_everything),
		cmocka_unit_test(narrow_ones_are_told_apart),
		cmocka_unit_test(lengths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
