// SPDX-License-Identifier: BSD-2-Clause
/* Arrays of every kind of order, sorted like qsort() sorts them, equal ones as they came. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>

struct one {
	int32_t key;
	uint32_t came; /* its place before */
};

static const char secret[] = "handed on";

static bool after(const struct one *a, const struct one *b, const void *ctx)
{
	assert_ptr_equal(ctx, secret);
	return a->key > b->key;
}

#define RUNS_SORT sort_ones
#define RUNS_TYPE struct one
#define RUNS_AFTER after
#include "util/runs.h"

#define RUNS_SORT sort_numbers
#define RUNS_TYPE int
#define RUNS_AFTER(a, b, ctx) (*(a) > *(b))
#include "util/runs.h"

enum shape { RANDOM, ASCENDING, DESCENDING, EQUAL, STREAMS, LATE, SAW, SHAPES };

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static int32_t key_at(enum shape shape, size_t i, size_t count, uint64_t *seed)
{
	int32_t at = (int32_t)i;

	switch (shape) {
	case RANDOM:
		return (int32_t)(random_next(seed) % (count / 2 + 1));
	case ASCENDING:
		return at;
	case DESCENDING:
		return -at;
	case EQUAL:
		return 7;
	case STREAMS: /* one behind the other, each over all of the time */
		return (int32_t)(i % (count / 5 + 1));
	case LATE: /* a few places back, now and then */
		return random_next(seed) % 50 ? at : at - 40;
	default: /* runs of every length */
		return (int32_t)(i % (1 + i / 7));
	}
}

static int in_order(const void *pa, const void *pb)
{
	const struct one *a = pa, *b = pb;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->came < b->came ? -1 : a->came > b->came;
}

static void check(enum shape shape, size_t count, uint64_t *seed)
{
	struct one *v = malloc((count + 1) * sizeof(*v)), *want = malloc((count + 1) * sizeof(*v));

	assert_non_null(v);
	assert_non_null(want);
	for (size_t i = 0; i < count; i++)
		v[i] = (struct one){ key_at(shape, i, count, seed), (uint32_t)i };
	v[count] = (struct one){ INT32_MIN, 42 }; /* behind the end: stays */
	memcpy(want, v, count * sizeof(*v));
	qsort(want, count, sizeof(*want), in_order);
	assert_int_equal(sort_ones(v, count, secret), 0);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(v[i].key, want[i].key);
		assert_int_equal(v[i].came, want[i].came);
	}
	assert_int_equal(v[count].came, 42);
	free(v);
	free(want);
}

static void test_every_length(void **state)
{
	uint64_t seed = 11;

	(void)state;
	for (int shape = 0; shape < SHAPES; shape++)
		for (size_t count = 0; count < 200; count++)
			check((enum shape)shape, count, &seed);
}

static void test_long_ones(void **state)
{
	uint64_t seed = 12;

	(void)state;
	for (int shape = 0; shape < SHAPES; shape++)
		for (size_t count = 1000; count < 60000; count = count * 3 + 1)
			check((enum shape)shape, count, &seed);
}

static void test_nothing(void **state)
{
	int two[] = { 2, 1 };

	(void)state;
	assert_int_equal(sort_numbers(NULL, 0, NULL), 0);
	assert_int_equal(sort_numbers(two, 1, NULL), 0);
	assert_int_equal(two[0], 2);
	assert_int_equal(sort_numbers(two, 2, NULL), 0);
	assert_int_equal(two[0], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_length),
		cmocka_unit_test(test_long_ones),
		cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
