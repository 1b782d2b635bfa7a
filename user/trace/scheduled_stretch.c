// SPDX-License-Identifier: BSD-2-Clause
/*
 * With GPU time, recording begins with the warm-up, where the sidecars begin, and ends when
 * none of them records any more: so each work of a window finds its call. Such a stretch has
 * one window in it, or several; what lies around them the reader leaves out again.
 */
#include "trace/scheduled_private.h"

#define SETTLE_NS 20000000LL  /* for calls to return that were going on as recording began */
#define START_NS 3000000000LL /* for sidecars to come and to begin */
#define STOP_NS 1000000000LL  /* for their windows to end */

int stretch_write(struct tracer *t, enum record_kind kind, int64_t begin, int64_t end)
{
	struct record r = {.kind = kind, .window = {begin, end}};

	return writer_add(t->writer, &r);
}

int stretch_drain(struct tracer *t, int64_t end)
{
	int n;

	t->scheduled->kept_end = end;
	do
		n = rings_consume(t->rings);
	while (n > 0);
	return n ? n : rings_finish(t->rings); /* polls that went on when it ended */
}

void gate_set(struct tracer *t, enum gbpf_gate_state state)
{
	__atomic_store_n(&probes_switches(t->probes)->gate, state, __ATOMIC_SEQ_CST);
}

void gate_open(struct tracer *t, int64_t begin)
{
	probes_switches(t->probes)->gate_begin = (uint64_t)begin;
	gate_set(t, GBPF_GATE_OPEN);
}

bool stretch_warm(struct tracer *t)
{
	struct scheduled *s = t->scheduled;
	int64_t now = tracer_now();

	if (!s->warming) {
		s->warming = true;
		s->turned = false;
		s->warm_by = now + START_NS;
	}
	if (!s->stretch_begin) { /* else it goes on from the window before */
		s->stretch_begin = now;
		gate_open(t, now);
	}
	/* CUPTI sees what a call launches that we have not seen begin */
	if (!s->turned && now >= s->stretch_begin + SETTLE_NS) {
		s->turned = true;
		gpu_time_turn(t);
	}
	return s->turned && (gpu_time_ready(t) || now >= s->warm_by);
}

void stretch_cool(struct tracer *t)
{
	struct scheduled *s = t->scheduled;

	gpu_time_rest(t);
	s->warming = false; /* where the leader ended in between */
	s->cooling = true;
	s->cool_by = tracer_now() + STOP_NS;
}

int stretch_end(struct tracer *t)
{
	struct scheduled *s = t->scheduled;
	int64_t begin = s->stretch_begin, now;
	int err;

	s->cooling = false;
	s->stretch_begin = 0;
	if (!begin)
		return 0;
	gate_set(t, GBPF_GATE_SHUT);
	now = tracer_now();
	err = stretch_drain(t, now);
	return err ? err : stretch_write(t, RECORD_WINDOW, begin, now);
}

int stretch_tick(struct tracer *t)
{
	struct scheduled *s = t->scheduled;
	int err;

	if (!gpu_time_rests(t) && tracer_now() < s->cool_by)
		return 0;
	err = stretch_end(t);
	if (!err && s->s.phase == SCHEDULE_WAIT)
		scheduled_detach(t);
	return err;
}
