// SPDX-License-Identifier: BSD-2-Clause
/* ACTIVE windows: what was recorded around them helps the join, and counts for nothing else. */
#include "gpu_joined.h"

static void feed_active(struct feed *f, int64_t begin, int64_t end)
{
	feed_add(f, &(struct record){ .kind = RECORD_ACTIVE, .window = { begin, end } });
}

/* A launch every 5 us, whose kernel runs for 3 us from 7 us after its entry on. */
static void feed_launches(struct feed *f)
{
	feed_start(f);
	feed_window(f, 500, 100000);
	feed_cover(f, 500, 100000);
	feed_shape(f, 1, "_Z1fv", 8, 32);
	for (int64_t t = 5000; t < 90000; t += 5000) {
		feed_launched(f, t, t + 1000, 0x77, 0, 8, 32, (uint32_t)(t / 5000));
		feed_kernel(f, t + 7000, t + 10000, 7, (uint32_t)(t / 5000), 1);
	}
}

static void test_two_windows(void **state)
{
	struct feed f;
	struct session *s;
	struct work_times *times;
	size_t count;

	feed_launches(&f);
	feed_active(&f, 60000, 80000);
	feed_active(&f, 20000, 40000);
	s = feed_finish(&f);
	assert_int_equal(s->windows_count, 2);
	assert_int_equal(s->begin, 20000);
	assert_int_equal(s->end, 80000);
	assert_int_equal(s->calls_count, 8);
	for (size_t i = 0; i < 8; i++)
		assert_int_equal(s->calls[i].begin, (i < 4 ? 20000 : 40000) + (int64_t)i * 5000);
	assert_int_equal(s->works_count, 10);
	for (int64_t begin = 27000; begin <= 42000; begin += 5000) {
		assert_int_equal(entry_of(s, begin), begin - 7000);
		assert_int_equal(entry_of(s, begin + 40000), begin + 33000);
	}
	/* launched before its window; the one that ended just when it began is gone */
	assert_int_equal(s->works[0].begin, 22000);
	assert_true(s->works[0].earlier && s->works[0].call == CALL_NONE);
	assert_false(work_unmatched(&s->works[0]));
	assert_true(work_at(s, 62000)->earlier);
	assert_int_equal(s->join.works, 8);
	assert_int_equal(s->join.matched, 8);
	assert_int_equal(s->join.earlier, 2);
	assert_int_equal(s->join.launches, 8);
	assert_int_equal(s->join.launches_without, 0);
	assert_int_equal(s->covers_count, 2);
	assert_int_equal(s->covers[0].begin, 20000);
	assert_int_equal(s->covers[1].end, 80000);
	assert_true(s->covers[0].whole);
	assert_non_null(works_of(s, 3, &count)); /* after its window, but asked for in it */
	assert_int_equal(count, 1);
	assert_int_equal(work_call_of(s, 0)->correlation, 4);
	assert_int_equal(work_times(s, &times), 0);
	/* the one before waits in the queue when the first of the window is launched */
	assert_int_equal(times[1].depth, 1);
	assert_int_equal(times[1].launch_to_start, 7000);
	free(times);
	feed_stop(&f);
}

static const struct call *call_of(const struct session *s, uint32_t tid, size_t at)
{
	for (size_t i = 0; i < s->threads_count; i++)
		if (s->threads[i].tid == tid)
			return s->threads[i].calls > at ? &s->calls[s->threads[i].first_call + at]
							: NULL;
	return NULL;
}

static void expect(const struct call *c, int64_t begin, int64_t end, unsigned flags)
{
	const unsigned known = CALL_OPEN | CALL_NO_END | CALL_NO_BEGIN | CALL_CUT;

	assert_non_null(c);
	assert_int_equal(c->begin, begin);
	assert_int_equal(c->end, end);
	assert_int_equal(c->flags & known, flags);
}

/* As if the probes had been there in the windows alone. */
static void test_calls_that_reach_out(void **state)
{
	static const int64_t waits[][2] = {
		{ 10000, 12000 }, { 18000, 23000 }, { 24000, 24500 }, { 38000, 43000 },
		{ 50000, 90000 },
	};
	struct feed f;
	struct session *s;

	feed_launches(&f);
	f.tid = 101;
	for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++)
		feed_called(&f, waits[i][0], waits[i][1], F_SYNC, 0, 0, 0, 0);
	f.tid = 102;
	feed_called(&f, 30000, 55000, F_SYNC, 0, 0, 0, 0);
	feed_called(&f, 79000, 81000, F_SYNC, 0, 0, 0, 0);
	feed_active(&f, 20000, 40000);
	feed_active(&f, 60000, 80000);
	s = feed_finish(&f);
	expect(call_of(s, 101, 0), 20000, 23000, CALL_NO_BEGIN | CALL_CUT);
	expect(call_of(s, 101, 1), 24000, 24500, 0);
	expect(call_of(s, 101, 2), 38000, 40000, CALL_NO_END | CALL_CUT);
	expect(call_of(s, 101, 3), 60000, 80000, CALL_OPEN);
	assert_null(call_of(s, 101, 4));
	expect(call_of(s, 102, 0), 30000, 40000, CALL_NO_END | CALL_CUT);
	expect(call_of(s, 102, 1), 79000, 80000, CALL_OPEN);
	feed_stop(&f);
}

/* A launch that a window's begin cuts is not of it, nor is its work. */
static void test_a_launch_across_the_border(void **state)
{
	struct feed f;
	struct session *s;

	feed_launches(&f);
	feed_active(&f, 20500, 40000);
	s = feed_finish(&f);
	assert_int_equal(s->calls_count, 4);
	expect(&s->calls[0], 20500, 21000, CALL_NO_BEGIN | CALL_CUT);
	assert_true(work_at(s, 22000)->earlier && work_at(s, 27000)->earlier);
	assert_int_equal(entry_of(s, 32000), 25000);
	assert_int_equal(s->join.matched, 3);
	assert_int_equal(s->join.launches, 3);
	feed_stop(&f);
}

/* Calls inside of others keep their parents. */
static void test_nested(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_window(&f, 500, 100000);
	for (int64_t t = 10000; t < 90000; t += 10000) {
		feed_begin(&f, t, F_RT_LAUNCH, SP);
		feed_begin(&f, t + 100, F_LAUNCH, SP - 64);
		feed_end(&f, t + 1000, F_LAUNCH, SP - 64, 0);
		feed_end(&f, t + 1200, F_RT_LAUNCH, SP, 0);
	}
	feed_active(&f, 30050, 50000);
	s = feed_finish(&f);
	assert_int_equal(s->calls_count, 4);
	assert_int_equal(s->calls[0].parent, CALL_NONE);
	assert_int_equal(s->calls[1].parent, 0);
	assert_int_equal(s->calls[2].parent, CALL_NONE);
	assert_int_equal(s->calls[3].parent, 2);
	assert_int_equal(s->calls[1].begin, 30100);
	feed_stop(&f);
}

static void test_nothing_in_it(void **state)
{
	struct feed f;
	struct session *s;

	feed_launches(&f);
	feed_active(&f, 200000, 300000);
	feed_active(&f, 400000, 350000); /* none at all */
	s = feed_finish(&f);
	assert_int_equal(s->windows_count, 1);
	assert_int_equal(s->calls_count + s->works_count + s->covers_count, 0);
	assert_int_equal(s->join.works + s->join.earlier + s->join.launches, 0);
	feed_stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_windows),
		cmocka_unit_test(test_calls_that_reach_out),
		cmocka_unit_test(test_a_launch_across_the_border),
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_nothing_in_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
