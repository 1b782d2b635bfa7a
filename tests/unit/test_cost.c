// SPDX-License-Identifier: BSD-2-Clause
/* What a hit is taken to cost, by how much later launches come after those that are timed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "monitor/private.h"

#define ENTRY 850 /* ns, calibrated */
#define RETURN 700

struct job {
	double mean, spread; /* of gaps, ns; uniform */
	double slower;	     /* by which all of our probes are, of what was calibrated */
};

static double random_part(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (double)(*state >> 11) / 9007199254740992.0;
}

/* As launch_chosen() of bpf/counts.bpf.h adds them up. */
static void job_runs(const struct job *j, struct mon_thread *t, unsigned launches)
{
	uint64_t state = 88172645463325252ULL;
	unsigned i;

	for (i = 0; i < launches; i++) {
		unsigned timed = random_part(&state) < 1.0 / GBPF_SPARSE;
		struct gbpf_gap *g = &t->closed.gap[timed];
		double ns = j->mean + j->spread * (2 * random_part(&state) - 1);
		uint64_t gap;

		ns += timed ? 1.08 * RETURN * j->slower : 0;
		gap = (uint64_t)fmin(ns, GBPF_GAP_MOST_NS);
		g->count++;
		g->below += gap < GBPF_GAP_MOST_NS;
		g->sum += gap;
		g->squares += gap * gap;
	}
}

static struct cost told(const struct job *j, unsigned launches, double return_ns)
{
	struct monitor *m = calloc(1, sizeof(*m));
	struct gbpf_monitor_switches switches = {.cost_untimed = ENTRY};
	struct mon_thread thread = {0}, *threads[1] = {&thread};
	struct mon_process p = {.threads = threads, .threads_count = 1};
	struct cost c;

	assert_non_null(m);
	m->return_ns = return_ns;
	m->counts.mon = &switches;
	job_runs(j, &thread, launches);
	cost_window(&p);
	c = cost_of(m, &p);
	free(m);
	return c;
}

static void test_what_is_seen_in_place_corrects_the_calibration(void **state)
{
	const double slower[] = {0.7, 1, 1.5};
	const struct job regular = {.mean = 5500, .spread = 500};
	size_t i;

	for (i = 0; i < 3; i++) {
		struct job j = regular;
		struct cost c;

		j.slower = slower[i];
		c = told(&j, 20000, RETURN);
		assert_true(fabs(c.factor - slower[i]) < 0.1 * slower[i] + 0.02);
		assert_true(fabs(c.factor - slower[i]) < 2 * c.sd);
		assert_true(c.sd > 0.05 && c.sd < 0.1);
	}
}

/*
 * Gaps of which four in five are longer than what is looked at show it, too, less surely; of
 * what is slower than expected of such a program, the machine is.
 */
static void test_long_gaps(void **state)
{
	const struct job slow = {.mean = 20000, .spread = 6000, .slower = 1.6};
	const struct job slower = {.mean = 20000, .spread = 6000, .slower = 2.4};
	struct cost c = told(&slow, 400000, RETURN), few = told(&slow, 2000, RETURN);
	struct cost more = told(&slower, 400000, RETURN);

	assert_true(fabs(c.factor - 1.6) < 0.15 && fabs(c.factor - 1.6) < 2 * c.sd);
	assert_true(few.sd > c.sd);
	assert_true(fabs(few.factor - 1.6) < 2 * few.sd);
	assert_true(more.factor > 1.05 * c.factor && more.factor < 2.4);
}

static void test_nothing_seen_is_known_by_the_calibration_alone(void **state)
{
	const struct job regular = {.mean = 5500, .spread = 500, .slower = 1.5};
	const struct job idle = {.mean = 1e6, .spread = 1e5, .slower = 1.5};
	struct cost none = told(&regular, 100, RETURN), rare = told(&idle, 20000, RETURN);
	struct cost never = told(&regular, 20000, 0);

	assert_float_equal(none.factor, 1, 1e-9);
	assert_float_equal(never.factor, 1, 1e-9);
	assert_true(none.sd >= 0.2 && rare.sd >= 0.2 && never.sd >= 0.2);
	/* but that its caches are full of other things by the next one */
	assert_float_equal(rare.factor, 1.6, 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_seen_in_place_corrects_the_calibration),
		cmocka_unit_test(test_long_gaps),
		cmocka_unit_test(test_nothing_seen_is_known_by_the_calibration_alone),
	};

	return cmocka_run_group_tests_name("cost", tests, NULL, NULL);
}
