// SPDX-License-Identifier: BSD-2-Clause
/* The filter grammar: what it accepts, means, and says when it does not accept. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/filter.h"
#include "report/filter_value.h"

/* A row in which everything that matters is set, for columns of launch_sum. */
static struct row sample(void)
{
	struct row r;

	row_init(&r);
	r.pid = 123;
	r.calls = 2500;
	r.total = 5000000;
	r.avg = 2000;
	r.listed_share = 12500; /* 12.5 % */
	r.rate = 250000;	/* 250/s */
	r.smem = 49152;
	r.stream = 0x7f0012345678;
	r.grid[0] = 8;
	r.grid[1] = 4;
	r.grid[2] = 1;
	r.name = "cuLaunchKernel";
	r.kernel = "void nn::gemm<float>(float*, int)";
	return r;
}

static bool matches(const char *text)
{
	struct row r = sample();
	struct filter *f = NULL;
	char err[1024] = "";
	bool result;

	if (filter_parse(&f, text, &view_launch, err, sizeof(err)))
		fail_msg("'%s': %s", text, err);
	result = filter_match(f, &r);
	filter_free(f);
	return result;
}

static void test_comparisons(void **state)
{
	static const char *const yes[] = {
		"pid=123", "pid==123", "pid != 124", "calls>2499", "calls >= 2500", "calls<2501",
		"calls<=2500", "calls=2.5k", "total_ns=5ms", "total_ns>4999us", "total_ns<0.1s",
		"avg_ns=2000", "avg_ns=2us", "avg_ns=2µs", "total_ns<1min", "total_ns<1h",
		"listed_pct=12.5", "listed_pct>12%", "calls_per_s=250", "calls_per_s=250/s",
		"calls_per_s<1k", "smem_bytes=48KiB", "smem_bytes<49.2KB", "smem_bytes=49152B",
		"stream=0x7f0012345678", "grid=8x4x1", "grid=8,4", "grid=8×4×1", "grid!=8x4x2",
		"name=cuLaunchKernel", "name!=cuLaunch", "name~Launch", "name~cu*Kernel",
		"name~c?Launch*", "kernel~'gemm<float>('", "kernel~\"nn::*\" or kernel~*gemm*",
		"first_ns=n/a", "pid!=n/a", "calls>-5", "  pid=123  ", "self_ns=n/a",
	};
	static const char *const no[] = {
		"pid=124", "pid!=123", "calls>2500", "calls<2500", "calls>=2501", "total_ns>5ms",
		"name=cuLaunch", "name~launch", "name~Kernel*", "name~cu?", "grid=8x4x2",
		"grid=8", "grid!=8x4x1", "pid=n/a", "first_ns!=n/a", "first_ns>0", "first_ns!=5",
		"first_ns<1h", "stream=0", "kernel='gemm'",
	};

	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		if (!matches(yes[i]))
			fail_msg("'%s' should match", yes[i]);
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		if (matches(no[i]))
			fail_msg("'%s' should not match", no[i]);
}

static void test_logic(void **state)
{
	assert_true(matches("pid=123 and calls=2500"));
	assert_false(matches("pid=123 and calls=1"));
	assert_true(matches("pid=1 or calls=2500"));
	assert_false(matches("pid=1 or calls=1"));
	assert_true(matches("not pid=1"));
	assert_true(matches("not not pid=123"));
	/* and binds first: the whole is true through its left side. */
	assert_true(matches("pid=123 or pid=123 and pid=1"));
	assert_false(matches("(pid=123 or pid=123) and pid=1"));
	assert_true(matches("pid=1 and pid=1 or pid=123"));
	assert_false(matches("not (pid=123 or pid=1)"));
	assert_true(matches("not pid=1 and not(pid=2)"));
	/* A chain is taken from the left, and none of its parts is lost. */
	assert_true(matches("pid=1 or pid=2 or pid=3 or pid=123"));
	assert_false(matches("pid=123 and calls=2500 and avg_ns=1 and pid=123"));
}

static void test_large_ids_are_exact(void **state)
{
	assert_true(matches("stream=139638282147448"));
	assert_false(matches("stream=139638282147449"));
}

static void assert_error(const char *text, const char *at, const char *says)
{
	struct filter *f = NULL;
	char err[1024] = "";

	assert_int_equal(filter_parse(&f, text, &view_launch, err, sizeof(err)), -EINVAL);
	assert_null(f);
	if (!strstr(err, at) || !strstr(err, says))
		fail_msg("'%s' says '%s', and not '%s' and '%s'", text, err, at, says);
}

static void test_errors_say_where(void **state)
{
	assert_error("", "character 1:", "expected a field");
	assert_error("  ", "character 3:", "expected a field");
	assert_error("speed>3", "character 1:", "no field 'speed'");
	assert_error("speed>3", "character 1:", "total_ns");
	assert_error("pid", "character 4:", "expected one of =");
	assert_error("pid=", "character 5:", "expected a value");
	assert_error("pid=1 pid=2", "character 7:", "expected 'and', 'or' or the end");
	assert_error("pid=1 and", "character 10:", "expected a field");
	assert_error("(pid=1", "character 7:", "')'");
	assert_error("pid=1)", "character 6:", "the end");
	assert_error("pid~1", "character 4:", "~ is for text");
	assert_error("name<b", "character 5:", "has no order");
	assert_error("total_ns>3KiB", "character 10:", "a time such as");
	assert_error("smem_bytes>3ms", "character 12:", "a size such as");
	assert_error("listed_pct>3s", "character 12:", "a percentage such as");
	assert_error("calls>many", "character 7:", "a number such as");
	assert_error("calls>0x10", "character 7:", "a number such as");
	assert_error("calls>nan", "character 7:", "a number such as");
	assert_error("calls>1e30", "character 7:", "a number such as");
	assert_error("grid=8xx", "character 6:", "8x1x1");
	assert_error("grid=1x2x3x4", "character 6:", "8x1x1");
	assert_error("stream=zz", "character 8:", "a handle such as");
	assert_error("name='open", "character 6:", "quote is not closed");
	assert_error("pid=1 and calls>x or", "character 17:", "a number");
	assert_error("first_ns>n/a", "character 10:", "a time such as");
	assert_error("android=1", "character 1:", "no field 'android'");
}

static void test_bounds(void **state)
{
	struct filter *f = NULL;
	char text[FILTER_MAX_LENGTH + 64], err[1024];
	size_t depth = FILTER_MAX_DEPTH - 1;

	memset(text, '(', depth);
	memcpy(text + depth, "pid=123", 7);
	memset(text + depth + 7, ')', depth);
	text[2 * depth + 7] = '\0';
	assert_true(matches(text));
	memset(text, '(', sizeof(text) - 1);
	text[1000] = '\0';
	assert_error(text, "character 33:", "nested deeper");
	memset(text, ' ', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(filter_parse(&f, text, &view_launch, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "longer than"));
	/* The longest chain that fits. */
	text[0] = '\0';
	for (size_t used = 0; used + 12 < FILTER_MAX_LENGTH; used += 9)
		strcpy(text + used, "pid=0 or ");
	strcat(text, "pid=123");
	if (strlen(text) > FILTER_MAX_LENGTH)
		memmove(text, text + 9, strlen(text) - 8);
	assert_true(matches(text));
}

/* However small the buffer for the reason, nothing is written past it. */
static void test_small_error_buffer(void **state)
{
	for (size_t size = 1; size < 64; size++) {
		char err[64];
		struct filter *f = NULL;

		memset(err, '#', sizeof(err));
		assert_int_equal(filter_parse(&f, "speed>3", &view_launch, err, size), -EINVAL);
		for (size_t i = size; i < sizeof(err); i++)
			assert_int_equal(err[i], '#');
		assert_true(strnlen(err, size) < size);
	}
}

static void test_glob(void **state)
{
	static const struct {
		const char *pattern, *text;
		bool match;
	} cases[] = {
		{ "", "", true },	 { "", "a", false },	  { "*", "", true },
		{ "*", "abc", true },	 { "a*", "abc", true },	  { "*c", "abc", true },
		{ "a*c", "abc", true },	 { "a*c", "abcd", false }, { "?", "", false },
		{ "?", "a", true },	 { "a?c", "abc", true },  { "**b**", "abc", true },
		{ "*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false },
		{ "*ab*ab", "abxabyab", true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (filter_glob(cases[i].pattern, cases[i].text) != cases[i].match)
			fail_msg("'%s' against '%s'", cases[i].pattern, cases[i].text);
}

static void test_free_null(void **state)
{
	filter_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_comparisons),
		cmocka_unit_test(test_logic),
		cmocka_unit_test(test_large_ids_are_exact),
		cmocka_unit_test(test_errors_say_where),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_small_error_buffer),
		cmocka_unit_test(test_glob),
		cmocka_unit_test(test_free_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
