// SPDX-License-Identifier: BSD-2-Clause
/* When the probes were in place, and with it when the session began and ended. */
#include "model/internal.h"

static int window_order(const void *pa, const void *pb)
{
	const struct record_window *a = pa, *b = pb;

	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	return a->end < b->end ? -1 : a->end > b->end;
}

/* Those that touch become one. Returns how many are left. */
static size_t windows_sort(struct record_window *w, size_t count)
{
	size_t kept = 0;

	if (count)
		qsort(w, count, sizeof(*w), window_order);
	for (size_t i = 0; i < count; i++) {
		if (w[i].end <= w[i].begin)
			continue;
		if (kept && w[i].begin <= w[kept - 1].end) {
			if (w[i].end > w[kept - 1].end)
				w[kept - 1].end = w[i].end;
		} else {
			w[kept++] = w[i];
		}
	}
	return kept;
}

int64_t session_recorded(const struct session *s, int64_t from, int64_t to)
{
	int64_t ns = 0;

	for (size_t i = 0; i < s->windows_count; i++) {
		int64_t begin = s->windows[i].begin > from ? s->windows[i].begin : from;
		int64_t end = s->windows[i].end < to ? s->windows[i].end : to;

		ns += end > begin ? end - begin : 0;
	}
	return ns;
}

size_t windows_after(const struct record_window *w, size_t count, int64_t ts)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (w[middle].end <= ts)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The last one that began by then; windows_count: none. */
static size_t window_at(const struct session *s, int64_t ts)
{
	size_t at = windows_after(s->windows, s->windows_count, ts);

	if (at < s->windows_count && s->windows[at].begin <= ts)
		return at;
	return at ? at - 1 : s->windows_count;
}

int64_t session_window_begin(const struct session *s, int64_t ts)
{
	size_t window = window_at(s, ts);

	return window < s->windows_count && ts <= s->windows[window].end ?
		       s->windows[window].begin : ts;
}

/* Nobody knows what became of a call that was open when a window ended, unless it was the last. */
void builder_cut(struct session_builder *b)
{
	struct session *s = b->s;

	for (size_t i = 0; s->windows_count > 1 && i < s->calls_count; i++) {
		struct call *c = &s->calls[i];
		size_t window;

		if (!(c->flags & CALL_OPEN))
			continue;
		window = window_at(s, c->begin);
		if (window + 1 >= s->windows_count)
			continue;
		c->flags = (uint16_t)((c->flags & ~CALL_OPEN) | CALL_NO_END | CALL_CUT);
		if (c->end < s->windows[window].end)
			c->end = s->windows[window].end;
	}
}

/*
 * A file that was cut misses its last window: the events after the last known
 * one prove that it began, and how long it lasted at least.
 */
static int64_t first_event_after(const struct session_builder *b, int64_t ts)
{
	int64_t first = INT64_MAX;

	for (size_t i = 0; i < b->queues_count; i++) {
		const struct queue *q = &b->queues[i];

		for (size_t j = q->count; j-- > 0 && q->events[j].ts > ts;)
			if (q->events[j].ts < first)
				first = q->events[j].ts;
	}
	return first;
}

int builder_windows(struct session_builder *b)
{
	struct session *s = b->s;
	int64_t known = 0, first;
	int err;

	b->known_begin = s->windows_count ? INT64_MAX : INT64_MIN;
	for (size_t i = 0; i < s->windows_count; i++) {
		if (s->windows[i].end > known)
			known = s->windows[i].end;
		if (s->windows[i].begin < b->known_begin)
			b->known_begin = s->windows[i].begin;
	}
	if (b->last_event >= known &&
	    (!s->windows_count || s->quality.end != READER_END_WHOLE)) {
		err = GROW(s->windows, b->windows_cap, s->windows_count + 1);
		if (err)
			return err;
		first = s->windows_count ? first_event_after(b, known) : b->first_event;
		if (first <= b->last_event)
			s->windows[s->windows_count++] =
				(struct record_window){ first, b->last_event + 1 };
	}
	s->windows_count = windows_sort(s->windows, s->windows_count);
	b->actives_count = windows_sort(b->actives, b->actives_count);
	if (s->windows_count) {
		s->begin = s->windows[0].begin;
		s->end = s->windows[s->windows_count - 1].end;
	}
	return 0;
}
