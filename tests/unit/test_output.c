// SPDX-License-Identifier: BSD-2-Clause
/* Statistics, hostile names in every format, and what the documentation must say. */
#include "json_check.h"
#include "view.h"
#include "util/select.h"

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
		assert_int_equal(select_rank(v, N, 12345), kind == 2 ? 42 : 12345);
	}
	free(v);
}

static bool is_clean(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 && *text != '\n' && *text != '\t')
			return false;
	return true;
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
		cmocka_unit_test(test_percentiles),
		cmocka_unit_test(test_known_statistics),
		cmocka_unit_test(test_select_large),
		cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(test_empty_session),
		cmocka_unit_test(test_columns_are_documented),
		cmocka_unit_test(test_keys_name_their_unit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
