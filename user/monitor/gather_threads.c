/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the wall time of a process's threads went in an interval. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/private.h"

#define WAITS_EACH_CUT 3 /* so many waits in windows for each that is cut off, or more */
#define ATTACHING_NS 300e3 /* a window; measured as a whole: docs/measurements.md */

static struct estimate share_of(const struct gathering *g, const struct mon_process *p,
				const struct mon_thread *t, unsigned waits)
{
	const struct mon_image *item = item_of(g, p);
	/* what windows saw is estimated from; a window that stayed open saw everything */
	double ns = (double)(t->now.time[0][waits] - t->begin.time[0][waits] +
			     t->now.time[1][waits] - t->begin.time[1][waits]) -
		    (double)t->seen[waits];
	struct estimate steady = exactly(ns / (double)g->length), e;
	struct interval_facts facts;

	if (steady.value > 1 || steady.value < 0)
		steady = exactly(steady.value > 1);
	if (!item_sampled(item))
		return steady;
	if (!t->share[waits]) {
		steady.known = waits || item->windows;
		return steady;
	}
	facts = facts_of(g, p, waits ? NULL : &t->anchors, (double)t->seen[waits]);
	e = sum_of(steady, hot_part(g, item, estimate_share(t->share[waits], &facts)));
	/* where waits outlast windows, some begin before one and end after it: unseen */
	if (waits && WAITS_EACH_CUT * p->waits_cut > p->waits_seen)
		e.known = false;
	e.value = e.value > 1 ? 1 : e.value;
	e.high = e.high > 1 ? 1 : e.high;
	e.low = e.low > 1 ? 1 : e.low;
	return e;
}

static struct estimate rest_of(struct estimate a, struct estimate b)
{
	struct estimate e = {.known = a.known && b.known};

	e.value = 1 - a.value - b.value;
	e.low = 1 - a.high - b.high;
	e.high = 1 - a.low - b.low;
	if (e.value < 0)
		e.value = 0;
	if (e.low < 0)
		e.low = 0;
	if (e.high < 0)
		e.high = 0;
	return e;
}

static void waits_gather(const struct gathering *g, const struct mon_thread *t,
			 struct snapshot_thread *out)
{
	double away[2] = {0}, share, calls, length = (double)g->length;
	unsigned in, k;

	out->sched_known = g->m->counts.switch_link >= 0;
	for (in = 0; in < GBPF_INS; in++)
		for (k = 1; k < GBPF_WAITS; k++) {
			share = (double)(t->now.wait[in][k] - t->begin.wait[in][k]) / length;
			if (share < 0 || share > 1) /* corrected since: see runnable_correct() */
				share = share < 0 ? 0 : 1;
			away[in != GBPF_IN_NONE] += share;
			if (k == WAIT_RUNNABLE)
				out->lost_share += share;
			if (in == GBPF_IN_NONE)
				out->wait_share[k] = share;
		}
	calls = out->dispatch_share.value + out->sync_share.value;
	out->call_sleep_share = away[1] < calls ? away[1] : calls;
	out->call_spin_share = calls - out->call_sleep_share;
	share = out->elsewhere_share.value - away[0];
	out->wait_share[WAIT_RUNNING] = share > 0 ? share : 0;
}

/* Known only where no launch can have been missed: those would cut an absence short. */
static void away_gather(const struct gathering *g, const struct mon_process *p,
			const struct mon_thread *t, struct snapshot_thread *out)
{
	const struct mon_image *item = item_of(g, p);
	int64_t away = (int64_t)(t->now.away - t->begin.away);
	int64_t asleep = (int64_t)(t->now.asleep - t->begin.asleep);

	out->away_known = item && (!item_sampled(item) || item->covered >= item->hot_ns);
	/* read while it came back, they may seem to have shrunk */
	out->away_share = away > 0 ? (double)away / (double)g->length : 0;
	out->asleep_share = asleep > 0 ? (double)asleep / (double)g->length : 0;
	if (out->away_share > out->elsewhere_share.high)
		out->away_share = out->elsewhere_share.high;
	if (out->asleep_share > out->away_share)
		out->asleep_share = out->away_share;
}

/*
 * What attaching and detaching stop a thread for, while it is on a CPU: no hit accounts for
 * it. Of the windows it was in, ns.
 */
static double attaching_ns(const struct mon_image *item, const struct mon_thread *t)
{
	double share;

	if (!item_sampled(item))
		return 0;
	share = t->anchors.all / (double)item->hot_ns;
	share = share > 1 ? 1 : share > 0 ? share : 0;
	return (double)item->windows * ATTACHING_NS * share;
}

static void thread_gather(const struct gathering *g, const struct mon_process *p,
			  struct mon_thread *t, struct snapshot_thread *out)
{
	double spent = (double)(t->now.spent[0] + t->now.spent[1] - t->begin.spent[0] -
				t->begin.spent[1]);

	memset(out, 0, sizeof(*out));
	out->tid = t->tid;
	memcpy(out->comm, t->comm, sizeof(out->comm));
	out->dispatch_share = share_of(g, p, t, 0);
	out->sync_share = share_of(g, p, t, 1);
	out->elsewhere_share = rest_of(out->dispatch_share, out->sync_share);
	waits_gather(g, t, out);
	out->launches = t->now.launches - t->begin.launches;
	away_gather(g, p, t, out);
	spent = spent * cost_of(g->m, p).factor + attaching_ns(item_of(g, p), t);
	out->overhead_pct = 100 * spent / (double)g->length;
	out->open_api = t->now.open_api;
	out->open_since = t->now.open_since;
}

static bool busier(const struct snapshot_thread *a, const struct mon_thread *x,
		   const struct snapshot_thread *b, const struct mon_thread *y)
{
	uint64_t la = x->now.launches - x->begin.launches, lb = y->now.launches - y->begin.launches;

	if (la != lb)
		return la > lb;
	return a->dispatch_share.value + a->sync_share.value >
	       b->dispatch_share.value + b->sync_share.value;
}

int threads_gather(const struct gathering *g, struct mon_process *p,
			  struct snapshot_process *out)
{
	double most = 0, sum = 0, worked = 0, own;
	size_t i, best = 0;

	out->threads = calloc(p->threads_count + 1, sizeof(*out->threads));
	if (!out->threads)
		return -ENOMEM;
	for (i = 0; i < p->threads_count; i++) {
		thread_gather(g, p, p->threads[i], &out->threads[i]);
		own = out->threads[i].overhead_pct;
		most = own > most ? own : most;
		sum += own;
		if (own > 0)
			worked += thread_worked(&p->threads[i]->now) -
				  thread_worked(&p->threads[i]->begin);
		if (i && busier(&out->threads[i], p->threads[i], &out->threads[best],
				p->threads[best]))
			best = i;
	}
	out->threads_count = p->threads_count;
	out->overhead_pct = cost_together(most, sum, worked / (double)g->length);
	if (p->threads_count) {
		out->dispatch_share = out->threads[best].dispatch_share;
		out->sync_share = out->threads[best].sync_share;
		out->elsewhere_share = out->threads[best].elsewhere_share;
	}
	return 0;
}
