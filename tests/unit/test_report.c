// SPDX-License-Identifier: BSD-2-Clause
/* What the views print, on sessions whose numbers can be worked out by hand. */
#include "json_check.h"
#include "view.h"

#define GOLDEN "tests/unit/golden/report.txt"

static void feed_first_process(struct feed *f)
{
	feed_process(f, 500, RECORD_PROCESS_SEEN, 100, 5000000000, "train");
	feed_thread(f, 100, "main");
	feed_thread(f, 101, "loader");
	feed_name(f, 900, 0xabc, GBPF_NAME_LAYOUT, "_ZN2nn4gemmIfEEvPT_i");
	for (int i = 0; i < 4; i++) {
		struct event e = { .args = EVENT_ARGS_LAUNCH, .launch = { .func = 0x5555,
				   .stream = 0x77, .grid = { 8, 2, 1 }, .block = { 128, 1, 1 } } };
		int64_t t = 10000 + i * 10000;

		feed_begin_with(f, t, F_RT_LAUNCH, SP, &e);
		feed_launch(f, t + 200, t + 1200 + i * 100, F_LAUNCH, SP - 200, 0xabc, 8, 128);
		feed_end(f, t + 2000 + i * 100, F_RT_LAUNCH, SP, 0);
		feed_call(f, t + 3000, t + 8000, F_SYNC, SP);
	}
	feed_launch(f, 60000, 61000, F_LAUNCH, SP, 0xdef, 1, 32);
	feed_begin(f, 62000, F_ALLOC, SP);
	feed_end(f, 63000, F_ALLOC, SP, 2);
	feed_poll(f, 70000, 90000, F_QUERY, SP, 25, 5000);
	f->tid = 101;
	feed_copy(f, 20000, 24000, F_COPY, SP, 4096, 0);
	feed_copy(f, 30000, 36000, F_COPY, SP, 8192, 0);
	feed_copy(f, 40000, 40500, F_ASYNC, SP, 1048576, 0);
	feed_copy(f, 41000, 41700, F_RT_COPY, SP, 512, 3);
	feed_begin(f, 80000, F_SYNC, SP);
}

static void feed_second_process(struct feed *f)
{
	f->pid = f->tid = 200;
	feed_process(f, 50000, RECORD_PROCESS_FORK, 200, 9000000000, "worker");
	feed_call(f, 55000, 59000, F_INIT, SP);
	feed_call(f, 60000, 61500, F_GRAPH, SP);
	feed_call(f, 62000, 62500, F_GRAPH, SP);
	feed_process(f, 70000, RECORD_PROCESS_EXIT, 200, 9000000000, "");
}

static void feed_gpus(struct feed *f)
{
	struct record_gpu_sample s = {
		.gpu = 5, .has = 0xfff, .clock_sm_mhz = 1980, .clock_memory_mhz = 3201,
		.power_mw = 400500, .power_limit_mw = 700000, .temperature_c = 60, .throttle = 4,
		.utilisation_pct = 90, .memory_utilisation_pct = 41, .memory_used = 1 << 30,
		.memory_total = INT64_C(150754820096), .energy_mj = 1000, .gpm_sm = 50500,
		.gpm_occupancy = 25000, .gpm_tensor = 12250, .gpm_dram = 80000, .processes = 2,
		.pids = "100,200",
	};

	feed_gpu(f, 5, 0, "GPU-1111", "NVIDIA H200", "");
	feed_gpu(f, 9, 0, "MIG-2222", "H200 MIG 1g.18gb", "GPU-1111");
	for (int i = 0; i < 4; i++) {
		s.ts = 5000 + i * 20000;
		feed_gpu_sample(f, &s);
		s.clock_sm_mhz -= 100;
		s.energy_mj += 1500;
		s.throttle = i == 1 ? 0x60 : 1;
	}
	s = (struct record_gpu_sample){ .ts = 5000, .gpu = 9, .has = 1u << 7, .memory_used = 4096,
					.memory_total = 8192 };
	feed_gpu_sample(f, &s);
}

static struct session *golden_session(struct feed *f)
{
	struct record image = { .kind = RECORD_IMAGE, .image = { .id = 1, .kind = 1, .covered = 900,
				.path = "/usr/lib/libcuda.so.1", .build_id = "", .version = "" } };
	struct record site = { .kind = RECORD_SITE, .site = { .image = 1,
			       .state = RECORD_SITE_REFUSED, .api = "cuMemFree_v2",
			       .reason = "would be single-stepped" } };

	feed_start(f);
	feed_window(f, 1000, 101000);
	feed_info(f, "probe_begin_ns", "469");
	feed_info(f, "probe_pair_ns", "806");
	feed_info(f, "probe_launch_ns", "950");
	feed_add(f, &image);
	feed_add(f, &site);
	feed_loss(f, RECORD_LOSS_RING_FULL, 3);
	feed_first_process(f);
	feed_second_process(f);
	feed_gpus(f);
	return feed_finish(f);
}

static void append_view(const struct session *s, struct report_options o, FILE *out)
{
	char *text;

	if (!o.width || o.format == REPORT_TABLE) {
		text = print_view(s, o);
		fprintf(out, "==== %s, %s%s\n%s\n", o.view, report_format_words[o.format],
			o.width ? ", narrow" : "", text);
		if (o.format == REPORT_JSON)
			assert_true(json_check(text));
		free(text);
	}
}

/*
 * Every view in every format. After a change that is meant, write the file
 * anew with GBPF_GOLDEN_WRITE=1 and read the difference.
 */
static void test_golden(void **state)
{
	struct feed f;
	struct session *s = golden_session(&f);
	char *text = NULL, *expected;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (size_t i = 0; report_view(i); i++)
		for (unsigned format = 0; format < 4; format++)
			for (unsigned width = 0; width <= 80; width += 80)
				append_view(s, (struct report_options){
						       .view = report_view(i)->name,
						       .format = format, .width = width }, out);
	fclose(out);
	if (getenv("GBPF_GOLDEN_WRITE")) {
		out = fopen(GOLDEN, "w");
		assert_non_null(out);
		fputs(text, out);
		fclose(out);
		fail_msg("%s was written, and not compared", GOLDEN);
	}
	expected = read_file(GOLDEN);
	assert_string_equal(text, expected);
	free(expected);
	free(text);
	feed_stop(&f);
}

/* The numbers of the golden session that matter most, worked out by hand. */
static void test_golden_by_hand(void **state)
{
	struct feed f;
	struct session *s = golden_session(&f);

	/* Four launches through the runtime of 2000, 2100, 2200, 2300; one direct of 1000. */
	assert_field(s, "launch_sum", 1, "total_ns", "8600");
	assert_field(s, "launch_sum", 1, "calls", "4");
	assert_field(s, "launch_sum", 1, "self_ns", "4000");
	assert_field(s, "launch_sum", 1, "grid", "8x2x1");
	assert_field(s, "launch_sum", 1, "stream", "0x77");
	/* Main: dispatch 8600 + 1000 + alloc 1000; waits 4 * 5000 + poll 20000; of 100000. */
	assert_field(s, "thread_sum", 1, "dispatch_ns", "10600");
	assert_field(s, "thread_sum", 1, "waiting_ns", "40000");
	assert_field(s, "thread_sum", 1, "elsewhere_ns", "49400");
	assert_field(s, "thread_sum", 1, "waiting_pct", "40.000");
	/* Loader: blocking copies 4000 + 6000 + 700, a sync open for 21000; 500 of dispatch. */
	assert_field(s, "thread_sum", 2, "tid", "101");
	assert_field(s, "thread_sum", 2, "dispatch_ns", "500");
	assert_field(s, "thread_sum", 2, "waiting_ns", "31700");
	/* The worker lived for 20000. */
	assert_field(s, "thread_sum", 3, "wall_ns", "20000");
	assert_field(s, "thread_sum", 3, "graph_launches", "2");
	assert_field(s, "open_sum", 1, "open_ns", "21000");
	assert_field(s, "copy_sum", 1, "bytes", "12288");
	assert_field(s, "copy_sum", 1, "direction", "HtoD");
	assert_field(s, "cold_sum", 1, "first_ns", "4000");
	assert_field(s, "cold_sum", 2, "ratio", "3.000");
	assert_field(s, "summary", 1, "launches", "5");
	assert_field(s, "summary", 1, "errors", "1");
	assert_field(s, "summary", 1, "lost_events", "3");
	feed_stop(&f);
}

/* Calls without a duration count as calls and stay out of the times. */
static void test_unknown_durations(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_window(&f, 1, 100000);
	feed_end(&f, 500, F_SYNC, SP, 0);
	feed_call(&f, 1000, 1100, F_SYNC, SP);
	feed_begin(&f, 2000, F_SYNC, SP);
	feed_call(&f, 3000, 3300, F_SYNC, SP);
	feed_begin(&f, 4000, F_ALLOC, SP);
	s = feed_finish(&f);
	assert_field(s, "api_sum", 1, "calls", "4");
	assert_field(s, "api_sum", 1, "total_ns", "400");
	assert_field(s, "api_sum", 1, "avg_ns", "200");
	assert_field(s, "api_sum", 1, "min_ns", "100");
	assert_field(s, "api_sum", 2, "calls", "1");
	assert_field(s, "api_sum", 2, "total_ns", "");
	assert_field(s, "api_sum", 2, "p50_ns", "");
	feed_stop(&f);
}

/* A thread blocked since before the trace was waiting from its first moment on. */
static void test_blocked_since_before(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_window(&f, 1000, 11000);
	feed_end(&f, 5000, F_SYNC, SP - 64, 0);
	feed_end(&f, 5100, F_RT_SYNC, SP, 0);
	feed_call(&f, 6000, 6500, F_ALLOC, SP);
	s = feed_finish(&f);
	assert_field(s, "thread_sum", 1, "waiting_ns", "4100");
	assert_field(s, "thread_sum", 1, "dispatch_ns", "500");
	assert_field(s, "thread_sum", 1, "elsewhere_ns", "5400");
	feed_stop(&f);
}

/* Nested open calls: each instant once, for the innermost. */
static void test_open_nested_time(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_window(&f, 1000, 11000);
	feed_begin(&f, 2000, F_RT_LAUNCH, SP);
	feed_call(&f, 2100, 2200, F_ALLOC, SP - 64);
	feed_begin(&f, 3000, F_SYNC, SP - 64);
	s = feed_finish(&f);
	assert_field(s, "thread_sum", 1, "waiting_ns", "8000");
	assert_field(s, "thread_sum", 1, "dispatch_ns", "1000");
	feed_stop(&f);
}

/* Going on when a window ended, and when the next began: of both what lies in them. */
static void test_windows_cut_calls(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_window(&f, 1000, 11000);
	feed_window(&f, 50000, 60000);
	feed_window(&f, 90000, 95000);
	feed_call(&f, 2000, 2500, F_ALLOC, SP);
	feed_begin(&f, 4000, F_RT_SYNC, SP);
	feed_begin(&f, 4100, F_SYNC, SP - 64);
	/* the same functions at the same place, but it need not be the same call */
	feed_end(&f, 53000, F_SYNC, SP - 64, 0);
	feed_end(&f, 53100, F_RT_SYNC, SP, 0);
	feed_call(&f, 54000, 54500, F_ALLOC, SP);
	feed_poll(&f, 59000, 0, F_QUERY, SP, 5, 100);
	s = feed_finish(&f);
	assert_int_equal(s->quality.unpaired_begin, 0);
	assert_int_equal(s->quality.unpaired_end, 0);
	assert_field(s, "thread_sum", 1, "wall_ns", "25000");
	assert_field(s, "thread_sum", 1, "waiting_ns", "11100"); /* 7000 + 3100 + 1000 */
	assert_field(s, "thread_sum", 1, "dispatch_ns", "1000");
	feed_stop(&f);
}

static void test_poll_counts(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_window(&f, 1, 100000);
	feed_poll(&f, 1000, 3000, F_QUERY, SP, 40, 600);
	feed_poll(&f, 4000, 4030, F_QUERY, SP, 1, 30);
	s = feed_finish(&f);
	assert_field(s, "api_sum", 1, "calls", "41");
	assert_field(s, "api_sum", 1, "total_ns", "630");
	assert_field(s, "api_sum", 1, "p50_ns", "30");
	assert_field(s, "api_sum", 1, "max_ns", "50");
	assert_field(s, "sync_sum", 1, "waits", "2");
	assert_field(s, "sync_sum", 1, "calls", "41");
	assert_field(s, "sync_sum", 1, "total_ns", "2030");
	assert_field(s, "thread_sum", 1, "waiting_ns", "2030");
	feed_stop(&f);
}

static void test_directions(void **state)
{
	static const char *const expected[] = { "HtoH", "HtoD", "DtoH", "DtoD", "" };

	for (uint64_t kind = 0; kind < 5; kind++) {
		struct feed f;
		struct session *s;

		feed_start(&f);
		feed_window(&f, 1, 100000);
		feed_copy(&f, 1000, 1100, F_RT_COPY, SP, 16, kind);
		s = feed_finish(&f);
		assert_field(s, "copy_sum", 1, "direction", expected[kind]);
		feed_stop(&f);
	}
}

static void test_sort_and_top(void **state)
{
	struct feed f;
	struct session *s = golden_session(&f);
	struct report_options o = { .view = "cuda_api_sum", .format = REPORT_CSV, .sort = "name",
				    .top = 2 };
	char *csv = print_view(s, o), buf[64];

	assert_string_equal(csv_field(csv, 1, "name", buf, sizeof(buf)), "cuEventQuery");
	assert_string_equal(csv_field(csv, 2, "name", buf, sizeof(buf)), "cuGraphLaunch");
	assert_int_equal(lines_of(csv), 3); /* the header and two rows */
	free(csv);
	o.sort = "+calls";
	csv = print_view(s, o);
	assert_string_equal(csv_field(csv, 1, "calls", buf, sizeof(buf)), "1");
	free(csv);
	feed_stop(&f);
}

static void test_bad_options(void **state)
{
	static const struct {
		struct report_options o;
		const char *says;
	} bad[] = {
		{ { .view = "api_sun" }, "did you mean api_sum" },
		{ { .view = "zzzzzzzzzz" }, "launch_sum" },
		{ { .view = "api_sum", .sort = "speed" }, "total_ns" },
		{ { .view = "api_sum", .filter = "speed>1" }, "character 1" },
	};
	struct feed f;
	struct session *s = golden_session(&f);

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char err[1024] = "", *text = NULL;
		size_t size;
		FILE *out = open_memstream(&text, &size);

		assert_int_equal(report_print(s, &bad[i].o, out, err, sizeof(err)), -EINVAL);
		fclose(out);
		assert_int_equal(size, 0);
		assert_non_null(strstr(err, bad[i].says));
		free(text);
	}
	feed_stop(&f);
}

static void assert_printed(const struct session *s, struct report_options o, const char *there,
			   const char *absent)
{
	char *text = print_view(s, o);

	if (!strstr(text, there) || strstr(text, absent))
		fail_msg("with %s, without %s: %s", there, absent, text);
	free(text);
}

/* In a process without return probes, no time is known, and none is made up. */
static void test_entry_only_process(void **state)
{
	struct record p = { .kind = RECORD_PROCESS,
			    .process = { .ts = 1, .event = RECORD_PROCESS_SEEN, .pid = 100,
					 .flags = RECORD_PROCESS_ENTRY_ONLY, .start = 5000,
					 .comm = "c", .cmdline = "", .exe = "", .container = "" } };
	static const char *const with_errors[] = { "summary", "api_sum", "sync_sum", "thread_sum",
						   "proc_sum" };
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_window(&f, 1, 100000);
	feed_add(&f, &p);
	feed_begin(&f, 1000, F_SYNC, SP);
	feed_begin(&f, 2000, F_SYNC, SP);
	s = feed_finish(&f);
	assert_field(s, "api_sum", 1, "calls", "2");
	assert_field(s, "api_sum", 1, "total_ns", "");
	assert_field(s, "thread_sum", 1, "waiting_pct", "");
	assert_field(s, "thread_sum", 1, "elsewhere_pct", "");
	assert_field(s, "proc_sum", 1, "waiting_ns", "");
	for (size_t i = 0; i < sizeof(with_errors) / sizeof(with_errors[0]); i++)
		assert_field(s, with_errors[i], 1, "errors", "");
	assert_printed(s, (struct report_options){ .view = "api_sum", .format = REPORT_JSON },
		       "\"errors\":null", "\"errors\":0");
	assert_printed(s, (struct report_options){ .view = "summary" },
		       "returns were not recorded", "returned an error");
	feed_stop(&f);
}

/* Some functions have return probes, one has not: errors are those of the others. */
static void test_entry_only_function(void **state)
{
	struct record site = { .kind = RECORD_SITE,
			       .site = { .image = 1, .state = RECORD_SITE_ENTRY_ONLY,
					 .api = "cuStreamSynchronize", .reason = "" } };
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_window(&f, 1, 100000);
	feed_add(&f, &site);
	feed_begin(&f, 1000, F_SYNC, SP);
	feed_begin(&f, 2000, F_ALLOC, SP);
	feed_end(&f, 3000, F_ALLOC, SP, 2);
	s = feed_finish(&f);
	assert_field(s, "sync_sum", 1, "errors", "");
	assert_field(s, "thread_sum", 1, "errors", "1");
	assert_field(s, "proc_sum", 1, "errors", "1");
	assert_field(s, "summary", 1, "errors", "1");
	assert_printed(s, (struct report_options){ .view = "summary" },
		       "1 returned an error (returns of 1 were not recorded)", "none returned");
	feed_stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_golden_by_hand),
		cmocka_unit_test(test_unknown_durations),
		cmocka_unit_test(test_blocked_since_before),
		cmocka_unit_test(test_open_nested_time),
		cmocka_unit_test(test_windows_cut_calls),
		cmocka_unit_test(test_poll_counts),
		cmocka_unit_test(test_directions),
		cmocka_unit_test(test_sort_and_top),
		cmocka_unit_test(test_bad_options),
		cmocka_unit_test(test_entry_only_process),
		cmocka_unit_test(test_entry_only_function),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
