// SPDX-License-Identifier: BSD-2-Clause
/* Which call caused which work: against the truth, and in every trap. */
#include "gpu_joined.h"

static void test_truth(void **state)
{
	struct gpu_random_options o = { .processes = 3, .threads = 16, .streams = 32, .devices = 4,
					.calls = 60 };

	for (o.seed = 1; o.seed < 6; o.seed++) {
		struct feed f;
		struct gpu_truth *truth;
		size_t count;
		struct session *s = gpu_random(&f, &o, &truth, &count);
		struct found found = compare(s, truth, count);

		assert_int_equal(found.wrong, 0);
		assert_int_equal(found.unmatched, 0);
		assert_int_equal(found.right, count);
		assert_int_equal(s->join.works, count);
		assert_int_equal(s->join.matched, count);
		assert_int_equal(s->join.launches_without, 0);
		assert_true(s->join.launches > 1000);
		free(truth);
		feed_stop(&f);
	}
}

/* Every list agrees with every other. */
static void test_lists(void **state)
{
	struct gpu_random_options o = { .seed = 9, .processes = 2, .threads = 4, .streams = 8,
					.devices = 2, .calls = 100 };
	struct feed f;
	struct session *s = gpu_random(&f, &o, NULL, NULL);
	size_t sum = 0, count;

	for (uint32_t c = 0; c < s->calls_count; c++) {
		const uint32_t *works = works_of(s, c, &count);

		assert_true(!works == !count);
		for (size_t i = 0; works && i < count; i++) {
			assert_int_equal(s->works[works[i]].call, c);
			assert_true(!i || s->works[works[i - 1]].begin <=
						  s->works[works[i]].begin);
		}
		if (works)
			assert_int_equal(work_call_of(s, c)->correlation,
					 s->works[works[0]].correlation);
		sum += count;
	}
	assert_int_equal(sum, s->works_count);
	for (size_t i = 0; i < s->streams_count; i++)
		assert_int_equal(s->streams[i].handle, 0x5500 + (s->streams[i].id - 7) * 16);
	feed_stop(&f);
}

static void test_small(void **state)
{
	struct feed f;
	struct session *s = gpu_small(&f);
	size_t count;

	assert_int_equal(entry_of(s, 120000), 110000);
	assert_int_equal(entry_of(s, 210000), 200000);
	for (int64_t begin = 230000; begin <= 250000; begin += 10000)
		assert_int_equal(entry_of(s, begin), 220000);
	works_of(s, work_at(s, 240000)->call, &count);
	assert_int_equal(count, 3);
	assert_int_equal(entry_of(s, 300000), 290000); /* 200's correlation 1, not 100's */
	assert_int_equal(s->join.matched, 9);
	assert_int_equal(s->join.launches, 6);
	assert_int_equal(s->streams[0].handle, 0x77);
	/* 200 never told the name of 0xaaa: CUPTI does. */
	assert_string_equal(s->kernels[s->calls[work_at(s, 300000)->call].kernel].mangled,
			    SMALL_GEMM);
	feed_stop(&f);
}

/* The runtime's call around the driver's: the inner one is the cause, its parent the other. */
static void test_nested(void **state)
{
	struct event e = { .args = EVENT_ARGS_LAUNCH, .launch = { .func = 0x5555, .stream = 0,
			   .grid = { 8, 1, 1 }, .block = { 32, 1, 1 } } };
	struct feed f;
	struct session *s;
	const struct work *w;

	feed_start(&f);
	feed_cover(&f, 500, 90000);
	feed_shape(&f, 1, "_Z1fv", 8, 32);
	for (int i = 0; i < 3; i++) { /* the second: the clocks are 100 ns apart */
		int64_t t = 1000 + i * 10000, late = i == 1 ? 150 : 0;

		feed_begin_with(&f, t, F_RT_LAUNCH, SP, &e);
		feed_begin_with(&f, t + 100, F_LAUNCH, SP - 64, &e);
		feed_work_call(&f, t + 110 + late, t + 980 + late, 5 + i);
		feed_end(&f, t + 1000, F_LAUNCH, SP - 64, 0);
		feed_end(&f, t + 1200, F_RT_LAUNCH, SP, 0);
		feed_kernel(&f, t + 5000, t + 6000, 7, 5 + i, 1);
	}
	s = feed_finish(&f);
	for (int i = 0; i < 3; i++) {
		w = work_at(s, 6000 + i * 10000);
		assert_int_equal(entry_of(s, w->begin), 1100 + i * 10000);
		assert_int_equal(s->calls[s->calls[w->call].parent].begin, 1000 + i * 10000);
	}
	assert_int_equal(s->join.launches, 3);
	assert_int_equal(s->join.launches_without, 0);
	feed_stop(&f);
}

/* CUPTI's record of the runtime's call: still the driver's call inside is the cause. */
static void test_runtime_records(void **state)
{
	struct record r = { .kind = RECORD_WORK_CALL,
			    .work_call = { .begin = 1010, .duration = 1180, .pid = 100, .tid = 100,
					   .domain = 2, .cbid = 211, .correlation = 9 } };
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_cover(&f, 500, 90000);
	feed_shape(&f, 1, "_Z1fv", 8, 32);
	feed_begin(&f, 1000, F_RT_LAUNCH, SP);
	feed_launch(&f, 1100, 2000, F_LAUNCH, SP - 64, 0xabc, 8, 32);
	feed_end(&f, 2200, F_RT_LAUNCH, SP, 0);
	feed_add(&f, &r);
	r.work_call.begin = 11010; /* and where the runtime is not probed */
	r.work_call.correlation = 10;
	feed_launch(&f, 11100, 12000, F_LAUNCH, SP - 64, 0xabc, 8, 32);
	feed_add(&f, &r);
	feed_kernel(&f, 5000, 6000, 7, 9, 1);
	feed_kernel(&f, 15000, 16000, 7, 10, 1);
	s = feed_finish(&f);
	assert_int_equal(entry_of(s, 5000), 1100);
	assert_int_equal(entry_of(s, 15000), 11100);
	feed_stop(&f);
}

/* An id that comes again means the last call before the work, and never a later one. */
static void test_wrap(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_cover(&f, 500, 90000);
	feed_shape(&f, 1, "_Z1fv", 8, 32);
	feed_launched(&f, 1000, 3000, 0xabc, 0, 8, 32, UINT32_MAX);
	feed_launched(&f, 4000, 6000, 0xabc, 0, 8, 32, 7);
	feed_launched(&f, 21000, 23000, 0xabc, 0, 8, 32, 7);
	feed_kernel(&f, 25000, 26000, 7, 7, 1);
	feed_kernel(&f, 8000, 9000, 7, 7, 1);
	feed_kernel(&f, 7000, 7500, 7, UINT32_MAX, 1);
	feed_kernel(&f, 2500, 3500, 7, 7, 1); /* before any call of that id */
	s = feed_finish(&f);
	assert_int_equal(entry_of(s, 25000), 21000);
	assert_int_equal(entry_of(s, 8000), 4000);
	assert_int_equal(entry_of(s, 7000), 1000);
	assert_int_equal(entry_of(s, 2500), -1);
	assert_int_equal(s->join.before_entry, 1);
	assert_int_equal(s->join.matched, 3);
	feed_stop(&f);
}

/* What the id says and the grid denies is not matched. */
static void test_contradiction(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_cover(&f, 500, 90000);
	feed_shape(&f, 1, "_Z1fv", 8, 32);
	feed_launched(&f, 1000, 3000, 0xabc, 0, 16, 32, 1);
	feed_launched(&f, 4000, 6000, 0xabc, 0, 8, 32, 2);
	feed_kernel(&f, 5000, 7000, 7, 1, 1);
	feed_kernel(&f, 8000, 9000, 7, 2, 1);
	feed_copied(&f, 9500, 9600, 7, 2, 64); /* a kernel's launch copies nothing */
	s = feed_finish(&f);
	assert_int_equal(entry_of(s, 5000), -1);
	assert_int_equal(entry_of(s, 8000), 4000);
	assert_int_equal(entry_of(s, 9500), -1);
	assert_int_equal(s->join.contradicted, 2);
	assert_int_equal(s->join.launches, 2);
	assert_int_equal(s->join.launches_without, 1);
	feed_stop(&f);
}

/* Entry-only probes, lost ends, an open call: the next call bounds them. */
static void test_without_ends(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_cover(&f, 500, 90000);
	feed_shape(&f, 1, "_Z1fv", 8, 32);
	for (int i = 0; i < 4; i++) {
		struct event e = { .args = EVENT_ARGS_LAUNCH, .launch = { .func = 0xabc,
				   .grid = { 8, 1, 1 }, .block = { 32, 1, 1 } } };

		feed_begin_with(&f, 1000 + i * 3000, F_LAUNCH, SP, &e);
		feed_work_call(&f, 1100 + i * 3000, 2000 + i * 3000, 1 + i);
		feed_kernel(&f, 20000 + i * 1000, 20500 + i * 1000, 7, 1 + i, 1);
	}
	feed_work_call(&f, 14000, 15000, 9); /* its own call's begin was lost */
	feed_kernel(&f, 30000, 31000, 7, 9, 1);
	s = feed_finish(&f);
	for (int i = 0; i < 4; i++)
		assert_int_equal(entry_of(s, 20000 + i * 1000), 1000 + i * 3000);
	assert_int_equal(entry_of(s, 30000), -1);
	feed_stop(&f);
}

/* A kernel that was still running when the sidecar stopped; a launch into a capture. */
static void test_launches_without(void **state)
{
	struct record_api begin = { .id = F_END, .name = "cuStreamBeginCapture_v2",
				    .library = "driver", .kind = "graph" };
	struct record_api end = { .id = F_END + 1, .name = "cuStreamEndCapture",
				  .library = "driver", .kind = "graph" };
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_add(&f, &(struct record){ .kind = RECORD_API, .api = begin });
	feed_add(&f, &(struct record){ .kind = RECORD_API, .api = end });
	feed_shape(&f, 1, "_Z1fv", 8, 32);
	feed_cover(&f, 500, 90000);
	feed_launched(&f, 1000, 2000, 0xabc, 0, 8, 32, 1);
	feed_kernel(&f, 5000, 6000, 7, 1, 1);
	feed_launched(&f, 3000, 4000, 0xabc, 0, 8, 32, 2); /* never seen to end */
	feed_call(&f, 10000, 10100, F_END, SP);
	feed_launched(&f, 11000, 12000, 0xabc, 0, 8, 32, 3);
	feed_call(&f, 13000, 13100, F_END + 1, SP);
	feed_launched(&f, 89500, 90500, 0xabc, 0, 8, 32, 4); /* not wholly inside */
	s = feed_finish(&f);
	assert_int_equal(s->join.launches, 2);
	assert_int_equal(s->join.launches_without, 1);
	feed_stop(&f);
}

static void test_hostile(void **state)
{
	struct gpu_random_options o = { .processes = 2, .threads = 3, .streams = 6, .devices = 2,
					.calls = 80, .hostile = true };

	for (o.seed = 30; o.seed < 40; o.seed++) {
		struct feed f;
		struct session *s = gpu_random(&f, &o, NULL, NULL);

		assert_true(s->join.matched <= s->join.works);
		for (size_t i = 0; i < s->works_count; i++)
			if (s->works[i].call != CALL_NONE)
				assert_true(s->works[i].begin + 1000 >=
					    s->calls[s->works[i].call].begin);
		feed_stop(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_truth),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_runtime_records),
		cmocka_unit_test(test_wrap),
		cmocka_unit_test(test_contradiction),
		cmocka_unit_test(test_without_ends),
		cmocka_unit_test(test_launches_without),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
