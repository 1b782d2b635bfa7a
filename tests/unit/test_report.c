// SPDX-License-Identifier: BSD-2-Clause
/* What the views print, on sessions whose numbers can be worked out by hand. */
#include "feed.h"

#include <stdio.h>

#include "json_check.h"
#include "report/row.h"

#define SP 0x7000u
#define GOLDEN "tests/unit/golden/report.txt"

/* Prints a view into a string that the caller frees. */
static char *print_view(const struct session *s, struct report_options o)
{
	char err[1024] = "", *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	if (report_print(s, &o, out, err, sizeof(err)))
		fail_msg("%s: %s", o.view, err);
	fclose(out);
	return text;
}

/* Field of a csv row (row 0 is the header); into buf. Quotes are not expected. */
static const char *csv_field(const char *csv, size_t row, const char *key, char *buf, size_t size)
{
	const char *head = csv, *line = csv;
	size_t column = 0, len;

	while (strncmp(head, key, strlen(key)) || !strchr(",\n", head[strlen(key)])) {
		len = strcspn(head, ",\n");
		if (head[len] != ',')
			fail_msg("no column %s", key);
		head += len + 1;
		column++;
	}
	for (size_t i = 0; i < row; i++) {
		line = strchr(line, '\n');
		assert_non_null(line);
		line++;
	}
	for (size_t i = 0; i < column; i++)
		line += strcspn(line, ",") + 1;
	len = strcspn(line, ",\n");
	snprintf(buf, size, "%.*s", (int)len, line);
	return buf;
}

static void assert_field(const struct session *s, const char *view, size_t row, const char *key,
			 const char *expected)
{
	struct report_options o = { .view = view, .format = REPORT_CSV, .names = REPORT_BASE };
	char *csv = print_view(s, o), buf[256];

	assert_string_equal(csv_field(csv, row, key, buf, sizeof(buf)), expected);
	free(csv);
}

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
	return feed_finish(f);
}

static char *read_file(const char *path)
{
	FILE *in = fopen(path, "r");
	char *text = NULL;
	size_t size = 0;
	ssize_t got;

	if (!in)
		fail_msg("cannot open %s; tests run from the top of the tree", path);
	got = getdelim(&text, &size, '\0', in);
	fclose(in);
	assert_true(got > 0);
	return text;
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

static int64_t random_time(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (int64_t)(*state >> 40) % 5000;
}

static int compare_times(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void test_percentiles(void **state)
{
	enum { MAX = 300 };
	int64_t times[MAX], sorted[MAX];
	uint64_t random = 1;

	for (size_t n = 1; n <= MAX; n++) {
		struct row r;

		row_init(&r);
		r.total = 0;
		r.timed = n;
		for (size_t i = 0; i < n; i++)
			r.total += sorted[i] = times[i] = random_time(&random);
		qsort(sorted, n, sizeof(*sorted), compare_times);
		stats_fill(&r, times, n);
		assert_int_equal(r.p50, sorted[(n * 50 + 99) / 100 - 1]);
		assert_int_equal(r.p90, sorted[(n * 90 + 99) / 100 - 1]);
		assert_int_equal(r.p99, sorted[(n * 99 + 99) / 100 - 1]);
	}
}

static void test_known_statistics(void **state)
{
	int64_t times[] = { 9, 2, 5, 4, 12, 7, 8, 11, 9, 3, 7, 4, 12, 5, 4, 10, 9, 6, 9, 4 };
	struct row r;

	/* Sum 140, mean 7, squared deviations 178, of 19: 9.368, root 3.06. */
	row_init(&r);
	r.total = 140;
	r.timed = 20;
	stats_fill(&r, times, 20);
	assert_int_equal(r.avg, 7);
	assert_int_equal(r.stddev, 3);
	assert_int_equal(r.p50, 7);
	assert_int_equal(r.p90, 11);
	assert_int_equal(r.p99, 12);
	row_init(&r);
	r.total = 5;
	r.timed = 1;
	stats_fill(&r, times, 1);
	assert_int_equal(r.stddev, NA);
	row_init(&r);
	stats_fill(&r, times, 0);
	assert_int_equal(r.avg, NA);
	assert_int_equal(r.p50, NA);
}

/* Sorted, reversed and equal input must not take quadratic time, nor be wrong. */
static void test_select_large(void **state)
{
	enum { N = 300000 };
	int64_t *v = malloc(N * sizeof(*v));

	assert_non_null(v);
	for (int kind = 0; kind < 3; kind++) {
		for (int64_t i = 0; i < N; i++)
			v[i] = kind == 0 ? i : kind == 1 ? N - 1 - i : 42;
		assert_int_equal(stats_select(v, N, 12345), kind == 2 ? 42 : 12345);
	}
	free(v);
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
	assert_null(strchr(strchr(strchr(csv, '\n') + 1, '\n') + 1, '\n')[1] ? "more" : NULL);
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

static bool is_clean(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 && *text != '\n' && *text != '\t')
			return false;
	return true;
}

static size_t lines_of(const char *text)
{
	size_t lines = 0;

	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

/* Quotes, escapes, control bytes, invalid UTF-8, 8 KiB: in every view and format. */
static void test_hostile_names(void **state)
{
	static const char *const names[] = {
		"a\"b,c\\d\n\r\t\x1b[2Je\x07", "\xff\xfe\x80 bad", "\xe2\x80\xae reversed",
		"=cmd|' /C calc'!A0", "a\tb", "_Z\xc3(", "",
	};
	char longest[8192];

	memset(longest, 'k', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	for (size_t n = 0; n <= sizeof(names) / sizeof(names[0]); n++) {
		const char *name = n < sizeof(names) / sizeof(names[0]) ? names[n] : longest;
		struct feed f;
		struct session *s;

		feed_start(&f);
		feed_window(&f, 1, 100000);
		feed_process(&f, 1, RECORD_PROCESS_FORK, 100, 5000, name);
		feed_thread(&f, 100, name);
		feed_name(&f, 900, 0xabc, GBPF_NAME_GETTER, name);
		feed_launch(&f, 1000, 1100, F_LAUNCH, SP, 0xabc, 1, 1);
		feed_begin(&f, 2000, F_SYNC, SP);
		s = feed_finish(&f);
		for (size_t i = 0; report_view(i); i++) {
			for (unsigned format = 0; format < 4; format++) {
				struct report_options o = { .view = report_view(i)->name,
							    .format = format, .width = 80,
							    .file = name };
				char *text = print_view(s, o);

				assert_true(is_clean(text));
				if (format == REPORT_JSON)
					assert_true(json_check(text));
				if (format == REPORT_TSV && !strcmp(o.view, "launch_sum"))
					assert_int_equal(lines_of(text), 2);
				free(text);
			}
		}
		feed_stop(&f);
	}
}

static void test_empty_session(void **state)
{
	struct feed f;
	struct session *s;

	feed_start(&f);
	s = feed_finish(&f);
	for (size_t i = 0; report_view(i); i++) {
		for (unsigned format = 0; format < 4; format++) {
			struct report_options o = { .view = report_view(i)->name, .format = format,
						    .width = 80 };
			char *text = print_view(s, o);

			assert_true(*text);
			if (format == REPORT_JSON)
				assert_true(json_check(text));
			free(text);
		}
	}
	assert_field(s, "summary", 1, "launch_p50_ns", "");
	assert_field(s, "summary", 1, "dispatch_pct", "");
	feed_stop(&f);
}

/* In a process without return probes, no time is known, and none is made up. */
static void test_entry_only_process(void **state)
{
	struct record p = { .kind = RECORD_PROCESS,
			    .process = { .ts = 1, .event = RECORD_PROCESS_SEEN, .pid = 100,
					 .flags = RECORD_PROCESS_ENTRY_ONLY, .start = 5000,
					 .comm = "c", .cmdline = "", .exe = "", .container = "" } };
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
	feed_stop(&f);
}

static void check_documented(const char *view, const char *key, const char *header, void *ctx)
{
	const char *docs = ctx, *section, *end, *at;
	char heading[64], quoted[64];

	snprintf(heading, sizeof(heading), "\n### %s\n", view);
	snprintf(quoted, sizeof(quoted), "`%s`", key);
	section = strstr(docs, heading);
	if (!section)
		fail_msg("docs/metrics.md has no section for %s", view);
	end = strstr(section + 1, "\n##");
	at = strstr(section, quoted);
	if (!at || (end && at > end))
		fail_msg("docs/metrics.md says nothing of %s in %s (%s)", key, view, header);
}

static void test_columns_are_documented(void **state)
{
	char *docs = read_file("docs/metrics.md");

	report_each_column(check_documented, docs);
	free(docs);
}

/* The contract: keys are snake_case, times end with _ns, sizes with bytes, shares with _pct. */
static void check_key(const char *view, const char *key, const char *header, void *ctx)
{
	const struct column *c = column_find(view_find(view), key);
	size_t len = strlen(key);

	assert_true(strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_") == len);
	if (c->unit == UNIT_NS)
		assert_string_equal(key + len - 3, "_ns");
	if (c->unit == UNIT_BYTES)
		assert_string_equal(key + len - 5, "bytes");
	if (c->unit == UNIT_PERCENT) {
		assert_string_equal(key + len - 4, "_pct");
		assert_non_null(strchr(header, '%'));
	}
	if (c->unit == UNIT_NS || c->unit == UNIT_BYTES)
		assert_non_null(strchr(header, '('));
}

static void test_keys_name_their_unit(void **state)
{
	report_each_column(check_key, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_golden_by_hand),
		cmocka_unit_test(test_percentiles),
		cmocka_unit_test(test_known_statistics),
		cmocka_unit_test(test_select_large),
		cmocka_unit_test(test_unknown_durations),
		cmocka_unit_test(test_blocked_since_before),
		cmocka_unit_test(test_open_nested_time),
		cmocka_unit_test(test_poll_counts),
		cmocka_unit_test(test_directions),
		cmocka_unit_test(test_sort_and_top),
		cmocka_unit_test(test_bad_options),
		cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(test_empty_session),
		cmocka_unit_test(test_entry_only_process),
		cmocka_unit_test(test_columns_are_documented),
		cmocka_unit_test(test_keys_name_their_unit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
