// SPDX-License-Identifier: BSD-2-Clause
/* The join where calls are recorded for moments only: from those on, in step. */
#include "gpu_joined.h"

#ifdef QUICK_TESTS /* the quick tests' build */
#define SEEDS 1
#else
#define SEEDS 4
#endif

/* Moments of 0.15 ms, every 2 ms; a call comes every few microseconds. */
static const struct gpu_random_options moments = {
	.processes = 2, .threads = 1, .streams = 4, .devices = 2, .calls = 1500,
	.every = 2000000, .moment = 150000,
};

/* Of several jobs; *works: how many there were. */
static struct found found_in(struct gpu_random_options o, size_t *works)
{
	struct found sum = { 0 };

	*works = 0;
	for (o.seed = 1; o.seed <= SEEDS; o.seed++) {
		struct feed f;
		struct gpu_truth *truth;
		size_t count;
		struct session *s = gpu_random(&f, &o, &truth, &count);
		struct found found = compare(s, truth, count);

		/* most were not told by CUPTI */
		assert_true(s->work_calls_count < s->works_count / 4);
		assert_int_equal(s->join.matched, found.right + found.wrong);
		*works += s->works_count;
		sum.right += found.right;
		sum.wrong += found.wrong;
		sum.unmatched += found.unmatched;
		free(truth);
		feed_stop(&f);
	}
	assert_true(*works > 250 * SEEDS);
	return sum;
}

static void all_right(const struct gpu_random_options *o)
{
	size_t works;
	struct found found = found_in(*o, &works);

	assert_int_equal(found.wrong, 0);
	assert_int_equal(found.unmatched, 0);
	assert_int_equal(found.right, works);
}

/* Kernels, graphs, copies and sets on streams of two devices. */
static void test_one_thread(void **state)
{
	all_right(&moments);
}

/* Nothing tells one launch from the next but its place, and syncs now and then. */
static void test_all_alike(void **state)
{
	struct gpu_random_options o = moments;

	o.alike = true;
	all_right(&o);
}

static void test_threads_with_streams_of_their_own(void **state)
{
	struct gpu_random_options o = moments;

	o.threads = o.streams = 8;
	o.own_streams = true;
	o.alike = true;
	o.calls = 800;
	all_right(&o);
}

/* The window ends while the job works: what is in it has its call all the same. */
static void test_cut(void **state)
{
	struct gpu_random_options o = moments;
	struct found found;
	size_t works;

	o.cut = 700;
	found = found_in(o, &works);
	assert_int_equal(found.wrong, 0);
	assert_true(found.right >= works * 995 / 1000);
	o.alike = true;
	all_right(&o);
}

/* Threads that use the same streams at the same time: nothing is guessed. */
static void test_shared_streams(void **state)
{
	struct gpu_random_options o = moments;
	struct found found;
	size_t works;

	o.threads = 4;
	o.calls = 800;
	found = found_in(o, &works);
	assert_int_equal(found.wrong, 0);
	assert_true(found.right > works / 2);
}

/* Works that are missing cost others their match, and give none a wrong one. */
static void test_lost(void **state)
{
	struct gpu_random_options o = moments;
	struct found found;
	size_t works;

	for (int alike = 0; alike < 2; alike++) {
		for (o.lost = 1; o.lost <= 100; o.lost *= 10) {
			o.alike = alike;
			found = found_in(o, &works);
			assert_int_equal(found.wrong, 0);
			assert_true(o.lost > 1 || found.right > works * 8 / 10);
		}
	}
}

/* Ids that stand still between moments tell the thread only. */
static void test_ids_that_stand_still(void **state)
{
	struct gpu_random_options o = moments;

	o.still = true;
	all_right(&o);
	o.alike = true;
	all_right(&o);
	o.threads = o.streams = 8;
	o.own_streams = true;
	o.calls = 800;
	all_right(&o);
	o.alike = false;
	all_right(&o);
}

/* A call of which nothing came (it copied nothing) is passed over. */
static void test_a_call_without_work(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_shape(&f, 1, "_Z1fv", 8, 32);
	feed_cover(&f, 500, 190000);
	for (int i = 0; i < 20; i++) {
		int64_t at = 1000 + i * 5000;

		feed_launched(&f, at, at + 900, 0xabc, 0, 8, 32, i ? 0 : 40);
		if (i == 7)
			feed_called(&f, at + 1000, at + 1900, F_ASYNC, 0xd000, 0, 0, 0);
		feed_kernel(&f, at + 2000, at + 2500, 7, 40 + (uint32_t)(i + (i > 7)), 1);
	}
	s = feed_finish(&f);
	for (int i = 0; i < 20; i++)
		assert_int_equal(entry_of(s, 3000 + i * 5000), 1000 + i * 5000);
	feed_stop(&f);
}

/* Work that was asked for before a sync has begun when that returns. */
static void test_a_sync_in_between(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_shape(&f, 1, "_Z1fv", 8, 32);
	feed_cover(&f, 500, 190000);
	feed_launched(&f, 1000, 1900, 0xabc, 0, 8, 32, 40);
	feed_kernel(&f, 2000, 2500, 7, 40, 1);
	/* of this one nothing was recorded, and nobody said so */
	feed_launched(&f, 3000, 3900, 0xabc, 0, 8, 32, 0);
	feed_called(&f, 4000, 9000, F_SYNC, 0, 0, 0, 0);
	feed_launched(&f, 10000, 10900, 0xabc, 0, 8, 32, 0);
	feed_kernel(&f, 12000, 12500, 7, 43, 1);
	s = feed_finish(&f);
	assert_int_equal(entry_of(s, 2000), 1000);
	assert_int_not_equal(entry_of(s, 12000), 3000);
	feed_stop(&f);
}

/* What reads back returns with the data: no copy of its begins later. */
static void test_reading_back(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_shape(&f, 1, "_Z1fv", 8, 32);
	feed_cover(&f, 500, 190000);
	feed_launched(&f, 1000, 1900, 0xabc, 0, 8, 32, 40);
	feed_kernel(&f, 2000, 2500, 7, 40, 1);
	/* of this one nothing was recorded, and nobody said so */
	feed_called(&f, 3000, 3900, F_READ, 0xd000, 0, 512, 0);
	feed_called(&f, 10000, 10900, F_READ, 0xd000, 0, 512, 0);
	feed_work(&f, &(struct record_work){ .begin = 10200, .duration = 100,
					     .kind = RECORD_WORK_COPY, .stream = 7, .bytes = 512,
					     .correlation = 43, .direction = RECORD_COPY_DTOH,
					     .peer = UINT32_MAX });
	s = feed_finish(&f);
	assert_int_equal(entry_of(s, 2000), 1000);
	assert_int_not_equal(entry_of(s, 10200), 3000);
	feed_stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_thread),
		cmocka_unit_test(test_all_alike),
		cmocka_unit_test(test_threads_with_streams_of_their_own),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_shared_streams),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_ids_that_stand_still),
		cmocka_unit_test(test_a_call_without_work),
		cmocka_unit_test(test_a_sync_in_between),
		cmocka_unit_test(test_reading_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
