// SPDX-License-Identifier: BSD-2-Clause
#include "trace/schedule.h"

const char *schedule_phase_name(enum schedule_phase phase)
{
	switch (phase) {
	case SCHEDULE_WAIT: return "wait";
	case SCHEDULE_WARMUP: return "warmup";
	case SCHEDULE_ACTIVE: return "active";
	case SCHEDULE_DONE: return "done";
	default: return "idle";
	}
}

/* Places are far from the end of 64 bits, but lengths are the user's. */
static int64_t after(int64_t at, int64_t length)
{
	int64_t sum;

	return __builtin_add_overflow(at, length, &sum) ? INT64_MAX : sum;
}

static void cycle(struct schedule *s, int64_t at)
{
	s->phase = SCHEDULE_WAIT;
	s->until = after(at, s->plan.wait);
	if (!s->plan.wait)
		schedule_warm(s, at);
}

void schedule_begin(struct schedule *s, const struct schedule_plan *plan, int64_t at)
{
	*s = (struct schedule){.plan = *plan};
	cycle(s, at);
}

bool schedule_warm(struct schedule *s, int64_t at)
{
	if (s->phase != SCHEDULE_WAIT || at < s->until)
		return false;
	s->phase = SCHEDULE_WARMUP;
	s->until = after(s->until, s->plan.warmup);
	return true;
}

void schedule_opened(struct schedule *s, int64_t at)
{
	if (s->phase != SCHEDULE_WARMUP)
		return;
	s->phase = SCHEDULE_ACTIVE;
	s->begin = at;
	s->until = after(at, s->plan.active);
}

void schedule_closed(struct schedule *s, int64_t at)
{
	if (s->phase != SCHEDULE_ACTIVE)
		return;
	s->windows++;
	s->phase = SCHEDULE_DONE;
	s->until = at;
	if (!s->plan.repeat || s->windows < s->plan.repeat)
		cycle(s, at);
}
