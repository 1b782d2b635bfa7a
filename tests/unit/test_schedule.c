// SPDX-License-Identifier: BSD-2-Clause
/* The phases of a schedule, by place; and the options of gbpf trace that ask for one. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cmd/trace_schedule.h"
#include "trace/schedule.h"

/* A marker that fires at each place, and a gate that opens and closes when it should. */
static void walk(struct schedule *s, int64_t from, int64_t to, char *phases)
{
	for (int64_t at = from; at < to; at++) {
		if (s->phase == SCHEDULE_ACTIVE && at >= s->until)
			schedule_closed(s, at);
		schedule_warm(s, at);
		if (s->phase == SCHEDULE_WARMUP && at >= s->until)
			schedule_opened(s, at);
		*phases++ = schedule_phase_name(s->phase)[s->phase == SCHEDULE_WARMUP ? 4 : 0];
	}
	*phases = '\0';
}

/* torch.profiler.schedule(wait=2, warmup=1, active=3, repeat=2), step by step. */
static void test_as_torch_profiler(void **state)
{
	const struct schedule_plan plan = {.wait = 2, .warmup = 1, .active = 3, .repeat = 2};
	struct schedule s;
	char phases[32];

	(void)state;
	schedule_begin(&s, &plan, 100);
	walk(&s, 100, 115, phases);
	assert_string_equal(phases, "wwuaaawwuaaaddd");
	assert_int_equal(s.windows, 2);
}

static void test_no_end(void **state)
{
	const struct schedule_plan plan = {.wait = 1, .active = 1};
	struct schedule s;
	char phases[32];

	(void)state;
	schedule_begin(&s, &plan, 0);
	walk(&s, 0, 9, phases);
	assert_string_equal(phases, "wawawawaw");
}

static void test_active_only(void **state)
{
	const struct schedule_plan once = {.active = 3, .repeat = 1}, again = {.active = 2};
	struct schedule s;
	char phases[32];

	(void)state;
	schedule_begin(&s, &once, 5);
	assert_int_equal(s.phase, SCHEDULE_WARMUP); /* opened at the first chance */
	walk(&s, 5, 10, phases);
	assert_string_equal(phases, "aaadd");
	schedule_begin(&s, &again, 5);
	walk(&s, 5, 10, phases);
	assert_string_equal(phases, "aaaaa");
	assert_int_equal(s.windows, 2);
}

/* A window that opens late is as long as one in time; what follows is as late as it. */
static void test_late(void **state)
{
	const struct schedule_plan plan = {.wait = 10, .warmup = 2, .active = 5, .repeat = 2};
	struct schedule s;

	(void)state;
	schedule_begin(&s, &plan, 0);
	assert_false(schedule_warm(&s, 9));
	assert_true(schedule_warm(&s, 14));
	assert_false(schedule_warm(&s, 14));
	assert_int_equal(s.until, 12); /* its time has come already */
	schedule_opened(&s, 20);
	assert_int_equal(s.until, 25);
	schedule_closed(&s, 26);
	assert_int_equal(s.phase, SCHEDULE_WAIT);
	assert_int_equal(s.until, 36);
}

/* What comes at the wrong time changes nothing. */
static void test_out_of_turn(void **state)
{
	const struct schedule_plan plan = {.wait = 10, .warmup = 2, .active = 5, .repeat = 1};
	struct schedule s = {0};

	(void)state;
	schedule_opened(&s, 1);
	schedule_closed(&s, 1);
	assert_false(schedule_warm(&s, 1));
	assert_int_equal(s.phase, SCHEDULE_IDLE);
	schedule_begin(&s, &plan, 0);
	schedule_opened(&s, 1);
	schedule_closed(&s, 1);
	assert_int_equal(s.phase, SCHEDULE_WAIT);
	assert_int_equal(s.windows, 0);
}

static void test_huge(void **state)
{
	const struct schedule_plan plan = {.wait = INT64_MAX / 2, .warmup = INT64_MAX / 2,
					   .active = 100};
	struct schedule s;

	(void)state;
	schedule_begin(&s, &plan, INT64_MAX / 2);
	assert_int_equal(s.until, INT64_MAX - 1);
	assert_true(schedule_warm(&s, INT64_MAX - 1));
	assert_int_equal(s.until, INT64_MAX);
}

/* ---- options ---- */

static void refused(struct schedule_wish w, const char *word)
{
	struct schedule_options o;
	char why[256] = "";

	assert_int_equal(schedule_prepare(&w, &o, why, sizeof(why)), -EINVAL);
	if (!strstr(why, word))
		fail_msg("'%s' says nothing of %s", why, word);
}

static void taken(struct schedule_wish w, enum schedule_unit unit, int64_t wait, int64_t active)
{
	struct schedule_options o;
	char why[256] = "";
	const struct schedule_plan *plan;

	assert_int_equal(schedule_prepare(&w, &o, why, sizeof(why)), 0);
	assert_int_equal(o.unit, unit);
	plan = unit == SCHEDULE_TIME ? &o.time : &o.steps;
	assert_int_equal(plan->wait, wait);
	assert_int_equal(plan->active, active);
	assert_int_equal(plan->repeat, w.repeat);
}

static void test_units(void **state)
{
	(void)state;
	taken((struct schedule_wish){.wait = "2", .active = "3", .repeat = 1}, SCHEDULE_AUTO, 2, 3);
	taken((struct schedule_wish){.wait = "2", .active = "3", .repeat = 0, .steps = true},
	      SCHEDULE_STEPS, 2, 3);
	taken((struct schedule_wish){.wait = "2", .active = "3", .repeat = 1, .seconds = true},
	      SCHEDULE_TIME, 2000000000, 3000000000);
	taken((struct schedule_wish){.wait = "2", .active = "250ms", .repeat = 1}, SCHEDULE_TIME,
	      2000000000, 250000000);
	taken((struct schedule_wish){.wait = "1.5", .active = "1", .repeat = 1}, SCHEDULE_TIME,
	      1500000000, 1000000000);
	taken((struct schedule_wish){.active = "1", .repeat = 1, .marker = "step"},
	      SCHEDULE_STEPS, 0, 1);
}

static void test_senseless(void **state)
{
	(void)state;
	refused((struct schedule_wish){.wait = "2", .repeat = 1}, "--active");
	refused((struct schedule_wish){.repeat = 3}, "--active");
	refused((struct schedule_wish){.active = "0", .repeat = 1}, "records nothing");
	refused((struct schedule_wish){.active = "-1", .repeat = 1}, "--active");
	refused((struct schedule_wish){.active = "many", .repeat = 1}, "--active");
	refused((struct schedule_wish){.active = "9999999999999", .repeat = 1}, "--active");
	refused((struct schedule_wish){.active = "2000000000", .repeat = 1}, "too long");
	refused((struct schedule_wish){.active = "1", .warmup = "", .repeat = 1}, "--warmup");
	refused((struct schedule_wish){.active = "1", .steps = true, .seconds = true, .repeat = 1},
		"exclude");
	refused((struct schedule_wish){.active = "1s", .steps = true, .repeat = 1}, "--steps");
	refused((struct schedule_wish){.active = "1s", .marker = "f", .repeat = 1},
		"--step-marker");
	refused((struct schedule_wish){.active = "1", .marker = "f", .seconds = true, .repeat = 1},
		"--seconds");
	refused((struct schedule_wish){.active = "1", .marker = "", .repeat = 1}, "marker");
	refused((struct schedule_wish){.active = "1", .marker = "lib:", .repeat = 1}, "marker");
	refused((struct schedule_wish){.active = "1", .marker = ":f", .repeat = 1}, "marker");
	refused((struct schedule_wish){.active = "1", .marker = "kernel:(", .repeat = 1},
		"regular expression");
}

static void test_words(void **state)
{
	struct schedule_stats s = {.asked = true, .steps = true, .phase = SCHEDULE_ACTIVE,
				   .windows = 1, .at = 12, .until = 15};
	char text[128];

	(void)state;
	assert_string_equal(schedule_words(&s, 3, text, sizeof(text)),
			    "  active, 3 steps left, window 2 of 3");
	s.steps = false;
	s.at = 0;
	s.until = 1500000000;
	assert_string_equal(schedule_words(&s, 0, text, sizeof(text)),
			    "  active, 1.5 s left, window 2");
	s.asked = false;
	assert_string_equal(schedule_words(&s, 0, text, sizeof(text)), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_torch_profiler), cmocka_unit_test(test_no_end),
		cmocka_unit_test(test_active_only),	  cmocka_unit_test(test_late),
		cmocka_unit_test(test_out_of_turn),	  cmocka_unit_test(test_huge),
		cmocka_unit_test(test_units),		  cmocka_unit_test(test_senseless),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
