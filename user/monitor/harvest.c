/* SPDX-License-Identifier: BSD-2-Clause */
/* What the programs counted, read out of the tables: reading costs the targets nothing. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/private.h"
#include "probe/catalogue.h"

#define SHORTEST_NS 200000000LL /* a rate over less says little, */
#define FEW_CALLS 32		/* unless it is of more calls than this, */
#define BARELY_NS 1000000LL	/* and over more than what reading itself may take */

static uint64_t load(const __u64 *at)
{
	return __atomic_load_n(at, __ATOMIC_RELAXED);
}

void cell_read(const struct gbpf_cell *c, struct cell_read *out)
{
	out->calls = load(&c->calls);
	out->errors = load(&c->errors);
	out->bytes = load(&c->bytes);
	out->sum_ns = load(&c->sum_ns);
	out->slow = load(&c->slow);
}

/* Of a window that has closed nobody knows whether the call goes on. */
static bool open_known(const struct monitor *m, const struct gbpf_thread *t,
		       const struct gbpf_open *open)
{
	const struct mon_process *p = open->hot ? process_get(m, t->pid) : NULL;
	const struct mon_image *item = p && p->image ? find_item(m, p->image) : NULL;

	return !open->hot || (item && item->always && (int64_t)open->ts >= item->first_opened);
}

/* The open call of a thread that nothing known is around of. */
static bool open_call(const struct monitor *m, const struct gbpf_thread *t,
		      struct gbpf_open *out)
{
	const volatile struct gbpf_thread *v = t;

	for (uint32_t i = 0; i < v->depth && i < GBPF_NESTING; i++) {
		memcpy(out, &t->open[i], sizeof(*out));
		if (i < v->depth && open_known(m, t, out))
			return true;
	}
	return false;
}

/* How long a thread has been in a call that waits and whose return a closed window misses. */
static uint64_t wait_cut(const struct gbpf_thread *t, int64_t now)
{
	const volatile struct gbpf_thread *v = t;
	struct gbpf_open open;

	if (!v->depth)
		return 0;
	memcpy(&open, &t->open[0], sizeof(open));
	if (!v->depth || !(open.hot & 1) || !(open.class & GBPF_CLASS_WAITS))
		return 0;
	return now > (int64_t)open.ts ? (uint64_t)now - open.ts : 0;
}

/* What it is away for just now counts, too. */
static uint64_t away_until(const struct monitor *m, const struct gbpf_thread *t, int64_t now)
{
	uint64_t away = load(&t->away), last = load(&t->last);
	struct gbpf_open open;

	if (open_call(m, t, &open) || !last || now - (int64_t)last < GBPF_AWAY_NS ||
	    load(&t->away) != away)
		return away;
	return away + (uint64_t)now - last;
}

void thread_read(const struct monitor *m, uint32_t slot, int64_t now, struct thread_read *out)
{
	const struct gbpf_thread *t = &m->counts.threads[slot];
	struct gbpf_open open, again;
	const __u64 *done;
	uint64_t off, before;
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
	memcpy(out->gap, t->gap, sizeof(out->gap));
	out->launches = load(&t->launches);
	out->away = away_until(m, t, now);
	out->asleep = load(&t->asleep);
	out->cut = wait_cut(t, now);
	off = load(&t->off_since);
	if (off && (int64_t)off < now && t->off_wait < GBPF_WAITS && t->off_in < GBPF_INS)
		out->wait[t->off_in][t->off_wait] += (uint64_t)now - off;
	if (off && now - (int64_t)off >= GBPF_AWAY_NS && t->off_in == GBPF_IN_NONE &&
	    t->off_wait != GBPF_WAIT_RUNNABLE)
		out->asleep += (uint64_t)now - off;
	/* one that returns just now must not count twice, as time and as open */
	if (!open_call(m, t, &open) || (int64_t)open.ts >= now)
		return;
	done = &t->time[open.hot & 1][!!(open.class & GBPF_CLASS_WAITS)];
	before = load(done);
	if (!open_call(m, t, &again) || again.ts != open.ts || load(done) != before)
		return;
	out->time[open.hot & 1][!!(open.class & GBPF_CLASS_WAITS)] += (uint64_t)now - open.ts;
	out->open_api = open.api;
	out->open_since = (int64_t)open.ts;
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
	if (recent_wanted(m, a))
		a->mark = calloc(2, sizeof(*a->mark));
	err = recent_wanted(m, a) && !a->mark ? -ENOMEM
					      : list_add(&p->apis, &p->apis_count, a);
	if (err) {
		free(a->mark);
		free(a);
		return err;
	}
	m->apis[slot] = a;
	p->fresh = true;
	plan_mark(m, p, false);
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
	t->begin.at = p->seen > m->begin ? p->seen : m->begin;
	process_thread_comm(pid, t->tid, t->comm);
	thread_read(m, slot, mon_now(), &t->now);
	t->opened = t->closed = t->now;
	t->anchor_at = thread_anchor(m, &t->now);
	p->fresh = true;
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

void quantities_add(const struct mon_api *a, const struct cell_read *from,
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

/* One call in a window of two milliseconds does not make five hundred a second. */
void peak_add(struct mon_api *a, uint64_t calls, int64_t ns)
{
	double rate;

	a->pool_calls += calls;
	a->pool_ns += ns;
	if (a->pool_ns < SHORTEST_NS && (a->pool_calls < FEW_CALLS || a->pool_ns < BARELY_NS))
		return;
	rate = (double)a->pool_calls * 1e9 / (double)a->pool_ns;
	if (rate > a->peak)
		a->peak = rate;
	a->pool_calls = 0;
	a->pool_ns = 0;
}

/*
 * What is always probed, since it was read last. The clock is read after the counters: the
 * monitor may lose its CPU at any time, and a few calls in what seems to be no time would
 * look like a flood of them.
 */
static void process_steady(struct monitor *m, struct mon_process *p, int64_t before)
{
	int64_t since;
	size_t k;

	for (k = 0; k < p->apis_count; k++) {
		struct mon_api *a = p->apis[k];
		struct cell_read now;

		/* cells lie far apart: most of the time is waiting for memory */
		if (k + 2 < p->apis_count)
			__builtin_prefetch(&m->counts.cells[p->apis[k + 2]->slot]);
		if (a->hot)
			continue;
		cell_read(&m->counts.cells[a->slot], &now);
		quantities_add(a, &a->last, &now, p->steady);
		a->fresh = now.calls - a->last.calls;
		a->last = now;
	}
	since = mon_now() - before;
	for (k = 0; k < p->apis_count; k++)
		if (!p->apis[k]->hot)
			peak_add(p->apis[k], p->apis[k]->fresh, since);
}

void harvest_steady(struct monitor *m)
{
	int64_t before = m->last_look;
	size_t i;

	m->last_look = mon_now();
	for (i = 0; i < m->processes_count; i++)
		process_steady(m, m->processes[i], before);
}

static void api_begin(struct monitor *m, struct mon_api *a, bool turn)
{
	const struct gbpf_cell *c = &m->counts.cells[a->slot];

	a->begin = a->last;
	a->seen = 0;
	a->mixed = false;
	if (!turn || !a->mark)
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
		p->waits_seen = p->waits_cut = 0;
		p->anchors = (struct anchor){0};
		if (p->proc_slot < GBPF_PROCS)
			p->proc_begin = m->counts.procs[p->proc_slot];
		for (k = 0; k < p->apis_count; k++)
			api_begin(m, p->apis[k], turn);
		for (k = 0; k < p->threads_count; k++) {
			struct mon_thread *t = p->threads[k];

			t->begin = t->now;
			t->begin.at = m->begin;
			t->seen[0] = t->seen[1] = 0;
			t->anchors = (struct anchor){0};
		}
	}
}

/* A burst a minute ago still counts 5 %. */
void harvest_age(struct monitor *m)
{
	size_t i, k;

	for (i = 0; i < m->processes_count; i++) {
		struct mon_process *p = m->processes[i];

		for (k = 0; k < p->apis_count; k++)
			p->apis[k]->peak *= 0.95;
		p->hot_peak *= 0.95;
		for (k = 0; k < p->threads_count; k++)
			p->threads[k]->hot_peak *= 0.95;
	}
}
