/* SPDX-License-Identifier: BSD-2-Clause */
/* Jobs that are written call by call, so that the right number and length of steps are known. */
#ifndef GBPF_TESTS_STEPS_SCRIPT_H
#define GBPF_TESTS_STEPS_SCRIPT_H

#include "feed.h"

#include "model/steps.h"

#define US 1000
#define OPTIMIZER 900 /* kernels from here on */

struct script {
	struct feed f;
	int64_t now;
};

static inline void kernel(struct script *j, unsigned which)
{
	feed_launch(&j->f, j->now, j->now + 3 * US, F_LAUNCH, SP, 0x1000 + which * 16, 1 + which,
		    32);
	j->now += 10 * US;
}

static inline void sync(struct script *j, int64_t ns)
{
	feed_call(&j->f, j->now, j->now + ns, F_SYNC, SP);
	j->now += ns + 5 * US;
}

static inline void begin(struct script *j)
{
	feed_start(&j->f);
	j->now = 1000000;
	feed_process(&j->f, 1, RECORD_PROCESS_SEEN, 100, 1, "job");
}

/* Gives every kernel its handle's name, closes the trace, and looks for steps. */
static inline void find(struct script *j, struct steps *out)
{
	feed_window(&j->f, 1, j->now);
	feed_finish(&j->f);
	assert_int_equal(steps_find(j->f.s, 0, out), 0);
}

static inline void end(struct script *j, struct steps *v)
{
	steps_free(v);
	feed_stop(&j->f);
}

static inline void layers(struct script *j, unsigned count)
{
	for (unsigned l = 0; l < count; l++)
		for (unsigned k = 0; k < 6; k++)
			kernel(j, k);
}

#endif
