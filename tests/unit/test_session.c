// SPDX-License-Identifier: BSD-2-Clause
/* Pairing, nesting and naming, on sequences of events whose meaning is known. */
#include "feed.h"

#include <stdio.h>

#define SP 0x7000u

static const struct call *nth(const struct session *s, size_t i)
{
	assert_true(i < s->calls_count);
	return &s->calls[i];
}

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

/* Who was killed in a call has not got it open any more. */
static void test_killed_in_call(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_process(&f, 10, RECORD_PROCESS_SEEN, 100, 5000, "job");
	feed_begin(&f, 1000, F_SYNC, SP);
	feed_process(&f, 1500, RECORD_PROCESS_EXIT, 100, 5000, "");
	s = feed_finish(&f);
	assert_int_equal(nth(s, 0)->flags, CALL_NO_END);
	assert_true(s->processes[0].exited);
	assert_int_equal(s->processes[0].last, 1500);
	assert_string_equal(s->processes[0].comm, "job");
	feed_stop(&f);
}

static void test_pid_reuse(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_window(&f, 1, 10000);
	feed_process(&f, 10, RECORD_PROCESS_SEEN, 100, 5000000000, "first");
	feed_name(&f, 500, 0xabc, GBPF_NAME_LAYOUT, "old");
	feed_launch(&f, 900, 950, F_LAUNCH, SP, 0xabc, 1, 1);
	feed_begin(&f, 1000, F_SYNC, SP);
	feed_process(&f, 2000, RECORD_PROCESS_EXIT, 100, 5000000000, "");
	feed_process(&f, 3000, RECORD_PROCESS_FORK, 100, 9000000000, "second");
	feed_name(&f, 3400, 0xabc, GBPF_NAME_LAYOUT, "new");
	feed_launch(&f, 3300, 3500, F_LAUNCH, SP, 0xabc, 1, 1);
	feed_end(&f, 4000, F_SYNC, SP, 0);
	s = feed_finish(&f);
	assert_int_equal(s->processes_count, 2);
	assert_int_equal(s->threads_count, 2);
	assert_string_equal(s->processes[s->threads[0].process].comm, "first");
	assert_string_equal(s->processes[s->threads[1].process].comm, "second");
	assert_int_equal(s->threads[0].calls, 2);
	assert_int_equal(nth(s, 1)->flags, CALL_NO_END);
	assert_string_equal(s->kernels[nth(s, 0)->kernel].mangled, "old");
	assert_string_equal(s->kernels[nth(s, 2)->kernel].mangled, "new");
	assert_int_equal(nth(s, 3)->flags, CALL_NO_BEGIN);
	assert_int_equal(s->processes[0].last, 2000);
	assert_int_equal(s->processes[1].first, 3000);
	feed_stop(&f);
}

/* /proc rounds start times to clock ticks: still the same process. */
static void test_start_times_of_two_sources(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_process(&f, 10, RECORD_PROCESS_SEEN, 100, 5000000000, "job");
	feed_process(&f, 20, RECORD_PROCESS_EXEC, 100, 5007654321, "next");
	feed_call(&f, 1000, 1010, F_SYNC, SP);
	s = feed_finish(&f);
	assert_int_equal(s->processes_count, 1);
	assert_string_equal(s->processes[0].comm, "next");
	feed_stop(&f);
}

static void test_exec_closes_calls(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_process(&f, 10, RECORD_PROCESS_SEEN, 100, 5000, "sh");
	feed_name(&f, 100, 0xabc, GBPF_NAME_LAYOUT, "before");
	feed_begin(&f, 1000, F_SYNC, SP);
	feed_process(&f, 2000, RECORD_PROCESS_EXEC, 100, 5000, "python");
	feed_launch(&f, 2500, 2600, F_LAUNCH, SP - 512, 0xabc, 1, 1);
	s = feed_finish(&f);
	assert_int_equal(s->processes_count, 1);
	assert_int_equal(s->threads_count, 1);
	assert_int_equal(nth(s, 0)->flags, CALL_NO_END);
	assert_int_equal(nth(s, 1)->parent, CALL_NONE);
	assert_false(s->kernels[nth(s, 1)->kernel].named); /* handles end with the program */
	assert_string_equal(s->processes[0].comm, "python");
	feed_stop(&f);
}

static void test_handle_reuse(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_name(&f, 1010, 0xabc, GBPF_NAME_LAYOUT, "_Z5firstv");
	feed_launch(&f, 1000, 1100, F_LAUNCH, SP, 0xabc, 1, 1);
	feed_launch(&f, 2000, 2100, F_LAUNCH, SP, 0xabc, 1, 1);
	feed_name(&f, 3010, 0xabc, GBPF_NAME_LAYOUT, "_Z6secondv");
	feed_launch(&f, 3000, 3100, F_LAUNCH, SP, 0xabc, 1, 1);
	feed_launch(&f, 4000, 4100, F_LAUNCH, SP, 0xdef, 1, 1);
	f.pid = f.tid = 200;
	feed_launch(&f, 5000, 5100, F_LAUNCH, SP, 0xabc, 1, 1);
	s = feed_finish(&f);
	assert_string_equal(s->kernels[nth(s, 0)->kernel].demangled, "first()");
	assert_int_equal(nth(s, 1)->kernel, nth(s, 0)->kernel);
	assert_string_equal(s->kernels[nth(s, 2)->kernel].short_name, "second");
	assert_string_equal(s->kernels[nth(s, 3)->kernel].demangled, "kernel@0xdef");
	assert_string_equal(s->kernels[nth(s, 4)->kernel].demangled, "kernel@0xabc");
	feed_stop(&f);
}

static void test_getter_wins(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_name(&f, 900, 0xabc, GBPF_NAME_GETTER, "asked");
	feed_name(&f, 900, 0xabc, GBPF_NAME_LAYOUT, "guessed");
	feed_launch(&f, 1000, 1100, F_LAUNCH, SP, 0xabc, 1, 1);
	s = feed_finish(&f);
	assert_string_equal(s->kernels[nth(s, 0)->kernel].mangled, "asked");
	feed_stop(&f);
}

/* What a layout read brings is believed only if it looks like a name, or was asked for. */
static void test_odd_names(void **state)
{
	static const char odd[] = "odd \"name\"\x1b[31m";
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_name(&f, 900, 0x10, GBPF_NAME_LAYOUT, "\x7f""ELF\x02");
	feed_name(&f, 900, 0x20, GBPF_NAME_LAYOUT, odd);
	feed_name(&f, 900, 0x30, GBPF_NAME_GETTER, odd);
	feed_launch(&f, 1000, 1100, F_LAUNCH, SP, 0x10, 1, 1);
	feed_launch(&f, 2000, 2100, F_LAUNCH, SP, 0x20, 1, 1);
	f.pid = f.tid = 200; /* another process did not ask for it */
	feed_name(&f, 900, 0x20, GBPF_NAME_LAYOUT, odd);
	feed_launch(&f, 3000, 3100, F_LAUNCH, SP, 0x20, 1, 1);
	s = feed_finish(&f);
	assert_string_equal(s->kernels[nth(s, 0)->kernel].mangled, "kernel@0x10");
	assert_false(s->kernels[nth(s, 0)->kernel].named);
	assert_string_equal(s->kernels[nth(s, 1)->kernel].mangled, odd);
	assert_true(s->kernels[nth(s, 1)->kernel].named);
	assert_string_equal(s->kernels[nth(s, 2)->kernel].mangled, "kernel@0x20");
	feed_stop(&f);
}

static void test_fault_then_read(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_name(&f, 1000, 0xabc, GBPF_NAME_FAULT, "");
	feed_name(&f, 9000, 0xabc, GBPF_NAME_LAYOUT, "late");
	feed_launch(&f, 1000, 1100, F_LAUNCH, SP, 0xabc, 1, 1);
	s = feed_finish(&f);
	assert_string_equal(s->kernels[nth(s, 0)->kernel].mangled, "late");
	feed_stop(&f);
}

static void test_runtime_launch_gets_kernel(void **state)
{
	struct event e = { .args = EVENT_ARGS_LAUNCH,
			   .launch = { .func = 0x5555, .grid = { 2, 3, 4 }, .block = { 5, 6, 7 } } };
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_name(&f, 900, 0xabc, GBPF_NAME_LAYOUT, "_Z3addv");
	feed_begin_with(&f, 1000, F_RT_LAUNCH, SP, &e);
	feed_launch(&f, 1010, 1090, F_LAUNCH, SP - 200, 0xabc, 2, 5);
	feed_end(&f, 1100, F_RT_LAUNCH, SP, 0);
	s = feed_finish(&f);
	assert_int_equal(s->calls_count, 2);
	assert_int_equal(nth(s, 0)->kernel, nth(s, 1)->kernel);
	assert_string_equal(s->kernels[nth(s, 0)->kernel].demangled, "add()");
	assert_true(nth(s, 0)->flags & CALL_ARGS_LAUNCH);
	assert_int_equal(s->launches[nth(s, 0)->args].grid[2], 4);
	assert_int_equal(s->launches[nth(s, 0)->args].block[1], 6);
	assert_int_equal(s->launches[nth(s, 1)->args].func, 0xabc);
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

/* Between windows nothing is seen: a call must not reach over from one to the next. */
static void test_window_gap(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_window(&f, 1000, 2000);
	feed_window(&f, 5000, 6000);
	feed_begin(&f, 1900, F_SYNC, SP);
	feed_call(&f, 5100, 5200, F_ALLOC, SP - 128);
	feed_end(&f, 5500, F_SYNC, SP, 0);
	s = feed_finish(&f);
	assert_int_equal(s->windows_count, 2);
	assert_int_equal(s->begin, 1000);
	assert_int_equal(s->end, 6000);
	assert_int_equal(nth(s, 0)->flags, CALL_NO_END);
	assert_int_equal(nth(s, 1)->parent, CALL_NONE);
	assert_int_equal(nth(s, 2)->flags, CALL_NO_BEGIN);
	feed_stop(&f);
}

static void test_entry_only(void **state)
{
	struct record site = { .kind = RECORD_SITE,
			       .site = { .image = 1, .state = RECORD_SITE_ENTRY_ONLY,
					 .api = "cuStreamSynchronize", .reason = "" } };
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_begin(&f, 1000, F_SYNC, SP);
	feed_begin(&f, 2000, F_SYNC, SP);
	feed_call(&f, 3000, 3100, F_ALLOC, SP);
	feed_add(&f, &site);
	s = feed_finish(&f);
	assert_int_equal(nth(s, 0)->flags, CALL_ENTRY_ONLY);
	assert_int_equal(nth(s, 1)->flags, CALL_ENTRY_ONLY);
	assert_int_equal(call_duration(nth(s, 1)), -1);
	assert_int_equal(call_duration(nth(s, 2)), 100);
	assert_int_equal(s->quality.unpaired_begin, 0);
	feed_stop(&f);
}

/* ---- first calls ---- */

static void test_late_attach_is_not_cold(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_process(&f, 10, RECORD_PROCESS_SEEN, 100, 5000, "job");
	feed_name(&f, 1000, 0xabc, GBPF_NAME_LAYOUT, "known");
	feed_launch(&f, 1000, 1100, F_LAUNCH, SP, 0xabc, 1, 1);
	s = feed_finish(&f);
	assert_int_equal(nth(s, 0)->flags & CALL_COLD, 0);
	feed_stop(&f);
}

static void test_started_inside_is_cold(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_process(&f, 10, RECORD_PROCESS_FORK, 100, 5000, "job");
	feed_launch(&f, 1000, 1100, F_LAUNCH, SP, 0xabc, 1, 1);
	feed_launch(&f, 2000, 2100, F_LAUNCH, SP, 0xabc, 1, 1);
	feed_launch(&f, 3000, 3100, F_LAUNCH, SP, 0xdef, 1, 1);
	s = feed_finish(&f);
	assert_true(s->processes[0].started);
	assert_int_equal(nth(s, 0)->flags & (CALL_COLD_API | CALL_COLD_KERNEL),
			 CALL_COLD_API | CALL_COLD_KERNEL);
	assert_int_equal(nth(s, 1)->flags & CALL_COLD, 0);
	assert_int_equal(nth(s, 2)->flags & (CALL_COLD_API | CALL_COLD_KERNEL), CALL_COLD_KERNEL);
	feed_stop(&f);
}

/* Begun inside, but its library was mapped before the probes came: no evidence. */
static void test_unseen_gap_is_no_evidence(void **state)
{
	struct record image = { .kind = RECORD_IMAGE,
				.image = { .id = 1, .mapped = 100, .covered = 500, .path = "l",
					   .build_id = "", .version = "" } };

	for (int initialised = 0; initialised < 2; initialised++) {
		struct feed f;
		struct session *s;

		feed_start(&f);
		feed_process(&f, 10, RECORD_PROCESS_FORK, 100, 5000, "job");
		feed_add(&f, &image);
		if (initialised)
			feed_call(&f, 900, 950, F_INIT, SP);
		feed_call(&f, 1000, 1100, F_SYNC, SP);
		s = feed_finish(&f);
		assert_int_equal(s->processes[0].started, initialised);
		assert_int_equal(!!(nth(s, initialised)->flags & CALL_COLD), initialised);
		feed_stop(&f);
	}
}

static void test_new_handle_is_cold(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_process(&f, 10, RECORD_PROCESS_SEEN, 100, 5000, "job");
	feed_name(&f, 900, 0xabc, GBPF_NAME_GETTER, "looked_up");
	feed_launch(&f, 1000, 1100, F_LAUNCH, SP, 0xabc, 1, 1);
	feed_call(&f, 1200, 1300, F_LOAD, SP);
	feed_launch(&f, 2000, 2100, F_LAUNCH, SP, 0xdef, 1, 1);
	feed_launch(&f, 3000, 3100, F_LAUNCH, SP, 0x123, 1, 1);
	s = feed_finish(&f);
	assert_int_equal(nth(s, 0)->flags & CALL_COLD_KERNEL, CALL_COLD_KERNEL);
	assert_int_equal(nth(s, 0)->flags & CALL_COLD_API, 0);
	assert_int_equal(nth(s, 2)->flags & (CALL_COLD_KERNEL | CALL_COLD_LOAD),
			 CALL_COLD_KERNEL | CALL_COLD_LOAD);
	assert_int_equal(nth(s, 3)->flags & CALL_COLD, 0);
	feed_stop(&f);
}

/* ---- the rest ---- */

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

static void test_cut_file_window(void **state)
{
	struct feed f;

	feed_start(&f);
	feed_call(&f, 1000, 2000, F_SYNC, SP);
	assert_int_equal(session_builder_finish(f.b, READER_END_CUT, 77, &f.s), 0);
	assert_int_equal(f.s->windows_count, 1);
	assert_int_equal(f.s->begin, 1000);
	assert_int_equal(f.s->end, 2001);
	assert_int_equal(f.s->quality.lost_bytes, 77);
	assert_int_equal(f.s->quality.end, READER_END_CUT);
	feed_stop(&f);
}

static void test_empty(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	s = feed_finish(&f);
	assert_int_equal(s->calls_count, 0);
	assert_int_equal(s->threads_count, 0);
	assert_int_equal(s->windows_count, 0);
	assert_null(session_info(s, "none"));
	feed_stop(&f);
	session_free(NULL);
	session_builder_free(NULL);
}

/* Times and ids that no honest file holds must not hurt. */
static void test_hostile_events(void **state)
{
	struct event odd = { .ts = 1, .pid = 100, .tid = 100, .api = 60000, .kind = 99 };
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_begin(&f, INT64_MIN, F_SYNC, SP);
	feed_end(&f, INT64_MAX, F_SYNC, SP, INT64_MIN);
	feed_event(&f, &odd);
	odd.kind = EVENT_BEGIN;
	odd.args = 200;
	feed_event(&f, &odd);
	feed_poll(&f, 5000, 10, F_QUERY, SP, 0, INT64_MAX);
	feed_window(&f, INT64_MAX, INT64_MIN);
	feed_window(&f, INT64_MIN, INT64_MAX);
	feed_loss(&f, 4000000000u, 3);
	feed_info(&f, "key", "old");
	feed_info(&f, "key", "new");
	s = feed_finish(&f);
	assert_int_equal(s->quality.losses[0], 3);
	assert_int_equal(s->quality.losses[RECORD_LOSS_MALFORMED], 1);
	assert_string_equal(session_info(s, "key"), "new");
	for (size_t i = 0; i < s->calls_count; i++)
		assert_true(call_duration(nth(s, i)) >= -1);
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
		cmocka_unit_test(test_killed_in_call),
		cmocka_unit_test(test_pid_reuse),
		cmocka_unit_test(test_start_times_of_two_sources),
		cmocka_unit_test(test_exec_closes_calls),
		cmocka_unit_test(test_handle_reuse),
		cmocka_unit_test(test_getter_wins),
		cmocka_unit_test(test_odd_names),
		cmocka_unit_test(test_fault_then_read),
		cmocka_unit_test(test_runtime_launch_gets_kernel),
		cmocka_unit_test(test_polls),
		cmocka_unit_test(test_poll_in_poll),
		cmocka_unit_test(test_window_gap),
		cmocka_unit_test(test_entry_only),
		cmocka_unit_test(test_late_attach_is_not_cold),
		cmocka_unit_test(test_started_inside_is_cold),
		cmocka_unit_test(test_unseen_gap_is_no_evidence),
		cmocka_unit_test(test_new_handle_is_cold),
		cmocka_unit_test(test_results_of_calls),
		cmocka_unit_test(test_cut_file_window),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_hostile_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
