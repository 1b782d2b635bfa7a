// SPDX-License-Identifier: BSD-2-Clause
/* Many rows: which ones --top keeps, and tables that stay aligned. */
#include "view.h"

#include "util/text.h"

#define GRIDS 300

/* Rows by the hundred, whose times are equal in groups and in no order. */
static struct session *many_rows(struct feed *f)
{
	int64_t at = 2000;

	feed_start(f);
	feed_window(f, 1000, 100000000);
	feed_name(f, 1500, 0xabc, GBPF_NAME_LAYOUT, "_Z4gemmPfi");
	feed_name(f, 1500, 0xdef, GBPF_NAME_LAYOUT, "_Z9transposePfi");
	for (uint32_t i = 0; i < GRIDS; i++, at += 20000) {
		uint32_t grid = i * 7919 % GRIDS * 1001 + 1;
		uint64_t func = i % 3 ? 0xabc : 0xdef;

		feed_launch(f, at, at + 100 + i * 31 % 17 * 700, F_LAUNCH, SP, func, grid, 32);
	}
	return feed_finish(f);
}

static void test_top_is_the_head_of_all(void **state)
{
	static const char *const sorts[] = { NULL, "+total_ns", "kernel", "-grid", "+first_ns",
					     "-calls" };
	static const uint64_t tops[] = { 1, 2, 3, 17, GRIDS - 1, GRIDS, GRIDS + 1 };
	struct feed f;
	struct session *s = many_rows(&f);

	for (size_t i = 0; i < sizeof(sorts) / sizeof(sorts[0]); i++) {
		struct report_options o = { .view = "launch_sum", .format = REPORT_CSV,
					    .sort = sorts[i] };
		char *all = print_view(s, o);

		assert_int_equal(lines_of(all), GRIDS + 1);
		for (size_t j = 0; j < sizeof(tops) / sizeof(tops[0]); j++) {
			char *some;

			o.top = tops[j];
			some = print_view(s, o);
			assert_int_equal(lines_of(some), 1 + (tops[j] < GRIDS ? tops[j] : GRIDS));
			assert_memory_equal(some, all, strlen(some));
			free(some);
		}
		free(all);
	}
	feed_stop(&f);
}

/* Rows of equal time keep the order in which they were met. */
static void test_sorted(void **state)
{
	struct report_options o = { .view = "launch_sum", .format = REPORT_CSV };
	int64_t total = INT64_MAX, begin = 0;
	struct feed f;
	struct session *s = many_rows(&f);
	char *csv = print_view(s, o);

	for (size_t row = 1; row <= GRIDS; row++) {
		char ns[32], grid[64];
		int64_t this_total, this_begin = 0;

		this_total = strtoll(csv_field(csv, row, "total_ns", ns, sizeof(ns)), NULL, 10);
		csv_field(csv, row, "grid", grid, sizeof(grid));
		for (uint32_t i = 0; i < GRIDS; i++)
			if (i * 7919 % GRIDS * 1001 + 1 == strtoul(grid, NULL, 10))
				this_begin = i;
		assert_true(this_total < total || (this_total == total && this_begin > begin));
		total = this_total;
		begin = this_begin;
	}
	free(csv);
	feed_stop(&f);
}

/* Columns from the start of a line to the text in it. */
static size_t column_of(const char *line, const char *text)
{
	const char *at = strstr(line, text);
	char before[1024];

	assert_non_null(at);
	assert_true((size_t)(at - line) < sizeof(before));
	memcpy(before, line, (size_t)(at - line));
	before[at - line] = '\0';
	return text_width(before);
}

/* Numbers are aligned to the right and texts to the left, whatever the widths. */
static void test_table_is_aligned(void **state)
{
	struct report_options o = { .view = "launch_sum" };
	struct feed f;
	struct session *s = many_rows(&f);
	char *table = print_view(s, o), *save, *line = strtok_r(table, "\n", &save);
	size_t kernel = column_of(line, "Kernel"), api = column_of(line, "API"), rows = 0;
	size_t block = column_of(line, "Block") + strlen("Block");

	while (rows < GRIDS) {
		line = strtok_r(NULL, "\n", &save);
		assert_non_null(line);
		assert_int_equal(column_of(line, strstr(line, "gemm") ? "gemm" : "transpose"),
				 kernel);
		assert_int_equal(column_of(line, "cuLaunchKernel"), api);
		assert_int_equal(column_of(line, " 32×1×1") + strlen(" 32x1x1"), block);
		rows++;
	}
	free(table);
	feed_stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_top_is_the_head_of_all),
		cmocka_unit_test(test_sorted),
		cmocka_unit_test(test_table_is_aligned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
