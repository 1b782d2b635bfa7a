// SPDX-License-Identifier: BSD-2-Clause
/* The join where CUPTI's ids are missing or wrong: by order, or not at all. */
#include "gpu_joined.h"

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

/* Records are on for some launches before the window begins, and after it; one lacks a node. */
static void graphs_across(uint16_t waits, int lacks, uint32_t node, struct feed *f,
			  struct session **s)
{
	struct record r = { .kind = RECORD_SIDECAR,
			    .sidecar = { .pid = 100, .cupti = 130001, .text = "" } };

	feed_start(f);
	feed_shape(f, 1, "_Z1fv", 8, 32);
	for (int session = 0; session < 2; session++) {
		int64_t begin = 1000000 + session * 500000;

		for (int i = 0; i < 2; i++) {
			r.sidecar.ts = begin + i * 200000;
			r.sidecar.event = i ? RECORD_SIDECAR_ENDED : RECORD_SIDECAR_BEGAN;
			feed_add(f, &r);
		}
	}
	for (int i = 0; i < 100; i++) {
		int64_t t = 1490000 + i * 3000;

		feed_called(f, t, t + 500, F_GRAPH, 5, 0, 0, 0);
		for (uint32_t n = 0; n < 3 && i > 0 && i < 75; n++) {
			if (i == lacks && n == node)
				continue;
			feed_work(f, &(struct record_work){
					     .begin = t + 600 + n * 100, .duration = 90,
					     .kind = RECORD_WORK_KERNEL, .stream = 7,
					     .correlation = 11, .shape = 1, .graph = 9,
					     .graph_node = 50 + n, .peer = UINT32_MAX });
		}
		if (waits)
			feed_called(f, t + 550, t + 1000, waits, 0, 0, 0, 0);
	}
	*s = feed_finish(f);
}

static void test_graphs_across_the_edges(void **state)
{
	struct feed f;
	struct session *s;

	for (int w = 0; w < 2; w++) {
		graphs_across(w ? F_SYNC : F_CTX_SYNC, 0, 0, &f, &s);
		assert_int_equal(s->join.matched, 74 * 3);
		for (int i = 1; i < 75; i++)
			for (int n = 0; n < 3; n++)
				assert_int_equal(entry_of(s, 1490600 + i * 3000 + n * 100),
						 1490000 + i * 3000);
		feed_stop(&f);
	}
	graphs_across(0, 0, 0, &f, &s); /* it could be one launch earlier */
	assert_int_equal(s->join.matched, 0);
	feed_stop(&f);
}

/* Recording may begin amid the first launch or end amid the last one, and loses none between. */
static void test_a_launch_that_is_cut(void **state)
{
	static const struct {
		int launch;
		uint32_t node;
		bool matched;
	} cases[] = { { 74, 2, true }, { 74, 1, true }, { 74, 0, false }, { 1, 0, true },
		      { 40, 2, false }, { 73, 1, false } };
	struct feed f;
	struct session *s;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		graphs_across(F_SYNC, cases[i].launch, cases[i].node, &f, &s);
		assert_int_equal(s->join.matched, cases[i].matched ? 74 * 3 - 1 : 0);
		for (int k = 1; k < 75 && cases[i].matched; k++)
			for (uint32_t n = 0; n < 3; n++)
				if (k != cases[i].launch || n != cases[i].node)
					assert_int_equal(entry_of(s, 1490600 + k * 3000 + n * 100),
							 1490000 + k * 3000);
		feed_stop(&f);
	}
}

/* Somebody else's session came before: every work has the id of the launch before its own. */
static void test_shifted_graph_ids(void **state)
{
	struct record r = { .kind = RECORD_SIDECAR,
			    .sidecar = { .pid = 100, .cupti = 130001, .text = "" } };
	static const int64_t ts[] = { 500, 90000 };
	static const uint32_t events[] = { RECORD_SIDECAR_BEGAN, RECORD_SIDECAR_ENDED };

	for (uint64_t graphs = 1; graphs < 3; graphs++) {
		struct feed f;
		struct session *s;

		feed_start(&f);
		feed_shape(&f, 1, "_Z1fv", 8, 32);
		for (int i = 0; i < 2; i++) {
			r.sidecar.ts = ts[i];
			r.sidecar.event = events[i];
			feed_add(&f, &r);
		}
		for (uint32_t i = 0; i < 5; i++)
			feed_graphs(&f, 1000 + i * 10000, 10 + i, 9 + i, 5 + i % graphs);
		s = feed_finish(&f);
		for (int64_t i = 0; i < 5; i++)
			assert_int_equal(entry_of(s, 4000 + i * 10000),
					 graphs == 1 ? 1000 + i * 10000 : -1);
		feed_stop(&f);
	}
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_only),
		cmocka_unit_test(test_order_of_threads),
		cmocka_unit_test(test_order_with_a_hole),
		cmocka_unit_test(test_old_graph_ids),
		cmocka_unit_test(test_graphs_across_the_edges),
		cmocka_unit_test(test_a_launch_that_is_cut),
		cmocka_unit_test(test_shifted_graph_ids),
		cmocka_unit_test(test_graph_node_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
