// SPDX-License-Identifier: BSD-2-Clause
/* What a process did in each part of the traced time. */
#include <errno.h>
#include <stdlib.h>

#include "diagnose/ranks.h"
#include "model/grow.h"
#include "probe/catalogue.h"

/* Parts have the same traced time each, whatever lies between windows. */
static void find_edges(struct ranks *r)
{
	const struct session *s = r->s;
	int64_t all = 0, before = 0;
	int b = 0;

	for (size_t i = 0; i < s->windows_count; i++)
		all += s->windows[i].end - s->windows[i].begin;
	r->block_ns = (double)all / RANK_BLOCKS;
	for (size_t i = 0; i < s->windows_count; i++) {
		int64_t ns = s->windows[i].end - s->windows[i].begin;

		for (; b < RANK_BLOCKS && (double)(before + ns) > r->block_ns * b; b++)
			r->edge[b] = s->windows[i].begin + (int64_t)(r->block_ns * b) - before;
		before += ns;
	}
	for (; b <= RANK_BLOCKS; b++)
		r->edge[b] = s->end;
}

int ranks_new(struct ranks *r, const struct session *s, size_t processes)
{
	*r = (struct ranks){ .s = s };
	if (processes < 2 || processes > RANKS_MAX)
		return 0;
	find_edges(r);
	r->looks = calloc(processes, sizeof(*r->looks));
	r->of = calloc(processes, sizeof(*r->of));
	r->binds = calloc(s->kernels_count + 1, sizeof(*r->binds));
	r->seen = calloc(s->kernels_count + s->apis_count + 1, sizeof(*r->seen));
	if (!r->looks || !r->of || !r->binds || !r->seen)
		return -ENOMEM;
	for (size_t i = 0; i < s->kernels_count; i++)
		r->binds[i] = s->kernels[i].comm && kernel_binds_all(s->kernels[i].mangled);
	return 0;
}

void ranks_free(struct ranks *r)
{
	for (size_t i = 0; i < r->count; i++)
		free(r->looks[i].parts);
	for (int b = 0; b < RANK_BLOCKS; b++)
		free(r->launches[b].ns);
	free(r->looks);
	free(r->of);
	free(r->binds);
	free(r->seen);
	*r = (struct ranks){ 0 };
}

static int block_at(const struct ranks *r, int64_t at)
{
	int low = 0, high = RANK_BLOCKS - 1;

	while (low < high) {
		int middle = (low + high + 1) / 2;

		if (r->edge[middle] <= at)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

/* What its threads did in [from, to), which lies in one part. */
static void take_time(struct rank_look *l, int block, const struct feed_timeline *feed,
		      int64_t from, int64_t to)
{
	int64_t ns[FEED_STATES] = { 0 };

	timeline_sum(feed, from, to, ns);
	l->ns[block] += (double)(to - from);
	l->waited[block] += (double)(ns[FEED_WAIT] + ns[FEED_COMM] + ns[FEED_COPY] +
				     ns[FEED_BLOCKED]);
}

static void take_times(const struct ranks *r, struct rank_look *l,
		       const struct feed_timeline *feed)
{
	const struct session *s = r->s;
	const struct session_process *p = &s->processes[l->process];

	for (size_t i = 0; i < s->windows_count; i++)
		for (int b = 0; b < RANK_BLOCKS; b++) {
			int64_t from = s->windows[i].begin, to = s->windows[i].end;

			from = from > r->edge[b] ? from : r->edge[b];
			to = to < r->edge[b + 1] ? to : r->edge[b + 1];
			from = from > p->first ? from : p->first;
			to = to < p->last ? to : p->last;
			if (from < to)
				take_time(l, b, feed, from, to);
		}
}

/* What a launch is known by: its kernel if that has a name, else its function. */
static uint32_t key_of(const struct session *s, const struct call *c)
{
	if (c->kernel < s->kernels_count && s->kernels[c->kernel].named)
		return c->kernel;
	return (uint32_t)s->kernels_count + c->api;
}

static int take_call(struct ranks *r, struct rank_look *l, const struct call *c, bool blocked)
{
	const struct session_api *api = &r->s->apis[c->api];
	int64_t ns = call_duration(c);
	int block = block_at(r, c->begin);
	struct rank_launches *to = &r->launches[block];

	l->collectives += api->kind == API_COLLECTIVE;
	l->waits += !!(api->sorts & API_IS_WAIT);
	if (!(api->sorts & API_IS_LAUNCH))
		return 0;
	l->launches++;
	l->launched[block]++;
	l->collectives += c->kernel < r->s->kernels_count && r->s->kernels[c->kernel].comm;
	r->seen[key_of(r->s, c)]++;
	if (ns < 0 || blocked || c->flags & CALL_COLD)
		return 0;
	if (GROW(to->ns, to->cap, to->count + 1))
		return -ENOMEM;
	to->ns[to->count++] = ns;
	return 0;
}

/* One thread's outermost calls. */
static int take_thread(struct ranks *r, struct rank_look *l, const struct session_thread *t)
{
	struct queue_guess queue = { 0 };
	int err = 0;

	for (uint32_t i = t->first_call; !err && i < t->first_call + t->calls; i++) {
		const struct call *c = &r->s->calls[i];

		/* By its length alone: what is quick may be what differs. */
		if (c->parent == CALL_NONE)
			err = take_call(r, l, c,
					queue_blocked(&queue, r->s, c, BACK_PRESSURE_NS));
	}
	return err;
}

static int take_calls(struct ranks *r, struct rank_look *l)
{
	const struct session *s = r->s;
	int err = 0;

	for (int b = 0; b < RANK_BLOCKS; b++)
		r->launches[b].count = 0;
	for (size_t i = 0; !err && i < s->threads_count; i++)
		if (s->threads[i].process == l->process)
			err = take_thread(r, l, &s->threads[i]);
	for (int b = 0; !err && b < RANK_BLOCKS; b++) {
		struct rank_launches *all = &r->launches[b];

		if (all->count)
			l->dispatch[b] = (double)quantile(all->ns, all->count, 500);
	}
	return err;
}

/* What was counted becomes the look's list, and the counts 0 again. */
static int take_parts(struct ranks *r, struct rank_look *l)
{
	size_t all = r->s->kernels_count + r->s->apis_count, n = 0;

	for (size_t i = 0; i < all; i++)
		n += r->seen[i] != 0;
	l->parts = malloc((n + 1) * sizeof(*l->parts));
	for (size_t i = 0; i < all; i++) {
		if (r->seen[i] && l->parts)
			l->parts[l->parts_count++] =
				(struct rank_part){ (uint32_t)i, r->seen[i] };
		r->seen[i] = 0;
	}
	return l->parts ? 0 : -ENOMEM;
}

static void take_works(const struct ranks *r, struct rank_look *l)
{
	const struct session *s = r->s;

	for (size_t i = 0; i < s->streams_count; i++) {
		const struct session_stream *t = &s->streams[i];

		for (uint32_t k = t->first_work; t->process == l->process &&
						 k < t->first_work + t->works; k++) {
			const struct work *w = &s->works[k];
			int block = block_at(r, w->begin);

			if (w->kernel >= s->kernels_count)
				continue;
			l->collectives += w->graph && s->kernels[w->kernel].comm;
			if (!r->binds[w->kernel])
				continue;
			l->bound_ns[block] += (double)(w->end - w->begin);
			l->bound[block]++;
			l->bound_all++;
		}
	}
}

static void take_shares(struct rank_look *l, const struct facts *f)
{
	const int64_t *feed = f->shares->feed;
	double all = 0;

	for (int state = 0; state < FEED_STATES; state++)
		all += (double)feed[state];
	if (!(all > 0))
		return;
	l->share_dispatch = (double)feed[FEED_DISPATCH] / all;
	l->share_away = (double)feed[FEED_AWAY] / all;
	l->share_cold = (double)feed[FEED_COLD] / all;
	l->share_kernels = (double)(f->kernel_ns - f->comm_ns) / all;
}

int ranks_look(struct ranks *r, const struct facts *f, const struct feed_timeline *feed,
	       bool whole)
{
	const struct session *s = r->s;
	struct rank_look *l;
	int err;

	if (!r->looks)
		return 0;
	l = &r->looks[r->count++];
	*l = (struct rank_look){ .process = f->process, .whole = whole, .steps = f->steps,
				 .rank = session_label(s, f->process, "rank"),
				 .host = session_label(s, f->process, "host") };
	take_shares(l, f);
	take_times(r, l, feed);
	err = take_calls(r, l);
	if (!err)
		err = take_parts(r, l);
	if (!err)
		take_works(r, l);
	return err;
}
