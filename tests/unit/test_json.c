/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "util/json.h"

static char *printed;
static size_t printed_size;

static struct json begin(void)
{
	struct json j;

	json_init(&j, open_memstream(&printed, &printed_size));
	assert_non_null(j.out);
	return j;
}

static void expect(struct json *j, const char *expected)
{
	fclose(j->out);
	assert_string_equal(printed, expected);
	free(printed);
	printed = NULL;
}

static void nesting_and_commas(void **state)
{
	struct json j = begin();

	json_begin_object(&j);
	json_key(&j, "a");
	json_int(&j, -1);
	json_key(&j, "b");
	json_begin_array(&j);
	json_uint(&j, UINT64_MAX);
	json_bool(&j, true);
	json_begin_object(&j);
	json_end_object(&j);
	json_begin_array(&j);
	json_end_array(&j);
	json_null(&j);
	json_end_array(&j);
	json_key(&j, "c");
	json_bool(&j, false);
	json_end_object(&j);
	expect(&j, "{\"a\":-1,\"b\":[18446744073709551615,true,{},[],null],\"c\":false}");
}

/* Whatever is quick about it, numbers are those of printf(). */
static void numbers_as_printf(void **state)
{
	const double odd[] = {0, -0.0, 0.5, 1.5, 2.5, -0.5, 0.125, 0.375, -0.0001, 0.0005, 999.9995,
			      1e12, 1e15, 1.7e308, 5e-324, 9007199254740993.0, 0.9999999};
	uint64_t random = 88172645463325252ULL;
	char expected[512];
	size_t i;

	for (i = 0; i < 20000; i++) {
		struct json j = begin();
		int decimals = (int)(i % 8);
		double v;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		v = (double)(int64_t)random / ldexp(1, (int)(random % 80));
		if (i / 8 < sizeof(odd) / sizeof(*odd))
			v = odd[i / 8];
		json_begin_array(&j);
		json_double(&j, v, decimals);
		json_uint(&j, random >> random % 64);
		json_int(&j, (int64_t)random >> random % 64);
		json_end_array(&j);
		snprintf(expected, sizeof(expected), "[%.*f,%" PRIu64 ",%" PRId64 "]", decimals, v,
			 random >> random % 64, (int64_t)random >> random % 64);
		expect(&j, expected);
	}
}

static void numbers(void **state)
{
	struct json j = begin();

	json_begin_array(&j);
	json_int(&j, INT64_MIN);
	json_double(&j, 1.0 / 3, 3);
	json_double(&j, NAN, 3);
	json_double(&j, -INFINITY, 3);
	json_double(&j, 2, 0);
	json_end_array(&j);
	expect(&j, "[-9223372036854775808,0.333,null,null,2]");
}

static void escapes(const char *in, size_t len, const char *expected)
{
	struct json j = begin();

	json_string_n(&j, in, len);
	expect(&j, expected);
}

static void strings(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"", "\"\""},
		{"a\"b\\c/d", "\"a\\\"b\\\\c/d\""},
		{"\n\r\t\b\f\x01\x1f\x7f", "\"\\n\\r\\t\\u0008\\u000c\\u0001\\u001f\\u007f\""},
		{"\x1b]0;title\x07", "\"\\u001b]0;title\\u0007\""},
		{"gr\xc3\xbc\xc3\x9f \xe4\xb8\xad \xf0\x9f\x98\x80",
		 "\"gr\xc3\xbc\xc3\x9f \xe4\xb8\xad \xf0\x9f\x98\x80\""},
		{"\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xa7", "\"\\u2028\\u2029\xe2\x80\xa7\""},
		{"a\xff" "b", "\"a\\ufffdb\""},			/* never a byte of UTF-8 */
		{"\xc0\xaf", "\"\\ufffd\\ufffd\""},		/* overlong */
		{"\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""},	/* a surrogate */
		{"\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""}, /* above U+10FFFF */
		{"\xe4\xb8", "\"\\ufffd\\ufffd\""},		/* cut at the end */
		{"\xe4" "x", "\"\\ufffdx\""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		escapes(cases[i].in, strlen(cases[i].in), cases[i].out);
}

static void a_nul_is_a_control_byte(void **state)
{
	escapes("a\0b", 3, "\"a\\u0000b\"");
}

static void null_string_is_null(void **state)
{
	struct json j = begin();

	json_string(&j, NULL);
	expect(&j, "null");
}

static void keys_are_escaped_too(void **state)
{
	struct json j = begin();

	json_begin_object(&j);
	json_key(&j, "a\"\xff");
	json_int(&j, 1);
	json_end_object(&j);
	expect(&j, "{\"a\\\"\\ufffd\":1}");
}

/* Longer than the buffer at each place it can be cut, and whole once the last bracket is. */
static void longer_than_the_buffer(void **state)
{
	for (size_t len = JSON_BUFFER - 12; len < 2 * JSON_BUFFER + 12; len++) {
		char *in = malloc(len + 1), *expected = malloc(len + 64);
		struct json j = begin();

		assert_non_null(in);
		assert_non_null(expected);
		memset(in, 'x', len);
		in[len] = '\0';
		snprintf(expected, len + 64, "[\"%s\",{\"k\":-12.50}]\n0\n", in);
		json_begin_array(&j);
		json_string(&j, in);
		json_begin_object(&j);
		json_key(&j, "k");
		json_double(&j, -12.5, 2);
		json_end_object(&j);
		json_end_array(&j);
		putc('\n', j.out);
		json_init(&j, j.out);
		json_uint(&j, 0);
		putc('\n', j.out);
		expect(&j, expected);
		free(in);
		free(expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nesting_and_commas), cmocka_unit_test(numbers),
		cmocka_unit_test(numbers_as_printf),
		cmocka_unit_test(strings),	      cmocka_unit_test(a_nul_is_a_control_byte),
		cmocka_unit_test(null_string_is_null), cmocka_unit_test(keys_are_escaped_too),
		cmocka_unit_test(longer_than_the_buffer),
	};

	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
