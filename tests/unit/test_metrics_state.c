/* SPDX-License-Identifier: BSD-2-Clause */
/* What label sets count over snapshots: sums, ends, staleness and bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "export/series.h"
#include "metrics_example.h"

#define LAUNCH "api=\"cuLaunchKernel\",kind=\"launch\"}"

static uint16_t launch(void)
{
	uint16_t id = catalogue_find("cuLaunchKernel");

	assert_int_not_equal(id, 0);
	return id;
}

/* Processes whose labels are the same. */
static void same_comm(struct example *e)
{
	for (size_t i = 0; i < e->s.processes_count; i++)
		snprintf(e->p[i].comm, sizeof(e->p[i].comm), "job");
}

/* The first process ends. */
static void first_ends(struct example *e)
{
	e->s.processes++;
	e->s.processes_count--;
}

static void test_sums_of_a_label_set(void **state)
{
	struct example *e = example_new(2, NULL);

	same_comm(e);
	example_call(e, 0, launch(), 10);
	example_call(e, 1, launch(), 5);
	example_launch(e, 0, 3);
	example_launch(e, 1, 4);
	e->p[0].cold_starts = 2;
	e->p[0].launches_per_s = (struct estimate){ true, 100, 90, 110 };
	e->p[1].launches_per_s = (struct estimate){ true, 50.5, 50.5, 50.5 };
	e->p[0].overhead_pct = 0.25;
	e->p[1].overhead_pct = 0.5;
	e->p[0].coverage = 0.5;
	e->p[1].coverage = 0.25;
	e->p[0].dispatch_share = (struct estimate){ true, 0.25, 0, 1 };
	e->p[1].dispatch_share = (struct estimate){ true, 0.75, 0, 1 };
	example_update(e);
	assert_value(e, "gbpf_calls_total{comm=\"job\"," LAUNCH, "15");
	assert_value(e, "gbpf_call_seconds_total{comm=\"job\"," LAUNCH, "0.0000375");
	assert_value(e, "gbpf_launch_dispatch_seconds_count{comm=\"job\"}", "7");
	assert_value(e, "gbpf_launch_dispatch_seconds_sum{comm=\"job\"}", "0.000035");
	assert_value(e, "gbpf_cold_starts_total{comm=\"job\"}", "2");
	assert_value(e, "gbpf_processes{comm=\"job\"}", "2");
	assert_value(e, "gbpf_launches_per_second{comm=\"job\"}", "150.5");
	assert_value(e, "gbpf_launches_per_second_low{comm=\"job\"}", "140.5");
	assert_value(e, "gbpf_launches_per_second_high{comm=\"job\"}", "160.5");
	assert_value(e, "gbpf_overhead_ratio{comm=\"job\"}", "0.005");
	assert_value(e, "gbpf_coverage_ratio{comm=\"job\"}", "0.25");
	assert_value(e, "gbpf_thread_activity_ratio{comm=\"job\",activity=\"dispatch\"}", "0.5");
	example_free(e);
}

static void test_counters_keep_what_ended(void **state)
{
	struct example *e = example_new(2, NULL);

	same_comm(e);
	example_call(e, 0, launch(), 1000);
	example_call(e, 1, launch(), 5);
	example_launch(e, 0, 30);
	e->p[0].cold_starts = 7;
	example_update(e);
	first_ends(e);
	example_call(e, 1, launch(), 1);
	example_update(e);
	assert_value(e, "gbpf_calls_total{comm=\"job\"," LAUNCH, "1006");
	assert_value(e, "gbpf_launch_dispatch_seconds_count{comm=\"job\"}", "30");
	assert_value(e, "gbpf_cold_starts_total{comm=\"job\"}", "7");
	assert_value(e, "gbpf_processes{comm=\"job\"}", "1");
	/* the pid again, of another process */
	e->s.processes--;
	e->s.processes_count++;
	e->p[0].start = 77;
	e->p[0].apis_count = 0;
	memset(e->apis[0], 0, sizeof(e->apis[0]));
	memset(&e->launches[0], 0, sizeof(e->launches[0]));
	example_call(e, 0, launch(), 2);
	example_launch(e, 0, 1);
	e->p[0].cold_starts = 0;
	example_update(e);
	assert_value(e, "gbpf_calls_total{comm=\"job\"," LAUNCH, "1008");
	assert_value(e, "gbpf_launch_dispatch_seconds_count{comm=\"job\"}", "31");
	example_free(e);
}

static void test_a_counter_that_starts_again(void **state)
{
	struct example *e = example_new(1, NULL);

	example_call(e, 0, launch(), 100);
	example_launch(e, 0, 10);
	example_update(e);
	e->apis[0][0].calls = 3;
	memset(&e->launches[0], 0, sizeof(e->launches[0]));
	example_launch(e, 0, 2);
	example_update(e);
	assert_value(e, "gbpf_calls_total{comm=\"job0\"," LAUNCH, "103");
	assert_value(e, "gbpf_launch_dispatch_seconds_count{comm=\"job0\"}", "12");
	example_free(e);
}

static void test_the_same_snapshot_counts_once(void **state)
{
	struct example *e = example_new(1, NULL);

	e->p[0].cold_starts = 4;
	e->s.self.windows = 2;
	example_update(e);
	assert_int_equal(metrics_update(e->m, &e->s), 0);
	assert_value(e, "gbpf_cold_starts_total{comm=\"job0\"}", "4");
	assert_value(e, "gbpf_self_windows_total", "2");
	example_update(e);
	assert_value(e, "gbpf_self_windows_total", "4");
	example_free(e);
}

static void test_another_name_counts_on_from_there(void **state)
{
	struct example *e = example_new(1, NULL);

	example_call(e, 0, launch(), 10);
	example_update(e);
	snprintf(e->p[0].comm, sizeof(e->p[0].comm), "renamed");
	example_call(e, 0, launch(), 3);
	example_update(e);
	assert_value(e, "gbpf_calls_total{comm=\"job0\"," LAUNCH, "10");
	assert_value(e, "gbpf_calls_total{comm=\"renamed\"," LAUNCH, "3");
	example_free(e);
}

static void test_stale_sets_go(void **state)
{
	struct metrics_options o = { .stale_ns = 10 * EXAMPLE_SECOND };
	struct example *e = example_new(2, &o);

	example_call(e, 0, launch(), 10);
	e->p[0].launches_per_s = (struct estimate){ true, 1, 1, 1 };
	example_update(e);
	first_ends(e);
	for (int i = 0; i < 10; i++)
		example_update(e);
	assert_value(e, "gbpf_calls_total{comm=\"job0\"," LAUNCH, "10");
	/* gauges are of now: there is nobody */
	assert_no_value(e, "gbpf_launches_per_second{comm=\"job0\"}");
	assert_no_value(e, "gbpf_processes{comm=\"job0\"}");
	example_update(e);
	assert_no_value(e, "gbpf_calls_total{comm=\"job0\"," LAUNCH);
	assert_no_value(e, "gbpf_launch_dispatch_seconds_count{comm=\"job0\"}");
	assert_value(e, "gbpf_processes{comm=\"job1\"}", "1");
	example_free(e);
}

static void test_the_bound_on_sets(void **state)
{
	struct metrics_options o = { .max_sets = 3 };
	struct example *e = example_new(5, &o);

	for (int i = 0; i < 5; i++)
		example_launch(e, (size_t)i, 10 * i);
	example_update(e);
	assert_value(e, "gbpf_processes_left_out", "2");
	assert_no_value(e, "gbpf_processes{comm=\"job1\"}");
	assert_value(e, "gbpf_processes{comm=\"job2\"}", "1");
	/* more than a served one, but not twice as many */
	example_launch(e, 0, 30);
	example_update(e);
	assert_no_value(e, "gbpf_processes{comm=\"job0\"}");
	assert_value(e, "gbpf_processes{comm=\"job2\"}", "1");
	example_launch(e, 0, 30);
	example_update(e);
	assert_value(e, "gbpf_processes{comm=\"job0\"}", "1");
	assert_value(e, "gbpf_launch_dispatch_seconds_count{comm=\"job0\"}", "60");
	assert_no_value(e, "gbpf_launch_dispatch_seconds_count{comm=\"job2\"}");
	assert_value(e, "gbpf_processes_left_out", "2");
	example_free(e);
}

/* Sets of processes that ended make room for those that run. */
static void test_the_bound_counts_ended_sets(void **state)
{
	struct metrics_options o = { .max_sets = 2 };
	struct example *e = example_new(4, &o);

	e->s.processes_count = 2;
	example_launch(e, 0, 100);
	example_update(e);
	first_ends(e);
	example_update(e);
	assert_value(e, "gbpf_launch_dispatch_seconds_count{comm=\"job0\"}", "100");
	e->s.processes_count = 2;
	example_update(e);
	assert_no_value(e, "gbpf_launch_dispatch_seconds_count{comm=\"job0\"}");
	assert_value(e, "gbpf_processes{comm=\"job2\"}", "1");
	assert_value(e, "gbpf_processes_left_out", "0");
	example_free(e);
}

static void test_a_pid_only_if_asked(void **state)
{
	struct metrics_options o = { .include_pid = true };
	struct example *e = example_new(2, &o);

	same_comm(e);
	example_update(e);
	assert_value(e, "gbpf_processes{comm=\"job\",pid=\"100\"}", "1");
	assert_value(e, "gbpf_processes{comm=\"job\",pid=\"101\"}", "1");
	example_free(e);
	e = example_new(2, NULL);
	same_comm(e);
	example_update(e);
	assert_value(e, "gbpf_processes{comm=\"job\"}", "2");
	example_free(e);
}

static void test_too_many_apis_are_others(void **state)
{
	struct example *e = example_new(1, NULL);
	char series[256], name[128];

	for (uint16_t i = 1; i <= SERIES_APIS; i++)
		example_call(e, 0, i, 1);
	example_update(e);
	assert_no_value(e, "gbpf_calls_total{comm=\"job0\",api=\"other\",kind=\"other\"}");
	for (uint16_t i = 1; i <= EXAMPLE_APIS; i++)
		example_call(e, 0, i, 100);
	example_update(e);
	assert_value(e, "gbpf_calls_total{comm=\"job0\",api=\"other\",kind=\"other\"}", "1600");
	catalogue_display(catalogue_get(SERIES_APIS)->name, name, sizeof(name));
	snprintf(series, sizeof(series),
		 "gbpf_calls_total{comm=\"job0\",api=\"%s\",kind=\"%s\"}", name,
		 api_kind_name(catalogue_get(SERIES_APIS)->kind));
	assert_value(e, series, "101");
	example_free(e);
}

static void assert_label(const char *src, size_t size, const char *want)
{
	char to[SERIES_LABEL];

	memset(to, 'x', sizeof(to));
	series_label(to, src, size);
	assert_string_equal(to, want);
}

static void test_labels_are_clean_and_bounded(void **state)
{
	char longest[300], want[SERIES_LABEL];

	assert_label("pyth\xc3\xb6n", 16, "pyth\xc3\xb6n");
	assert_label("a\xff" "b\xc3", 16, "a\xef\xbf\xbd" "b\xef\xbf\xbd");
	assert_label("a\nb\x1b\x7f", 16, "a\xef\xbf\xbd" "b\xef\xbf\xbd\xef\xbf\xbd");
	assert_label("\xc2\x85", 16, "\xef\xbf\xbd"); /* C1: next line */
	assert_label("\xc2\xa0", 16, "\xc2\xa0");
	assert_label("not ended", 3, "not");
	assert_label("\"\\", 16, "\"\\"); /* for the writers to escape */
	memset(longest, 'a', sizeof(longest));
	memset(want, 'a', sizeof(want));
	want[sizeof(want) - 1] = '\0';
	assert_label(longest, sizeof(longest), want);
	/* no character is cut */
	longest[SERIES_LABEL - 2] = '\xc3';
	longest[SERIES_LABEL - 1] = '\xb6';
	want[sizeof(want) - 2] = '\0';
	assert_label(longest, sizeof(longest), want);
}

/* Names that differ only in what is replaced are one set, not one series twice. */
static void test_labels_that_become_the_same(void **state)
{
	struct example *e = example_new(2, NULL);

	snprintf(e->p[0].comm, sizeof(e->p[0].comm), "a\x01");
	snprintf(e->p[1].comm, sizeof(e->p[1].comm), "a\x02");
	example_update(e);
	assert_value(e, "gbpf_processes{comm=\"a\xef\xbf\xbd\"}", "2");
	example_free(e);
}

static void test_the_order_in_a_snapshot_does_not_matter(void **state)
{
	struct example *e = example_new(3, NULL);
	struct snapshot_process swap;

	same_comm(e);
	for (size_t i = 0; i < 3; i++) {
		e->p[i].pid = 5; /* two ended, one lives */
		example_call(e, i, launch(), 10);
	}
	for (int round = 0; round < 3; round++) {
		example_update(e);
		swap = e->p[round % 2];
		e->p[round % 2] = e->p[2];
		e->p[2] = swap;
	}
	assert_value(e, "gbpf_calls_total{comm=\"job\"," LAUNCH, "30");
	/* the same process twice harms nobody */
	e->p[1] = e->p[0];
	example_update(e);
	example_update(e);
	example_free(e);
}

/* Processes that come and go in any order count exactly what they called. */
static void test_comings_and_goings(void **state)
{
	struct metrics_options o = { .stale_ns = INT64_MAX };
	struct example *e = example_new(40, &o);
	struct snapshot_process chosen[40];
	uint64_t called = 0, random = 12345;
	char want[32];

	same_comm(e);
	for (int round = 0; round < 300; round++) {
		size_t alive = 0;

		for (size_t i = 0; i < 40; i++) {
			random = random * 6364136223846793005 + 1442695040888963407;
			if (random >> 61 == 0) { /* it ends, and another has its pid */
				e->p[i].start += 1000;
				e->p[i].apis_count = 0;
				memset(e->apis[i], 0, sizeof(e->apis[i]));
			} else {
				example_call(e, i, launch(), random >> 60);
				called += random >> 60;
				chosen[alive++] = e->p[i];
			}
		}
		e->s.processes = chosen;
		e->s.processes_count = alive;
		example_update(e);
	}
	snprintf(want, sizeof(want), "%lu", (unsigned long)called);
	assert_value(e, "gbpf_calls_total{comm=\"job\"," LAUNCH, want);
	example_free(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums_of_a_label_set),
		cmocka_unit_test(test_counters_keep_what_ended),
		cmocka_unit_test(test_a_counter_that_starts_again),
		cmocka_unit_test(test_the_same_snapshot_counts_once),
		cmocka_unit_test(test_another_name_counts_on_from_there),
		cmocka_unit_test(test_stale_sets_go),
		cmocka_unit_test(test_the_bound_on_sets),
		cmocka_unit_test(test_the_bound_counts_ended_sets),
		cmocka_unit_test(test_a_pid_only_if_asked),
		cmocka_unit_test(test_too_many_apis_are_others),
		cmocka_unit_test(test_labels_are_clean_and_bounded),
		cmocka_unit_test(test_labels_that_become_the_same),
		cmocka_unit_test(test_the_order_in_a_snapshot_does_not_matter),
		cmocka_unit_test(test_comings_and_goings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
