/* SPDX-License-Identifier: BSD-2-Clause */
/* What the programs counted, read out of the tables: reading costs the targets nothing. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/private.h"
#include "probe/catalogue.h"

#define RAMP_MAX_NS 30e6
#define SHORTEST_NS 200000000LL /* a rate over less says little, */
#define FEW_CALLS 32		/* unless it is of more calls than this */

static uint64_t load(const __u64 *at)
{
	return __atomic_load_n(at, __ATOMIC_RELAXED);
}

static void cell_read(const struct gbpf_cell *c, struct cell_read *out)
{
	out->calls = load(&c->calls);
	out->errors = load(&c->errors);
	out->bytes = load(&c->bytes);
	out->sum_ns = load(&c->sum_ns);
	out->slow = load(&c->slow);
}

/* The open call of a thread that nothing is around of, if it is one that is always probed. */
static bool open_call(const struct gbpf_thread *t, struct gbpf_open *out)
{
	const volatile struct gbpf_thread *v = t;

	if (!v->depth)
		return false;
	memcpy(out, &t->open[0], sizeof(*out));
	return v->depth && !out->hot;
}

void thread_read(const struct monitor *m, uint32_t slot, int64_t now, struct thread_read *out)
{
	const struct gbpf_thread *t = &m->counts.threads[slot];
	struct gbpf_open open, again;
	uint64_t off;
	unsigned i;

	memset(out, 0, sizeof(*out));
	out->at = now;
	for (i = 0; i < 2; i++) {
		out->spent[i] = load(&t->spent[i]);
		out->calls[i] = load(&t->calls[i]);
		out->time[i][0] = load(&t->time[i][0]);
		out->time[i][1] = load(&t->time[i][1]);
	}
	memcpy(out->wait, t->wait, sizeof(out->wait));
	out->launches = load(&t->launches);
	off = load(&t->off_since);
	if (off && (int64_t)off < now && t->off_wait < GBPF_WAITS && t->off_in < GBPF_INS)
		out->wait[t->off_in][t->off_wait] += (uint64_t)now - off;
	/* one that returns just now must not count twice, as time and as open */
	if (open_call(t, &open) && (int64_t)open.ts < now) {
		uint64_t before = out->time[0][!!(open.class & GBPF_CLASS_WAITS)];

		if (open_call(t, &again) && again.ts == open.ts &&
		    load(&t->time[0][!!(open.class & GBPF_CLASS_WAITS)]) == before) {
			out->time[0][!!(open.class & GBPF_CLASS_WAITS)] += (uint64_t)now - open.ts;
			out->open_api = open.api;
			out->open_since = (int64_t)open.ts;
		}
	}
}

static int list_add(void *list, size_t *count, void *item)
{
	void **items = *(void ***)list, **grown;

	if (!(*count & (*count + 1)) || !items) { /* grows at powers of two less one */
		grown = realloc(items, (2 * *count + 2) * sizeof(*items));
		if (!grown)
			return -ENOMEM;
		*(void ***)list = items = grown;
	}
	items[(*count)++] = item;
	return 0;
}

static int cell_new(struct monitor *m, uint32_t slot, uint64_t key)
{
	const struct api *api = catalogue_get(key & 0xfff);
	struct mon_process *p;
	struct mon_api *a;
	int err;

	if (!api) /* calibration's own */
		return 0;
	p = process_add(m, (uint32_t)(key >> 12), &err);
	if (!p) {
		if (!err) /* it called, and is gone before anybody knew of it */
			counts_free_cell(&m->counts, slot);
		return err;
	}
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	a->api = key & 0xfff;
	a->class = mon_class(api) & ~GBPF_CLASS_WAITS;
	a->slot = slot;
	err = list_add(&p->apis, &p->apis_count, a);
	if (err) {
		free(a);
		return err;
	}
	m->apis[slot] = a;
	windows_mark(p, false);
	return 0;
}

static int thread_new(struct monitor *m, uint32_t slot, uint64_t key)
{
	uint32_t pid = (uint32_t)(key >> 32);
	struct mon_process *p;
	struct mon_thread *t;
	int err;

	if (pid == probes_switches(m->probes)->self)
		return 0;
	p = process_add(m, pid, &err);
	if (!p) {
		if (!err)
			counts_free_thread(&m->counts, slot);
		return err;
	}
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->slot = slot;
	t->tid = (uint32_t)key;
	t->begin.at = t->opened.at = p->seen > m->begin ? p->seen : m->begin;
	process_thread_comm(pid, t->tid, t->comm);
	err = list_add(&p->threads, &p->threads_count, t);
	if (err) {
		free(t);
		return err;
	}
	m->threads[slot] = t;
	return 0;
}

static void proc_find(struct monitor *m, uint32_t slot)
{
	struct mon_process *p = process_get(m, (uint32_t)m->counts.procs_keys[slot]);

	if (!p) {
		counts_free_proc(&m->counts, slot); /* gone before anybody knew of it */
	} else if (p->proc_slot != slot) {
		p->proc_slot = slot;
		memset(&p->proc_begin, 0, sizeof(p->proc_begin));
	}
}

int harvest(struct monitor *m)
{
	const struct counts *c = &m->counts;
	int64_t now = mon_now();
	uint32_t i;
	int err = 0;

	for (i = 0; !err && i < GBPF_CELLS; i++)
		if (c->cells_keys[i] && !m->apis[i])
			err = cell_new(m, i, c->cells_keys[i]);
	for (i = 0; !err && i < GBPF_THREADS; i++) {
		if (!c->threads_keys[i])
			continue;
		if (!m->threads[i])
			err = thread_new(m, i, c->threads_keys[i]);
		if (m->threads[i])
			thread_read(m, i, now, &m->threads[i]->now);
	}
	for (i = 0; i < GBPF_PROCS; i++)
		if (c->procs_keys[i])
			proc_find(m, i);
	return err;
}

/* What a thread worked so far, ns: on a CPU, not waiting for the GPU, not for our probes. */
static double thread_worked(const struct thread_read *t)
{
	double worked = (double)t->at;
	unsigned k;

	for (k = 0; k < GBPF_WAITS; k++)
		worked -= (double)(t->wait[GBPF_IN_NONE][k] + t->wait[GBPF_IN_DISPATCH][k]);
	worked -= (double)(t->time[0][1] + t->time[1][1]);
	return worked - (double)(t->spent[0] + t->spent[1]);
}

static double grown(double now, double before)
{
	return now > before ? now - before : 0;
}

static bool process_of(const struct mon_process *p, const struct mon_image *item)
{
	return p->image == item->image;
}

/*
 * What is known all the time, and what launches come with: the work of the threads
 * that call CUDA, or where the scheduler does not tell, the calls always probed.
 */
static double process_anchor(const struct monitor *m, const struct mon_process *p)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < p->threads_count; i++) {
		const struct thread_read *t = &p->threads[i]->now;

		if (!t->launches)
			continue;
		sum += m->counts.switch_link >= 0 ? thread_worked(t) : (double)t->calls[0];
	}
	return sum;
}

/*
 * Time for which probes cost the thread besides its last window: attaching one
 * after the other, and taking them away. ns, -1 where that window says nothing.
 */
static double ramp_of(const struct mon_thread *t, uint64_t spent, const struct mon_image *item)
{
	double ns;

	if (t->window_rate < 0.3 * item->peak || t->window_rate <= 0)
		return -1;
	ns = (double)(spent - t->spent_opened) / t->window_rate -
	     (double)(item->closed - item->first_opened);
	return ns > 0 ? ns : 0;
}

void harvest_ramp(struct monitor *m, struct mon_image *item)
{
	double ramp = -1, one;
	size_t i, k;

	for (i = 0; i < m->processes_count; i++) {
		const struct mon_process *p = m->processes[i];

		for (k = 0; process_of(p, item) && k < p->threads_count; k++) {
			struct mon_thread *t = p->threads[k];
			uint64_t spent = load(&m->counts.threads[t->slot].spent[1]);

			one = ramp_of(t, spent, item);
			ramp = one > ramp ? one : ramp;
			t->spent_opened = spent;
		}
	}
	if (ramp >= 0)
		item->ramp_ns += 0.2 * ((ramp < RAMP_MAX_NS ? ramp : RAMP_MAX_NS) - item->ramp_ns);
}

void harvest_turn(struct monitor *m, struct mon_image *item, bool hot, int64_t now)
{
	size_t i, k;

	for (i = 0; i < m->processes_count; i++) {
		struct mon_process *p = m->processes[i];
		double anchor;

		if (!process_of(p, item))
			continue;
		for (k = 0; k < p->threads_count; k++) {
			struct mon_thread *t = p->threads[k];

			thread_read(m, t->slot, now, &t->now);
			anchor = thread_worked(&t->now);
			if (item->hot_since)
				t->anchors += grown(anchor, t->anchor_at);
			t->anchor_at = anchor;
		}
		anchor = process_anchor(m, p);
		if (item->hot_since)
			p->anchors += grown(anchor, p->anchor_at);
		p->anchor_at = anchor;
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

		if (!process_of(p, item))
			continue;
		for (k = 0; k < p->threads_count; k++) {
			struct mon_thread *t = p->threads[k];

			thread_read(m, t->slot, now, &t->now);
			t->opened = t->now;
		}
		p->window_anchor = process_anchor(m, p);
	}
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

static void quantities_add(const struct mon_api *a, const struct cell_read *from,
			   const struct cell_read *to, uint64_t *q)
{
	q[Q_ERRORS] += to->errors - from->errors;
	if (a->class == GBPF_CLASS_LAUNCH) {
		q[Q_LAUNCHES] += to->calls - from->calls;
		q[Q_SLOW] += to->slow - from->slow;
	} else if (a->class == GBPF_CLASS_COPY) {
		const struct api *api = catalogue_get(a->api);

		q[Q_COPIES] += to->calls - from->calls;
		q[Q_COPY_BYTES] += (to->bytes - from->bytes) * (api->element ? api->element : 1);
	}
}

/* Shares of each thread; in w->lost what the busiest one lost to probes. */
static void threads_window(struct mon_process *p, struct window_count *w, bool sched)
{
	uint64_t most = 0;
	size_t k, n;

	for (k = 0; k < p->threads_count; k++) {
		struct mon_thread *t = p->threads[k];
		const struct thread_read *a = &t->opened, *b = &t->now;
		uint64_t spent = b->spent[0] + b->spent[1] - a->spent[0] - a->spent[1];
		uint64_t waited = b->time[0][1] + b->time[1][1] - a->time[0][1] - a->time[1][1];
		double rate = (double)(b->spent[1] - a->spent[1]) / (double)w->length;

		t->window_rate = rate;
		if (rate > t->hot_peak)
			t->hot_peak = rate;
		if (spent > most) {
			most = spent;
			w->lost = spent > waited ? (int64_t)(spent - waited) : 0;
		}
		for (n = 0; n < 2; n++) {
			uint64_t ns = b->time[1][n] - a->time[1][n];

			struct window_count own = {.length = w->length,
						   .stands_for = w->stands_for};

			if (!ns && !t->share[n])
				continue;
			if (!n && sched) /* dispatching is work, waiting is none */
				own.anchor = grown(thread_worked(b), thread_worked(a));
			series_put(&t->share[n], own, (double)ns);
			t->seen[n] += ns;
		}
	}
}

/* One call in a window of two milliseconds does not make five hundred a second. */
static void peak_add(struct mon_api *a, uint64_t calls, int64_t ns)
{
	double rate;

	a->pool_calls += calls;
	a->pool_ns += ns;
	if (a->pool_ns < SHORTEST_NS && a->pool_calls < FEW_CALLS)
		return;
	rate = (double)a->pool_calls * 1e9 / (double)a->pool_ns;
	if (rate > a->peak)
		a->peak = rate;
	a->pool_calls = 0;
	a->pool_ns = 0;
}

static void process_window(struct monitor *m, struct mon_process *p, struct window_count w)
{
	uint64_t q[Q_COUNT] = {0};
	size_t i;

	w.anchor = grown(process_anchor(m, p), p->window_anchor);
	threads_window(p, &w, m->counts.switch_link >= 0);
	for (i = 0; i < p->apis_count; i++) {
		struct mon_api *a = p->apis[i];
		struct cell_read now;

		if (!a->hot)
			continue;
		cell_read(&m->counts.cells[a->slot], &now);
		quantities_add(a, &a->last, &now, q);
		series_put(&a->calls, w, (double)(now.calls - a->last.calls));
		peak_add(a, now.calls - a->last.calls, w.length);
		a->seen += now.calls - a->last.calls;
		a->last = now;
	}
	for (i = 0; i < Q_COUNT; i++) {
		if (!p->series[i] && !q[i])
			continue;
		series_put(&p->series[i], w, (double)q[i]);
		p->sampled[i] += q[i];
	}
}

void harvest_window_end(struct monitor *m, struct mon_image *item, int64_t length)
{
	/* at the end of an interval only a part of the window, and of its stratum, is over */
	double part = item->open ? (double)length / (double)item->length : 1;
	struct window_count w = {.length = length};
	int64_t now = mon_now();
	size_t i, k;

	part = part < 1 - item->told ? part : 1 - item->told;
	item->told += part;
	w.stands_for = (int64_t)(part * (double)item->period);
	for (i = 0; i < m->processes_count; i++) {
		struct mon_process *p = m->processes[i];

		if (!process_of(p, item))
			continue;
		for (k = 0; k < p->threads_count; k++)
			thread_read(m, p->threads[k]->slot, now, &p->threads[k]->now);
		process_window(m, p, w);
	}
}

/* What is always probed, since it was read last. */
void harvest_steady(struct monitor *m, int64_t elapsed)
{
	size_t i, k;

	for (i = 0; i < m->processes_count; i++) {
		struct mon_process *p = m->processes[i];

		for (k = 0; k < p->apis_count; k++) {
			struct mon_api *a = p->apis[k];
			struct cell_read now;

			if (a->hot)
				continue;
			cell_read(&m->counts.cells[a->slot], &now);
			quantities_add(a, &a->last, &now, p->steady);
			peak_add(a, now.calls - a->last.calls, elapsed);
			a->last = now;
		}
	}
}

static void api_begin(struct monitor *m, struct mon_api *a, bool turn)
{
	const struct gbpf_cell *c = &m->counts.cells[a->slot];

	a->begin = a->last;
	a->seen = 0;
	a->mixed = false;
	a->peak *= 0.95; /* a burst a minute ago still counts 5 % */
	if (!turn || !recent_wanted(m, a))
		return;
	memcpy(a->mark[1], a->mark[0], sizeof(a->mark[1]));
	memcpy(a->mark[0], c->bucket, sizeof(a->mark[0]));
}

void harvest_interval_begin(struct monitor *m)
{
	bool turn = m->begin >= m->next_turn;
	size_t i, k;

	if (turn)
		m->next_turn = m->begin + RECENT_TURN_NS;
	for (i = 0; i < m->processes_count; i++) {
		struct mon_process *p = m->processes[i];

		memset(p->steady, 0, sizeof(p->steady));
		memset(p->sampled, 0, sizeof(p->sampled));
		p->anchors = 0;
		if (p->proc_slot < GBPF_PROCS)
			p->proc_begin = m->counts.procs[p->proc_slot];
		for (k = 0; k < p->apis_count; k++)
			api_begin(m, p->apis[k], turn);
		for (k = 0; k < p->threads_count; k++) {
			struct mon_thread *t = p->threads[k];

			t->begin = t->now;
			t->begin.at = m->begin;
			t->seen[0] = t->seen[1] = 0;
			t->anchors = 0;
			t->hot_peak *= 0.95;
		}
	}
}
