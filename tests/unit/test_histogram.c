// SPDX-License-Identifier: BSD-2-Clause
/* Buckets against the layout's own words, quantiles against sorted values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/snapshot.h"
#include "util/histogram.h"

#define VALUES 20000

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Below 64: 0; then the octave and which eighth of it, in floating point, which is exact here. */
static unsigned bucket_by_words(uint64_t ns)
{
	int octave;

	if (ns < 64)
		return 0;
	if (ns >= UINT64_C(1) << 38)
		return 257;
	octave = ilogb((double)ns);
	return (unsigned)(1 + (octave - 6) * 8 +
			  (int)floor(((double)ns / ldexp(1, octave) - 1) * 8));
}

static void test_edges(void **state)
{
	assert_int_equal(GBPF_BUCKETS, 258);
	assert_int_equal(bucket_low(0), 0);
	for (unsigned i = 0; i < GBPF_BUCKETS; i++) {
		uint64_t low = (uint64_t)bucket_low(i), high = (uint64_t)bucket_high(i);

		assert_true(low < high);
		assert_int_equal(gbpf_bucket(low), i);
		assert_int_equal(gbpf_bucket(high - 1), i);
		assert_int_equal(bucket_by_words(low), i);
		assert_int_equal(bucket_by_words(high - 1), i);
		if (i)
			assert_int_equal(bucket_high(i - 1), bucket_low(i));
	}
	assert_int_equal(bucket_low(257), INT64_C(1) << 38);
	assert_int_equal(bucket_high(257), INT64_MAX);
	assert_int_equal(gbpf_bucket(UINT64_MAX), 257);
	assert_int_equal(bucket_low(100000), bucket_low(257));
	assert_int_equal(bucket_high(UINT32_MAX), INT64_MAX);
}

static void test_every_value(void **state)
{
	uint64_t seed = 11;

	for (uint64_t ns = 0; ns < 70000; ns++)
		if (gbpf_bucket(ns) != bucket_by_words(ns))
			fail_msg("%llu ns", (unsigned long long)ns);
	for (int i = 0; i < 100000; i++) {
		/* 53 bits at most, so that a double holds it */
		uint64_t ns = (random_next(&seed) >> 11) >> random_next(&seed) % 53;

		if (gbpf_bucket(ns) != bucket_by_words(ns))
			fail_msg("%llu ns", (unsigned long long)ns);
	}
}

static void test_log2(void **state)
{
	for (unsigned bit = 0; bit < 64; bit++) {
		uint64_t v = UINT64_C(1) << bit;

		assert_int_equal(gbpf_log2(v), bit);
		assert_int_equal(gbpf_log2(v | (v - 1)), bit);
	}
}

static void test_value(void **state)
{
	for (unsigned i = 1; i < GBPF_BUCKETS - 1; i++) {
		double low = (double)bucket_low(i), high = (double)bucket_high(i);
		double value = (double)bucket_value(i);

		assert_true(value > low && value < high);
		assert_true((value - low) / low < 0.06 + 0.5 / low);
		assert_true((high - value) / high < 0.06 + 0.5 / low);
	}
	assert_int_equal(bucket_value(0), 32);
	assert_int_equal(bucket_value(257), INT64_C(1) << 38);
	assert_int_equal(bucket_value(9999), INT64_C(1) << 38);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void expect_near(const struct histogram *h, const uint64_t *sorted, double q)
{
	double truth = (double)sorted[(size_t)(q * VALUES)];
	double told = (double)histogram_quantile(h, q);

	if (fabs(told - truth) > 0.06 * truth)
		fail_msg("quantile %.2f: %.0f, is %.0f", q, told, truth);
}

/* Of values from `low` ns on, as many in one octave as in the next. */
static void quantiles_of(double low, double octaves, uint64_t seed)
{
	uint64_t *values = calloc(VALUES, sizeof(*values));
	struct histogram h = {0};

	assert_non_null(values);
	for (size_t i = 0; i < VALUES; i++) {
		double part = (double)(random_next(&seed) >> 11) / 9007199254740992.0;

		values[i] = (uint64_t)(low * exp2(octaves * part));
		histogram_count(&h, values[i]);
	}
	qsort(values, VALUES, sizeof(*values), by_value);
	assert_int_equal(h.count, VALUES);
	assert_int_equal(h.max_ns, values[VALUES - 1]);
	expect_near(&h, values, 0.5);
	expect_near(&h, values, 0.9);
	expect_near(&h, values, 0.99);
	assert_int_equal(histogram_quantile(&h, 1), values[VALUES - 1]);
	free(values);
}

static void test_quantiles(void **state)
{
	quantiles_of(100, 30, 1);
	quantiles_of(1000, 10, 2);
	quantiles_of(2000, 3, 3);
	quantiles_of(70000, 1, 4);
}

/* All in one bucket is the worst there is. */
static void test_quantile_one_value(void **state)
{
	for (uint64_t ns = 64; ns < UINT64_C(1) << 38; ns += 1 + ns / 7) {
		struct histogram h = {0};

		for (int i = 0; i < 100; i++)
			histogram_count(&h, ns);
		for (int percent = 0; percent <= 100; percent += 5) {
			int64_t told = histogram_quantile(&h, percent / 100.0);

			assert_true(told <= (int64_t)ns);
			assert_true((double)told >= (double)ns * 0.875);
		}
		assert_int_equal(histogram_quantile(&h, 1), ns);
	}
}

static void test_empty(void **state)
{
	struct histogram h = {0};

	assert_int_equal(histogram_quantile(&h, 0.5), -1);
	h.count = 10; /* but nothing in any bucket */
	h.max_ns = 77;
	assert_int_equal(histogram_quantile(&h, 0.5), -1);
	histogram_count(&h, 0);
	assert_in_range(histogram_quantile(&h, 0.5), 0, 63);
}

static void test_odd_quantiles(void **state)
{
	struct histogram h = {0};

	histogram_count(&h, 1000);
	histogram_count(&h, 4000);
	assert_int_equal(histogram_quantile(&h, -3), bucket_low(gbpf_bucket(1000)));
	assert_int_equal(histogram_quantile(&h, NAN), bucket_low(gbpf_bucket(1000)));
	assert_int_equal(histogram_quantile(&h, 7), 4000);
	for (unsigned i = 0; i < GBPF_BUCKETS; i++)
		h.bucket[i] = UINT64_MAX;
	assert_true(histogram_quantile(&h, 0.5) > 0);
	assert_true(histogram_quantile(&h, 1) >= INT64_C(1) << 38);
}

static void test_overflow_bucket(void **state)
{
	struct histogram h = {0};
	uint64_t day = UINT64_C(86400000000000);

	histogram_count(&h, day);
	histogram_count(&h, UINT64_C(1) << 38);
	assert_int_equal(h.bucket[257], 2);
	assert_int_equal(histogram_quantile(&h, 1), day);
	assert_in_range(histogram_quantile(&h, 0.5), INT64_C(1) << 38, day);
	h.max_ns = 5; /* a torn reading */
	assert_int_equal(histogram_quantile(&h, 1), INT64_C(1) << 38);
	h.max_ns = UINT64_MAX;
	assert_int_equal(histogram_quantile(&h, 0.99), INT64_C(1) << 38);
}

static void test_add_subtract(void **state)
{
	struct histogram early = {0}, late, recent = {0}, sum;
	uint64_t seed = 5;

	for (int i = 0; i < 1000; i++)
		histogram_count(&early, random_next(&seed) % 1000000);
	late = early;
	for (int i = 0; i < 500; i++) {
		uint64_t ns = random_next(&seed) % 5000;

		histogram_count(&late, ns);
		histogram_count(&recent, ns);
	}
	sum = early;
	histogram_add(&sum, &recent);
	assert_memory_equal(&sum, &late, sizeof(sum));
	histogram_subtract(&late, &early);
	assert_int_equal(late.count, 500);
	assert_int_equal(late.sum_ns, recent.sum_ns);
	assert_memory_equal(late.bucket, recent.bucket, sizeof(recent.bucket));
	assert_true(late.max_ns >= recent.max_ns);
	assert_int_equal(gbpf_bucket(late.max_ns), gbpf_bucket(recent.max_ns));
	histogram_subtract(&late, &recent);
	histogram_subtract(&late, &recent);
	assert_int_equal(late.count, 0);
	assert_int_equal(late.sum_ns, 0);
	assert_int_equal(late.max_ns, 0);
	assert_int_equal(histogram_quantile(&late, 0.5), -1);
}

static void test_limit(void **state)
{
	struct histogram h = {0};
	uint64_t end = (uint64_t)bucket_high(100) - 1;

	histogram_limit(&h, 12345);
	assert_int_equal(h.max_ns, 0);
	h.bucket[3] = h.bucket[100] = 1;
	histogram_limit(&h, end - 1); /* it may be of these */
	assert_int_equal(h.max_ns, end - 1);
	histogram_limit(&h, UINT64_MAX); /* one before them */
	assert_int_equal(h.max_ns, end);
	histogram_limit(&h, 0); /* torn */
	assert_int_equal(h.max_ns, end);
	assert_true(end <= (uint64_t)bucket_low(100) * 9 / 8);
	h.bucket[GBPF_BUCKETS - 1] = 1;
	histogram_limit(&h, UINT64_C(1) << 50);
	assert_int_equal(h.max_ns, UINT64_C(1) << 50);
	histogram_limit(&h, 5); /* nobody knows how long: at least this */
	assert_int_equal(h.max_ns, UINT64_C(1) << 38);
	memset(&h, 0, sizeof(h));
	h.bucket[0] = 1;
	histogram_limit(&h, 70);
	assert_int_equal(h.max_ns, 63);
}

/* What was subtracted was not part of it, as when counters were torn or set back. */
static void test_subtract_hostile(void **state)
{
	struct histogram h = {.count = 99}, from = {.count = UINT64_MAX, .sum_ns = UINT64_MAX};

	h.bucket[3] = 5;
	h.bucket[9] = 2;
	h.sum_ns = 1000;
	from.bucket[3] = 7;
	from.bucket[9] = 1;
	from.bucket[200] = UINT64_MAX;
	histogram_subtract(&h, &from);
	assert_int_equal(h.count, 1);
	assert_int_equal(h.bucket[3], 0);
	assert_int_equal(h.bucket[9], 1);
	assert_int_equal(h.bucket[200], 0);
	assert_int_equal(h.sum_ns, 0);
	assert_int_equal(gbpf_bucket((uint64_t)histogram_quantile(&h, 0.5)), 9);
}

static void test_saturation(void **state)
{
	struct histogram h = {0}, other;

	histogram_count(&h, UINT64_MAX - 1);
	histogram_count(&h, 10);
	assert_int_equal(h.sum_ns, UINT64_MAX);
	assert_int_equal(h.count, 2);
	h.count = UINT64_MAX;
	h.bucket[257] = UINT64_MAX;
	histogram_count(&h, UINT64_MAX);
	other = h;
	histogram_add(&h, &other);
	assert_int_equal(h.count, UINT64_MAX);
	assert_int_equal(h.sum_ns, UINT64_MAX);
	assert_int_equal(h.bucket[257], UINT64_MAX);
	assert_int_equal(h.bucket[0], 2);
}

static void test_find(void **state)
{
	static struct snapshot_process processes[50];
	struct snapshot s = {.processes = processes};

	for (size_t count = 0; count <= 50; count += 7) {
		s.processes_count = count;
		for (size_t i = 0; i < count; i++)
			processes[i].pid = (uint32_t)(10 + 3 * i);
		assert_null(snapshot_find(&s, 9));
		for (uint32_t pid = 10; pid < 10 + 3 * count; pid++) {
			const struct snapshot_process *p = snapshot_find(&s, pid);

			if ((pid - 10) % 3)
				assert_null(p);
			else
				assert_ptr_equal(p, &processes[(pid - 10) / 3]);
		}
		assert_null(snapshot_find(&s, UINT32_MAX));
	}
}

/* A call cannot take no time: then our own readings took as much as all of it. */
static void test_a_duration_of_nothing_is_not_known(void **state)
{
	struct histogram h = {0};

	assert_int_equal(snapshot_quantile(&h, 0.5), -1);
	for (int i = 0; i < 3; i++)
		histogram_count(&h, 0);
	histogram_count(&h, 4000);
	assert_in_range(histogram_quantile(&h, 0.5), 0, 63);
	assert_int_equal(snapshot_quantile(&h, 0.5), -1);
	assert_true(snapshot_quantile(&h, 1) >= 3900);
}

static void test_wait_names(void **state)
{
	assert_string_equal(wait_kind_name(WAIT_RUNNING), "running");
	assert_string_equal(wait_kind_name(WAIT_LOCK), "lock");
	for (unsigned i = 0; i < WAIT_KINDS; i++)
		for (unsigned k = 0; k < i; k++)
			assert_string_not_equal(wait_kind_name(i), wait_kind_name(k));
	assert_string_equal(wait_kind_name((enum wait_kind)77), "other");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_every_value),
		cmocka_unit_test(test_log2),
		cmocka_unit_test(test_value),
		cmocka_unit_test(test_quantiles),
		cmocka_unit_test(test_quantile_one_value),
		cmocka_unit_test(test_a_duration_of_nothing_is_not_known),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_odd_quantiles),
		cmocka_unit_test(test_overflow_bucket),
		cmocka_unit_test(test_add_subtract),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_subtract_hostile),
		cmocka_unit_test(test_saturation),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_wait_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
