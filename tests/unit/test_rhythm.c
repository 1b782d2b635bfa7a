// SPDX-License-Identifier: BSD-2-Clause
/* Distances that come again after several, and those that only vary. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/rhythm.h"

#define MOST 600

struct song {
	uint32_t distance[MOST];
	size_t count;
};

static void add(struct song *s, const uint32_t *distances, size_t count, unsigned times)
{
	while (times--)
		for (size_t i = 0; i < count; i++) {
			assert_in_range(s->count, 0, MOST - 1);
			s->distance[s->count++] = distances[i];
		}
}

#define ADD(song, times, ...) \
	add(song, (const uint32_t[]){ __VA_ARGS__ }, \
	    sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t), times)

/* Both passes; the length of the rhythm, 0: none. 1000 ns pass before each distance of longest. */
static uint32_t listen(const struct song *s, uint32_t slack, uint32_t longest, struct rhythm *r)
{
	rhythm_start(r, slack);
	for (size_t i = 0; i < s->count; i++)
		rhythm_hear(r, s->distance[i]);
	if (!rhythm_length(r))
		return 0;
	rhythm_rewind(r);
	for (size_t i = 0; i < s->count; i++)
		rhythm_learn(r, s->distance[i], s->distance[i] == longest ? 1000 : 10);
	return rhythm_holds(r) ? r->length : 0;
}

static void by_turns(void **state)
{
	struct song two = { .count = 0 }, three = two, eight = two;
	struct rhythm r;

	ADD(&two, 20, 70, 262);
	assert_int_equal(listen(&two, 0, 0, &r), 2);
	assert_int_equal(rhythm_period(&r), 332);
	assert_true(rhythm_regularity(&r) == 1);
	ADD(&three, 20, 90, 5, 40);
	assert_int_equal(listen(&three, 0, 0, &r), 3);
	assert_int_equal(rhythm_period(&r), 135);
	ADD(&eight, 20, 50, 50, 50, 50, 50, 50, 50, 70);
	assert_int_equal(listen(&eight, 0, 0, &r), 8);
	assert_int_equal(rhythm_period(&r), 420);
}

static void none(void **state)
{
	struct song steady = { .count = 0 }, drift = steady, runs = steady, nine = steady;
	struct rhythm r;

	ADD(&steady, 100, 50);
	assert_int_equal(listen(&steady, 0, 0, &r), 0);
	for (uint32_t i = 0; i < 300; i++)
		ADD(&drift, 1, 100 + i);
	assert_int_equal(listen(&drift, 0, 0, &r), 0);
	ADD(&runs, 60, 20);
	ADD(&runs, 60, 30);
	ADD(&runs, 60, 40);
	assert_int_equal(listen(&runs, 0, 0, &r), 0);
	ADD(&nine, 20, 1, 2, 3, 4, 5, 6, 7, 8, 90);
	assert_int_equal(listen(&nine, 0, 0, &r), 0);
}

/* The fewest times it must have come: 12 comparisons, 4 repetitions. */
static void too_few(void **state)
{
	struct song two = { .count = 0 }, eight = two;
	struct rhythm r;

	ADD(&two, 6, 70, 262);
	ADD(&two, 1, 70);
	assert_int_equal(listen(&two, 0, 0, &r), 0);
	ADD(&two, 1, 262);
	assert_int_equal(listen(&two, 0, 0, &r), 2);
	ADD(&eight, 3, 1, 2, 3, 4, 5, 6, 7, 8);
	ADD(&eight, 1, 1, 2, 3, 4, 5, 6, 7);
	assert_int_equal(listen(&eight, 0, 0, &r), 0);
	ADD(&eight, 1, 8);
	assert_int_equal(listen(&eight, 0, 0, &r), 8);
}

/* One call more between two that lie close together is noise if they rarely do. */
static void noise(void **state)
{
	struct song s = { .count = 0 };
	struct rhythm r;

	ADD(&s, 20, 296, 4, 296, 5);
	assert_int_equal(listen(&s, 3, 0, &r), 2);
	assert_int_equal(listen(&s, 0, 0, &r), 4);
}

/* What it was at first is outvoted. */
static void bad_start(void **state)
{
	struct song s = { .count = 0 };
	struct rhythm r;

	ADD(&s, 3, 30, 400);
	ADD(&s, 60, 70, 262);
	assert_int_equal(listen(&s, 0, 0, &r), 2);
	assert_int_equal(rhythm_period(&r), 332);
}

/* Nine in ten are the one eight before, and yet few of the repetitions are whole. */
static void in_pieces(void **state)
{
	static const uint32_t usual[] = { 10, 20, 30, 40, 50, 60, 70, 80 };
	struct song s = { .count = 0 };
	struct rhythm r;

	for (size_t i = 0; i < 460; i++)
		ADD(&s, 1, i % 23 == 22 ? 500 : usual[i % 8]);
	assert_int_equal(listen(&s, 0, 0, &r), 0);
	assert_int_equal(r.length, 8);
	assert_true(rhythm_regularity(&r) > RHYTHM_REGULAR);
}

/* Turns for a while do not make the rest of it turns. */
static void mostly_steady(void **state)
{
	struct song s = { .count = 0 };
	struct rhythm r;

	ADD(&s, 100, 50);
	ADD(&s, 9, 50, 70);
	assert_int_equal(listen(&s, 0, 0, &r), 0);
	assert_int_equal(r.length, 2);
}

static void begins(void **state)
{
	struct song s = { .count = 0 };
	struct rhythm r;
	double pause;
	uint32_t from;

	ADD(&s, 1, 70);
	ADD(&s, 20, 90, 262, 70);
	assert_int_equal(listen(&s, 0, 262, &r), 3);
	from = rhythm_begin(&r, &pause);
	assert_int_equal(r.usual[from], 262);
	assert_true(pause == 1000);
	assert_true(rhythm_ends(&r, (from + 2) % 3)); /* the last were 90, 262 and 70 */
	assert_false(rhythm_ends(&r, from));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_turns),	 cmocka_unit_test(none),
		cmocka_unit_test(too_few),	 cmocka_unit_test(noise),
		cmocka_unit_test(bad_start),	 cmocka_unit_test(in_pieces),
		cmocka_unit_test(mostly_steady), cmocka_unit_test(begins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
