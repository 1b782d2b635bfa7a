// SPDX-License-Identifier: BSD-2-Clause
/* Processes, windows and files that begin, end and are cut, and what is in them then. */
#include "feed.h"

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
	assert_int_equal(nth(s, 0)->flags, CALL_NO_END | CALL_CUT);
	assert_int_equal(nth(s, 0)->end, 2000); /* it went on at least so long */
	assert_int_equal(nth(s, 1)->parent, CALL_NONE);
	assert_int_equal(nth(s, 2)->flags, CALL_NO_BEGIN);
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
		cmocka_unit_test(test_killed_in_call),
		cmocka_unit_test(test_pid_reuse),
		cmocka_unit_test(test_start_times_of_two_sources),
		cmocka_unit_test(test_exec_closes_calls),
		cmocka_unit_test(test_window_gap),
		cmocka_unit_test(test_cut_file_window),
		cmocka_unit_test(test_entry_only),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_hostile_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
