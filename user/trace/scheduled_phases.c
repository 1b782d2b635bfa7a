// SPDX-License-Identifier: BSD-2-Clause
/*
 * What each phase of a schedule does to the probes. In steps the gate is moved by the
 * marker's program, at the very firing, and we hear of it; in time we move it.
 */
#include <inttypes.h>
#include <stdio.h>

#include "trace/scheduled_private.h"

static struct gbpf_switches *switches(const struct tracer *t)
{
	return probes_switches(t->probes);
}

/* Which step the firing of this number belongs to; those before base are of none. */
static int64_t place_of(const struct scheduled *s, uint64_t number)
{
	if (number < s->learnt.base)
		return -1;
	return (int64_t)((number - s->learnt.base) / s->learnt.per_step);
}

/* The firing that begins a step, as gbpf_steps has it: plus one. */
static uint64_t firing_of(const struct scheduled *s, int64_t place)
{
	uint64_t number;

	if (__builtin_mul_overflow((uint64_t)place, s->learnt.per_step, &number) ||
	    __builtin_add_overflow(number, s->learnt.base + 1, &number))
		return UINT64_MAX;
	return number;
}

/* Windows move the gate, but for those in a stretch: that has it open. */
static void window_gate(struct tracer *t, enum gbpf_gate_state state)
{
	if (!t->scheduled->shared->through)
		gate_set(t, state);
}

static enum gbpf_gate_state gate_between(const struct scheduled *s)
{
	return s->s.plan.wait ? GBPF_GATE_SHUT : GBPF_GATE_WARMUP;
}

/* What the marker's program is to do next. */
static void arm(struct scheduled *s)
{
	uint64_t length;

	if (s->stopping)
		return;
	if (s->s.phase == SCHEDULE_WAIT) {
		s->shared->wake_at = firing_of(s, s->s.until);
	} else if (s->s.phase == SCHEDULE_WARMUP) {
		if (__builtin_mul_overflow((uint64_t)s->s.plan.active, s->learnt.per_step,
					   &length))
			length = UINT64_MAX / 2;
		s->shared->open_for = length;
		s->shared->close_to = gate_between(s);
		__atomic_store_n(&s->shared->open_at, firing_of(s, s->s.until), __ATOMIC_RELEASE);
	}
}

/*
 * Probes are there, or come now. A link that still goes away would count twice: it goes first.
 * A window does not open before the sidecars record, either.
 */
static int warm_up(struct tracer *t)
{
	struct scheduled *s = t->scheduled;
	int err;

	s->pending = s->cooling || (!s->attached && closer_waiting(s->closer));
	err = s->pending ? 0 : scheduled_attach(t);
	if (!err && !s->pending && s->shared->through)
		s->pending = !stretch_warm(t);
	if (err || s->pending)
		return err;
	if (s->shared->through)
		s->warming = false;
	else if (switches(t)->gate == GBPF_GATE_SHUT)
		switches(t)->gate = GBPF_GATE_WARMUP;
	if (s->steps)
		arm(s);
	return 0;
}

/* No probe is needed until the next warm-up. */
void phases_rest(struct tracer *t)
{
	if (t->scheduled->stretch_begin) {
		stretch_cool(t);
		return;
	}
	gate_set(t, GBPF_GATE_SHUT);
	scheduled_detach(t);
}

int phases_begin(struct tracer *t, bool steps)
{
	struct scheduled *s = t->scheduled;
	int64_t at = tracer_now();
	uint64_t done = s->s.windows, fired;

	s->steps = steps;
	s->begun = true;
	if (steps) {
		fired = s->shared->fired;
		/* the next step that begins; the one that goes on now is not whole any more */
		at = fired > s->learnt.base ? place_of(s, fired - 1) + 1 : 0;
	}
	s->origin = at;
	schedule_begin(&s->s, steps ? &s->options.steps : &s->options.time, at);
	s->s.windows = done;
	if (s->s.phase == SCHEDULE_WARMUP)
		return warm_up(t);
	phases_rest(t);
	if (steps)
		arm(s);
	return 0;
}

static void note_steps(struct scheduled *s, int64_t first, int64_t end)
{
	size_t room = sizeof(s->windows) - s->windows_len;
	int n;

	if (!s->steps || end <= first)
		return;
	n = snprintf(s->windows + s->windows_len, room, "%s%" PRId64 "-%" PRId64,
		     s->windows_len ? "," : "", first, end - 1);
	if (n > 0 && (size_t)n < room)
		s->windows_len += (size_t)n;
	s->windows[s->windows_len] = '\0';
}

/* All that was recorded until then goes into the file, with the window it is of. */
static int window_write(struct tracer *t, int64_t end)
{
	struct scheduled *s = t->scheduled;
	int err;

	s->window_end = end;
	if (s->shared->through)
		return stretch_write(t, RECORD_ACTIVE, s->window_begin, end);
	err = stretch_drain(t, end);
	return err ? err : stretch_write(t, RECORD_WINDOW, s->window_begin, end);
}

static int opened(struct tracer *t, int64_t place, int64_t begin)
{
	struct scheduled *s = t->scheduled;

	s->opened = true;
	s->window_begin = begin;
	s->window_end = 0;
	schedule_opened(&s->s, place);
	return 0;
}

static int closed(struct tracer *t, int64_t place, int64_t end)
{
	struct scheduled *s = t->scheduled;
	int err;

	note_steps(s, s->s.begin, place);
	schedule_closed(&s->s, place);
	err = window_write(t, end);
	if (err)
		return err;
	if (s->s.phase == SCHEDULE_WARMUP)
		return warm_up(t);
	if (s->s.phase == SCHEDULE_WAIT)
		phases_rest(t);
	else
		window_gate(t, GBPF_GATE_SHUT);
	if (s->steps)
		arm(s);
	return 0;
}

int phases_mark(struct tracer *t, const struct gbpf_mark *mark)
{
	struct scheduled *s = t->scheduled;
	int64_t place = place_of(s, mark->number);

	switch (mark->event) {
	case GBPF_MARK_WAKE:
		return schedule_warm(&s->s, place) ? warm_up(t) : 0;
	case GBPF_MARK_OPEN:
		return opened(t, place, (int64_t)mark->ts);
	case GBPF_MARK_CLOSE:
		return closed(t, place, (int64_t)mark->ts);
	default:
		return 0;
	}
}

static int time_open(struct tracer *t)
{
	int64_t now = tracer_now();

	if (!t->scheduled->shared->through)
		gate_open(t, now);
	return opened(t, now, now);
}

static int time_close(struct tracer *t)
{
	window_gate(t, gate_between(t->scheduled));
	return closed(t, tracer_now(), tracer_now());
}

int phases_tick(struct tracer *t)
{
	struct scheduled *s = t->scheduled;
	int64_t now = tracer_now();
	int err = s->cooling ? stretch_tick(t) : 0;

	if (err || s->pending)
		return err ? err : warm_up(t);
	if (s->steps)
		return 0;
	if (s->s.phase == SCHEDULE_WAIT)
		return schedule_warm(&s->s, now) ? warm_up(t) : 0;
	if (now < s->s.until || s->pending)
		return 0;
	if (s->s.phase == SCHEDULE_WARMUP)
		return time_open(t);
	return s->s.phase == SCHEDULE_ACTIVE ? time_close(t) : 0;
}

static int on_last_mark(void *ctx, const struct gbpf_mark *mark)
{
	return phases_mark(ctx, mark);
}

/* Nothing opens any more; what opened or closed just before is heard of. */
static int disarm(struct tracer *t)
{
	struct scheduled *s = t->scheduled;
	int err = 0;

	s->pending = false;
	s->stopping = true;
	s->shared->wake_at = 0;
	__atomic_store_n(&s->shared->open_at, 0, __ATOMIC_SEQ_CST);
	if (s->markers && s->begun && s->steps)
		err = markers_consume(s->markers, on_last_mark, t);
	s->stopping = false;
	return err;
}

/* The recording ends, or its leader; so does the window that is open. */
int phases_stop(struct tracer *t)
{
	struct scheduled *s = t->scheduled;
	int err = disarm(t);
	int64_t place;

	if (err || s->s.phase != SCHEDULE_ACTIVE)
		return err;
	window_gate(t, GBPF_GATE_SHUT);
	s->shared->close_at = 0;
	place = s->steps ? place_of(s, s->shared->fired ? s->shared->fired - 1 : 0) : tracer_now();
	note_steps(s, s->s.begin, place);
	s->s.phase = SCHEDULE_DONE;
	s->s.windows++;
	return window_write(t, tracer_now());
}
