// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where the time of a device went: kernels before collectives before copies while any
 * ran; while none did, what the launching threads were doing until the next work was
 * asked for, and why it had not begun after that: others' work, or something unknown.
 */
#include <errno.h>
#include <stdlib.h>

#include "diagnose/shares.h"
#include "model/grow.h"

struct device {
	const struct session *s;
	const struct feed_timeline *feed;
	uint32_t process, physical;
	struct spans kernels, comms, any; /* comms: with kernels */
	int64_t *asked; /* of each span of any, when the work that begins it was; or INT64_MAX */
	size_t asked_cap;
	struct neighbours others;
	size_t near; /* of feed: timeline_sum_near() */
	int64_t first, each; /* where the first chunk begins; of each */
	struct shares *out;
};

static int64_t clamp(int64_t v, int64_t low, int64_t high)
{
	if (v > high)
		v = high;
	return v < low ? low : v;
}

static void device_free(struct device *d)
{
	spans_free(&d->kernels);
	spans_free(&d->comms);
	spans_free(&d->any);
	neighbours_free(&d->others);
	free(d->asked);
}

#define RUNS_SORT sort_works
#define RUNS_TYPE const struct work *
#define RUNS_AFTER(a, b, ctx) ((*(a))->begin > (*(b))->begin)
#include "util/runs.h"

/* The works of the process on the device, by begin; the caller frees. NULL: no memory. */
static const struct work **find_works(const struct device *d, size_t *count)
{
	const struct session *s = d->s;
	const struct work **all;
	size_t n = 0, most = 0;

	for (size_t i = 0; i < s->streams_count; i++)
		most += s->streams[i].process == d->process ? s->streams[i].works : 0;
	all = malloc((most + 1) * sizeof(const struct work *));
	for (size_t i = 0; all && i < s->streams_count; i++) {
		const struct session_stream *t = &s->streams[i];

		if (t->process != d->process || s->devices[t->device].physical != d->physical)
			continue;
		for (uint32_t k = t->first_work; k < t->first_work + t->works; k++)
			all[n++] = &s->works[k];
	}
	if (all && sort_works(all, n, NULL)) {
		free(all);
		all = NULL;
	}
	*count = n;
	return all;
}

/* Has the works fetched, and their calls, that add_works() comes to soon. */
static void fetch(const struct session *s, const struct work *const *all, size_t at, size_t count)
{
	if (at + 32 < count)
		__builtin_prefetch(all[at + 32]);
	if (at + 16 < count && all[at + 16]->call != CALL_NONE)
		__builtin_prefetch(&s->calls[all[at + 16]->call]);
}

/* A span of any that begins with this work. */
static int begin_span(struct device *d, const struct work *w)
{
	if (GROW(d->asked, d->asked_cap, d->any.count + 1))
		return -ENOMEM;
	d->asked[d->any.count] = w->call == CALL_NONE ? INT64_MAX : d->s->calls[w->call].begin;
	return 0;
}

static int add_works(struct device *d, const struct work *const *all, size_t count)
{
	size_t kernels_cap = 0, comms_cap = 0, any_cap = 0;
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		const struct work *w = all[i];
		unsigned class = work_class(d->s, w);

		fetch(d->s, all, i, count);
		if (!d->any.count || w->begin > d->any.items[d->any.count - 1].end)
			err = begin_span(d, w);
		if (!err)
			err = spans_append(&d->any, &any_cap, w->begin, w->end);
		if (!err && class != WORK_CLASS_COPY)
			err = spans_append(&d->comms, &comms_cap, w->begin, w->end);
		if (!err && class == WORK_CLASS_COMPUTE)
			err = spans_append(&d->kernels, &kernels_cap, w->begin, w->end);
	}
	return err;
}

static int device_new(struct device *d)
{
	size_t count;
	const struct work **all = find_works(d, &count);
	int err = all ? add_works(d, all, count) : -ENOMEM;

	free(all);
	return err ? err : neighbours_find(d->s, d->process, d->physical, &d->others);
}

/* The state of the threads at a moment. */
static enum feed_state state_at(struct device *d, int64_t at)
{
	int64_t ns[FEED_STATES] = { 0 };

	timeline_sum_near(d->feed, at, at + 1, ns, &d->near);
	for (int state = 0; state < FEED_STATES; state++)
		if (ns[state])
			return (enum feed_state)state;
	return FEED_AWAY;
}

/* Idle, and the next work had not been asked for: what were the threads doing? */
static void not_asked(struct device *d, int64_t from, int64_t to, bool drained)
{
	int64_t ns[FEED_STATES] = { 0 };
	int64_t *out = d->out->ns;

	timeline_sum_near(d->feed, from, to, ns, &d->near);
	out[CLASS_OVERHEAD] += ns[FEED_DISPATCH];
	out[CLASS_COLD] += ns[FEED_COLD];
	out[CLASS_OTHER] += ns[FEED_BLOCKED];
	out[CLASS_COMM] += ns[FEED_COMM];
	out[CLASS_SYNC] += ns[FEED_WAIT] + ns[FEED_COPY];
	d->out->slack += ns[FEED_WAIT] + ns[FEED_COPY];
	out[CLASS_STARVED] += ns[FEED_AWAY];
	if (drained)
		d->out->drained += ns[FEED_DISPATCH];
}

/* In chunks the device worked while it did others' work that this process waited for. */
static void busy_for_others(struct device *d, int64_t from, int64_t to, bool whole)
{
	for (int i = (int)((from - d->first) / d->each); i < SHARE_CHUNKS; i++) {
		int64_t begin = clamp(d->first + d->each * i, from, to);
		int64_t end = clamp(d->first + d->each * (i + 1), from, to);

		if (end <= begin)
			break;
		d->out->chunk_busy[i] += whole ? end - begin :
						 neighbours_ran(&d->others, begin, end);
	}
}

/* The work that ends [from, to) had been asked for; in_time: before the device fell idle. */
static void asked_for(struct device *d, int64_t from, int64_t to, bool in_time)
{
	int64_t held = neighbours_held(&d->others, from, to);

	if (held > 0)
		busy_for_others(d, from, to, held == to - from);
	d->out->ns[CLASS_SHARED] += held;
	/* Asked for in time: something else held it up. */
	d->out->ns[in_time ? CLASS_OTHER : CLASS_OVERHEAD] += to - from - held;
}

/*
 * [from, to) is idle. When what ends it was asked for: INT64_MAX at a window's end or where
 * nobody knows.
 */
static void gap(struct device *d, int64_t from, int64_t to, int64_t asked)
{
	enum feed_state before = state_at(d, from);
	bool drained = before == FEED_WAIT || before == FEED_COPY;

	asked = clamp(asked, from, to);
	not_asked(d, from, asked, drained);
	asked_for(d, asked, to, asked == from);
}

static void window(struct device *d, int64_t from, int64_t to)
{
	int64_t at = from;

	for (size_t i = 0; i < d->any.count; i++) {
		const struct span *v = &d->any.items[i];

		if (v->end <= from)
			continue;
		if (v->begin >= to)
			break;
		if (v->begin > at)
			gap(d, at, v->begin, d->asked[i]);
		at = clamp(v->end, at, to);
	}
	if (to > at)
		gap(d, at, to, INT64_MAX);
	d->out->window += to - from;
	d->out->ns[CLASS_GPU] += spans_within(&d->kernels, from, to);
	d->out->ns[CLASS_COMM] +=
		spans_within(&d->comms, from, to) - spans_within(&d->kernels, from, to);
	d->out->ns[CLASS_COPY] +=
		spans_within(&d->any, from, to) - spans_within(&d->comms, from, to);
	d->out->busy += spans_within(&d->any, from, to);
}

/* [from, to) is where the process was covered. */
static void chunks(struct device *d, int64_t from, int64_t to)
{
	struct shares *out = d->out;

	out->chunk_from = d->first;
	for (int i = 0; i < SHARE_CHUNKS; i++) {
		int64_t begin = clamp(d->first + d->each * i, from, to);
		int64_t end = clamp(d->first + d->each * (i + 1), from, to);
		int64_t ns[FEED_STATES] = { 0 };

		if (end <= begin)
			continue;
		timeline_sum(d->feed, begin, end, ns);
		out->chunk_ns[i] += end - begin;
		out->chunk_busy[i] += spans_within(&d->any, begin, end);
		out->chunk_prepares[i] += ns[FEED_DISPATCH] + ns[FEED_COLD];
	}
}

/*
 * A wait that drains the queue exposes the CPU's preparing, which could have gone on while
 * the GPU worked. Without waits the window would take as long as the longer of what the
 * CPU does and what the GPU does: so much of the drained time is the waits' doing, and the
 * rest would be idle anyway. What others' work took is taken out, so that the answer is the
 * same as if the process had the device alone.
 */
static void blame_waits(struct shares *v)
{
	int64_t cpu = v->feed[FEED_DISPATCH] + v->feed[FEED_COLD] + v->feed[FEED_AWAY];
	int64_t needed = cpu * v->devices > v->busy ? cpu * v->devices : v->busy;
	int64_t alone = v->window - v->ns[CLASS_SHARED];
	int64_t could = alone - needed - v->ns[CLASS_SYNC];
	int64_t moved = clamp(could, 0, v->drained);

	v->ns[CLASS_OVERHEAD] -= moved;
	v->ns[CLASS_SYNC] += moved;
}

static void find_chunks(struct device *d)
{
	const struct session *s = d->s;
	int64_t first = INT64_MAX, last = 0;

	for (size_t i = 0; i < s->covers_count; i++) {
		if (s->covers[i].process != d->process)
			continue;
		first = s->covers[i].begin < first ? s->covers[i].begin : first;
		last = s->covers[i].end > last ? s->covers[i].end : last;
	}
	d->first = first < last ? first : last;
	d->each = (last - d->first) / SHARE_CHUNKS + 1;
}

static int one_device(struct device *d)
{
	const struct session *s = d->s;
	int err = device_new(d);

	find_chunks(d);
	for (size_t i = 0; !err && i < s->covers_count; i++) {
		if (s->covers[i].process != d->process)
			continue;
		window(d, s->covers[i].begin, s->covers[i].end);
		chunks(d, s->covers[i].begin, s->covers[i].end);
	}
	device_free(d);
	return err;
}

int shares_gpu(const struct session *s, uint32_t process, const struct feed_timeline *feed,
	       struct shares *out)
{
	out->basis = BASIS_CPU_GPU;
	for (uint32_t i = 0; i < s->devices_count; i++) {
		struct device d = { .s = s, .feed = feed, .process = process, .physical = i,
				    .out = out };
		int err;

		if (s->devices[i].physical != i || !timeline_works_on(s, process, i))
			continue;
		out->devices++;
		err = one_device(&d);
		if (err)
			return err;
	}
	for (size_t i = 0; out->devices && i < s->covers_count; i++)
		if (s->covers[i].process == process)
			timeline_sum(feed, s->covers[i].begin, s->covers[i].end, out->feed);
	blame_waits(out);
	return 0;
}
