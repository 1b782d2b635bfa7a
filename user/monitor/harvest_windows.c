/* SPDX-License-Identifier: BSD-2-Clause */
/* What windows saw, and what they cost. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/private.h"

#define RAMP_MAX_NS 30e6

static double grown(double now, double before)
{
	return now > before ? now - before : 0;
}

double thread_worked(const struct thread_read *t)
{
	double worked = (double)t->at;
	unsigned k;

	for (k = 0; k < GBPF_WAITS; k++)
		worked -= (double)(t->wait[GBPF_IN_NONE][k] + t->wait[GBPF_IN_DISPATCH][k]);
	return worked - (double)(t->time[0][1] + t->time[1][1]);
}

static bool process_of(const struct mon_process *p, const struct mon_image *item)
{
	return p->image == item->image;
}

/*
 * What is known all the time, and what launches come with: the work of a thread, or
 * where the scheduler does not tell, its calls that are always probed.
 */
struct anchor thread_anchor(const struct monitor *m, const struct thread_read *t)
{
	if (m->counts.switch_link < 0)
		return (struct anchor){.all = (double)t->calls[0]};
	return (struct anchor){thread_worked(t), (double)(t->spent[0] + t->spent[1])};
}

/* most: nobody works longer than that */
static void anchor_add(struct anchor *sum, struct anchor now, struct anchor before, double most)
{
	sum->all += fmin(grown(now.all, before.all), most);
	sum->spent += grown(now.spent, before.spent);
}

static struct anchor window_anchor(const struct monitor *m, const struct mon_process *p)
{
	struct anchor sum = {0};
	size_t i;

	for (i = 0; i < p->threads_count; i++) {
		const struct mon_thread *t = p->threads[i];

		if (t->closed.launches)
			anchor_add(&sum, thread_anchor(m, &t->closed),
				   thread_anchor(m, &t->opened), INFINITY);
	}
	return sum;
}

/*
 * Time for which probes cost the thread besides its last window: attaching one
 * after the other, and taking them away. ns, -1 where that window says nothing.
 */
static double ramp_of(const struct mon_thread *t, double spent, const struct mon_image *item)
{
	double ns;

	if (t->window_rate < 0.3 * item->peak || t->window_rate <= 0)
		return -1;
	ns = spent / t->window_rate -
	     (double)(item->closed - item->first_opened);
	return ns > 0 ? ns : 0;
}

void harvest_ramp(struct monitor *m, struct mon_image *item)
{
	double ramp = -1, one;
	size_t i, k;

	for (i = 0; i < m->processes_count; i++) {
		const struct mon_process *p = m->processes[i];
		double factor = process_of(p, item) ? cost_of(m, p).factor : 1;

		for (k = 0; process_of(p, item) && k < p->threads_count; k++) {
			struct mon_thread *t = p->threads[k];
			uint64_t spent = m->counts.threads[t->slot].spent[1];

			one = ramp_of(t, factor * (double)(spent - t->spent_opened), item);
			ramp = one > ramp ? one : ramp;
			t->spent_opened = spent;
		}
	}
	if (ramp >= 0)
		item->ramp_ns += 0.2 * ((ramp < RAMP_MAX_NS ? ramp : RAMP_MAX_NS) - item->ramp_ns);
}

void harvest_debt(struct monitor *m, struct mon_image *item)
{
	int64_t since = mon_now() - (m->next_tick - PERIOD_NS); /* the period began */
	size_t i, k;

	for (i = 0; i < m->processes_count; i++) {
		const struct mon_process *p = m->processes[i];

		for (k = 0; process_of(p, item) && k < p->threads_count; k++) {
			const struct gbpf_thread *t = &m->counts.threads[p->threads[k]->slot];
			uint64_t late = t->period_spent < t->spent[1] ? t->period_spent : 0;

			p->threads[k]->spent_opened = t->spent[1] - late;
			/* so that the first window is no longer than it may be */
			if (since > 0 && (double)late > p->threads[k]->hot_peak * (double)since)
				p->threads[k]->hot_peak = fmin(1, (double)late / (double)since);
		}
	}
}

void harvest_turn(struct monitor *m, struct mon_image *item, bool hot, int64_t now)
{
	double most = m->counts.switch_link < 0 ? INFINITY : (double)(now - item->hot_since);
	size_t i, k;

	for (i = 0; i < m->processes_count; i++) {
		struct mon_process *p = m->processes[i];
		struct anchor anchor;

		for (k = 0; process_of(p, item) && k < p->threads_count; k++) {
			struct mon_thread *t = p->threads[k];

			thread_read(m, t->slot, now, &t->now);
			anchor = thread_anchor(m, &t->now);
			if (item->hot_since)
				anchor_add(&t->anchors, anchor, t->anchor_at, most);
			if (item->hot_since && t->now.launches)
				anchor_add(&p->anchors, anchor, t->anchor_at, most);
			t->anchor_at = anchor;
		}
	}
	if (item->hot_since)
		item->hot_ns += now - (item->hot_since > m->begin ? item->hot_since : m->begin);
	item->hot_since = hot ? now : 0;
}

void harvest_window_begin(struct monitor *m, const struct mon_image *item)
{
	int64_t now = mon_now();
	size_t i, k;

	for (i = 0; i < m->processes_count; i++) {
		struct mon_process *p = m->processes[i];

		for (k = 0; process_of(p, item) && k < p->threads_count; k++)
			thread_read(m, p->threads[k]->slot, now, &p->threads[k]->opened);
		p->fresh = false;
	}
}

void harvest_window_read(struct monitor *m, const struct mon_image *item)
{
	int64_t now = mon_now();
	size_t i, k;

	for (i = 0; i < m->processes_count; i++) {
		const struct mon_process *p = m->processes[i];

		for (k = 0; process_of(p, item) && k < p->threads_count; k++)
			thread_read(m, p->threads[k]->slot, now, &p->threads[k]->closed);
	}
}

/*
 * A wait was open as the window began, and its return will never be seen: that went with the
 * link it was probed by, when its function came to be probed in windows. So the thread now
 * seems to have worked for all of it.
 */
static bool torn(const struct mon_process *p)
{
	for (size_t k = 0; k < p->threads_count; k++) {
		const struct thread_read *a = &p->threads[k]->opened, *b = &p->threads[k]->closed;

		if (b->time[0][1] < a->time[0][1] || b->time[1][1] < a->time[1][1])
			return true;
	}
	return false;
}

/* A quantity of a window into its series, which is made when it is first needed. */
static void series_put(struct series **s, struct window_count w, double count)
{
	w.count = count;
	if (!*s)
		*s = calloc(1, sizeof(**s));
	if (*s) /* without memory for it there is no estimate, which is said as n/a */
		series_add(*s, &w);
}

/*
 * A wait that the end of a window cut off is seen until then; those that its beginning cut
 * off are not seen, and last as long in it. So the former count twice.
 */
static double wait_cut_twice(struct mon_process *p, const struct mon_thread *t)
{
	if (!t->closed.cut || (int64_t)t->closed.cut > t->closed.at - t->opened.at)
		return 0;
	p->waits_cut++;
	return 2 * (double)t->closed.cut;
}

/* What probes took of the threads of a process in a window, ns. */
struct taken {
	double most, sum;      /* not while it waited: of one thread, of all */
	double rate_most, rate_sum; /* by probes of windows, of the window's length */
	double worked;
};

static void taken_add(struct taken *to, const struct mon_thread *t)
{
	const struct thread_read *a = &t->opened, *b = &t->closed;
	uint64_t spent = b->spent[0] + b->spent[1] - a->spent[0] - a->spent[1];
	uint64_t waited = b->time[0][1] + b->time[1][1] - a->time[0][1] - a->time[1][1];
	double lost = spent > waited ? (double)(spent - waited) : 0;

	if (!spent)
		return;
	to->most = fmax(to->most, lost);
	to->sum += lost;
	to->rate_most = fmax(to->rate_most, t->window_rate);
	to->rate_sum += t->window_rate;
	to->worked += grown(thread_worked(b), thread_worked(a));
}

/* Shares of each thread; in w->lost what the process lost to probes. */
static void threads_window(const struct monitor *m, struct mon_process *p,
			   struct window_count *w, bool closed)
{
	double factor = cost_of(m, p).factor;
	struct taken taken = {0};
	size_t k, n;

	for (k = 0; k < p->threads_count; k++) {
		struct mon_thread *t = p->threads[k];
		const struct thread_read *a = &t->opened, *b = &t->closed;
		uint64_t spent = b->spent[0] + b->spent[1] - a->spent[0] - a->spent[1];
		double rate = factor * (double)(b->spent[1] - a->spent[1]) / (double)w->length;

		t->window_rate = rate;
		if (rate > t->hot_peak)
			t->hot_peak = rate;
		taken_add(&taken, t);
		for (n = 0; n < 2; n++) {
			uint64_t ns = b->time[1][n] - a->time[1][n];

			struct window_count own = {.length = w->length,
						   .stands_for = w->stands_for};

			double cut = n && closed ? wait_cut_twice(p, t) : 0;

			if (!ns && !t->share[n] && !(cut > 0))
				continue;
			/* dispatching is work, waiting is none */
			if (!n && m->counts.switch_link >= 0) {
				own.anchor = grown(thread_worked(b), thread_worked(a));
				own.spent = (double)spent;
			}
			series_put(&t->share[n], own,
				   fmin((double)ns + cut, (double)w->length));
			t->seen[n] += ns;
		}
	}
	p->abreast = taken.worked / (double)w->length;
	p->hot_peak = fmax(p->hot_peak,
			   cost_together(taken.rate_most, taken.rate_sum, p->abreast));
	w->lost = (int64_t)cost_together(taken.most, taken.sum, p->abreast);
}

static void process_window(struct monitor *m, struct mon_process *p, struct window_count w,
			   bool closed)
{
	struct anchor anchor = window_anchor(m, p);
	bool whole = !p->fresh && !torn(p);
	uint64_t q[Q_COUNT] = {0};
	size_t i;

	w.anchor = anchor.all;
	w.spent = anchor.spent;
	cost_window(p);
	threads_window(m, p, &w, closed);
	for (i = 0; i < p->apis_count; i++) {
		struct mon_api *a = p->apis[i];
		struct cell_read now;

		if (!a->hot)
			continue;
		cell_read(&m->counts.cells[a->slot], &now);
		quantities_add(a, &a->last, &now, q);
		if (whole)
			series_put(&a->calls, w, (double)(now.calls - a->last.calls));
		peak_add(a, now.calls - a->last.calls, w.length);
		a->seen += now.calls - a->last.calls;
		if (m->counts.api_class[a->api] & GBPF_CLASS_WAITS)
			p->waits_seen += now.calls - a->last.calls;
		a->last = now;
	}
	for (i = 0; i < Q_COUNT; i++) {
		p->sampled[i] += q[i];
		/*
		 * What the first window of something saw, it saw for an unknown part of it. Of
		 * what none saw anything, that is known: no error is an answer.
		 */
		if (whole)
			series_put(&p->series[i], w, (double)q[i]);
	}
}

void harvest_window_end(struct monitor *m, struct mon_image *item, int64_t length)
{
	/* at the end of an interval only a part of the window, and of its stratum, is over */
	double part = item->open ? (double)length / (double)item->length : 1;
	struct window_count w = {.length = length};
	size_t i;

	part = part < 1 - item->told ? part : 1 - item->told;
	item->told += part;
	w.stands_for = (int64_t)(part * (double)item->period);
	for (i = 0; i < m->processes_count; i++) {
		struct mon_process *p = m->processes[i];

		if (process_of(p, item))
			process_window(m, p, w, !item->open);
	}
}
