// SPDX-License-Identifier: BSD-2-Clause
/* From the entry of a launch to the end of its work: work_times(). */
#include "model/gpu.h"
#include "model/grow.h"
#include "util/near.h"

struct timing {
	const struct session *s;
	struct work_times *times;
	struct spans overheads; /* of all processes: whose it was matters less than when */
	/* Launches on one stream: entries, sorted, and starts of their first works there. */
	int64_t *entries, *starts;
	size_t count, entries_cap, starts_cap;
	size_t asked, begun; /* of the last depth_at(): the next one's are near */
};

static int entry_order(const void *pa, const void *pb)
{
	int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;

	return a < b ? -1 : a > b;
}

/* Works of one launch are neighbours in their stream. */
static bool same_launch(const struct work *a, const struct work *b)
{
	if (a->earlier || b->earlier)
		return a->earlier && b->earlier && a->graph && a->graph == b->graph &&
		       a->correlation == b->correlation;
	return a->call == b->call;
}

static int find_queued(struct timing *t, const struct session_stream *st)
{
	const struct session *s = t->s;
	const struct work *last = NULL;
	bool sorted = true;

	t->count = t->asked = t->begun = 0;
	for (uint32_t i = st->first_work; i < st->first_work + st->works; i++) {
		const struct work *w = &s->works[i];

		work_fetch_call(s, i);
		if (work_unmatched(w) || (last && same_launch(last, w)))
			continue;
		last = w;
		if (GROW(t->starts, t->starts_cap, t->count + 1) ||
		    GROW(t->entries, t->entries_cap, t->count + 1))
			return -ENOMEM;
		t->entries[t->count] = work_asked(s, w);
		sorted = sorted && (!t->count || t->entries[t->count - 1] <= t->entries[t->count]);
		t->starts[t->count++] = w->begin;
	}
	if (!sorted)
		qsort(t->entries, t->count, sizeof(*t->entries), entry_order);
	return 0;
}

/* Launches that had been made and not begun when this one was entered. */
static uint32_t depth_at(struct timing *t, int64_t entry)
{
	size_t size = sizeof(int64_t);

	t->asked = near_find(t->entries, size, t->count, entry, t->asked);
	t->begun = near_find(t->starts, size, t->count, entry + 1, t->begun);
	return t->asked > t->begun ? (uint32_t)(t->asked - t->begun) : 0;
}

static int64_t positive(int64_t ns)
{
	return ns > 0 ? ns : 0;
}

static bool is_first_of_call(const struct session *s, uint32_t work)
{
	size_t count;
	const uint32_t *works;

	if (!s->works[work].graph)
		return true;
	works = works_of(s, s->works[work].call, &count);
	return works && works[0] == work;
}

static void fill(struct timing *t, uint32_t work, int64_t free_from)
{
	const struct session *s = t->s;
	const struct work *w = &s->works[work];
	const struct call *c = &s->calls[w->call];
	struct work_times *out = &t->times[work];
	int64_t took = call_duration(c);
	bool known = work_queue_known(s, w, c->begin, free_from);

	out->launch_to_start = w->begin - c->begin;
	out->depth = depth_at(t, c->begin);
	if (known && free_from <= c->begin && is_first_of_call(s, work) &&
	    !spans_within(&t->overheads, c->begin, w->begin))
		out->flags |= WORK_UNCONTENDED;
	if (took < 0)
		return;
	out->queue_time = positive(w->begin - c->end);
	if (known && free_from > c->end)
		out->queue_delay =
			positive((free_from < w->begin ? free_from : w->begin) - c->end);
	else if (known)
		out->queue_delay = 0;
	out->total = (c->end > w->end ? c->end : w->end) - c->begin;
	if (took > BACK_PRESSURE_NS && out->depth >= BACK_PRESSURE_DEPTH)
		out->flags |= WORK_BACK_PRESSURED;
	else if (w->kind == RECORD_WORK_KERNEL && !w->graph && w->end - w->begin < took)
		out->flags |= WORK_SHORT;
}

static int time_stream(struct timing *t, const struct session_stream *st)
{
	const struct session *s = t->s;
	int64_t free_from = INT64_MIN;
	int err = find_queued(t, st);

	for (uint32_t w = st->first_work; w < st->first_work + st->works && !err; w++) {
		work_fetch_call(s, w);
		t->times[w] = (struct work_times){ NA_TIME, NA_TIME, NA_TIME, NA_TIME, 0, 0 };
		if (s->works[w].call != CALL_NONE)
			fill(t, w, free_from);
		if (s->works[w].end > free_from)
			free_from = s->works[w].end;
	}
	return err;
}

/* Where a thread's launch went to another stream than its launch before. */
static void mark_side_streams(const struct session *s, struct work_times *times)
{
	uint32_t thread = UINT32_MAX, stream = UINT32_MAX;

	for (size_t i = 0; i < s->call_works_count; i++) { /* by call, and so by thread and time */
		const struct work *w = &s->works[s->call_works[i]];

		if (i && s->works[s->call_works[i - 1]].call == w->call)
			continue;
		if (s->calls[w->call].thread == thread && w->stream != stream)
			times[s->call_works[i]].flags |= WORK_SIDE_STREAM;
		thread = s->calls[w->call].thread;
		stream = w->stream;
	}
}

static int find_overheads(struct timing *t)
{
	const struct session *s = t->s;
	size_t cap = 0;

	for (size_t i = 0; i < s->overheads_count; i++) {
		const struct session_overhead *o = &s->overheads[i];
		struct span *last = t->overheads.count
					    ? &t->overheads.items[t->overheads.count - 1] : NULL;

		if (last && o->begin <= last->end) {
			last->end = o->end > last->end ? o->end : last->end;
			continue;
		}
		if (GROW(t->overheads.items, cap, t->overheads.count + 1))
			return -ENOMEM;
		t->overheads.items[t->overheads.count++] = (struct span){ o->begin, o->end };
	}
	return 0;
}

int work_times(const struct session *s, struct work_times **times)
{
	struct timing t = { .s = s };
	int err;

	*times = NULL;
	t.times = calloc(s->works_count + 1, sizeof(*t.times));
	err = t.times ? find_overheads(&t) : -ENOMEM;
	for (size_t i = 0; i < s->streams_count && !err; i++)
		err = time_stream(&t, &s->streams[i]);
	if (!err)
		mark_side_streams(s, t.times);
	spans_free(&t.overheads);
	free(t.starts);
	free(t.entries);
	if (err)
		free(t.times);
	else
		*times = t.times;
	return err;
}
