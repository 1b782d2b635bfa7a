// SPDX-License-Identifier: BSD-2-Clause
/* Pairing and nesting, on sequences of events whose meaning is known. */
#include "feed.h"

#include <stdio.h>

static const char *api_name(const struct session *s, const struct call *c)
{
	return s->apis[c->api].name;
}

static void test_nesting_and_self(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_begin(&f, 1000, F_RT_SYNC, SP);
	feed_call(&f, 1100, 1400, F_SYNC, SP - 64);
	feed_call(&f, 1500, 1510, F_QUERY, SP - 64);
	feed_end(&f, 2000, F_RT_SYNC, SP, 0);
	feed_call(&f, 3000, 3001, F_SYNC, SP);
	s = feed_finish(&f);
	assert_int_equal(s->calls_count, 4);
	assert_string_equal(api_name(s, nth(s, 0)), "cudaStreamSynchronize");
	assert_int_equal(nth(s, 0)->parent, CALL_NONE);
	assert_int_equal(nth(s, 0)->children, 310);
	assert_int_equal(call_duration(nth(s, 0)), 1000);
	assert_int_equal(call_self(s, nth(s, 0)), 690);
	assert_int_equal(nth(s, 1)->parent, 0);
	assert_true(nth(s, 1)->flags & CALL_NESTED);
	assert_int_equal(call_self(s, nth(s, 1)), 300);
	assert_int_equal(nth(s, 2)->parent, 0);
	assert_int_equal(nth(s, 3)->parent, CALL_NONE);
	assert_false(nth(s, 3)->flags & CALL_NESTED);
	assert_int_equal(s->quality.unpaired_begin, 0);
	assert_int_equal(s->quality.unpaired_end, 0);
	assert_int_equal(s->quality.events, 8);
	feed_stop(&f);
}

static void test_64_nested(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	for (uint32_t i = 0; i < 64; i++)
		feed_begin(&f, 100 + i, F_SYNC, SP - i * 16);
	for (uint32_t i = 64; i-- > 0;)
		feed_end(&f, 1000 + (63 - i), F_SYNC, SP - i * 16, 0);
	s = feed_finish(&f);
	assert_int_equal(s->calls_count, 64);
	for (uint32_t i = 0; i < 64; i++) {
		assert_int_equal(nth(s, i)->parent, i ? i - 1 : CALL_NONE);
		assert_int_equal(call_duration(nth(s, i)), 1063 - i - 100 - i);
		assert_int_equal(call_self(s, nth(s, i)), i < 63 ? 2 : 837);
	}
	feed_stop(&f);
}

/* longjmp out of two calls: the next begin higher up proves them gone. */
static void test_longjmp(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_begin(&f, 1000, F_RT_SYNC, SP - 128);
	feed_begin(&f, 1100, F_SYNC, SP - 256);
	feed_call(&f, 2000, 2100, F_ALLOC, SP);
	s = feed_finish(&f);
	assert_int_equal(s->calls_count, 3);
	assert_true(nth(s, 0)->flags & CALL_NO_END);
	assert_true(nth(s, 1)->flags & CALL_NO_END);
	assert_int_equal(call_duration(nth(s, 0)), -1);
	assert_int_equal(call_self(s, nth(s, 0)), -1);
	assert_int_equal(nth(s, 2)->parent, CALL_NONE);
	assert_int_equal(call_duration(nth(s, 2)), 100);
	assert_int_equal(s->quality.unpaired_begin, 2);
	feed_stop(&f);
}

/* The end of one call is lost: the next of its kind, at the same place, is whole. */
static void test_lost_end(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_begin(&f, 1000, F_SYNC, SP);
	feed_call(&f, 2000, 2100, F_SYNC, SP);
	s = feed_finish(&f);
	assert_int_equal(s->calls_count, 2);
	assert_int_equal(nth(s, 0)->flags, CALL_NO_END);
	assert_int_equal(nth(s, 1)->flags, 0);
	assert_int_equal(call_duration(nth(s, 1)), 100);
	feed_stop(&f);
}

/* Lost, and then another function is called from the same frame: not nested in it. */
static void test_lost_end_other_function(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_begin(&f, 1000, F_LAUNCH, SP);
	feed_call(&f, 2000, 2100, F_SYNC, SP);
	feed_call(&f, 3000, 3100, F_ALLOC, SP);
	s = feed_finish(&f);
	assert_int_equal(s->calls_count, 3);
	assert_int_equal(nth(s, 0)->flags, CALL_NO_END);
	for (size_t i = 1; i < 3; i++) {
		assert_int_equal(nth(s, i)->parent, CALL_NONE);
		assert_int_equal(nth(s, i)->flags, 0);
		assert_int_equal(call_duration(nth(s, i)), 100);
	}
	feed_stop(&f);
}

/* A function that ends in a jump to another one shares its stack pointer. */
static void test_tail_call(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_begin(&f, 1000, F_RT_SYNC, SP);
	feed_begin(&f, 1010, F_SYNC, SP);
	feed_end(&f, 1100, F_SYNC, SP, 0);
	feed_end(&f, 1101, F_RT_SYNC, SP, 0);
	s = feed_finish(&f);
	assert_int_equal(s->calls_count, 2);
	assert_int_equal(call_duration(nth(s, 0)), 101);
	assert_int_equal(call_self(s, nth(s, 0)), 11);
	assert_int_equal(nth(s, 1)->parent, 0);
	assert_int_equal(s->quality.unpaired_begin, 0);
	feed_stop(&f);
}

static void test_lost_inner_end(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_begin(&f, 1000, F_RT_SYNC, SP);
	feed_begin(&f, 1100, F_SYNC, SP - 64);
	feed_end(&f, 2000, F_RT_SYNC, SP, 0);
	s = feed_finish(&f);
	assert_int_equal(call_duration(nth(s, 0)), 1000);
	assert_int_equal(nth(s, 1)->flags, CALL_NO_END | CALL_NESTED);
	assert_int_equal(s->quality.unpaired_begin, 1);
	feed_stop(&f);
}

static void test_lost_begin(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_end(&f, 500, F_SYNC, SP, 0);
	feed_begin(&f, 1000, F_RT_SYNC, SP);
	feed_end(&f, 1500, F_SYNC, SP - 64, 700);
	feed_end(&f, 2000, F_RT_SYNC, SP, 700);
	s = feed_finish(&f);
	assert_int_equal(s->calls_count, 3);
	assert_int_equal(nth(s, 0)->flags, CALL_NO_BEGIN);
	assert_int_equal(nth(s, 0)->end, 500);
	assert_int_equal(call_duration(nth(s, 0)), -1);
	assert_int_equal(nth(s, 2)->flags, CALL_NO_BEGIN | CALL_NESTED | CALL_ERROR);
	assert_int_equal(nth(s, 2)->parent, 1);
	assert_int_equal(call_duration(nth(s, 1)), 1000);
	assert_true(nth(s, 1)->flags & CALL_ERROR);
	assert_int_equal(nth(s, 1)->ret, 700);
	assert_int_equal(s->quality.unpaired_end, 2);
	feed_stop(&f);
}

static void test_not_ready_is_no_error(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_begin(&f, 1000, F_QUERY, SP);
	feed_end(&f, 1010, F_QUERY, SP, 600);
	feed_begin(&f, 1100, F_QUERY, SP);
	feed_end(&f, 1110, F_QUERY, SP, 700);
	s = feed_finish(&f);
	assert_int_equal(nth(s, 0)->flags, 0);
	assert_int_equal(nth(s, 0)->ret, 600);
	assert_int_equal(nth(s, 1)->flags, CALL_ERROR);
	feed_stop(&f);
}

static void test_unsorted_events(void **state)
{
	enum { N = 500 };
	struct feed f;
	struct session *s;
	uint32_t random = 1;

	/* Two rings, one far behind the other, with disorder inside the second. */
	feed_start(&f);
	for (int i = 1; i < N; i += 2)
		feed_call(&f, i * 1000, i * 1000 + 10 + i, F_SYNC, SP);
	for (int i = 0; i < N; i += 2) {
		random = random * 1103515245 + 12345;
		if (random >> 16 & 1) {
			feed_end(&f, i * 1000 + 10 + i, F_SYNC, SP, 0);
			feed_begin(&f, i * 1000, F_SYNC, SP);
		} else {
			feed_call(&f, i * 1000, i * 1000 + 10 + i, F_SYNC, SP);
		}
	}
	f.tid = 101; /* backwards */
	for (int i = N; i-- > 0;) {
		feed_end(&f, i * 1000 + 10 + i, F_SYNC, SP, 0);
		feed_begin(&f, i * 1000, F_SYNC, SP);
	}
	s = feed_finish(&f);
	assert_int_equal(s->threads_count, 2);
	assert_int_equal(s->calls_count, 2 * N);
	for (uint32_t i = 0; i < 2 * N; i++) {
		assert_int_equal(nth(s, i)->begin, i % N * 1000);
		assert_int_equal(call_duration(nth(s, i)), 10 + i % N);
		assert_int_equal(nth(s, i)->flags, 0);
	}
	feed_stop(&f);
}

/* Equal times keep their order: begin, end, begin, end. */
static void test_sort_is_stable(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_call(&f, 5000, 5000, F_SYNC, SP);
	feed_call(&f, 5000, 5000, F_ALLOC, SP);
	feed_call(&f, 100, 200, F_LOAD, SP);
	s = feed_finish(&f);
	assert_int_equal(s->calls_count, 3);
	assert_string_equal(api_name(s, nth(s, 0)), "cuModuleLoadData");
	assert_string_equal(api_name(s, nth(s, 1)), "cuStreamSynchronize");
	assert_string_equal(api_name(s, nth(s, 2)), "cuMemAlloc_v2");
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(nth(s, i)->flags, 0);
	feed_stop(&f);
}

static void test_threads_are_apart(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	for (uint32_t t = 0; t < 64; t++) {
		f.tid = 100 + t;
		feed_begin(&f, 1000 + t, F_SYNC, SP);
	}
	for (uint32_t t = 0; t < 64; t++) {
		f.tid = 100 + t;
		feed_end(&f, 2000 + 2 * t, F_SYNC, SP, 0);
	}
	s = feed_finish(&f);
	assert_int_equal(s->threads_count, 64);
	assert_int_equal(s->calls_count, 64);
	for (uint32_t t = 0; t < 64; t++) {
		assert_int_equal(s->threads[t].tid, 100 + t);
		assert_int_equal(s->threads[t].calls, 1);
		assert_int_equal(call_duration(nth(s, s->threads[t].first_call)), 1000 + t);
	}
	feed_stop(&f);
}

static void test_open_calls(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_begin(&f, 1000, F_RT_SYNC, SP);
	feed_begin(&f, 1100, F_SYNC, SP - 64);
	s = feed_finish(&f);
	assert_int_equal(nth(s, 0)->flags, CALL_OPEN);
	assert_int_equal(nth(s, 1)->flags, CALL_OPEN | CALL_NESTED);
	assert_int_equal(s->quality.unpaired_begin, 0);
	feed_stop(&f);
}

static void test_polls(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_poll(&f, 1000, 3000, F_QUERY, SP, 40, 600);
	feed_call(&f, 3100, 3200, F_SYNC, SP);
	feed_poll(&f, 4000, 0, F_QUERY, SP, 7, 90);
	s = feed_finish(&f);
	assert_int_equal(s->calls_count, 3);
	assert_int_equal(nth(s, 0)->flags, CALL_POLL);
	assert_int_equal(call_duration(nth(s, 0)), 2000);
	assert_int_equal(call_self(s, nth(s, 0)), 600);
	assert_int_equal(s->polls[nth(s, 0)->args].count, 40);
	assert_int_equal(nth(s, 2)->flags, CALL_POLL | CALL_OPEN);
	assert_int_equal(call_self(s, nth(s, 2)), -1);
	feed_stop(&f);
}

/* The runtime's query calls the driver's; both are collapsed, and it is one wait. */
static void test_poll_in_poll(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_poll(&f, 1000, 3000, F_RT_QUERY, SP, 40, 600);
	feed_poll(&f, 1005, 2990, F_QUERY, SP - 64, 40, 400);
	s = feed_finish(&f);
	assert_int_equal(nth(s, 1)->parent, 0);
	assert_int_equal(call_self(s, nth(s, 0)), 200);
	assert_int_equal(call_self(s, nth(s, 1)), 400);
	feed_stop(&f);
}

static void test_results_of_calls(void **state)
{
	struct event e = { .args = EVENT_ARGS_CALL, .call = { .bytes = 4096 } };
	struct feed f;
	struct session *s;

	feed_start(&f);
	for (int i = 0; i < 2; i++) {
		struct event end = { .ts = 1100 + i * 1000, .pid = 100, .tid = 100, .sp = SP,
				     .api = F_ALLOC, .kind = EVENT_END, .has_out = 1,
				     .end = { .out = 0xd000u + (uint32_t)i } };

		feed_begin_with(&f, 1000 + i * 1000, F_ALLOC, SP, &e);
		feed_event(&f, &end);
	}
	s = feed_finish(&f);
	for (uint32_t i = 0; i < 2; i++) {
		const struct call_args *a = &s->transfers[nth(s, i)->args];

		assert_true(nth(s, i)->flags & CALL_ARGS_CALL);
		assert_int_equal(a->bytes, 4096);
		assert_true(a->has_out);
		assert_int_equal(a->out, 0xd000u + i);
	}
	feed_stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nesting_and_self),
		cmocka_unit_test(test_64_nested),
		cmocka_unit_test(test_longjmp),
		cmocka_unit_test(test_lost_end),
		cmocka_unit_test(test_lost_end_other_function),
		cmocka_unit_test(test_tail_call),
		cmocka_unit_test(test_lost_inner_end),
		cmocka_unit_test(test_lost_begin),
		cmocka_unit_test(test_not_ready_is_no_error),
		cmocka_unit_test(test_unsorted_events),
		cmocka_unit_test(test_sort_is_stable),
		cmocka_unit_test(test_threads_are_apart),
		cmocka_unit_test(test_open_calls),
		cmocka_unit_test(test_polls),
		cmocka_unit_test(test_poll_in_poll),
		cmocka_unit_test(test_results_of_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
