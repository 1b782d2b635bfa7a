/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is probed when. Everything is probed all the time as long as that fits the
 * budget of the thread it costs most; what does not fit is probed in windows: as
 * long as a share of the budget allows at the highest rate seen lately, at random
 * times, so that they do not beat with what the job does.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "monitor/private.h"
#include "probe/catalogue.h"

/* Shares of the budget. Together with what a trip lets through they stay below all of it. */
#define ALL_FITS 0.5	/* everything probed always: up to here */
#define STEADY_SHARE 0.2  /* what is probed always beside windows */
#define WINDOW_SHARE 0.5  /* what windows may take of it */
#define TRIP_SHARE 0.7	/* of a period's; what is on its way out still costs a little */
#define CALM_NS 10000000000LL /* that something has to fit before its windows end */
#define SETTLE_NS 1000000000LL /* the same, for the first time */
#define LENGTH_MIN 2000000LL
#define LONGEST_SHARE 0.8 /* of a stratum that a window can be */
#define GAP_MIN_NS 5000000LL
#define PERIOD_MAX 5000000000LL
#define OPENS_A_SECOND 10 /* of all files together */

struct load { /* of one API, of the process it costs most */
	uint16_t api;
	double cost; /* share of a thread's time */
};

static bool rung_windows(const struct monitor *m)
{
	return probes_rung(m->probes) != RUNG_SINGLE;
}

static int by_cost(const void *a, const void *b)
{
	double x = ((const struct load *)a)->cost, y = ((const struct load *)b)->cost;

	return x < y ? 1 : x > y ? -1 : 0;
}

static struct image_site *site_of(const struct image *i, uint16_t api)
{
	size_t k;

	for (k = 0; k < i->sites_count; k++)
		if (i->sites[k].api == api && i->sites[k].state != SITE_NOT_HOOKED)
			return &i->sites[k];
	return NULL;
}

/* Costs of the APIs of one process, dearest first; how many. */
static size_t loads_of(const struct monitor *m, const struct mon_process *p, struct load *out,
		       size_t max, double *sum)
{
	size_t n = 0, k;

	*sum = 0;
	for (k = 0; k < p->apis_count && n < max; k++) {
		const struct mon_api *a = p->apis[k];
		double cost = a->peak * mon_cost(m, a->class) / 1e9;

		*sum += cost;
		out[n++] = (struct load){a->api, cost};
	}
	qsort(out, n, sizeof(*out), by_cost);
	return n;
}

#define LOADS_MAX 256

/* Marks what does not fit for this process, dearest first. */
static void process_need(const struct monitor *m, const struct mon_process *p, struct image *i)
{
	struct load loads[LOADS_MAX] = {{0}};
	double sum, budget = m->options.max_overhead;
	size_t n = loads_of(m, p, loads, LOADS_MAX, &sum), k;

	if (sum <= ALL_FITS * budget)
		return;
	for (k = 0; k < n && sum > STEADY_SHARE * budget; k++) {
		struct image_site *site = site_of(i, loads[k].api);

		sum -= loads[k].cost;
		if (site)
			site->need = true;
	}
}

bool windows_hot(const struct image *i)
{
	size_t k;

	for (k = 0; k < i->sites_count; k++)
		if (i->sites[k].hot && i->sites[k].state != SITE_NOT_HOOKED)
			return true;
	return false;
}

void windows_mark(struct mon_process *p, bool still)
{
	const struct image_site *site;
	size_t n;

	for (n = 0; p->image && n < p->apis_count; n++) {
		struct mon_api *a = p->apis[n];
		bool was = a->hot;

		site = site_of(p->image, a->api);
		a->hot = site && site->hot;
		a->mixed |= a->hot != was && still;
	}
}

/* The sites as they are marked now: the old link goes when the new one is there. */
static int item_replan(struct monitor *m, struct mon_image *item)
{
	struct image *i = item->image;
	struct probe_link *old;
	bool was = item->hot;
	size_t k;
	int err = image_replan(i, m->probes, &old);

	if (err)
		return err == -ENOMEM ? err : 0; /* the next plan tries again */
	m->counts.image_state[i->slot] = i->parity ? GBPF_IMAGE_PARITY : 0;
	closer_give(m->closer, old);
	item->hot = windows_hot(i);
	harvest_turn(m, item, item->hot, mon_now());
	item->known = false;
	for (k = 0; k < m->processes_count; k++)
		windows_mark(m->processes[k], item->hot && was);
	return 0;
}

/* What the window saw, or the part of it that ends now, is told. */
static void item_tell(struct monitor *m, struct mon_image *item, int64_t now)
{
	int64_t length = now - item->opened;

	if (length < 1)
		length = 1;
	harvest_window_end(m, item, length);
	item->covered += length;
	item->windows++;
}

static void item_close(struct monitor *m, struct mon_image *item)
{
	int64_t now;

	m->counts.image_state[item->image->slot] &= (uint8_t)~GBPF_IMAGE_OPEN;
	now = mon_now(); /* not when we decided: what is counted is counted until here */
	closer_give(m->closer, image_window_take(item->image));
	item->open = false;
	windows_allow(m);
	item_tell(m, item, now);
	item->closed = now;
	item->known = true;
	m->windows++;
}

/* An interval ends: an open window is told in two parts. */
void windows_cut(struct monitor *m, int64_t now)
{
	size_t i;

	for (i = 0; i < m->items_count; i++) {
		struct mon_image *item = &m->items[i];

		harvest_turn(m, item, item->hot, now);
		if (!item->open)
			continue;
		now = mon_now();
		item_tell(m, item, now);
		harvest_window_begin(m, item);
		item->opened = now;
	}
}

void windows_begin(struct monitor *m, int64_t now)
{
	size_t i;

	for (i = 0; i < m->items_count; i++) {
		m->items[i].covered = m->items[i].hot_ns = 0;
		m->items[i].windows = 0;
		if (m->items[i].hot_since)
			m->items[i].hot_since = now;
	}
}

/* A window of this period at the highest rate seen lately, ns. */
static double length_for(const struct monitor *m, const struct mon_image *item, int64_t period)
{
	double longest = LONGEST_SHARE * (double)period, length;

	if (item->peak <= 0)
		return longest;
	length = WINDOW_SHARE * m->options.max_overhead * (double)period / item->peak -
		 item->ramp_ns;
	return length < longest ? length : longest;
}

/* How long windows are, and how far apart: the budget of one second has to do for each. */
static void item_schedule(const struct monitor *m, struct mon_image *item)
{
	int64_t least = (int64_t)(m->items_count * 1000000000ULL / OPENS_A_SECOND);
	int64_t period = PERIOD_NS > least ? PERIOD_NS : least;
	double length = length_for(m, item, period);

	while (length < 2 * LENGTH_MIN && 2 * period <= PERIOD_MAX) {
		period *= 2;
		length = length_for(m, item, period);
		if (period > 1000000000) /* shorter ones are not worth it: fewer */
			length = length < LENGTH_MIN ? length : LENGTH_MIN * 2;
	}
	if (period > 1000000000 || !item->known || length < LENGTH_MIN)
		length = LENGTH_MIN;
	item->length = (int64_t)length;
	if (period == item->period)
		return;
	item->period = period; /* another grid */
	item->origin = mon_now();
	item->stratum = 0;
}

/* Beyond what was planned for a period, a thread trips. */
void windows_allow(struct monitor *m)
{
	double most = PERIOD_NS;
	size_t i;

	for (i = 0; i < m->items_count; i++)
		if (m->items[i].open && (double)m->items[i].period > most)
			most = (double)m->items[i].period;
	if (most > 1e9)
		most = 1e9;
	m->counts.mon->allowance = (uint64_t)(TRIP_SHARE * m->options.max_overhead * most) + 1;
}

/*
 * Time is cut into strata, and each holds one window at a random place that does not
 * depend on what was seen: so every moment of a job has the same chance to be seen.
 */
static void item_next(struct monitor *m, struct mon_image *item, int64_t now)
{
	int64_t middle;

	item_schedule(m, item);
	do {
		middle = item->origin + (int64_t)item->stratum * item->period +
			 window_offset(m->seed, item->stratum, item->period);
		item->stratum++;
	} while (middle + item->length / 2 < now);
	item->next = middle - item->length / 2;
	if (item->next < now + GAP_MIN_NS)
		item->next = now + GAP_MIN_NS;
}

static bool item_used(const struct monitor *m, const struct mon_image *item)
{
	size_t i;

	for (i = 0; i < m->processes_count; i++)
		if (m->processes[i]->image == item->image && !m->processes[i]->ended)
			return true;
	return false;
}

/*
 * What the last window really cost, attaching and detaching included, is paid
 * back before the next one: then, at the earliest.
 */
static int64_t item_paid(const struct monitor *m, const struct mon_image *item)
{
	double worst = 0, spent;
	size_t i, k;

	for (i = 0; i < m->processes_count; i++) {
		const struct mon_process *p = m->processes[i];

		for (k = 0; p->image == item->image && k < p->threads_count; k++) {
			const struct mon_thread *t = p->threads[k];

			spent = (double)m->counts.threads[t->slot].spent[1] -
				(double)t->spent_opened;
			worst = spent > worst ? spent : worst;
		}
	}
	return item->first_opened + (int64_t)(worst / (WINDOW_SHARE * m->options.max_overhead));
}

static int item_open(struct monitor *m, struct mon_image *item)
{
	int err = image_window_open(item->image, m->probes);

	if (err) {
		item_next(m, item, mon_now());
		return err == -ENOMEM ? err : 0;
	}
	item->open = true;
	windows_allow(m);
	m->counts.mon->period++;
	harvest_ramp(m, item);
	harvest_window_begin(m, item);
	item->opened = item->first_opened = mon_now();
	m->counts.image_state[item->image->slot] |= GBPF_IMAGE_OPEN;
	item->told = 0;
	item->next = item->opened + item->length;
	return 0;
}

static int item_step(struct monitor *m, struct mon_image *item, int64_t now)
{
	if (now < item->next)
		return 0;
	if (item->open) {
		item_close(m, item);
		item_next(m, item, item->closed);
		return 0;
	}
	/* the closer still takes the last one away: it would be in the way of this one */
	if (!item->hot || !rung_windows(m) || m->options.max_overhead <= 0 ||
	    !item_used(m, item) || closer_waiting(m->closer) > m->items_count) {
		item->next = now + PERIOD_NS;
		return 0;
	}
	if (item->known && item_paid(m, item) > now) {
		item_next(m, item, now); /* this stratum goes without */
		return 0;
	}
	return item_open(m, item);
}

int windows_step(struct monitor *m, int64_t now)
{
	int err = 0;
	size_t i;

	for (i = 0; !err && i < m->items_count; i++)
		err = item_step(m, &m->items[i], now);
	return err;
}

int64_t windows_next(const struct monitor *m)
{
	int64_t next = INT64_MAX;
	size_t i;

	for (i = 0; i < m->items_count; i++)
		if (m->items[i].next < next)
			next = m->items[i].next;
	return next;
}

/* What the probes cost the worst thread, per time a window is open and around it. */
static void item_measure(const struct monitor *m, struct mon_image *item)
{
	size_t i, k;

	item->peak = 0;
	for (i = 0; i < m->processes_count; i++)
		for (k = 0; m->processes[i]->image == item->image &&
			    k < m->processes[i]->threads_count; k++)
			if (m->processes[i]->threads[k]->hot_peak > item->peak)
				item->peak = m->processes[i]->threads[k]->hot_peak;
}

/* Windows for what needs them, and for nothing else. */
static int item_follow_need(struct monitor *m, struct mon_image *item, int64_t now)
{
	struct image *i = item->image;
	size_t k;

	if (item->open)
		item_close(m, item);
	for (k = 0; k < i->sites_count; k++)
		i->sites[k].hot = i->sites[k].need;
	item->calm = 0;
	item->settled = true;
	return item_replan(m, item);
}

static int item_plan(struct monitor *m, struct mon_image *item, int64_t now)
{
	struct image *image = item->image;
	bool more = false, less = false;
	size_t i;

	for (i = 0; i < image->sites_count; i++)
		image->sites[i].need = m->options.max_overhead <= 0;
	for (i = 0; i < m->processes_count; i++)
		if (m->processes[i]->image == image)
			process_need(m, m->processes[i], image);
	for (i = 0; i < image->sites_count; i++) {
		if (image->sites[i].state == SITE_NOT_HOOKED)
			continue;
		more |= image->sites[i].need && !image->sites[i].hot;
		less |= !image->sites[i].need && image->sites[i].hot;
	}
	item_measure(m, item);
	/* what was needed a moment ago is kept: attaching and detaching are not free */
	if (more)
		for (i = 0; i < image->sites_count; i++)
			image->sites[i].need |= image->sites[i].hot;
	if (more)
		return item_follow_need(m, item, now);
	if (!less || !rung_windows(m) || !item->known || !item_used(m, item))
		item->calm = 0;
	else if (!item->calm)
		item->calm = now;
	if (!item->calm || now - item->calm < (item->settled ? CALM_NS : SETTLE_NS))
		return 0;
	return item_follow_need(m, item, now);
}

int windows_plan(struct monitor *m, int64_t now)
{
	int err = 0;
	size_t i;

	for (i = 0; !err && i < m->items_count; i++)
		err = item_plan(m, &m->items[i], now);
	return err;
}

int windows_trip(struct monitor *m, uint32_t pid)
{
	const struct mon_process *p = process_get(m, pid);
	struct mon_image *item = p && p->image ? find_item(m, p->image) : NULL;
	int64_t now = mon_now();

	if (item && item->open) {
		item_close(m, item);
		item_measure(m, item);
		item_next(m, item, now);
	}
	return 0;
}

void windows_close(struct monitor *m)
{
	size_t i;

	for (i = 0; i < m->items_count; i++)
		if (m->items[i].open)
			item_close(m, &m->items[i]);
}
