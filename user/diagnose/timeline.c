// SPDX-License-Identifier: BSD-2-Clause
#include "diagnose/timeline.h"

#include <errno.h>
#include <stdlib.h>

#include "diagnose/diagnose.h"
#include "model/grow.h"
#include "probe/catalogue.h"
#include "util/near.h"
#include "util/select.h"

#define COLD_NS 100000	   /* a shorter call that might load something has not */

struct feed_list {
	struct feed_span *items;
	size_t count, cap;
};

static bool is_cold(const struct session_api *api, const struct call *c, int64_t ns)
{
	if (c->flags & CALL_COLD)
		return true;
	return ns >= COLD_NS && (api->kind == API_MODULE || api->kind == API_CONTEXT);
}

bool queue_blocked(struct queue_guess *q, const struct session *s, const struct call *c,
		   int64_t quick)
{
	unsigned sorts = s->apis[c->api].sorts;
	int64_t ns = call_duration(c);
	bool slow = ns > BACK_PRESSURE_NS || (ns > BLOCKED_NS && ns > BLOCKED_TIMES * quick);

	if (sorts & API_IS_WAIT || c->flags & CALL_POLL) {
		q->launches = 0;
		return false;
	}
	if (!(sorts & API_IS_LAUNCH))
		return false;
	q->launches++;
	return slow && q->launches >= BACK_PRESSURE_DEPTH;
}

static enum feed_state state_of(const struct session *s, const struct call *c, bool blocked)
{
	const struct session_api *api = &s->apis[c->api];
	int64_t ns = call_duration(c);

	if (is_cold(api, c, ns))
		return FEED_COLD;
	if (api->kind == API_COLLECTIVE)
		return FEED_COMM;
	if (c->flags & CALL_POLL)
		return FEED_WAIT;
	if (api->sorts & API_IS_WAIT)
		return api->sorts & API_IS_COPY ? FEED_COPY : FEED_WAIT;
	return blocked ? FEED_BLOCKED : FEED_DISPATCH;
}

/* One thread's spans follow each other. */
static int append(struct feed_list *l, size_t from, int64_t begin, int64_t end,
		  enum feed_state state)
{
	struct feed_span *last = l->count > from ? &l->items[l->count - 1] : NULL;

	if (last && begin < last->end)
		begin = last->end;
	if (end <= begin)
		return 0;
	if (last && last->end == begin && last->state == state) {
		last->end = end;
		return 0;
	}
	if (GROW(l->items, l->cap, l->count + 1))
		return -ENOMEM;
	l->items[l->count++] = (struct feed_span){ begin, end, state };
	return 0;
}

/* A call that never returned lasts until its process, or the recording, ended. */
static int64_t end_of(const struct session *s, const struct call *c, uint32_t process)
{
	if (c->flags & CALL_OPEN)
		return s->processes[process].last;
	if (c->flags & CALL_CUT)
		return c->end;
	return call_duration(c) < 0 ? c->begin : c->end;
}

/* One that was going on when a window began was so from its begin on. */
static int64_t begin_of(const struct session *s, const struct call *c)
{
	return c->flags & CALL_CUT && c->flags & CALL_NO_BEGIN ?
		       session_window_begin(s, c->end) : c->begin;
}

static int add_thread(const struct session *s, const struct session_thread *t, int64_t quick,
		      struct feed_list *l)
{
	struct queue_guess queue = { 0 };
	size_t from = l->count;
	int64_t before = INT64_MIN;
	int err = 0;

	for (uint32_t i = t->first_call; !err && i < t->first_call + t->calls; i++) {
		const struct call *c = &s->calls[i];
		int64_t begin = begin_of(s, c), end;

		if (c->parent != CALL_NONE)
			continue;
		end = end_of(s, c, t->process);
		if (before != INT64_MIN && begin > before && begin - before < AWAY_NS)
			err = append(l, from, before, begin, FEED_DISPATCH);
		if (!err)
			err = append(l, from, begin, end,
				     state_of(s, c, queue_blocked(&queue, s, c, quick)));
		before = end > before ? end : before;
	}
	return err;
}

struct edge {
	int64_t at;
	int8_t step; /* 1 begin, -1 end */
	uint8_t state;
};

#define RUNS_SORT sort_edges
#define RUNS_TYPE struct edge
#define RUNS_AFTER(a, b, ctx) ((a)->at > (b)->at)
#include "util/runs.h"

/* Several threads become one: at each moment the state that counts first. */
static int merge(struct feed_list *l)
{
	uint32_t inside[FEED_STATES] = { 0 };
	struct edge *edges = malloc((2 * l->count + 1) * sizeof(*edges));
	size_t n = 0;
	int err = 0;

	if (!edges)
		return -ENOMEM;
	for (size_t i = 0; i < l->count; i++) {
		uint8_t state = (uint8_t)l->items[i].state;

		edges[n++] = (struct edge){ l->items[i].begin, 1, state };
		edges[n++] = (struct edge){ l->items[i].end, -1, state };
	}
	err = sort_edges(edges, n, NULL);
	l->count = 0;
	for (size_t i = 0; !err && i < n; i++) {
		int state = 0;

		inside[edges[i].state] += (uint32_t)edges[i].step;
		while (state < FEED_AWAY && !inside[state])
			state++;
		if (state < FEED_AWAY && i + 1 < n)
			err = append(l, 0, edges[i].at, edges[i + 1].at, (enum feed_state)state);
	}
	free(edges);
	return err;
}

/* The tenth percentile: with a full queue most launches are held up. 0: there are none. */
int64_t quick_launch(int64_t *ns, size_t count)
{
	return count ? select_rank(ns, count, count / 10) : 0;
}

#define SAMPLE 4096 /* launches */
static int64_t quick_of(const struct session *s, const struct feeders *f)
{
	int64_t ns[SAMPLE];
	size_t n = 0;

	for (size_t i = 0; i < f->count && n < SAMPLE; i++) {
		const struct call *c = &s->calls[f->calls[i]];

		if (s->apis[c->api].sorts & API_IS_LAUNCH && call_duration(c) >= 0 &&
		    !(c->flags & CALL_COLD))
			ns[n++] = call_duration(c);
	}
	return quick_launch(ns, n);
}

int timeline_feed(const struct session *s, const struct feeders *f, struct feed_timeline *out)
{
	int64_t quick = quick_of(s, f);
	struct feed_list l = { 0 };
	int err = 0;

	*out = (struct feed_timeline){ 0 };
	for (size_t i = 0; !err && i < f->threads_count; i++)
		err = add_thread(s, &s->threads[f->thread[i]], quick, &l);
	if (!err && f->threads_count > 1)
		err = merge(&l);
	if (err) {
		free(l.items);
		return err;
	}
	out->items = l.items;
	out->count = l.count;
	out->first = l.count ? l.items[0].begin : 0;
	out->last = l.count ? l.items[l.count - 1].end : 0;
	return 0;
}

void timeline_free(struct feed_timeline *t)
{
	free(t->items);
	*t = (struct feed_timeline){ 0 };
}

void timeline_sum_near(const struct feed_timeline *t, int64_t from, int64_t to,
		       int64_t ns[FEED_STATES], size_t *near)
{
	int64_t at = from;

	if (t->count) /* the first that ends after from */
		*near = near_find(&t->items->end, sizeof(*t->items), t->count, from + 1, *near);
	for (size_t i = *near; i < t->count && t->items[i].begin < to; i++) {
		const struct feed_span *v = &t->items[i];
		int64_t begin = v->begin > from ? v->begin : from;
		int64_t end = v->end < to ? v->end : to;

		ns[FEED_AWAY] += begin - at;
		ns[v->state] += end - begin;
		at = end;
	}
	if (to > at)
		ns[FEED_AWAY] += to - at;
}

void timeline_sum(const struct feed_timeline *t, int64_t from, int64_t to,
		  int64_t ns[FEED_STATES])
{
	size_t near = t->count / 2;

	timeline_sum_near(t, from, to, ns, &near);
}

int timeline_device(const struct session *s, uint32_t process, uint32_t physical,
		    unsigned classes, struct spans *out)
{
	size_t cap = 0;
	int err = 0;

	*out = (struct spans){ 0 };
	for (size_t i = 0; i < s->streams_count && !err; i++) {
		const struct session_stream *t = &s->streams[i];

		if (t->process != process || s->devices[t->device].physical != physical)
			continue;
		err = GROW(out->items, cap, out->count + t->works);
		for (uint32_t k = t->first_work; k < t->first_work + t->works && !err; k++) {
			const struct work *w = &s->works[k];

			if (work_class(s, w) & classes && w->end > w->begin)
				out->items[out->count++] = (struct span){ w->begin, w->end };
		}
	}
	if (!err)
		err = spans_unite(out);
	if (err)
		spans_free(out);
	return err;
}

bool timeline_works_on(const struct session *s, uint32_t process, uint32_t physical)
{
	for (size_t i = 0; i < s->streams_count; i++)
		if (s->streams[i].process == process && s->streams[i].works &&
		    s->devices[s->streams[i].device].physical == physical)
			return true;
	return false;
}

bool timeline_shared(const struct session *s, uint32_t process, uint32_t physical)
{
	for (size_t i = 0; i < s->streams_count; i++)
		if (s->streams[i].process != process && s->streams[i].works &&
		    s->devices[s->streams[i].device].physical == physical)
			return true;
	return false;
}

int neighbours_find(const struct session *s, uint32_t process, uint32_t physical,
		    struct neighbours *out)
{
	int err;

	*out = (struct neighbours){ 0 };
	if (!timeline_shared(s, process, physical))
		return 0;
	err = device_busy(s, physical, WORK_CLASS_ALL, &out->all);
	return err ? err : timeline_device(s, process, physical, WORK_CLASS_ALL, &out->own);
}

void neighbours_free(struct neighbours *n)
{
	spans_free(&n->all);
	spans_free(&n->own);
}

int64_t neighbours_ran(const struct neighbours *n, int64_t from, int64_t to)
{
	return spans_within(&n->all, from, to) - spans_within(&n->own, from, to);
}

int64_t neighbours_held(const struct neighbours *n, int64_t from, int64_t to)
{
	int64_t ran = neighbours_ran(n, from, to);

	return ran > 0 && ran >= to - from - ran ? to - from : ran;
}
