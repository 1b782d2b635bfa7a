/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "util/nearest.h"
#include "util/text.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void printable(void **state)
{
	static const struct {
		const char *in, *out;
		size_t columns;
	} cases[] = {
		{"plain", "plain", 0},
		{"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f", 0},
		{"\x1b[2J", "\\x1b[2J", 0},
		{"a\nb\tc\x7f", "a\\x0ab\\x09c\\x7f", 0},
		{"\xc2\x9b" "2J", "\\xc2\\x9b2J", 0},	       /* CSI as a C1 control */
		{"\xe2\x80\xae" "fdp", "\\xe2\\x80\\xaefdp", 0}, /* right-to-left override */
		{"\xe2\x81\xa6", "\\xe2\\x81\\xa6", 0},	       /* isolate */
		{"\xff\xfe", "\\xff\\xfe", 0},
		{"abcdef", "abc…", 4},
		{"abcd", "abcd", 4},
		{"\xe4\xb8\xad\xe4\xb8\xad", "\xe4\xb8\xad…", 3}, /* two columns each */
		{"ab\x01", "ab…", 5},
		{"", "", 3},
	};
	char buf[64];

	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_ptr_equal(text_printable(cases[i].in, buf, sizeof(buf), cases[i].columns),
				 buf);
		assert_string_equal(buf, cases[i].out);
	}
}

static void printable_fits_any_buffer(void **state)
{
	const char *in = "ab\x1b\xe4\xb8\xad\xff long enough to be cut somewhere";

	for (size_t size = 1; size < 60; size++) {
		char *buf = malloc(size);

		assert_non_null(buf);
		text_printable(in, buf, size, 0);
		assert_true(strlen(buf) < size);
		free(buf);
	}
}

static void printable_is_whole_characters_when_cut(void **state)
{
	char buf[16];

	text_printable("\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad",
		       buf, sizeof(buf), 0);
	assert_string_equal(buf, "\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad…");
}

static void width(void **state)
{
	assert_int_equal(text_width(""), 0);
	assert_int_equal(text_width("µs"), 2);
	assert_int_equal(text_width("\xe4\xb8\xad"), 2);
	assert_int_equal(text_width("e\xcc\x81"), 1);
	assert_int_equal(text_width("\xf0\x9f\x98\x80"), 2);
	assert_int_equal(text_width("\xff"), 1);
}

static void utf8_length(void **state)
{
	static const struct {
		const char *in;
		size_t len, expected;
	} cases[] = {
		{"a", 1, 1},		    {"", 0, 0},
		{"\xc3\xbc", 2, 2},	    {"\xc3\xbc", 1, 0},
		{"\x80", 1, 0},		    {"\xc1\xbf", 2, 0},
		{"\xe0\x9f\xbf", 3, 0},	    {"\xe0\xa0\x80", 3, 3},
		{"\xed\x9f\xbf", 3, 3},	    {"\xed\xa0\x80", 3, 0},
		{"\xf0\x8f\xbf\xbf", 4, 0}, {"\xf0\x90\x80\x80", 4, 4},
		{"\xf4\x8f\xbf\xbf", 4, 4}, {"\xf4\x90\x80\x80", 4, 0},
		{"\xf5\x80\x80\x80", 4, 0}, {"\xc3\x28", 2, 0},
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(text_utf8_length(cases[i].in, cases[i].len), cases[i].expected);
}

static void csv(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"plain name", "plain name"},	{"a,b", "\"a,b\""},
		{"say \"hi\"", "\"say \"\"hi\"\"\""}, {"two\nlines", "\"two\nlines\""},
		{"=1+1", "=1+1"},		{"", ""},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		char *printed;
		size_t size;
		FILE *out = open_memstream(&printed, &size);

		text_csv(out, cases[i].in);
		fclose(out);
		assert_string_equal(printed, cases[i].out);
		free(printed);
	}
}

static void duration(void **state)
{
	static const struct {
		int64_t ns;
		const char *out;
	} cases[] = {
		{0, "0 ns"},		       {999, "999 ns"},
		{1000, "1.000 µs"},	       {1234567, "1.235 ms"},
		{999999, "999.999 µs"},	       {999999499, "999.999 ms"},
		{999999500, "1.000 s"},	       {61000000000, "61.000 s"},
		{-1500, "-1.500 µs"},	       {INT64_MIN, "-9223372036.855 s"},
		{INT64_MAX, "9223372036.855 s"},
	};
	char buf[32];

	for (size_t i = 0; i < COUNT(cases); i++)
		assert_string_equal(text_duration(cases[i].ns, buf, sizeof(buf)), cases[i].out);
}

static void bytes_and_counts(void **state)
{
	char buf[40];

	assert_string_equal(text_bytes(0, buf, sizeof(buf)), "0 B");
	assert_string_equal(text_bytes(1023, buf, sizeof(buf)), "1023 B");
	assert_string_equal(text_bytes(1536, buf, sizeof(buf)), "1.5 KiB");
	assert_string_equal(text_bytes(1048575, buf, sizeof(buf)), "1.0 MiB");
	assert_string_equal(text_bytes(UINT64_MAX, buf, sizeof(buf)), "16.0 EiB");
	assert_string_equal(text_count(0, buf, sizeof(buf)), "0");
	assert_string_equal(text_count(999, buf, sizeof(buf)), "999");
	assert_string_equal(text_count(1234567, buf, sizeof(buf)), "1,234,567");
	assert_string_equal(text_count(UINT64_MAX, buf, sizeof(buf)), "18,446,744,073,709,551,615");
}

static void demangle(void **state)
{
	static const struct {
		const char *mangled, *demangled, *base;
	} cases[] = {
		{"_Z9vectorAddPKfS0_Pfi", "vectorAdd(float const*, float const*, float*, int)",
		 "vectorAdd"},
		{"_ZN2at6native13reduce_kernelILi512ELi1EEEvi",
		 "void at::native::reduce_kernel<512, 1>(int)", "reduce_kernel"},
		{"_ZN12_GLOBAL__N_11fEv", "(anonymous namespace)::f()", "f"},
		{"_ZNK1AclEv", "A::operator()() const", "operator()"},
		{"_ZlsR1AS0_", "operator<<(A&, A&)", "operator<<"},
		{"_ZNK1AcvbEv", "A::operator bool() const", "operator bool"},
		{"_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()() const", "operator()"},
		{"triton_poi_fused_add_0", "triton_poi_fused_add_0", "triton_poi_fused_add_0"},
		{"_Znotmangled", "_Znotmangled", "_Znotmangled"},
		{"", "", ""},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		char *name = text_demangle(cases[i].mangled);
		char *base = text_short_name(name);

		assert_string_equal(name, cases[i].demangled);
		assert_string_equal(base, cases[i].base);
		free(name);
		free(base);
	}
}

static void short_names_of_odd_text(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"decltype ((a)+(b)) ns::add<A, B>(A, B)", "add"},
		{"void f<(E)1>()", "f"},
		{"std::function<void (int)> g()", "g"},
		{"void call<int (*)(int), &f>(int)", "call"},
		{"bool operator< <int>(A<int>)", "operator<"},
		{"a(b", "a"},
		{"<", "<"},
		{")", ")"},
		{"x->y", "x->y"},
		{"two words", "words"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		char *base = text_short_name(cases[i].in);

		assert_string_equal(base, cases[i].out);
		free(base);
	}
}

/* f<A, F<A, A>, …> whose every argument is made of the one before, twice. */
static void make_bomb(char *bomb, size_t size, int steps)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t len = (size_t)snprintf(bomb, size, "_Z1fI1A1FIS0_S0_E");

	for (int i = 0; i < steps; i++)
		len += (size_t)snprintf(bomb + len, size - len, "S1_IS%c_S%c_E", digits[i + 1],
					digits[i + 1]);
	snprintf(bomb + len, size - len, "Evv");
}

/* A few hundred bytes that ask for megabytes, and for gigabytes soon after. */
static void a_demangler_bomb_comes_back_as_it_is(void **state)
{
	char bomb[1000], *name;

	make_bomb(bomb, sizeof(bomb), 2);
	name = text_demangle(bomb);
	assert_string_equal(name, "void f<A, F<A, A>, F<F, F>, F<F<A, A>, F<A, A> > >()");
	free(name);

	make_bomb(bomb, sizeof(bomb), 33);
	name = text_demangle(bomb);
	assert_string_equal(name, bomb);
	free(name);
}

static void short_names_of_what_does_not_demangle(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"_ZN2at6native13reduce_kernelI!", "reduce_kernel"},
		{"_Z6plain!", "plain!"},
		{"_Z5plain!", "plain"},
		{"_ZNK1A1BE!", "B"},
		{"_ZNL1A1bE!", "b"},
		{"_Z99short", "_Z99short"},
		{"_Z99999999999999999999999x", "_Z99999999999999999999999x"},
		{"_Z0x", "_Z0x"},
		{"_Z", "_Z"},
		{"_ZN", "_ZN"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		char *base = text_short_name(cases[i].in);

		assert_string_equal(base, cases[i].out);
		free(base);
	}
}

static void names_of_any_length(void **state)
{
	static const size_t lengths[] = {100, 1000, 4000, 8191, 8192, 8193, 100000};
	static char mangled[100040];

	for (size_t i = 0; i < COUNT(lengths); i++) {
		size_t n = lengths[i];
		size_t at = (size_t)snprintf(mangled, sizeof(mangled), "_Z%zu", n);
		char *name;

		memset(mangled + at, 'x', n);
		memcpy(mangled + at + n, "v", 2);
		name = text_demangle(mangled);
		assert_non_null(name);
		/* libstdc++ takes names of up to 1023 bytes. */
		if (at + n + 1 <= 1023)
			assert_int_equal(strlen(name), n + 2);
		else
			assert_string_equal(name, mangled);
		free(name);
	}
}

static const char *suggest(const char *word)
{
	static const char *const known[] = {"trace", "report", "doctor", "list", "duration"};
	struct nearest n;

	nearest_init(&n, word);
	for (size_t i = 0; i < COUNT(known); i++)
		nearest_offer(&n, known[i]);
	return n.best;
}

static void nearest_word(void **state)
{
	assert_string_equal(suggest("rport"), "report");
	assert_string_equal(suggest("tarce"), "trace");
	assert_string_equal(suggest("duratoin"), "duration");
	assert_string_equal(suggest("lst"), "list");
	assert_string_equal(suggest("dur"), "duration");
	assert_null(suggest("xyzzy"));
	assert_null(suggest(""));
	assert_null(suggest("q"));
	assert_null(suggest("a-word-that-is-much-longer-than-any-that-anyone-would-compare"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(printable),
		cmocka_unit_test(printable_fits_any_buffer),
		cmocka_unit_test(printable_is_whole_characters_when_cut),
		cmocka_unit_test(width),
		cmocka_unit_test(utf8_length),
		cmocka_unit_test(csv),
		cmocka_unit_test(duration),
		cmocka_unit_test(bytes_and_counts),
		cmocka_unit_test(demangle),
		cmocka_unit_test(short_names_of_odd_text),
		cmocka_unit_test(a_demangler_bomb_comes_back_as_it_is),
		cmocka_unit_test(short_names_of_what_does_not_demangle),
		cmocka_unit_test(names_of_any_length),
		cmocka_unit_test(nearest_word),
	};

	return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
