/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a file names ACTIVE windows, these alone count: what was recorded around them was for
 * the join. Calls that overlap one stay, as if probes had been there just then. Works stay if
 * their call did, or if they ran in a window: launched before it they say how busy the GPU
 * was, and nothing else.
 */
#include "model/internal.h"

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t sooner(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* The first window that has a part of [begin, end), or the moment begin; NULL: none. */
static const struct record_window *find(const struct record_window *w, size_t count, int64_t begin,
					int64_t end)
{
	size_t at = windows_after(w, count, begin);

	return at < count && w[at].begin <= later(begin, end - 1) ? &w[at] : NULL;
}

static const struct record_window *window_of(const struct session *s, int64_t begin, int64_t end)
{
	return find(s->windows, s->windows_count, begin, end);
}

bool builder_active(const struct session_builder *b, int64_t ts)
{
	return !b->actives_count || find(b->actives, b->actives_count, ts, ts);
}

/* Of a call that goes on all through its window only that is known. */
static bool call_keep(const struct session *s, struct call *c)
{
	const int no_end = CALL_OPEN | CALL_NO_END | CALL_ENTRY_ONLY;
	int64_t end = c->flags & CALL_OPEN ? TS_LIMIT : c->end;
	const struct record_window *w = window_of(s, c->begin, end);

	if (!w)
		return false;
	if (end > w->end && !(c->flags & (no_end & ~CALL_OPEN))) {
		c->end = w->end;
		c->flags |= CALL_OPEN;
	} else if (c->begin < w->begin) {
		c->flags |= CALL_NO_BEGIN | CALL_CUT;
	}
	c->begin = later(c->begin, w->begin);
	return true;
}

/* to: old index to the new one, CALL_NONE for those that go. */
static void calls_trim(struct session *s, uint32_t *to)
{
	uint32_t kept = 0;

	for (size_t t = 0; t < s->threads_count; t++) {
		struct session_thread *thread = &s->threads[t];
		uint32_t end = thread->first_call + thread->calls, first = kept;

		for (uint32_t i = thread->first_call; i < end; i++) {
			struct call c = s->calls[i];

			to[i] = call_keep(s, &c) ? kept : CALL_NONE;
			if (to[i] == CALL_NONE)
				continue;
			c.parent = c.parent < i ? to[c.parent] : CALL_NONE;
			if (c.parent == CALL_NONE)
				c.flags &= (uint16_t)~CALL_NESTED;
			s->calls[kept++] = c;
		}
		thread->first_call = first;
		thread->calls = kept - first;
	}
	s->calls_count = kept;
}

static bool work_keep(const struct session *s, struct work *w, const uint32_t *to)
{
	uint32_t call = w->call == CALL_NONE ? CALL_NONE : to[w->call];

	if (call != CALL_NONE && !(s->calls[call].flags & CALL_NO_BEGIN)) {
		w->call = call;
		return true;
	}
	w->earlier = w->call != CALL_NONE;
	w->call = CALL_NONE;
	return window_of(s, w->begin, w->end);
}

static void works_trim(struct session *s, const uint32_t *to)
{
	uint32_t kept = 0;

	s->join.works = s->join.matched = s->join.earlier = 0;
	for (size_t i = 0; i < s->streams_count; i++) {
		struct session_stream *st = &s->streams[i];
		uint32_t end = st->first_work + st->works, first = kept;

		for (uint32_t k = st->first_work; k < end; k++) {
			struct work w = s->works[k];

			if (!work_keep(s, &w, to))
				continue;
			s->join.works += !w.earlier;
			s->join.matched += w.call != CALL_NONE;
			s->join.earlier += w.earlier;
			s->works[kept++] = w;
		}
		st->first_work = first;
		st->works = kept - first;
	}
	s->works_count = kept;
}

static void work_calls_trim(struct session *s, const uint32_t *to)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->work_calls_count; i++) {
		struct work_call *c = &s->work_calls[i];

		c->call = to[c->call];
		if (c->call != CALL_NONE)
			s->work_calls[kept++] = *c;
	}
	s->work_calls_count = kept;
}

/* A cover that spans several windows becomes several. */
static int covers_trim(struct session *s)
{
	struct session_cover *covers = NULL;
	size_t count = 0, cap = 0;
	int err = 0;

	for (size_t i = 0; i < s->covers_count && !err; i++)
		for (size_t k = 0; k < s->windows_count && !err; k++) {
			struct session_cover c = s->covers[i];

			c.begin = later(c.begin, s->windows[k].begin);
			c.end = sooner(c.end, s->windows[k].end);
			if (c.end <= c.begin)
				continue;
			err = GROW(covers, cap, count + 1);
			if (!err)
				covers[count++] = c;
		}
	free(s->covers);
	s->covers = covers;
	s->covers_count = err ? 0 : count;
	return err;
}

static void overheads_trim(struct session *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->overheads_count; i++)
		if (window_of(s, s->overheads[i].begin, s->overheads[i].end))
			s->overheads[kept++] = s->overheads[i];
	s->overheads_count = kept;
}

int builder_trim(struct session_builder *b)
{
	struct session *s = b->s;
	uint32_t *to;
	int err;

	if (!b->actives_count)
		return 0;
	to = malloc((s->calls_count + 1) * sizeof(*to));
	if (!to)
		return -ENOMEM;
	free(s->windows);
	s->windows = b->actives;
	s->windows_count = b->actives_count;
	b->actives = NULL;
	b->actives_count = 0;
	s->begin = s->windows[0].begin;
	s->end = s->windows[s->windows_count - 1].end;
	calls_trim(s, to);
	builder_cut(b);
	works_trim(s, to);
	work_calls_trim(s, to);
	overheads_trim(s);
	err = covers_trim(s);
	free(to);
	return err ? err : join_list(s);
}
