// SPDX-License-Identifier: BSD-2-Clause
/* How often functions are called, as the monitor reads it from the tables, and what it tells. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/private.h"
#include "probe/catalogue.h"

#define SECOND 1000000000LL

/* A monitor of one process that calls one function which copies. */
struct rig {
	struct monitor *m;
	struct mon_process p, *processes[1];
	struct mon_api a, *apis[1];
	struct image image;
	struct mon_image item;
	struct gbpf_cell cell;
	struct gbpf_monitor_switches switches;
};

static uint16_t a_copy(void)
{
	size_t i;

	for (i = 1; i <= catalogue_count(); i++)
		if (catalogue_get((uint16_t)i)->kind == API_COPY)
			return (uint16_t)i;
	fail();
	return 0;
}

static int rig_make(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	if (!r)
		return -1;
	r->m = calloc(1, sizeof(*r->m));
	if (!r->m) {
		free(r);
		return -1;
	}
	r->apis[0] = &r->a;
	r->a.api = a_copy();
	r->a.class = GBPF_CLASS_COPY;
	r->processes[0] = &r->p;
	r->p = (struct mon_process){.pid = 1, .apis = r->apis, .apis_count = 1,
				    .image = &r->image, .proc_slot = GBPF_PROCS};
	r->item = (struct mon_image){.image = &r->image, .hot_ns = SECOND};
	r->m->items = &r->item;
	r->m->items_count = 1;
	r->m->processes = r->processes;
	r->m->processes_count = 1;
	r->m->counts.cells = &r->cell;
	r->m->counts.mon = &r->switches;
	r->m->counts.switch_link = -1;
	*state = r;
	return 0;
}

static int rig_free(void **state)
{
	struct rig *r = *state;

	free(r->m);
	free(r);
	return 0;
}

static void test_a_rate_is_over_the_time_between_two_readings(void **state)
{
	struct rig *r = *state;

	r->m->last_look = mon_now() - SECOND;
	r->cell.calls = 450;
	harvest_steady(r->m);
	assert_int_equal(r->p.steady[Q_COPIES], 450);
	assert_true(r->a.peak > 200 && r->a.peak <= 450);
	assert_true(mon_now() - r->m->last_look < SECOND / 2);
}

/* The clock was looked at, then the CPU lost for 100 ms, then read, and again at once. */
static void test_calls_in_no_time_are_no_flood(void **state)
{
	struct rig *r = *state;

	r->m->last_look = mon_now();
	r->cell.calls = 45;
	harvest_steady(r->m);
	assert_true(r->a.peak < 45000);
	r->m->last_look -= SECOND;
	r->cell.calls = 450;
	harvest_steady(r->m);
	assert_true(r->a.peak <= 450);
	assert_int_equal(r->p.steady[Q_COPIES], 450);
}

static void gathered(struct rig *r, struct snapshot_process *out)
{
	struct gathering g = {r->m, 2 * SECOND, SECOND};

	assert_int_equal(process_gather(&g, &r->p, out), 0);
	free(out->apis);
	free((void *)out->launch_recent);
	free(out->threads);
}

static void test_what_had_no_window_yet_is_not_none(void **state)
{
	struct rig *r = *state;
	struct snapshot_process out;

	r->p.steady[Q_COPIES] = 450;
	gathered(r, &out);
	assert_true(out.copies_per_s.known);
	assert_float_equal(out.copies_per_s.value, 450, 1);
	r->p.steady[Q_COPIES] = 0;
	r->a.hot = true;
	gathered(r, &out);
	assert_false(out.copies_per_s.known);
	assert_false(out.launches_per_s.known);
}

/* What is probed how is chosen after an interval, by all of what was seen in it. */
static void test_an_interval_ages_what_was_seen_at_its_end(void **state)
{
	struct rig *r = *state;

	r->a.peak = 1000;
	harvest_interval_begin(r->m);
	assert_float_equal(r->a.peak, 1000, 0.1);
	harvest_age(r->m);
	assert_float_equal(r->a.peak, 950, 0.1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_rate_is_over_the_time_between_two_readings,
						rig_make, rig_free),
		cmocka_unit_test_setup_teardown(test_calls_in_no_time_are_no_flood, rig_make,
						rig_free),
		cmocka_unit_test_setup_teardown(test_what_had_no_window_yet_is_not_none, rig_make,
						rig_free),
		cmocka_unit_test_setup_teardown(test_an_interval_ages_what_was_seen_at_its_end,
						rig_make, rig_free),
	};

	return cmocka_run_group_tests_name("harvest", tests, NULL, NULL);
}
