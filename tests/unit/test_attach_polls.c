// SPDX-License-Identifier: BSD-2-Clause
/* A loop around a query is one record: when it is, and when it must not be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <time.h>

#include "rig.h"

#define NOT_READY 600
#define TRIES 50

static struct rig *rig_of_queries(enum rung rung)
{
	struct rig *g = rig_new(rung);
	struct probe_site sites[] = {rig_site(g, "rig_query", "cuEventQuery"),
				     rig_site(g, "rig_call", "cuCtxSynchronize"),
				     rig_site(g, "rig_other", "cudaEventQuery")};

	rig_attach(g, sites, 3);
	return g;
}

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void call(rig_fn function, uintptr_t object, long answer)
{
	rig_fn volatile f = function;

	assert_int_equal(f((void *)object, answer, 3, 4, 5, 6, 7, 8, 9), answer);
}

static void nap_ns(int64_t ns)
{
	int64_t end = now() + ns;

	while (now() < end)
		;
}

/*
 * Some queries of one object, all "not ready" but the last. Another program may
 * run between two of them: then they are rightly more than one, and tried again.
 */
static bool poll_undisturbed(struct rig *g, size_t times, long last)
{
	for (int i = 0; i < TRIES; i++) {
		int64_t begin, before = 0, gap = 0;

		begin = now();
		for (size_t n = 1; n <= times; n++) {
			call(rig_query, 0xe1, n < times ? NOT_READY : last);
			before = before ? before : begin;
			if (now() - before > gap)
				gap = now() - before;
			before = now();
		}
		if (gap < 500000)
			return true;
		call(rig_call, 0, 0);
		rig_read(g);
	}
	return false;
}

static void expect_poll(const struct event *e, const char *api, uint64_t object, uint32_t count,
			int32_t ret)
{
	assert_int_equal(e->kind, EVENT_POLL);
	assert_int_equal(e->api, rig_api(api));
	assert_int_equal(e->image, RIG_IMAGE);
	assert_int_equal(e->pid, getpid());
	assert_int_equal(e->poll.object, object);
	assert_int_equal(e->poll.count, count);
	assert_int_equal(e->poll.ret, ret);
	assert_true(e->poll.min > 0 && e->poll.min <= e->poll.max);
	assert_true((uint64_t)e->poll.inside >= (uint64_t)e->poll.min * count);
	assert_true((uint64_t)e->poll.inside <= (uint64_t)e->poll.max * count);
	assert_true(e->poll.last_end >= e->ts + e->poll.inside);
}

static void a_loop_is_one_record(void **state)
{
	for (enum rung rung = rig_first_rung(); rung <= RUNG_SINGLE; rung++) {
		struct rig *g = rig_of_queries(rung);
		int64_t begin = now();

		assert_true(poll_undisturbed(g, 200, 0));
		rig_read(g);
		assert_int_equal(g->count, 1);
		expect_poll(&g->events[0], "cuEventQuery", 0xe1, 200, 0);
		assert_true(g->events[0].ts >= begin && g->events[0].poll.last_end <= now());
		rig_free(g);
	}
}

static void an_answer_ends_it(void **state)
{
	static const long answers[] = {0, 700, -1};
	struct rig *g = rig_of_queries(RUNG_AUTO);

	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
		call(rig_query, 0xe1, answers[i]);
		call(rig_query, 0xe1, answers[i]);
		rig_read(g);
		assert_int_equal(g->count, 2);
		expect_poll(&g->events[0], "cuEventQuery", 0xe1, 1, (int32_t)answers[i]);
		expect_poll(&g->events[1], "cuEventQuery", 0xe1, 1, (int32_t)answers[i]);
	}
	assert_int_equal(probes_counters(g->p)->polls_open, 0);
	rig_free(g);
}

static void a_pause_splits_it(void **state)
{
	struct rig *g = rig_of_queries(RUNG_AUTO);

	assert_true(poll_undisturbed(g, 5, NOT_READY));
	nap_ns(3000000);
	call(rig_query, 0xe1, 0);
	rig_read(g);
	assert_int_equal(g->count, 2);
	expect_poll(&g->events[0], "cuEventQuery", 0xe1, 5, NOT_READY);
	expect_poll(&g->events[1], "cuEventQuery", 0xe1, 1, 0);
	rig_free(g);
}

static void another_object_splits_it(void **state)
{
	struct rig *g = rig_of_queries(RUNG_AUTO);

	assert_true(poll_undisturbed(g, 4, NOT_READY));
	call(rig_query, 0xe2, 0);
	rig_read(g);
	assert_int_equal(g->count, 2);
	expect_poll(&g->events[0], "cuEventQuery", 0xe1, 4, NOT_READY);
	expect_poll(&g->events[1], "cuEventQuery", 0xe2, 1, 0);
	rig_free(g);
}

/* What a thread does after it polled comes after it in the record, too. */
static void another_call_ends_it(void **state)
{
	struct rig *g = rig_of_queries(RUNG_AUTO);

	assert_true(poll_undisturbed(g, 3, NOT_READY));
	assert_int_equal(probes_counters(g->p)->polls_open, 1);
	rig_read(g);
	assert_int_equal(g->count, 0);
	call(rig_call, 0, 0);
	assert_int_equal(probes_counters(g->p)->polls_open, 0);
	rig_read(g);
	assert_int_equal(g->count, 3);
	for (size_t i = 0; i < 3; i++)
		if (g->events[i].kind == EVENT_POLL)
			expect_poll(&g->events[i], "cuEventQuery", 0xe1, 3, NOT_READY);
		else
			assert_int_equal(g->events[i].api, rig_api("cuCtxSynchronize"));
	rig_free(g);
}

/* The runtime's query is at a level of its own: neither disturbs the other. */
static void levels_are_apart(void **state)
{
	struct rig *g = rig_of_queries(RUNG_AUTO);
	size_t driver = 0, runtime = 0;

	for (int i = 0; i < 4; i++) {
		call(rig_query, 0xe1, i < 3 ? NOT_READY : 0);
		call(rig_other, 0xe1, i < 3 ? NOT_READY : 0);
	}
	rig_read(g);
	for (size_t i = 0; i < g->count; i++) {
		assert_int_equal(g->events[i].kind, EVENT_POLL);
		if (g->events[i].api == rig_api("cuEventQuery"))
			driver += g->events[i].poll.count;
		else
			runtime += g->events[i].poll.count;
	}
	assert_int_equal(driver, 4);
	assert_int_equal(runtime, 4);
	rig_free(g);
}

/* Going on when the trace ends: what was gathered is told, once. */
static void what_goes_on_at_the_end(void **state)
{
	struct rig *g = rig_of_queries(RUNG_AUTO);

	assert_true(poll_undisturbed(g, 7, NOT_READY));
	rig_read(g);
	assert_int_equal(g->count, 0);
	rig_detach(g);
	assert_int_equal(rings_finish(g->r), 0);
	assert_int_equal(g->count, 1);
	expect_poll(&g->events[0], "cuEventQuery", 0xe1, 7, NOT_READY);
	rig_free(g);
}

/* Without return probes there is nothing to gather by: each is a begin. */
static void entry_only_queries_are_begins(void **state)
{
	struct rig *g = rig_new(RUNG_AUTO);
	struct probe_site site = rig_site(g, "rig_query", "cuEventQuery");

	site.entry_only = true;
	rig_attach(g, &site, 1);
	for (int i = 0; i < 5; i++)
		call(rig_query, 0xe1, NOT_READY);
	rig_read(g);
	assert_int_equal(g->count, 5);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(g->events[i].kind, EVENT_BEGIN);
		assert_int_equal(g->events[i].call.object, 0xe1);
	}
	rig_free(g);
}

/*
 * An eighth of a ring at the rate seen last, but 2 ms at least and 100 ms or half
 * a ring of one busy CPU (60 bytes a µs) at most.
 */
static void the_pause_between_rounds(void **state)
{
	struct rig *g = rig_new(RUNG_AUTO);
	int64_t room = (int64_t)probes_ring_bytes(g->p), burst = room / 2 * 1000 / 60;

	if (burst > 100000000)
		burst = 100000000;
	assert_in_range(rings_pause(g->r, 0, 0), burst - 1, burst);
	assert_in_range(rings_pause(g->r, 1000000, 0), burst - 1, burst);
	assert_in_range(rings_pause(g->r, 0, 1000000), burst - 1, burst); /* no time: no rate */
	assert_in_range(rings_pause(g->r, -5, 1000000), burst - 1, burst);
	/* an eighth of a ring in 8 ms, and a quarter */
	assert_in_range(rings_pause(g->r, 8000000, (uint64_t)room / 8), 7999999, 8000000);
	assert_in_range(rings_pause(g->r, 8000000, (uint64_t)room / 4), 3999999, 4000000);
	assert_int_equal(rings_pause(g->r, 8000000, (uint64_t)room * 100), 2000000);
	assert_int_equal(rings_pause(g->r, 1, UINT64_MAX), 2000000);
	assert_in_range(rings_pause(g->r, INT64_MAX, 1), burst - 1, burst);
	rig_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_loop_is_one_record),
		cmocka_unit_test(an_answer_ends_it),
		cmocka_unit_test(a_pause_splits_it),
		cmocka_unit_test(another_object_splits_it),
		cmocka_unit_test(another_call_ends_it),
		cmocka_unit_test(levels_are_apart),
		cmocka_unit_test(what_goes_on_at_the_end),
		cmocka_unit_test(entry_only_queries_are_begins),
		cmocka_unit_test(the_pause_between_rounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
