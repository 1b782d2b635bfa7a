// SPDX-License-Identifier: BSD-2-Clause
/* Busy, gaps and times, on sessions whose every number can be worked out by hand. */
#include "gpu_session.h"

#include "model/gpu.h"

static uint32_t work_at(const struct session *s, int64_t begin)
{
	for (uint32_t i = 0; i < s->works_count; i++)
		if (s->works[i].begin == begin)
			return i;
	fail_msg("no work begins at %lld", (long long)begin);
	return 0;
}

static int64_t sum(const struct spans *v)
{
	return spans_within(v, INT64_MIN, INT64_MAX);
}

static void assert_busy(const struct session *s, unsigned classes, int64_t ns)
{
	struct spans busy;

	assert_int_equal(device_busy(s, 0, classes, &busy), 0);
	assert_int_equal(sum(&busy), ns);
	for (size_t i = 1; i < busy.count; i++)
		assert_true(busy.items[i - 1].end < busy.items[i].begin);
	spans_free(&busy);
	spans_free(&busy);
}

/* Both streams and both processes: 20 us run twice at a time, and count once. */
static void test_busy_is_a_union(void **state)
{
	struct feed f;
	struct session *s = gpu_small(&f);

	/* 106..147, 177..179, 210..214, 230..239, 240..249, 250..259, 300..310 us */
	assert_busy(s, WORK_CLASS_ALL, 41000 + 2000 + 4000 + 3 * 9000 + 10000);
	assert_busy(s, WORK_CLASS_COMM, 20000);
	assert_busy(s, WORK_CLASS_COPY, 4000 + 9000);
	assert_busy(s, WORK_CLASS_COMPUTE, 20000 + 20000 + 2000 + 2 * 9000 + 10000);
	feed_stop(&f);
}

struct expected {
	int64_t begin, end;
	enum gap_class class;
};

static void assert_gaps(const struct session *s, const struct expected *e, size_t n)
{
	struct gap *gaps;
	size_t count;

	assert_int_equal(device_gaps(s, 0, &gaps, &count), 0);
	assert_int_equal(count, n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(gaps[i].begin, e[i].begin);
		assert_int_equal(gaps[i].end, e[i].end);
		assert_string_equal(gap_class_words[gaps[i].class], gap_class_words[e[i].class]);
	}
	free(gaps);
}

static void test_gaps(void **state)
{
	static const struct expected e[] = {
		{ 50000, 106000, GAP_HOST_WAIT },   /* from the window's begin */
		{ 147000, 177000, GAP_SYNC_DRAIN }, /* in the sync until 160 us */
		{ 179000, 210000, GAP_HOST_WAIT },
		{ 214000, 230000, GAP_HOST_WAIT }, /* the graph was launched at 220 us */
		{ 239000, 240000, GAP_KERNEL_WAIT },
		{ 249000, 250000, GAP_KERNEL_WAIT },
		{ 259000, 300000, GAP_HOST_WAIT },
		{ 310000, 950000, GAP_HOST_WAIT },
	};
	struct feed f;
	struct session *s = gpu_small(&f);
	struct spans busy, covered;
	struct gap *gaps;
	size_t count;
	int64_t idle = 0;

	assert_gaps(s, e, sizeof(e) / sizeof(e[0]));
	assert_int_equal(device_gaps(s, 0, &gaps, &count), 0);
	assert_int_equal(gaps[0].before, WORK_NONE);
	assert_int_equal(gaps[0].after, work_at(s, 106000));
	assert_int_equal(gaps[1].before, work_at(s, 127000));
	assert_int_equal(gaps[7].after, WORK_NONE);
	for (size_t i = 0; i < count; i++)
		idle += gaps[i].end - gaps[i].begin;
	free(gaps);
	assert_int_equal(device_covered(s, 0, &covered), 0);
	assert_int_equal(device_busy(s, 0, WORK_CLASS_ALL, &busy), 0);
	assert_int_equal(sum(&covered), 900000);
	assert_int_equal(idle + sum(&busy), 900000);
	spans_free(&busy);
	spans_free(&covered);
	feed_stop(&f);
}

static void feed_pair(struct feed *f, int64_t asked)
{
	feed_start(f);
	feed_shape(f, 1, "_Z1fv", 8, 32);
	feed_cover(f, 1000, 400000);
	feed_launched(f, 2000, 4000, 0xabc, 0, 8, 32, 1);
	feed_kernel(f, 10000, 100000, 7, 1, 1);
	feed_launched(f, asked, asked + 3000, 0xabc, 0, 8, 32, 2);
}

static void assert_class(struct feed *f, int64_t begin, enum gap_class class)
{
	struct session *s;
	struct gap *gaps;
	size_t count;

	feed_kernel(f, begin, begin + 1000, 7, 2, 1);
	s = feed_finish(f);
	assert_int_equal(device_gaps(s, 0, &gaps, &count), 0);
	assert_int_equal(gaps[1].begin, 100000);
	assert_int_equal(gaps[1].end, begin);
	assert_string_equal(gap_class_words[gaps[1].class], gap_class_words[class]);
	free(gaps);
	feed_stop(f);
}

static void test_gap_classes(void **state)
{
	struct feed f;

	feed_pair(&f, 90000); /* asked for in time: the threshold is 30 us */
	assert_class(&f, 129999, GAP_KERNEL_WAIT);
	feed_pair(&f, 90000);
	assert_class(&f, 130000, GAP_OTHER);
	feed_pair(&f, 100000); /* just when it ended */
	assert_class(&f, 120000, GAP_KERNEL_WAIT);
	feed_pair(&f, 100001);
	assert_class(&f, 120000, GAP_HOST_WAIT);
	feed_start(&f); /* the launching thread lost its CPU inside of the launch */
	feed_shape(&f, 1, "_Z1fv", 8, 32);
	feed_cover(&f, 1000, 400000);
	feed_launched(&f, 2000, 4000, 0xabc, 0, 8, 32, 1);
	feed_kernel(&f, 10000, 100000, 7, 1, 1);
	feed_launched(&f, 90000, 150000, 0xabc, 0, 8, 32, 2);
	assert_class(&f, 140000, GAP_HOST_WAIT);
	feed_pair(&f, 110000);
	feed_call(&f, 50000, 100000, F_SYNC, SP); /* waited until it ended */
	assert_class(&f, 120000, GAP_SYNC_DRAIN);
	feed_pair(&f, 110000);
	feed_call(&f, 50000, 99999, F_SYNC, SP); /* for something else, before */
	assert_class(&f, 120000, GAP_HOST_WAIT);
	feed_pair(&f, 110000);
	feed_call(&f, 50000, 105000, F_ALLOC, SP); /* across, and no wait */
	assert_class(&f, 120000, GAP_HOST_WAIT);
	feed_pair(&f, 110000);
	feed_poll(&f, 50000, 104000, F_QUERY, SP, 9, 400);
	assert_class(&f, 120000, GAP_SYNC_DRAIN);
	feed_pair(&f, 110000);
	f.tid = 101;
	feed_call(&f, 50000, 105000, F_SYNC, SP); /* another thread's */
	f.tid = 100;
	assert_class(&f, 120000, GAP_HOST_WAIT);
	feed_pair(&f, 110000);
	feed_overhead(&f, 100000, 110000);
	assert_class(&f, 120000, GAP_ARTEFACT);
	feed_pair(&f, 110000);
	feed_overhead(&f, 100000, 109999);
	assert_class(&f, 120000, GAP_HOST_WAIT);
}

/* The device is not idle while the other process works, or may have worked unwatched. */
static void test_two_processes(void **state)
{
	static const struct expected e[] = {
		{ 10000, 12000, GAP_HOST_WAIT },
		{ 40000, 50000, GAP_HOST_WAIT }, /* 200 asked at 45 us; 100 had ended */
		{ 70000, 80000, GAP_HOST_WAIT },
	};
	struct feed f;
	struct session *s;
	struct spans covered;

	feed_start(&f);
	feed_window(&f, 1000, 100000);
	feed_device(&f, 0, "GPU-1");
	feed_shape(&f, 1, "_Z1fv", 8, 32);
	feed_cover(&f, 10000, 80000);
	feed_launched(&f, 15000, 16000, 0xabc, 0, 8, 32, 1);
	feed_kernel(&f, 20000, 40000, 7, 1, 1);
	f.pid = f.tid = 200;
	feed_device(&f, 0, "GPU-1");
	feed_shape(&f, 1, "_Z1fv", 8, 32);
	feed_launched(&f, 12000, 13000, 0xabc, 0, 8, 32, 1); /* before its window */
	feed_cover(&f, 30000, 90000);
	feed_launched(&f, 45000, 46000, 0xabc, 0, 8, 32, 2);
	feed_kernel(&f, 50000, 70000, 7, 2, 1);
	f.pid = f.tid = 100;
	feed_launched(&f, 79000, 79500, 0xabc, 0, 8, 32, 2);
	s = feed_finish(&f);
	assert_int_equal(device_covered(s, 0, &covered), 0);
	/* 10..80 and 30..90, without 12..30 (200 unwatched) and 80..90 (100 unwatched). */
	assert_int_equal(covered.count, 2);
	assert_int_equal(covered.items[0].end, 12000);
	assert_int_equal(covered.items[1].begin, 30000);
	spans_free(&covered);
	assert_gaps(s, e, sizeof(e) / sizeof(e[0]));
	feed_stop(&f);
}

static void test_times(void **state)
{
	struct feed f;
	struct session *s = gpu_small(&f);
	struct work_times *t;
	const struct work_times *w;

	assert_int_equal(work_times(s, &t), 0);
	w = &t[work_at(s, 106000)];
	assert_int_equal(w->launch_to_start, 6000);
	assert_int_equal(w->queue_time, 2000);
	assert_int_equal(w->queue_delay, 0); /* the stream was free: none of it is the queue's */
	assert_int_equal(w->total, 26000);
	assert_int_equal(w->depth, 0);
	assert_int_equal(w->flags, WORK_UNCONTENDED);
	w = &t[work_at(s, 127000)];
	assert_int_equal(w->launch_to_start, 22000);
	assert_int_equal(w->queue_time, 19000);
	assert_int_equal(w->queue_delay, 18000); /* until 126 us it was taken */
	assert_int_equal(w->depth, 1); /* the first began at 106 us, this was asked for at 105 */
	assert_int_equal(w->flags, 0);
	w = &t[work_at(s, 120000)];
	assert_int_equal(w->depth, 0);
	assert_int_equal(w->flags, WORK_UNCONTENDED | WORK_SIDE_STREAM);
	w = &t[work_at(s, 177000)];
	assert_int_equal(w->flags, WORK_UNCONTENDED | WORK_SHORT | WORK_SIDE_STREAM);
	w = &t[work_at(s, 210000)];
	assert_int_equal(w->total, 14000);
	assert_int_equal(w->flags, WORK_UNCONTENDED); /* copies are not short kernels */
	w = &t[work_at(s, 230000)]; /* graph: the first of it only */
	assert_int_equal(w->flags, WORK_UNCONTENDED);
	w = &t[work_at(s, 240000)];
	assert_int_equal(w->launch_to_start, 20000);
	assert_int_equal(w->flags, 0);
	w = &t[work_at(s, 250000)];
	assert_int_equal(w->queue_delay, 13000); /* the stream's graph was at work until 239 us */
	free(t);
	feed_stop(&f);
}

/* A launch that blocks because 1000 are outstanding is neither slow nor is its kernel short. */
static void test_back_pressure(void **state)
{
	struct feed f;
	struct session *s;
	struct work_times *t;
	int64_t at = 10000;

	feed_start(&f);
	feed_shape(&f, 1, "_Z1fv", 8, 32);
	for (uint32_t i = 0; i < 1005; i++) {
		int64_t took = i >= 999 ? 60000 : 1000;

		feed_launched(&f, at, at + took, 0xabc, 0, 8, 32, i + 1);
		at += took + 100;
	}
	for (uint32_t i = 0; i < 1005; i++)
		feed_kernel(&f, 5000000 + i * 50000, 5040000 + i * 50000, 7, i + 1, 1);
	s = feed_finish(&f);
	assert_int_equal(work_times(s, &t), 0);
	assert_int_equal(t[999].depth, 999);
	assert_int_equal(t[999].flags, WORK_SHORT); /* 40 of 60 us, and the queue not full */
	assert_int_equal(t[1000].depth, 1000);
	assert_int_equal(t[1000].flags, WORK_BACK_PRESSURED);
	assert_int_equal(t[500].flags, 0);
	free(t);
	feed_stop(&f);
}

/* Without a call nothing is known; without a return only what needs none. */
static void test_not_known(void **state)
{
	struct event e = { .args = EVENT_ARGS_LAUNCH, .launch = { .grid = { 8, 1, 1 },
			   .block = { 32, 1, 1 } } };
	struct feed f;
	struct session *s;
	struct work_times *t;

	feed_start(&f);
	feed_shape(&f, 1, "_Z1fv", 8, 32);
	feed_begin_with(&f, 1000, F_LAUNCH, SP, &e);
	feed_work_call(&f, 1100, 1900, 1);
	feed_kernel(&f, 5000, 6000, 7, 1, 1);
	feed_kernel(&f, 7000, 8000, 7, 99, 1);
	s = feed_finish(&f);
	assert_int_equal(work_times(s, &t), 0);
	assert_int_equal(t[0].launch_to_start, 4000);
	assert_int_equal(t[0].queue_time, NA_TIME);
	assert_int_equal(t[0].total, NA_TIME);
	assert_int_equal(t[1].launch_to_start, NA_TIME);
	free(t);
	feed_stop(&f);
}

static void test_overhead_near(void **state)
{
	struct feed f;
	struct session *s;
	struct work_times *t;

	feed_start(&f);
	feed_shape(&f, 1, "_Z1fv", 8, 32);
	feed_launched(&f, 1000, 3000, 0xabc, 0, 8, 32, 1);
	feed_overhead(&f, 3500, 3600);
	feed_kernel(&f, 5000, 9000, 7, 1, 1);
	s = feed_finish(&f);
	assert_int_equal(work_times(s, &t), 0);
	assert_int_equal(t[0].flags, 0);
	free(t);
	feed_stop(&f);
}

/* Whatever comes: gaps and work fill the watched time exactly, and nothing overlaps. */
static void test_random(void **state)
{
	struct gpu_random_options o = { .processes = 3, .threads = 4, .streams = 9, .devices = 3,
					.calls = 100 };

	for (o.seed = 1; o.seed < 24; o.seed++) {
		struct feed f;
		struct session *s;
		struct work_times *t;

		o.hostile = o.seed >= 12;
		s = gpu_random(&f, &o, NULL, NULL);
		for (uint32_t d = 0; d < s->devices_count; d++) {
			struct spans busy, covered;
			struct gap *gaps;
			size_t count;
			int64_t filled = 0;

			assert_int_equal(device_busy(s, d, WORK_CLASS_ALL, &busy), 0);
			assert_int_equal(device_covered(s, d, &covered), 0);
			assert_int_equal(device_gaps(s, d, &gaps, &count), 0);
			for (size_t i = 0; i < covered.count; i++)
				filled += spans_within(&busy, covered.items[i].begin,
						       covered.items[i].end);
			for (size_t i = 0; i < count; i++) {
				assert_true(gaps[i].begin < gaps[i].end);
				assert_true(!i || gaps[i - 1].end <= gaps[i].begin);
				assert_int_equal(spans_within(&busy, gaps[i].begin, gaps[i].end),
						 0);
				filled += gaps[i].end - gaps[i].begin;
			}
			assert_int_equal(filled, sum(&covered));
			free(gaps);
			spans_free(&busy);
			spans_free(&covered);
		}
		assert_int_equal(work_times(s, &t), 0);
		for (size_t i = 0; i < s->works_count; i++)
			assert_true(t[i].queue_delay == NA_TIME ||
				    t[i].queue_delay <= t[i].queue_time);
		free(t);
		feed_stop(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_busy_is_a_union), cmocka_unit_test(test_gaps),
		cmocka_unit_test(test_gap_classes),	cmocka_unit_test(test_two_processes),
		cmocka_unit_test(test_times),		cmocka_unit_test(test_back_pressure),
		cmocka_unit_test(test_not_known),	cmocka_unit_test(test_overhead_near),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
