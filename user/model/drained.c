// SPDX-License-Identifier: BSD-2-Clause
/*
 * CUPTI records what is launched while it records. What a process had launched before may go on
 * for seconds, and what still runs as the recording ends has no record either. Whether the GPU
 * works then is not known, so a cover, which is what shares and gaps are of, leaves both out: it
 * begins where the last of what was launched before is seen to be over, by a wait that returns,
 * or by the first recorded work of a stream that had to queue.
 *
 * What cannot be seen: work from before in a stream that nobody waits for and nothing is given
 * to, while other streams go on.
 */
#include <string.h>

#include "model/gpu.h"
#include "model/grow.h"
#include "model/join.h"

#define PROMPT_NS 100000 /* from a call's return to its work, on a stream that is free */
#define NESTED 16	 /* calls of one thread that are looked at for one that goes on */
#define LOOK_BACK 4096	 /* calls before a cover, for the last launch and wait */

struct draining {
	struct session *s;
	const struct session_cover *cover;
	int64_t asked; /* when the first recorded work was; the cover's end: there is none */
	int64_t begin, end;
};

static void not_before(struct draining *d, int64_t ts)
{
	d->begin = ts > d->begin ? ts : d->begin;
}

/* ns of [from, to) in which the device ran works that were recorded, of any process; -ENOMEM. */
static int64_t recorded_ns(const struct session *s, uint32_t physical, int64_t from, int64_t to)
{
	struct spans v = { 0 };
	size_t cap = 0;
	int64_t sum = 0;
	int err = 0;

	for (size_t i = 0; i < s->streams_count && !err; i++) {
		const struct session_stream *st = &s->streams[i];
		uint32_t w = join_first_work(s, st, from), end = st->first_work + st->works;

		if (s->devices[st->device].physical != physical)
			continue;
		for (w -= w > st->first_work; w < end && s->works[w].begin < to && !err; w++) {
			err = GROW(v.items, cap, v.count + 1);
			if (!err)
				v.items[v.count++] = (struct span){ s->works[w].begin,
								    s->works[w].end };
		}
	}
	if (!err)
		err = spans_unite(&v);
	if (!err)
		sum = spans_within(&v, from, to);
	spans_free(&v);
	return err ? err : sum;
}

/* From when on nothing but the device could keep a work from beginning. */
static int64_t given(const struct draining *d, const struct work *w)
{
	const struct call *c = w->call == CALL_NONE ? NULL : &d->s->calls[w->call];
	int64_t ts = !c ? d->cover->begin : call_duration(c) < 0 ? c->begin : c->end;

	return ts > d->cover->begin ? ts : d->cover->begin;
}

/* The stream's first work had to queue, and not for what was recorded: for what was before. */
static int look_at_stream(struct draining *d, const struct session_stream *st)
{
	const struct session *s = d->s;
	uint32_t first = join_first_work(s, st, d->cover->begin);
	const struct work *w;
	int64_t from, ns;

	if (first == st->first_work + st->works || s->works[first].begin >= d->cover->end)
		return 0;
	w = &s->works[first];
	if (w->call != CALL_NONE && s->calls[w->call].begin < d->asked)
		d->asked = s->calls[w->call].begin;
	else if (w->call == CALL_NONE && w->begin < d->asked)
		d->asked = w->begin;
	from = given(d, w);
	if (w->begin - from <= PROMPT_NS)
		return 0;
	ns = recorded_ns(s, s->devices[st->device].physical, from, w->begin);
	if (ns < 0)
		return (int)ns;
	if (ns < (w->begin - from) / 2)
		not_before(d, w->begin);
	return 0;
}

/* When a wait returned; INT64_MIN: it is none, or nobody knows. */
static int64_t wait_end(const struct session *s, const struct call *c)
{
	if (!(s->apis[c->api].sorts & API_IS_WAIT) || c->flags & (CALL_ERROR | CALL_ENTRY_ONLY))
		return INT64_MIN;
	if (c->flags & CALL_OPEN)
		return INT64_MAX;
	return c->flags & CALL_NO_END && !(c->flags & CALL_CUT) ? INT64_MIN : c->end;
}

/* A wait that was entered before anything was asked for that is recorded waits for the rest. */
static void look_at_waits(struct draining *d, const struct session_thread *t)
{
	const struct session *s = d->s;
	uint32_t i = join_first(s, t, d->cover->begin), end = t->first_call + t->calls;

	i = i - t->first_call > NESTED ? i - NESTED : t->first_call;
	for (; i < end && s->calls[i].begin < d->asked; i++)
		if (wait_end(s, &s->calls[i]) > d->cover->begin)
			not_before(d, wait_end(s, &s->calls[i]));
}

/* What the process did last before the cover: when it launched or copied, and began to wait. */
struct before {
	int64_t launched, waited;
	int64_t drained; /* waited for all that it had launched, and that was over */
};

static size_t streams_of(const struct session *s, uint32_t process)
{
	size_t n = 0;

	for (size_t i = 0; i < s->streams_count; i++)
		n += s->streams[i].process == process;
	return n;
}

/* As far as streams and contexts are known, which they are by their works. */
static bool waits_for_all(const struct draining *d, const struct call *c)
{
	const char *name = d->s->apis[c->api].name;

	if (strstr(name, "CtxSynchronize") || strstr(name, "DeviceSynchronize"))
		return join_one_context(d->s, d->cover->process);
	return strstr(name, "StreamSynchronize") && streams_of(d->s, d->cover->process) < 2;
}

static void look_back(const struct draining *d, const struct session_thread *t, struct before *b)
{
	const struct session *s = d->s;
	uint32_t i = join_first(s, t, d->cover->begin), most = LOOK_BACK;

	for (; i-- > t->first_call && most--;) {
		const struct call *c = &s->calls[i];
		int64_t end = wait_end(s, c);

		if (end > INT64_MIN && c->begin > b->waited)
			b->waited = c->begin;
		if (end > INT64_MIN && end <= d->cover->begin && c->begin > b->drained &&
		    waits_for_all(d, c))
			b->drained = c->begin;
		if (join_sort(s, c) != SORT_NONE && c->begin > b->launched)
			b->launched = c->begin;
	}
}

static struct before look_before(const struct draining *d)
{
	struct before b = { INT64_MIN, INT64_MIN, INT64_MIN };

	for (size_t t = 0; t < d->s->threads_count; t++)
		if (d->s->threads[t].process == d->cover->process)
			look_back(d, &d->s->threads[t], &b);
	return b;
}

static bool launched_inside(const struct draining *d)
{
	const struct session *s = d->s;

	for (size_t t = 0; t < s->threads_count; t++) {
		const struct session_thread *thread = &s->threads[t];
		uint32_t end = thread->first_call + thread->calls;

		for (uint32_t i = join_first(s, thread, d->cover->begin);
		     thread->process == d->cover->process && i < end &&
		     s->calls[i].begin < d->cover->end; i++)
			if (join_sort(s, &s->calls[i]) != SORT_NONE)
				return true;
	}
	return false;
}

/* Nothing ran that was recorded. Is that because the GPU was busy with something before it? */
static void look_at_nothing(struct draining *d, const struct before *b)
{
	if (b->launched > b->waited || launched_inside(d))
		not_before(d, d->cover->end);
}

/* That works were given up as still running is noted as a window ends, or shortly after. */
static bool left_running(const struct draining *d)
{
	const struct session *s = d->s;
	const struct session_cover *next = d->cover + 1;
	int64_t until = next < s->covers + s->covers_count && next->process == d->cover->process ?
				next->begin : INT64_MAX;

	for (size_t i = 0; i < s->sidecars_count; i++) {
		const struct record_sidecar *note = &s->sidecars[i];

		if (note->event == RECORD_SIDECAR_RUNNING &&
		    s->sidecar_process[i] == d->cover->process && note->ts >= d->cover->begin &&
		    note->ts < until)
			return true;
	}
	return false;
}

/* They began after the last one that has a record. */
static void look_at_end(struct draining *d)
{
	const struct session *s = d->s;
	bool running = left_running(d);
	int64_t last = INT64_MIN;

	for (size_t i = 0; i < s->streams_count && running; i++) {
		const struct session_stream *st = &s->streams[i];
		uint32_t end = join_first_work(s, st, d->cover->end);

		if (st->process == d->cover->process && end > st->first_work &&
		    s->works[end - 1].end > last)
			last = s->works[end - 1].end;
	}
	if (running && last < d->end)
		d->end = last;
}

static int look_at_begin(struct draining *d)
{
	const struct session *s = d->s;
	struct before b = look_before(d);
	int err = 0;

	d->asked = d->cover->end;
	for (size_t i = 0; i < s->streams_count && !err; i++)
		if (s->streams[i].process == d->cover->process)
			err = look_at_stream(d, &s->streams[i]);
	for (size_t t = 0; t < s->threads_count && !err; t++)
		if (s->threads[t].process == d->cover->process)
			look_at_waits(d, &s->threads[t]);
	if (!err && d->asked == d->cover->end)
		look_at_nothing(d, &b);
	else if (b.launched > INT64_MIN && b.drained > b.launched)
		d->begin = d->cover->begin; /* nothing was before it, whatever it looks like */
	return err;
}

static int look(struct draining *d)
{
	int err;

	d->begin = d->cover->begin;
	d->end = d->cover->end;
	err = look_at_begin(d);
	look_at_end(d);
	return err;
}

int builder_drained(struct session_builder *b)
{
	struct session *s = b->s;
	size_t kept = 0;

	for (size_t i = 0; i < s->covers_count; i++) {
		struct draining d = { .s = s, .cover = &s->covers[i] };
		int err = look(&d);

		if (err)
			return err;
		if (d.begin >= d.end)
			continue;
		s->covers[kept] = s->covers[i];
		s->covers[kept].begin = d.begin;
		s->covers[kept++].end = d.end;
	}
	s->covers_count = kept;
	return 0;
}
