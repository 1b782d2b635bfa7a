/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps of jobs that are made by hand, so that the right number and length are known. */
#include "steps_script.h"

/* Layers that repeat inside, an optimizer at the end: the step is around all of it. */
static void training(void **state)
{
	struct script j;
	struct steps v;

	begin(&j);
	for (int i = 0; i < 40; i++) {
		layers(&j, 24);
		kernel(&j, 50);
		layers(&j, 24);
		kernel(&j, OPTIMIZER);
		kernel(&j, OPTIMIZER + 1);
		sync(&j, 400 * US);
		if (i % 10 == 9) /* logs */
			feed_copy(&j.f, j.now, j.now + 5 * US, F_COPY, SP, 4, 0);
	}
	find(&j, &v);
	assert_in_range(v.count - 1, 39, 40);
	assert_int_equal(v.length, (48 * 6 + 3) * 10 * US + 405 * US);
	assert_true(v.confidence > 0.9);
	end(&j, &v);
}

static void gradient_accumulation(void **state)
{
	struct script j;
	struct steps v;

	begin(&j);
	for (int i = 0; i < 12; i++) {
		for (int micro = 0; micro < 16; micro++) {
			layers(&j, 12);
			kernel(&j, 50);
		}
		for (unsigned k = 0; k < 3; k++)
			kernel(&j, OPTIMIZER + k);
	}
	find(&j, &v);
	assert_in_range(v.count, 11, 12);
	assert_int_equal(v.length, (16 * (12 * 6 + 1) + 3) * 10 * US);
	end(&j, &v);
}

static void graph_at(struct script *j, uint64_t graph)
{
	struct event e = { .args = EVENT_ARGS_CALL, .call = { .object = graph } };

	feed_begin_with(&j->f, j->now, F_GRAPH, SP, &e);
	feed_end(&j->f, j->now + 8 * US, F_GRAPH, SP, 0);
	j->now += 500 * US;
}

static void graphs_back_to_back(void **state)
{
	struct script j;
	struct steps v;

	begin(&j);
	for (int i = 0; i < 30; i++)
		graph_at(&j, 0x9000);
	find(&j, &v);
	assert_int_equal(v.count, 30);
	assert_int_equal(v.length, 500 * US);
	end(&j, &v);
}

/* Several graphs a step, other work between them. */
static void piecewise_graphs(void **state)
{
	struct script j;
	struct steps v;

	begin(&j);
	for (int i = 0; i < 30; i++) {
		for (uint64_t g = 0; g < 8; g++) {
			graph_at(&j, 0x9000 + g * 64);
			kernel(&j, 5);
		}
		sync(&j, 100 * US);
	}
	find(&j, &v);
	assert_in_range(v.count, 29, 30);
	assert_int_equal(v.length, 8 * 510 * US + 105 * US);
	end(&j, &v);
}

/* A new graph each time: more tokens than are told apart. */
static void graphs_made_anew(void **state)
{
	struct script j;
	struct steps v;

	begin(&j);
	for (uint64_t i = 0; i < 700; i++) {
		for (uint64_t g = 0; g < 100; g++)
			graph_at(&j, 0x9000 + (i * 100 + g) * 64);
		kernel(&j, OPTIMIZER);
	}
	find(&j, &v);
	assert_int_equal(v.count, 700);
	assert_int_equal(v.length, 100 * 500 * US + 10 * US);
	end(&j, &v);
}

/* The same calls, and every other step takes five times as long. */
static void long_and_short(void **state)
{
	struct script j;
	struct steps v;

	begin(&j);
	for (int i = 0; i < 41; i++) {
		layers(&j, 4);
		kernel(&j, OPTIMIZER);
		sync(&j, i % 2 ? 2000 * US : 100 * US);
	}
	find(&j, &v);
	assert_in_range(v.count, 40, 41);
	assert_int_equal(v.shortest, 25 * 10 * US + 105 * US);
	assert_int_equal(v.longest, 25 * 10 * US + 2005 * US);
	end(&j, &v);
}

/* Probes come one by one: what some of them saw before the window is no step of it. */
static void before_the_window(void **state)
{
	struct script j;
	struct steps v;
	int64_t from = 0;

	begin(&j);
	for (int i = 0; i < 40; i++) {
		if (i == 6)
			from = j.now;
		layers(&j, 4);
		kernel(&j, OPTIMIZER);
		sync(&j, 100 * US);
	}
	feed_window(&j.f, from, j.now);
	feed_finish(&j.f);
	assert_int_equal(steps_find(j.f.s, 0, &v), 0);
	assert_in_range(v.count, 33, 34);
	assert_true(v.begins[0] >= from);
	end(&j, &v);
}

/* Recorded in windows of four steps: what lies between windows is no step. */
static void in_windows(void **state)
{
	struct script j;
	struct steps v;
	size_t cut = 0;

	begin(&j);
	for (int w = 0; w < 5; w++) {
		int64_t from = j.now;

		for (int i = 0; i < 4; i++) {
			layers(&j, 4);
			kernel(&j, OPTIMIZER);
			sync(&j, 100 * US);
		}
		feed_window(&j.f, from, j.now - 1);
		j.now += 50000 * US;
	}
	feed_finish(&j.f);
	assert_int_equal(steps_find(j.f.s, 0, &v), 0);
	assert_in_range(v.count - 1, 19, 20);
	assert_int_equal(v.cuts, 4);
	assert_int_equal(steps_whole(&v), v.count - 1 - 4);
	assert_int_equal(v.shortest, 25 * 10 * US + 105 * US);
	assert_int_equal(v.longest, v.shortest);
	for (size_t i = 0; i + 1 < v.count; i++) {
		cut += v.cut[i];
		assert_int_equal(steps_length(&v, i), v.cut[i] ? -1 : v.longest);
	}
	assert_int_equal(cut, 4);
	end(&j, &v);
}

/* One step a window: none is seen from begin to end, and none is claimed. */
static void in_windows_of_one(void **state)
{
	struct script j;
	struct steps v;

	begin(&j);
	for (int w = 0; w < 9; w++) {
		int64_t from = j.now;

		layers(&j, 4);
		kernel(&j, OPTIMIZER);
		sync(&j, 100 * US);
		feed_window(&j.f, from, j.now - 1);
		j.now += 50000 * US;
	}
	feed_finish(&j.f);
	assert_int_equal(steps_find(j.f.s, 0, &v), 0);
	assert_int_equal(v.count, 0);
	assert_int_equal(steps_whole(&v), 0);
	end(&j, &v);
}

/* Two threads: the one that goes forward, and the one that goes backward. */
static void two_threads(void **state)
{
	struct script j;
	struct steps v;

	begin(&j);
	for (int i = 0; i < 20; i++) {
		j.f.tid = 100;
		layers(&j, 8);
		j.f.tid = 101;
		for (unsigned k = 20; k < 60; k++)
			kernel(&j, k);
		j.f.tid = 100;
		kernel(&j, OPTIMIZER);
	}
	find(&j, &v);
	assert_in_range(v.count, 19, 20);
	assert_int_equal(v.length, (48 + 40 + 1) * 10 * US);
	end(&j, &v);
}

static void no_steps(void **state)
{
	struct script j;
	struct steps v;
	uint64_t x = 7;

	begin(&j); /* one kernel for ever */
	for (int i = 0; i < 2000; i++)
		kernel(&j, 1);
	find(&j, &v);
	assert_int_equal(v.count, 0);
	end(&j, &v);

	begin(&j); /* whatever comes */
	for (int i = 0; i < 2000; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		kernel(&j, (unsigned)(x >> 40) % 30);
	}
	find(&j, &v);
	assert_int_equal(v.count, 0);
	end(&j, &v);

	begin(&j); /* nothing at all */
	find(&j, &v);
	assert_int_equal(v.count, 0);
	end(&j, &v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(training),
		cmocka_unit_test(gradient_accumulation),
		cmocka_unit_test(graphs_back_to_back),
		cmocka_unit_test(piecewise_graphs),
		cmocka_unit_test(graphs_made_anew),
		cmocka_unit_test(long_and_short),
		cmocka_unit_test(before_the_window),
		cmocka_unit_test(in_windows),
		cmocka_unit_test(in_windows_of_one),
		cmocka_unit_test(two_threads),
		cmocka_unit_test(no_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
