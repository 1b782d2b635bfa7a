// SPDX-License-Identifier: BSD-2-Clause
/* Which kernel a launch launched, and which calls were the first of their kind. */
#include "feed.h"

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
			   .launch = { .func = 0x5555, .grid = { 2, 3, 4 },
				       .block = { 5, 6, 7 } } };
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

/* What was looked up before the trace began is said at its begin: no evidence of anything. */
static void test_old_handle_is_not_cold(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_window(&f, 500, 5000);
	feed_process(&f, 10, RECORD_PROCESS_SEEN, 500, 5000, "job");
	feed_name(&f, 500, 0xabc, GBPF_NAME_GETTER, "long_ago");
	feed_name(&f, 501, 0xdef, GBPF_NAME_GETTER, "just_now");
	feed_launch(&f, 1000, 1100, F_LAUNCH, SP, 0xabc, 1, 1);
	feed_launch(&f, 2000, 2100, F_LAUNCH, SP, 0xdef, 1, 1);
	s = feed_finish(&f);
	assert_string_equal(s->kernels[nth(s, 0)->kernel].mangled, "long_ago");
	assert_int_equal(nth(s, 0)->flags & CALL_COLD, 0);
	assert_int_equal(nth(s, 1)->flags & CALL_COLD_KERNEL, CALL_COLD_KERNEL);
	feed_stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_handle_reuse),
		cmocka_unit_test(test_getter_wins),
		cmocka_unit_test(test_odd_names),
		cmocka_unit_test(test_fault_then_read),
		cmocka_unit_test(test_runtime_launch_gets_kernel),
		cmocka_unit_test(test_late_attach_is_not_cold),
		cmocka_unit_test(test_started_inside_is_cold),
		cmocka_unit_test(test_unseen_gap_is_no_evidence),
		cmocka_unit_test(test_new_handle_is_cold),
		cmocka_unit_test(test_old_handle_is_not_cold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
