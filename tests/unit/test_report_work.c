// SPDX-License-Identifier: BSD-2-Clause
/* The views of GPU work, on the small session of gpu_session.h, and where there is none. */
#include "gpu_session.h"
#include "json_check.h"
#include "view.h"

#define GOLDEN "tests/unit/golden/report_work.txt"

static const char *const views[] = { "summary",	      "kern_sum",    "kern_gb_sum",
				     "kern_exec_sum", "gpu_mem_sum", "api_gpu_sum",
				     "gpu_trace",     "gap_sum",     "stream_sum" };
#define VIEWS (sizeof(views) / sizeof(views[0]))

static void append_view(const struct session *s, struct report_options o, FILE *out)
{
	char *text = print_view(s, o);

	fprintf(out, "==== %s, %s%s\n%s\n", o.view, report_format_words[o.format],
		o.width ? ", narrow" : "", text);
	if (o.format == REPORT_JSON)
		assert_true(json_check(text));
	free(text);
}

/*
 * After a change that is meant, write the file anew with GBPF_GOLDEN_WRITE=1 and read the
 * difference.
 */
static void test_golden(void **state)
{
	struct feed f;
	struct session *s = gpu_small(&f);
	char *text = NULL, *expected;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (size_t i = 0; i < VIEWS; i++) {
		append_view(s, (struct report_options){ .view = views[i] }, out);
		append_view(s, (struct report_options){ .view = views[i], .width = 100 }, out);
		append_view(s, (struct report_options){ .view = views[i], .format = REPORT_JSON },
			    out);
	}
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

/* What matters most, worked out by hand: gpu_session.h tells the story. */
static void test_by_hand(void **state)
{
	struct feed f;
	struct session *s = gpu_small(&f);

	/* Of 100: 20, 20, 2 and two of 9 us; one of five took less than its launch. */
	assert_field(s, "kern_sum", 1, "total_ns", "60000");
	assert_field(s, "kern_sum", 1, "instances", "5");
	assert_field(s, "kern_sum", 1, "p50_ns", "9000");
	assert_field(s, "kern_sum", 1, "window_pct", "6.667"); /* of 900 us */
	assert_field(s, "kern_sum", 1, "listed_pct", "66.667"); /* of 90 us */
	assert_field(s, "kern_sum", 1, "short_pct", "20.000");
	assert_field(s, "kern_sum", 1, "uncontended", "3");
	assert_field(s, "kern_sum", 1, "latency_p50_ns", "7000"); /* of 6, 7, 10 us */
	assert_field(s, "kern_sum", 2, "class", "communication");
	assert_field(s, "kern_gb_sum", 2, "block", "512x1x1");
	/* Launches of 4, 3 and 4 us; starts 2, 19 and 3 us after their returns. */
	assert_field(s, "kern_exec_sum", 1, "count", "3");
	assert_field(s, "kern_exec_sum", 1, "queued", "3");
	assert_field(s, "kern_exec_sum", 1, "t_max_ns", "42000");
	assert_field(s, "kern_exec_sum", 1, "a_avg_ns", "3667");
	assert_field(s, "kern_exec_sum", 1, "q_p50_ns", "3000");
	assert_field(s, "kern_exec_sum", 1, "k_min_ns", "2000");
	assert_field(s, "kern_exec_sum", 1, "depth_max", "1");
	assert_field(s, "kern_exec_sum", 3, "name", "cuGraphLaunch");
	assert_field(s, "gpu_mem_sum", 2, "operation", "HtoD");
	assert_field(s, "gpu_mem_sum", 2, "gb_per_s", "1.024");
	assert_field(s, "gpu_mem_sum", 2, "pageable", "yes");
	assert_field(s, "api_gpu_sum", 1, "category", "kernel");
	assert_field(s, "api_gpu_sum", 2, "operation", "cuStreamSynchronize");
	assert_field(s, "gpu_trace", 3, "start_ns", "126000"); /* the trace began at 1 us */
	assert_field(s, "gpu_trace", 3, "queue_ns", "19000");
	assert_field(s, "gpu_trace", 7, "graph_node", "1001");
	assert_field(s, "gap_sum", 1, "class", "host-wait");
	assert_field(s, "gap_sum", 1, "total_ns", "784000");
	assert_field(s, "gap_sum", 1, "busy_pct", "9.333"); /* 84 of 900 us */
	assert_field(s, "gap_sum", 2, "total_ns", "30000");
	assert_field(s, "gap_sum", 3, "gaps", "2");
	assert_field(s, "stream_sum", 1, "busy_ns", "64000");
	assert_field(s, "stream_sum", 1, "handle", "0x77");
	assert_field(s, "stream_sum", 1, "queued", "2");
	assert_field(s, "summary", 1, "gpu_busy_pct", "9.333");
	assert_field(s, "summary", 1, "gpu_watched_ns", "900000");
	assert_field(s, "summary", 1, "top_gap", "host-wait");
	feed_stop(&f);
}

static void assert_printed(const struct session *s, struct report_options o, const char *part)
{
	char *text = print_view(s, o);

	if (!strstr(text, part))
		fail_msg("%s: no '%s' in %s", o.view, part, text);
	free(text);
}

/* n/a and why, not an empty table and not a 0. */
static void test_without(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_window(&f, 1000, 101000);
	feed_call(&f, 2000, 3000, F_SYNC, SP);
	s = feed_finish(&f);
	for (size_t i = 1; i < VIEWS; i++) {
		assert_printed(s, (struct report_options){ .view = views[i] },
			       "GPU time: n/a: recorded without --gpu-time\n");
		assert_printed(s, (struct report_options){ .view = views[i],
							   .format = REPORT_JSON },
			       "\"rows\":[]");
		assert_printed(s, (struct report_options){ .view = views[i],
							   .format = REPORT_JSON },
			       "\"reason\":\"recorded without --gpu-time\"");
	}
	assert_field(s, "summary", 1, "gpu_busy_pct", "");
	feed_stop(&f);
}

static void test_refused(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	feed_window(&f, 1000, 101000);
	feed_process(&f, 500, RECORD_PROCESS_SEEN, 100, 5000000000, "train");
	feed_call(&f, 2000, 3000, F_SYNC, SP);
	feed_sidecar(&f, 1500, RECORD_SIDECAR_REFUSED, 0, "CUPTI is taken\x1b[31m");
	s = feed_finish(&f);
	assert_printed(s, (struct report_options){ .view = "kern_sum" },
		       "GPU time of train (PID 100): n/a: CUPTI is taken\\x1b[31m\n");
	assert_printed(s, (struct report_options){ .view = "summary" },
		       "n/a: CUPTI is taken\\x1b[31m\n");
	feed_stop(&f);
	/* One was recorded, the other was not: both are said. */
	feed_start(&f);
	feed_process(&f, 500, RECORD_PROCESS_SEEN, 100, 5000000000, "train");
	feed_process(&f, 500, RECORD_PROCESS_SEEN, 200, 5000000000, "other");
	feed_cover(&f, 1000, 90000);
	feed_shape(&f, 1, "_Z1fv", 8, 32);
	feed_launched(&f, 2000, 4000, 0xabc, 0, 8, 32, 1);
	feed_kernel(&f, 6000, 7000, 7, 1, 1);
	f.pid = f.tid = 200;
	feed_call(&f, 2000, 3000, F_SYNC, SP);
	s = feed_finish(&f);
	assert_field(s, "kern_sum", 1, "instances", "1");
	assert_printed(s, (struct report_options){ .view = "kern_sum" },
		       "GPU time of other (PID 200): n/a: recorded without --gpu-time\n");
	feed_stop(&f);
}

static void test_aliases(void **state)
{
	static const char *const names[][2] = {
		{ "cuda_gpu_kern_sum", "kern_sum" },   { "cuda_gpu_kern_gb_sum", "kern_gb_sum" },
		{ "cuda_kern_exec_sum", "kern_exec_sum" },
		{ "cuda_gpu_mem_time_sum", "gpu_mem_sum" },
		{ "cuda_gpu_mem_size_sum", "gpu_mem_sum" },
		{ "cuda_api_gpu_sum", "api_gpu_sum" }, { "cuda_gpu_trace", "gpu_trace" },
		{ "cuda_api_sum", "api_sum" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_string_equal(view_find(names[i][0])->about.name, names[i][1]);
	assert_null(view_find("cuda_gpu"));
	assert_null(view_find(""));
	assert_null(view_find("cuda_gpu_mem_time_sum cuda_gpu_mem_size_sum"));
}

/* What --filter and --top leave is the same as of all rows, in any order. */
static void test_trace_is_filtered(void **state)
{
	static const struct gpu_random_options o = { .seed = 5, .processes = 2, .threads = 3,
						     .streams = 6, .devices = 2, .calls = 80 };
	static const char *const sorts[] = { NULL, "-duration_ns", "name" };
	struct feed f;
	struct session *s = gpu_random(&f, &o, NULL, NULL);

	for (size_t i = 0; i < 3; i++) {
		struct report_options all = { .view = "gpu_trace", .format = REPORT_CSV,
					      .sort = sorts[i] };
		char *text, *some;

		assert_true(lines_of(text = print_view(s, all)) == s->works_count + 1);
		all.top = 17;
		some = print_view(s, all);
		assert_int_equal(lines_of(some), 18);
		assert_memory_equal(some, text, strlen(some));
		free(some);
		free(text);
		all.top = 0;
		all.filter = "stream=7 and grid!=n/a";
		text = print_view(s, all);
		assert_true(lines_of(text) > 20 && lines_of(text) < s->works_count);
		all.top = 17;
		some = print_view(s, all);
		assert_memory_equal(some, text, strlen(some));
		free(some);
		free(text);
	}
	feed_stop(&f);
}

/* More rows than a batch: each once, in order, also with what leaves some out. */
static void test_trace_comes_in_batches(void **state)
{
	static const struct gpu_random_options o = { .seed = 6, .processes = 2, .threads = 8,
						     .streams = 9, .devices = 1, .calls = 300 };
	static const char *const filters[] = { NULL, "stream!=8" };
	static const uint64_t tops[] = { 0, 4097 };
	struct feed f;
	struct session *s = gpu_random(&f, &o, NULL, NULL);

	assert_true(s->works_count > 4096 + 100);
	for (size_t i = 0; i < 2; i++) {
		struct report_options all = { .view = "gpu_trace", .format = REPORT_CSV,
					      .filter = filters[i], .sort = "start_ns" };
		char *whole = print_view(s, all), *text;
		size_t lines;

		all.sort = NULL; /* descending: not in its order, and so not in batches */
		for (size_t k = 0; k < 2; k++) {
			all.top = tops[k];
			text = print_view(s, all);
			lines = lines_of(whole) - 1;
			lines = tops[k] && tops[k] < lines ? tops[k] : lines;
			assert_int_equal(lines_of(text), lines + 1);
			free(text);
		}
		all.format = REPORT_JSON; /* so long that json_check() takes minutes */
		all.top = 0;
		text = print_view(s, all);
		lines = 0;
		for (const char *at = text; *at; at++)
			lines += *at == '{' && !strncmp(at, "{\"start_ns\":", 12);
		assert_int_equal(lines, lines_of(whole) - 1);
		assert_null(strstr(text, "}{"));
		assert_non_null(strstr(text, "],\"quality\":{"));
		free(text);
		free(whole);
	}
	feed_stop(&f);
}

/* Sums of the views are those of the session, whatever it holds. */
static void test_hostile(void **state)
{
	struct gpu_random_options o = { .processes = 2, .threads = 2, .streams = 5, .devices = 2,
					.calls = 40, .hostile = true };

	for (o.seed = 1; o.seed < 6; o.seed++) {
		struct feed f;
		struct session *s = gpu_random(&f, &o, NULL, NULL);

		for (size_t i = 0; i < VIEWS; i++)
			for (unsigned format = 0; format < 4; format++) {
				char *text = print_view(s, (struct report_options){
								   .view = views[i],
								   .format = format,
								   .width = 80 });

				assert_null(strchr(text, '\x1b'));
				if (format == REPORT_JSON)
					assert_true(json_check(text));
				free(text);
			}
		feed_stop(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),	cmocka_unit_test(test_by_hand),
		cmocka_unit_test(test_without), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_aliases), cmocka_unit_test(test_trace_is_filtered),
		cmocka_unit_test(test_trace_comes_in_batches), cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
