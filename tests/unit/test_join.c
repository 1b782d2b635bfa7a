// SPDX-License-Identifier: BSD-2-Clause
/* Which call caused which work: against the truth, and in every trap. */
#include "gpu_session.h"

#include "model/gpu.h"

static const struct work *work_at(const struct session *s, int64_t begin)
{
	for (size_t i = 0; i < s->works_count; i++)
		if (s->works[i].begin == begin)
			return &s->works[i];
	fail_msg("no work begins at %lld", (long long)begin);
	return NULL;
}

/* Entry of the call of the work that begins then; -1: unmatched. */
static int64_t entry_of(const struct session *s, int64_t begin)
{
	uint32_t call = work_at(s, begin)->call;

	return call == CALL_NONE ? -1 : s->calls[call].begin;
}

struct found {
	size_t right, wrong, unmatched;
};

static int truth_order(const void *pa, const void *pb)
{
	const struct gpu_truth *a = pa, *b = pb;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->context != b->context)
		return a->context < b->context ? -1 : 1;
	if (a->stream != b->stream)
		return a->stream < b->stream ? -1 : 1;
	return a->begin < b->begin ? -1 : a->begin > b->begin;
}

static struct found compare(const struct session *s, struct gpu_truth *truth, size_t count)
{
	struct found found = { 0 };

	qsort(truth, count, sizeof(*truth), truth_order);
	for (size_t i = 0; i < s->works_count; i++) {
		const struct work *w = &s->works[i];
		const struct session_stream *st = &s->streams[w->stream];
		struct gpu_truth key = { .pid = s->processes[st->process].pid, .stream = st->id,
					 .context = st->context, .begin = w->begin };
		const struct gpu_truth *t =
			bsearch(&key, truth, count, sizeof(*truth), truth_order);

		assert_non_null(t);
		if (w->call == CALL_NONE) {
			found.unmatched++;
			continue;
		}
		if (s->calls[w->call].begin == t->entry &&
		    s->threads[s->calls[w->call].thread].tid == t->tid)
			found.right++;
		else
			found.wrong++;
	}
	return found;
}

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

/* Without CUPTI's records of calls the order is left: one thread, or none at a time. */
static void test_order_only(void **state)
{
	struct gpu_random_options o = { .processes = 2, .threads = 1, .streams = 8, .devices = 2,
					.calls = 300, .no_work_calls = true };

	for (o.seed = 1; o.seed < 5; o.seed++) {
		struct feed f;
		struct gpu_truth *truth;
		size_t count;
		struct session *s = gpu_random(&f, &o, &truth, &count);
		struct found found = compare(s, truth, count);

		assert_int_equal(found.wrong, 0);
		assert_int_equal(found.unmatched, 0);
		assert_int_equal(s->work_calls_count, 0);
		free(truth);
		feed_stop(&f);
	}
}

/* Threads that call at the same time: nothing is guessed. */
static void test_order_of_threads(void **state)
{
	struct gpu_random_options o = { .seed = 2, .processes = 2, .threads = 8, .streams = 8,
					.devices = 2, .calls = 200, .no_work_calls = true };
	struct feed f;
	struct gpu_truth *truth;
	size_t count;
	struct session *s = gpu_random(&f, &o, &truth, &count);

	assert_int_equal(compare(s, truth, count).wrong, 0);
	free(truth);
	feed_stop(&f);
}

static void feed_orders(struct feed *f, bool lost)
{
	feed_start(f);
	feed_shape(f, 1, "_Z1fv", 8, 32);
	feed_cover(f, 500, 90000);
	for (int i = 0; i < 5; i++) {
		feed_launched(f, 1000 + i * 2000, 1900 + i * 2000, 0xabc, 0, 8, 32, 0);
		if (!lost || i != 2)
			feed_kernel(f, 20000 + i * 100, 20090 + i * 100, 7, 40 + i, 1);
	}
}

/* One missing work, and no order can be believed. */
static void test_order_with_a_hole(void **state)
{
	struct feed f;
	struct session *s;

	feed_orders(&f, false);
	s = feed_finish(&f);
	assert_int_equal(s->join.matched, 5);
	assert_int_equal(entry_of(s, 20300), 7000);
	feed_stop(&f);
	feed_orders(&f, true);
	s = feed_finish(&f);
	assert_int_equal(s->join.matched, 0);
	feed_stop(&f);
	feed_orders(&f, false);
	feed_sidecar(&f, 80000, RECORD_SIDECAR_DROPPED, 1, "ring");
	s = feed_finish(&f);
	assert_int_equal(s->join.matched, 0);
	feed_stop(&f);
}

static void feed_graphs(struct feed *f, int64_t t, uint32_t correlation, uint32_t told,
			uint64_t exec)
{
	feed_called(f, t, t + 2000, F_GRAPH, exec, 0, 0, correlation);
	for (uint32_t i = 0; i < 3; i++)
		feed_work(f, &(struct record_work){
				     .begin = t + 3000 + i * 1000, .duration = 900,
				     .kind = RECORD_WORK_KERNEL, .stream = i == 1 ? 13 : 7,
				     .correlation = told, .shape = 1, .graph = (uint32_t)exec,
				     .graph_node = 50 + i, .peer = UINT32_MAX });
}

/*
 * Two sessions of an old CUPTI: in the second all graphs carry one id, of a launch. Their
 * nodes' order tells the launches apart, if only one graph runs.
 */
static void old_graphs(uint32_t cupti, uint64_t second_exec, struct feed *f, struct session **s)
{
	struct record r = { .kind = RECORD_SIDECAR,
			    .sidecar = { .pid = 100, .event = RECORD_SIDECAR_CLOCK, .count = 150,
					 .cupti = cupti, .text = "" } };

	feed_start(f);
	feed_shape(f, 1, "_Z1fv", 8, 32);
	for (int64_t begin = 500; begin < 200000; begin += 100000) {
		uint32_t ids[] = { RECORD_SIDECAR_BEGAN, RECORD_SIDECAR_ENDED };

		for (int i = 0; i < 2; i++) {
			r.sidecar.ts = begin + i * 90000;
			r.sidecar.event = ids[i];
			feed_add(f, &r);
		}
		for (uint32_t i = 0; i < 4; i++)
			feed_graphs(f, begin + 1000 + i * 10000, 1 + i + (begin > 50000) * 10,
				    begin > 50000 ? 11 : 1 + i, i == 3 ? second_exec : 5);
	}
	*s = feed_finish(f);
}

static void test_old_graph_ids(void **state)
{
	struct feed f;
	struct session *s;

	old_graphs(130100, 5, &f, &s);
	for (int64_t i = 0; i < 4; i++)
		for (int64_t n = 0; n < 3; n++)
			assert_int_equal(entry_of(s, 104500 + i * 10000 + n * 1000),
					 101500 + i * 10000);
	assert_int_equal(s->join.matched, 24);
	feed_stop(&f);
	old_graphs(130100, 6, &f, &s); /* two graphs: which is which is not known */
	assert_int_equal(s->join.matched, 12);
	assert_int_equal(entry_of(s, 104500), -1);
	assert_int_equal(s->join.launches_without, 4);
	feed_stop(&f);
}

/* The same in what somebody else's session left behind: one launch cannot run a node twice. */
static void test_graph_node_twice(void **state)
{
	struct feed f;
	struct session *s;
	struct record r = { .kind = RECORD_SIDECAR,
			    .sidecar = { .ts = 1, .pid = 100, .event = RECORD_SIDECAR_BEGAN,
					 .cupti = 24, .text = "" } };

	feed_start(&f);
	feed_add(&f, &r);
	feed_shape(&f, 1, "_Z1fv", 8, 32);
	feed_graphs(&f, 1000, 1, 1, 5);
	feed_graphs(&f, 20000, 2, 1, 5);
	s = feed_finish(&f);
	assert_int_equal(s->join.matched, 0);
	assert_int_equal(s->join.contradicted, 6);
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
		cmocka_unit_test(test_order_only),
		cmocka_unit_test(test_order_of_threads),
		cmocka_unit_test(test_order_with_a_hole),
		cmocka_unit_test(test_old_graph_ids),
		cmocka_unit_test(test_graph_node_twice),
		cmocka_unit_test(test_launches_without),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
