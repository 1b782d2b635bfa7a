// SPDX-License-Identifier: BSD-2-Clause
/* Where a thread's wall time went: every instant counted once, for the innermost call. */
#include "report/row.h"

struct walk {
	const struct session *s;
	struct busy *busy;
	int64_t limit;	 /* end of the thread's time in the trace */
	int64_t leading; /* until when calls that began before the trace are accounted for */
	int64_t poll_end; /* of the last poll outside other calls */
	bool timed;
};

/* Sums of what damaged files claim can be of any size. */
static void add(int64_t *sum, int64_t ns)
{
	if (__builtin_add_overflow(*sum, ns, sum))
		*sum = ns < 0 ? INT64_MIN : INT64_MAX;
}

static void put(const struct walk *w, const struct call *c, int64_t ns)
{
	add(is_wait(w->s, c) ? &w->busy->waiting : &w->busy->dispatch, ns);
}

static void walk_poll(struct walk *w, const struct call *c)
{
	const struct call *outer = c->parent == CALL_NONE ? NULL : &w->s->calls[c->parent];

	if (outer && outer->flags & CALL_POLL)
		return; /* inside a poll that is counted as a whole */
	add(&w->busy->waiting, c->end - c->begin);
	w->poll_end = outer ? w->poll_end : c->end;
}

/* A call still open has run at least until the trace ended; so has what it is in. */
static void walk_open(struct walk *w, const struct call *c)
{
	int64_t span = w->limit > c->begin ? w->limit - c->begin : 0;

	put(w, c, span > c->children ? span - c->children : 0);
	if (c->parent != CALL_NONE && w->s->calls[c->parent].flags & CALL_OPEN)
		put(w, &w->s->calls[c->parent], -span);
}

/* Until its window ended, or since it began. */
static bool walk_cut(struct walk *w, const struct call *c)
{
	const struct call *outer = c->parent == CALL_NONE ? NULL : &w->s->calls[c->parent];
	int64_t begin;

	if (c->flags & CALL_NO_BEGIN) {
		begin = session_window_begin(w->s, c->end);
		w->leading = w->leading > begin ? w->leading : begin;
		return true;
	}
	put(w, c, c->end - c->begin - c->children);
	if (outer && outer->flags & CALL_CUT)
		put(w, outer, c->begin - c->end);
	return false;
}

static void walk_call(struct walk *w, const struct call *c, bool leading)
{
	if (c->flags & CALL_CUT)
		leading = walk_cut(w, c);
	if (c->flags & CALL_OPEN) {
		walk_open(w, c);
	} else if (c->flags & CALL_NO_BEGIN) {
		/* With nothing before it: it was running when the trace began. */
		if (leading && c->end > w->leading) {
			put(w, c, c->end - w->leading);
			w->leading = c->end;
		}
	} else if (call_duration(c) >= 0) {
		int64_t shared = (c->end < w->poll_end ? c->end : w->poll_end) - c->begin;

		if (c->parent == CALL_NONE && c->begin < w->poll_end)
			add(&w->busy->waiting, -shared);
		if (c->flags & CALL_POLL)
			walk_poll(w, c);
		else
			put(w, c, call_self(w->s, c));
	} else if (!(c->flags & CALL_CUT)) {
		return;
	}
	w->timed = true;
}

static void count_call(const struct session *s, const struct call *c, bool launch,
		       struct busy *out)
{
	out->calls += call_count(s, c);
	out->entries++;
	out->entered += !!(c->flags & CALL_ENTRY_ONLY);
	out->errors += !!(c->flags & CALL_ERROR);
	if (launch) {
		out->launches += is_kernel_launch(s, c);
		out->graph_launches += is_graph_launch(s, c);
	}
}

int thread_busy(const struct session *s, const struct session_thread *t, struct visitor *v,
		struct busy *out)
{
	const struct session_process *p = &s->processes[t->process];
	struct walk w = { .s = s, .busy = out, .limit = p->last, .leading = p->first,
			  .poll_end = 0 };
	bool leading = true;
	int err = 0;

	*out = (struct busy){ 0 };
	if (w.leading < s->begin)
		w.leading = s->begin;
	for (uint32_t i = t->first_call; i < t->first_call + t->calls && !err; i++) {
		const struct call *c = &s->calls[i];
		bool launch = is_launch(s, c) && !is_inside(s, c, is_launch);

		leading = leading && c->flags & CALL_NO_BEGIN;
		walk_call(&w, c, leading);
		count_call(s, c, launch, out);
		if (v)
			err = v->call(v, c, launch);
	}
	out->unknown = t->calls && !w.timed;
	if (out->dispatch < 0)
		out->dispatch = 0;
	if (out->waiting < 0)
		out->waiting = 0;
	return err;
}

int64_t busy_elsewhere(const struct busy *b, int64_t wall)
{
	int64_t busy = b->dispatch;

	add(&busy, b->waiting);
	return wall > busy ? wall - busy : 0;
}
