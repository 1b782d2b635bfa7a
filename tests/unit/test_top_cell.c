/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "top/cell.h"
#include "util/text.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct estimate between(double value, double low, double high)
{
	return (struct estimate){true, value, low, high};
}

/* Checks how an estimate reads in 20 columns. */
static void reads(enum cell_kind kind, struct estimate e, const char *utf8, const char *ascii)
{
	struct cell c = cell_estimate(kind, &e);
	char buf[64];

	assert_string_equal(cell_format(&c, 20, true, buf, sizeof(buf)), utf8);
	assert_string_equal(cell_format(&c, 20, false, buf, sizeof(buf)), ascii);
}

static void rates_say_how_far_off(void **state)
{
	reads(CELL_RATE, between(12345, 12345, 12345), "12.3k", "12.3k");
	reads(CELL_RATE, between(12345, 12000, 12700), "12.3k ±3 %", "12.3k +-3 %");
	/* The longer side counts. */
	reads(CELL_RATE, between(100, 50, 101), "100 ±50 %", "100 +-50 %");
	reads(CELL_RATE, between(1000, 995, 1005), "1.00k ±0.5 %", "1.00k +-0.5 %");
	/* Never as if it were exact. */
	reads(CELL_RATE, between(1000, 999.9, 1000), "1.00k ±0.1 %", "1.00k +-0.1 %");
	/* Far off: between which bounds. */
	reads(CELL_RATE, between(100, 20, 42100), "20–42.1k", "20-42.1k");
	reads(CELL_RATE, between(100, 1, 199), "100 ±99 %", "100 +-99 %");
	reads(CELL_BYTE_RATE, between(2048, 1024, 1048576), "1.00 KiB–1.00 MiB",
	      "1.00 KiB-1.00 MiB");
	reads(CELL_BYTE_RATE, between(2048, 0, 1048576), "≤1.00 MiB", "<=1.00 MiB");
	/* Nothing seen: what it may be at most. */
	reads(CELL_RATE, between(0, 0, 30), "≤30", "<=30");
	reads(CELL_RATE, between(1, 0, 500), "≤500", "<=500");
	reads(CELL_RATE, between(0, 0, 0), "0", "0");
	reads(CELL_BYTE_RATE, between(1.5 * 1048576, 1048576, 2 * 1048576), "1.50 MiB ±33 %",
	      "1.50 MiB +-33 %");
	reads(CELL_BYTE_RATE, between(0, 0, 2048), "≤2.00 KiB", "<=2.00 KiB");
}

static void bounds_that_do_not_fit(void **state)
{
	struct estimate e = between(2048, 1024, 1048576);
	struct cell c = cell_estimate(CELL_BYTE_RATE, &e);
	char buf[64];

	assert_string_equal(cell_format(&c, 17, true, buf, sizeof(buf)), "1.00 KiB–1.00 MiB");
	assert_string_equal(cell_format(&c, 16, true, buf, sizeof(buf)), "≤1.00 MiB");
}

static void shares_are_percent(void **state)
{
	reads(CELL_SHARE, between(0.61, 0.58, 0.64), "61 ±3", "61 +-3");
	reads(CELL_SHARE, between(0.613, 0.613, 0.613), "61", "61");
	reads(CELL_SHARE, between(0.0132, 0.0132, 0.0132), "1.3", "1.3");
	reads(CELL_SHARE, between(0.0132, 0.0112, 0.0152), "1.3 ±0.2", "1.3 +-0.2");
	reads(CELL_SHARE, between(0.05, 0, 0.17), "0–17", "0-17");
	reads(CELL_SHARE, between(0.05, 0.002, 0.17), "0.2–17", "0.2-17");
	reads(CELL_SHARE, between(0.99, 0.88, 1), "88–100", "88-100");
	reads(CELL_SHARE, between(0.98, 0.96, 1), "98 ±2", "98 +-2");
	reads(CELL_SHARE, between(0, 0, 1), "0–100", "0-100");
	reads(CELL_SHARE, between(0, 0, 0.03), "0–3.0", "0-3.0");
	reads(CELL_SHARE, between(1, 1, 1), "100", "100");
	reads(CELL_SHARE, between(0.3, 0.29999, 0.3), "30 ±0.1", "30 +-0.1");
}

static void what_is_not_known_is_no_zero(void **state)
{
	struct estimate unknown = {.known = false, .value = 5, .low = 5, .high = 5};
	struct cell c = cell_if_known(CELL_DURATION, -1);
	char buf[64];

	reads(CELL_RATE, unknown, "n/a", "n/a");
	reads(CELL_SHARE, between(0.5, NAN, INFINITY), "n/a", "n/a");
	assert_string_equal(cell_format(&c, 8, true, buf, sizeof(buf)), "n/a");
	c = cell_text("");
	assert_string_equal(cell_format(&c, 8, true, buf, sizeof(buf)), "-");
	c = cell_if_known(CELL_PERCENT, NAN);
	assert_string_equal(cell_format(&c, 8, true, buf, sizeof(buf)), "n/a");
}

static void durations(void **state)
{
	static const struct {
		double ns;
		const char *text;
	} cases[] = {
		{0, "0 ns"},	     {999, "999 ns"},	  {1000, "1.00 µs"},  {4213, "4.21 µs"},
		{42130, "42.1 µs"},  {999499, "999 µs"},  {999600, "1.00 ms"}, {3.1e6, "3.10 ms"},
		{1.5e9, "1.50 s"},   {999e9, "999 s"},	  {1200e9, "20.0 min"}, {7200e9, "120 min"},
		{86400e9, "24.0 h"}, {9.3e18, "107639 d"},
	};
	char buf[32];

	for (size_t i = 0; i < COUNT(cases); i++) {
		format_duration(cases[i].ns, true, buf, sizeof(buf));
		assert_string_equal(buf, cases[i].text);
		assert_true(text_width(buf) <= 8);
	}
	assert_string_equal(format_duration(4213, false, buf, sizeof(buf)), "4.21 us");
}

static void sizes(void **state)
{
	char buf[32];

	assert_string_equal(format_bytes(0, buf, sizeof(buf)), "0 B");
	assert_string_equal(format_bytes(1023, buf, sizeof(buf)), "1023 B");
	assert_string_equal(format_bytes(1024, buf, sizeof(buf)), "1.00 KiB");
	assert_string_equal(format_bytes(1023.9 * 1024, buf, sizeof(buf)), "1.00 MiB");
	assert_string_equal(format_bytes(80.0 * 1073741824, buf, sizeof(buf)), "80.0 GiB");
	assert_string_equal(format_short(999.4, buf, sizeof(buf)), "999");
	assert_string_equal(format_short(999.6, buf, sizeof(buf)), "1.00k");
	assert_string_equal(format_short(0.4, buf, sizeof(buf)), "0.40");
	assert_string_equal(format_short(6, buf, sizeof(buf)), "6");
	assert_string_equal(format_short(1.5e9, buf, sizeof(buf)), "1.50G");
}

static void a_number_is_not_cut(void **state)
{
	struct cell c = cell_value(CELL_NUMBER, 1234567);
	char buf[64];

	assert_string_equal(cell_format(&c, 7, true, buf, sizeof(buf)), "1234567");
	assert_string_equal(cell_format(&c, 6, true, buf, sizeof(buf)), "######");
	c = cell_value(CELL_COUNT, 1234567);
	assert_string_equal(cell_format(&c, 9, true, buf, sizeof(buf)), "1,234,567");
	c = cell_value(CELL_COUNT, 123456789);
	assert_string_equal(cell_format(&c, 9, true, buf, sizeof(buf)), "123M");
}

static void text_is_made_printable_and_cut(void **state)
{
	struct cell c = cell_text("\x1b[2Jclear");
	char buf[64];

	assert_string_equal(cell_format(&c, 20, true, buf, sizeof(buf)), "\\x1b[2Jclear");
	assert_string_equal(cell_format(&c, 6, true, buf, sizeof(buf)), "\\x1b[…");
	assert_string_equal(cell_format(&c, 6, false, buf, sizeof(buf)), "\\x1b[~");
}

static void compared(void **state)
{
	struct cell one = cell_value(CELL_RATE, 1), two = cell_value(CELL_RATE, 2);
	struct cell unknown = cell_if_known(CELL_RATE, -1);
	struct cell a = cell_text("alpha"), b = cell_text("Beta");

	assert_true(cell_compare(&one, &two) < 0);
	assert_true(cell_compare(&two, &one) > 0);
	assert_int_equal(cell_compare(&one, &one), 0);
	assert_true(cell_compare(&unknown, &one) < 0);
	assert_int_equal(cell_compare(&unknown, &unknown), 0);
	assert_true(cell_compare(&a, &b) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates_say_how_far_off),
		cmocka_unit_test(bounds_that_do_not_fit),
		cmocka_unit_test(shares_are_percent),
		cmocka_unit_test(what_is_not_known_is_no_zero),
		cmocka_unit_test(durations),
		cmocka_unit_test(sizes),
		cmocka_unit_test(a_number_is_not_cut),
		cmocka_unit_test(text_is_made_printable_and_cut),
		cmocka_unit_test(compared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
