// SPDX-License-Identifier: BSD-2-Clause
/* Steps that differ from each other by turns, and what only looks like it. */
#include "steps_script.h"

#ifdef QUICK_TESTS /* the quick tests' build */
#define SEEDS 2
#define EACH 3
#else
#define SEEDS 8
#define EACH 1
#endif

static unsigned below(uint64_t *random, unsigned most)
{
	*random = *random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(*random >> 40) % most;
}

/* 4 layers of 4 kernels, of which one comes every second time, as in small networks. */
static void forward(struct script *j)
{
	for (unsigned l = 0; l < 4; l++) {
		kernel(j, 1 + l);
		kernel(j, 0);
		kernel(j, 5 + l);
		kernel(j, 0);
	}
}

/* Forward, loss, backward, optimizer: 16 + 1 + 40 + 3. */
static void train(struct script *j, int passes)
{
	while (passes--)
		forward(j);
	kernel(j, 50);
	for (unsigned k = 0; k < 40; k++)
		kernel(j, k % 2 ? 0 : 100 + k);
	for (unsigned k = 0; k < 3; k++)
		kernel(j, OPTIMIZER + k);
}

static void expect(const struct steps *v, size_t steps, int64_t length)
{
	assert_in_range(v->count - 1, steps - 1, steps + 1);
	assert_in_range(v->length, length - length / 100, length + length / 100);
	assert_in_range(v->shortest, length - length / 100, length + length / 100);
	assert_in_range(v->longest, length - length / 100, length + length / 100);
	assert_true(v->confidence > 0.9);
}

/* Twelve more forward passes every second step, and no kernel of their own. */
static void every_second_step(void **state)
{
	int64_t period = 0, from;
	struct script j;
	struct steps v;

	begin(&j);
	for (int i = 0; i < 200; i++) {
		from = j.now;
		train(&j, 1);
		train(&j, 13);
		period = j.now - from;
	}
	find(&j, &v);
	expect(&v, 200, period);
	assert_int_equal(v.calls, 312);
	end(&j, &v);
}

/* The token before which most time passes comes twice a step: it begins at the right one. */
static void where_they_begin(void **state)
{
	int64_t expected[50];
	struct script j;
	struct steps v;

	begin(&j);
	layers(&j, 1); /* it was in the middle of one */
	kernel(&j, 50);
	for (int i = 0; i < 50; i++) {
		j.now += 700 * US;
		expected[i] = j.now;
		layers(&j, 3);
		kernel(&j, 50);
		j.now += 200 * US;
		layers(&j, 1);
		kernel(&j, 50);
	}
	find(&j, &v);
	assert_in_range(v.count, 48, 50);
	for (size_t i = 0; i < v.count; i++)
		assert_int_equal(v.begins[i], expected[i + 50 - v.count]);
	assert_int_equal(j.f.s->calls[v.anchor].begin, v.begins[0]);
	end(&j, &v);
}

/* Three kinds of steps by turns; once in twenty periods the last is left out. */
static void three_by_turns(void **state)
{
	struct script j;
	struct steps v;
	int64_t from, period = 0;

	begin(&j);
	for (int i = 0; i < 120; i++) {
		from = j.now;
		for (int k = 1; k <= 3 - (i % 20 == 10); k++)
			train(&j, 2 * k);
		if (i % 20 != 10)
			period = j.now - from;
	}
	find(&j, &v);
	assert_in_range(v.count - 1, 119, 121);
	assert_int_equal(v.length, period);
	assert_int_equal(v.longest, period);
	assert_true(v.shortest < period);
	assert_int_equal(v.calls, 3 * 44 + 12 * 16);
	end(&j, &v);
}

/* Two periods in a row are longer than the others: still they are two. */
static void longer_ones(void **state)
{
	int64_t from, period = 0;
	struct script j;
	struct steps v;

	begin(&j);
	for (int i = 0; i < 120; i++) {
		from = j.now;
		train(&j, 1);
		train(&j, 13);
		if (i % 20 == 10 || i % 20 == 11)
			layers(&j, 8);
		else
			period = j.now - from;
	}
	find(&j, &v);
	assert_in_range(v.count - 1, 119, 121);
	assert_int_equal(v.length, period);
	assert_in_range(v.longest, period + 1, period + 48 * 10 * US);
	end(&j, &v);
}

/* Micro-batches are what repeats; the optimizer has one kernel, or none of its own. */
static void accumulation_of(int batches, bool own)
{
	int64_t from, period = 0;
	struct script j;
	struct steps v;

	begin(&j);
	for (int i = 0; i < 30; i++) {
		from = j.now;
		for (int micro = 0; micro < batches; micro++) {
			layers(&j, 8);
			kernel(&j, 50);
		}
		if (own)
			kernel(&j, OPTIMIZER);
		layers(&j, 3);
		period = j.now - from;
	}
	find(&j, &v);
	expect(&v, 30, period);
	end(&j, &v);
}

static void accumulation(void **state)
{
	accumulation_of(4, true);
	accumulation_of(4, false);
	accumulation_of(8, true);
	accumulation_of(8, false);
}

/* Windows cut the pattern anywhere: after each the steps are found again where they begin. */
static void turns_in_windows(void **state)
{
	struct script j;
	struct steps v;
	int64_t period = 0;
	int done = 0;

	begin(&j);
	for (int w = 0; w < 6; w++) {
		int64_t from = j.now;

		for (int i = 0; i < 9; i++, done++) {
			layers(&j, done % 2 ? 2 : 6);
			kernel(&j, OPTIMIZER);
			sync(&j, done % 2 ? 300 * US : 100 * US);
		}
		feed_window(&j.f, from, j.now - 1);
		j.now += 50000 * US;
	}
	feed_finish(&j.f);
	period = (8 * 6 + 2) * 10 * US + 410 * US;
	assert_int_equal(steps_find(j.f.s, 0, &v), 0);
	assert_in_range(steps_whole(&v), 6 * 3, 6 * 4);
	assert_int_equal(v.length, period);
	assert_int_equal(v.shortest, period);
	assert_int_equal(v.longest, period);
	end(&j, &v);
}

/* What it logs once in a thousand calls makes no step, though its wait is also one of others. */
static void logging(void **state)
{
	struct script j;
	struct steps v;

	for (int every = 3; every <= 12; every += EACH) {
		begin(&j);
		for (int i = 0; i < 120; i++) {
			layers(&j, 48);
			for (unsigned k = 0; k < 100; k++)
				kernel(&j, 100 + k);
			sync(&j, 100 * US); /* reads the loss */
			kernel(&j, OPTIMIZER);
			if (i % every == 0)
				sync(&j, 100 * US);
			kernel(&j, OPTIMIZER + 1);
			kernel(&j, OPTIMIZER);
		}
		find(&j, &v);
		assert_in_range(v.count, 119, 120);
		assert_in_range(v.length, 391 * 10 * US + 105 * US, 391 * 10 * US + 210 * US);
		end(&j, &v);
	}
}

/* A loop within a loop, each as often as count() says. */
static void loops(unsigned least, unsigned most, uint64_t seed)
{
	struct script j;
	struct steps v;

	begin(&j);
	for (int i = 0; i < 400; i++) {
		unsigned times = least + below(&seed, most - least + 1);

		kernel(&j, 50);
		for (unsigned k = 0; k < times; k++) {
			kernel(&j, 1);
			kernel(&j, 2);
		}
		kernel(&j, 51);
	}
	find(&j, &v);
	assert_int_equal(v.count, 0);
	end(&j, &v);
}

/* A server: so many of the same per request, as long as what was asked. */
static void requests(const unsigned *sizes, unsigned count, uint64_t seed, int served)
{
	struct script j;
	struct steps v;

	begin(&j);
	for (int i = 0; i < served; i++) {
		kernel(&j, 60);
		for (unsigned k = sizes[below(&seed, count)]; k; k--)
			kernel(&j, 100 + k);
		kernel(&j, 61);
	}
	find(&j, &v);
	assert_int_equal(v.count, 0);
	end(&j, &v);
}

/* Sums of such distances are as good as constant, and yet they are no steps. */
static void no_turns(void **state)
{
	static const unsigned around[] = { 97, 98, 99, 100, 101, 102, 103 };
	static const unsigned two[] = { 20, 60 }, mostly[] = { 20, 20, 20, 20, 20, 20, 60 };
	static const unsigned batches[] = { 8, 16, 24, 32, 48, 64 };

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		loops(1, 3, seed);
		loops(1, 6, seed);
		loops(2, 7, seed);
		requests(around, 7, seed, 100);
		requests(two, 2, seed, 200);
		requests(mostly, 7, seed, 200);
		requests(batches, 6, seed, 200);
	}
}

/* Requests of one size for a while, then of another: each is like the next, none like a turn. */
static void long_runs(void **state)
{
	struct script j;
	struct steps v;

	begin(&j);
	for (int i = 0; i < 300; i++) {
		layers(&j, 4 + 3 * (unsigned)(i / 30 % 4));
		kernel(&j, 60);
	}
	find(&j, &v);
	assert_in_range(v.calls, 0, 6); /* layers repeat, no requests */
	end(&j, &v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_second_step),
		cmocka_unit_test(where_they_begin),
		cmocka_unit_test(three_by_turns),
		cmocka_unit_test(longer_ones),
		cmocka_unit_test(accumulation),
		cmocka_unit_test(turns_in_windows),
		cmocka_unit_test(logging),
		cmocka_unit_test(no_turns),
		cmocka_unit_test(long_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
