/* SPDX-License-Identifier: BSD-2-Clause */
/* What probes cost a process of several threads. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "monitor/private.h"

static void is(double got, double wanted)
{
	assert_true(fabs(got - wanted) < 1e-12);
}

/* Forward and backward pass in two threads: each pays 3 %, the step 6 %. */
static void take_turns(void **state)
{
	is(cost_together(0.03, 0.06, 1), 0.06);
	is(cost_together(0.03, 0.06, 0.8), 0.06); /* the rest is waiting */
}

/* Both work all the time: each pays its own. */
static void side_by_side(void **state)
{
	is(cost_together(0.03, 0.06, 2), 0.03);
	is(cost_together(0.03, 0.12, 8), 0.03);
	is(cost_together(0.03, 0.06, 1.5), 0.04);
}

static void one_pays_most(void **state)
{
	is(cost_together(0.05, 0.06, 2), 0.05);
	is(cost_together(0, 0, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(take_turns),
		cmocka_unit_test(side_by_side),
		cmocka_unit_test(one_pays_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
