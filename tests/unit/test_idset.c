// SPDX-License-Identifier: BSD-2-Clause
/* The set of ids against the simplest set there is: a bit an id. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "trace/idset.h"

#define IDS 3000

/* Ids are spread as process and thread numbers are: dense, and paired in halves. */
struct model {
	bool in[IDS];
	uint64_t id[IDS];
	size_t count;
};

static uint32_t random_next(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

static void model_init(struct model *m)
{
	memset(m, 0, sizeof(*m));
	for (uint64_t i = 0; i < IDS; i++) {
		if (i % 3 == 0)
			m->id[i] = i + 1;
		else if (i % 3 == 1)
			m->id[i] = (i / 30 + 1) << 32 | (i + 1);
		else
			m->id[i] = UINT64_MAX - (i << 20);
	}
}

static void expect_same(const struct idset *s, const struct model *m)
{
	size_t slots = 0;

	assert_int_equal(s->count, m->count);
	for (size_t i = 0; i < IDS; i++)
		if (idset_has(s, m->id[i]) != m->in[i])
			fail_msg("id %zu: the model says %d", i, m->in[i]);
	for (size_t i = 0; i < s->room; i++)
		slots += s->slots[i] != 0;
	assert_int_equal(slots, m->count);
	assert_true(s->room >= s->count * 2); /* so that a search always ends */
}

struct chance {
	uint64_t random;
	uint32_t percent;
	struct model *m;
	size_t asked;
};

/* Decides by the id's number, so that the model can follow. */
static bool by_chance(uint64_t id, void *ctx)
{
	struct chance *c = ctx;
	size_t i = 0;

	c->asked++;
	while (i < IDS && c->m->id[i] != id)
		i++;
	if (i == IDS)
		fail_msg("asked about what was never added");
	assert_true(c->m->in[i]);
	if (random_next(&c->random) % 100 >= c->percent)
		return false;
	c->m->in[i] = false;
	c->m->count--;
	return true;
}

static void add_some(struct idset *s, struct model *m, uint64_t *random, size_t n)
{
	while (n--) {
		size_t i = random_next(random) % IDS;

		assert_int_equal(idset_add(s, m->id[i]), !m->in[i]);
		m->count += !m->in[i];
		m->in[i] = true;
	}
}

static void random_adds_and_removes(void **state)
{
	static const uint32_t percents[] = {0, 1, 30, 70, 99, 100};
	static struct model m;

	for (uint64_t seed = 1; seed <= 8; seed++) {
		struct idset s = {0};
		uint64_t random = seed;

		model_init(&m);
		for (int round = 0; round < 6; round++) {
			struct chance c = {.random = seed, .percent = percents[round], .m = &m};
			size_t before, removed;

			add_some(&s, &m, &random, random_next(&random) % 900);
			expect_same(&s, &m);
			before = m.count;
			removed = idset_remove_if(&s, by_chance, &c);
			assert_int_equal(c.asked, before);
			assert_int_equal(removed, before - m.count);
			expect_same(&s, &m);
		}
		assert_int_equal(s.count, 0);
		idset_free(&s);
	}
}

/* One removal in the middle of a chain must not hide what is behind it. */
static bool is_id(uint64_t id, void *ctx)
{
	return id == *(uint64_t *)ctx;
}

static void each_alone_out_of_a_full_set(void **state)
{
	struct idset s = {0};

	for (uint64_t id = 1; id <= 128; id++)
		assert_int_equal(idset_add(&s, id << 32 | id), 1);
	for (uint64_t id = 1; id <= 128; id++) {
		uint64_t gone = id << 32 | id;

		assert_int_equal(idset_remove_if(&s, is_id, &gone), 1);
		assert_int_equal(idset_remove_if(&s, is_id, &gone), 0);
		for (uint64_t other = 1; other <= 128; other++)
			assert_int_equal(idset_has(&s, other << 32 | other), other > id);
	}
	idset_free(&s);
}

static void an_empty_set(void **state)
{
	struct idset s = {0};
	uint64_t id = 1;

	assert_false(idset_has(&s, 1));
	assert_int_equal(idset_remove_if(&s, is_id, &id), 0);
	idset_free(&s);
	idset_free(&s);
	assert_int_equal(idset_add(&s, UINT64_MAX), 1);
	assert_true(idset_has(&s, UINT64_MAX));
	assert_false(idset_has(&s, 1));
	idset_free(&s);
	assert_false(idset_has(&s, UINT64_MAX));
}

/* Processes that come and go for days: room follows those alive, not those seen. */
static void room_does_not_grow_for_ever(void **state)
{
	struct idset s = {0};

	for (uint64_t id = 1; id <= 20000; id++) {
		assert_int_equal(idset_add(&s, id), 1);
		assert_int_equal(idset_remove_if(&s, is_id, &id), 1);
	}
	assert_int_equal(s.count, 0);
	assert_true(s.room <= 256);
	idset_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_adds_and_removes),
		cmocka_unit_test(each_alone_out_of_a_full_set),
		cmocka_unit_test(an_empty_set),
		cmocka_unit_test(room_does_not_grow_for_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
