// SPDX-License-Identifier: BSD-2-Clause
/* What a cover leaves out: work from before it that goes on, and what still runs at its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "gpu_feed.h"
#include "model/gpu.h"

#define FROM 1000000 /* the sidecar records from here */
#define TO 9000000   /* to here, ns */

static void start(struct feed *f)
{
	feed_start(f);
	feed_window(f, 1000, 9500000);
	feed_device(f, 0, "GPU-1111");
	feed_shape(f, 1, "_Z1fv", 8, 128);
	feed_cover(f, FROM, TO);
}

/* A launch that takes 4 us, and its kernel. */
static void kernel(struct feed *f, int64_t asked, int64_t begin, int64_t end, uint32_t stream,
		   uint32_t id)
{
	feed_launched(f, asked, asked + 4000, 0xabc, stream, 8, 128, id);
	feed_kernel(f, begin, end, stream, id, 1);
}

/* A launch that was not recorded. */
static void before(struct feed *f, int64_t asked)
{
	feed_launched(f, asked, asked + 4000, 0xabc, 7, 8, 128, 0);
}

static void expect(struct feed *f, int64_t begin, int64_t end)
{
	struct session *s = feed_finish(f);

	assert_int_equal(s->covers_count, 1);
	assert_int_equal(s->covers[0].begin, begin);
	assert_int_equal(s->covers[0].end, end);
	assert_true(s->covers[0].whole);
	feed_stop(f);
}

static void expect_none(struct feed *f)
{
	struct session *s = feed_finish(f);

	assert_int_equal(s->covers_count, 0);
	if (!s->works_count)
		assert_string_equal(session_no_work(s, 0),
				    "all that ran while the sidecar recorded had been launched "
				    "before");
	feed_stop(f);
}

static void test_nothing_was_before(void **state)
{
	struct feed f;

	(void)state;
	start(&f);
	kernel(&f, FROM + 10000, FROM + 20000, 3000000, 7, 1);
	kernel(&f, FROM + 15000, 3001000, 4000000, 7, 2); /* queued, for what is recorded */
	expect(&f, FROM, TO);
}

/* All works have their calls nevertheless. */
static void test_a_full_queue(void **state)
{
	struct session *s;
	struct work_times *t;
	struct feed f;

	(void)state;
	start(&f);
	for (int64_t i = 0; i < 20; i++)
		before(&f, 100000 + i * 10000);
	kernel(&f, FROM + 10000, 5000000, 6000000, 7, 1);
	kernel(&f, FROM + 20000, 6000000, 7000000, 7, 2);
	s = feed_finish(&f);
	assert_int_equal(s->covers_count, 1);
	assert_int_equal(s->covers[0].begin, 5000000);
	assert_int_equal(s->covers[0].end, TO);
	assert_int_equal(s->join.matched, 2);
	assert_int_equal(s->join.launches_without, 0);
	assert_int_equal(work_times(s, &t), 0);
	assert_int_equal(t[0].launch_to_start, 5000000 - FROM - 10000);
	assert_int_equal(t[0].queue_delay, NA_TIME); /* who knows what it waited for */
	assert_int_equal(t[0].flags & WORK_UNCONTENDED, 0);
	assert_int_equal(t[1].queue_delay, 6000000 - FROM - 24000);
	free(t);
	feed_stop(&f);
}

/* A second stream's first work waits for the first stream's, or for something unknown. */
static void test_two_streams(void **state)
{
	struct feed f;

	(void)state;
	start(&f);
	kernel(&f, FROM + 10000, FROM + 20000, 4000000, 7, 1);
	kernel(&f, FROM + 50000, 4000000, 4500000, 13, 2);
	expect(&f, FROM, TO);
	start(&f);
	kernel(&f, FROM + 10000, FROM + 20000, FROM + 30000, 7, 1);
	kernel(&f, FROM + 50000, 4000000, 4500000, 13, 2);
	expect(&f, 4000000, TO);
}

/* Late, but not for what was before: all of that had been waited for. */
static void test_drained_before(void **state)
{
	struct feed f;

	(void)state;
	start(&f);
	before(&f, 100000);
	feed_call(&f, 200000, 300000, F_SYNC, SP);
	kernel(&f, FROM + 10000, 3000000, 4000000, 7, 1);
	expect(&f, FROM, TO);
	start(&f); /* launched again since */
	feed_call(&f, 200000, 300000, F_SYNC, SP);
	before(&f, 400000);
	kernel(&f, FROM + 10000, 3000000, 4000000, 7, 1);
	expect(&f, 3000000, TO);
	start(&f); /* the wait may have been for the other stream */
	before(&f, 100000);
	feed_call(&f, 200000, 300000, F_SYNC, SP);
	kernel(&f, FROM + 10000, 3000000, 4000000, 7, 1);
	kernel(&f, 5000000, 5005000, 6000000, 13, 2);
	expect(&f, 3000000, TO);
}

static void test_waits(void **state)
{
	struct feed f;

	(void)state;
	start(&f);
	before(&f, 100000);
	feed_call(&f, 200000, 3000000, F_SYNC, SP); /* for what was before */
	kernel(&f, 3010000, 3020000, 4000000, 7, 1);
	expect(&f, 3000000, TO);
	start(&f);
	before(&f, 100000);
	feed_call(&f, FROM + 5000, 3000000, F_SYNC, SP); /* entered since, for the same */
	kernel(&f, 3010000, 3020000, 4000000, 7, 1);
	expect(&f, 3000000, TO);
	start(&f);
	kernel(&f, FROM + 10000, FROM + 20000, 4000000, 7, 1);
	feed_call(&f, FROM + 30000, 4010000, F_SYNC, SP); /* for what is recorded */
	kernel(&f, 4100000, 4110000, 5000000, 7, 2);
	expect(&f, FROM, TO);
	start(&f);
	feed_end(&f, 2000000, F_SYNC, SP, 0); /* entered before all of the trace */
	kernel(&f, 3010000, 3020000, 4000000, 7, 1);
	expect(&f, 2000000, TO);
}

static void test_nothing_ran(void **state)
{
	struct feed f;

	(void)state;
	start(&f); /* idle all the time */
	before(&f, 100000);
	feed_call(&f, 200000, 300000, F_SYNC, SP);
	expect(&f, FROM, TO);
	start(&f); /* it may run yet */
	before(&f, 100000);
	expect_none(&f);
	start(&f); /* behind a kernel that never ends */
	before(&f, 100000);
	before(&f, 2000000);
	expect_none(&f);
	start(&f); /* a wait that does not return */
	before(&f, 100000);
	feed_begin(&f, 200000, F_SYNC, SP);
	expect_none(&f);
	start(&f); /* of another thread, whose stream is nobody else's */
	f.tid++;
	feed_begin(&f, 200000, F_SYNC, SP);
	f.tid--;
	kernel(&f, FROM + 10000, FROM + 20000, 4000000, 7, 1);
	expect_none(&f);
}

static void test_what_still_runs(void **state)
{
	struct feed f;

	(void)state;
	start(&f);
	feed_sidecar(&f, TO + 5000, RECORD_SIDECAR_RUNNING, 1, "");
	kernel(&f, FROM + 10000, FROM + 20000, 4000000, 7, 1);
	kernel(&f, FROM + 30000, 4000000, 5000000, 7, 2);
	before(&f, FROM + 60000);
	expect(&f, FROM, 5000000);
	start(&f); /* all of them */
	feed_sidecar(&f, TO, RECORD_SIDECAR_RUNNING, 2, "");
	before(&f, FROM + 60000);
	expect_none(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_was_before),
		cmocka_unit_test(test_a_full_queue),
		cmocka_unit_test(test_two_streams),
		cmocka_unit_test(test_drained_before),
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_nothing_ran),
		cmocka_unit_test(test_what_still_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
