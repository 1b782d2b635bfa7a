/* SPDX-License-Identifier: BSD-2-Clause */
/* util/beside.h and util/near.h: work in a second thread, and searches from a guess. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "util/beside.h"
#include "util/near.h"

static int add_one(void *number)
{
	++*(int *)number;
	return -ENOENT;
}

static void test_done_once_in_a_thread_or_without(void **state)
{
	for (int worth = 0; worth < 2; worth++) {
		struct beside b = {0};
		int number = 0;

		assert_int_equal(beside_end(&b), 0);
		beside_begin(&b, add_one, &number, worth);
		assert_int_equal(beside_end(&b), -ENOENT);
		assert_int_equal(beside_end(&b), -ENOENT);
		assert_int_equal(number, 1);
	}
}

static size_t first_from(const int64_t *values, size_t count, int64_t least)
{
	size_t i = 0;

	while (i < count && values[i] < least)
		i++;
	return i;
}

static void test_found_from_any_guess(void **state)
{
	const int64_t values[] = {1, 3, 3, 3, 7, 8, 20, 20, 21};

	for (size_t count = 0; count <= sizeof(values) / sizeof(*values); count++)
		for (int64_t least = 0; least < 23; least++)
			for (size_t guess = 0; guess < 12; guess++)
				assert_int_equal(near_find(values, sizeof(*values), count, least,
							   guess),
						 first_from(values, count, least));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_done_once_in_a_thread_or_without),
		cmocka_unit_test(test_found_from_any_guess),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
