/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which functions are probed in windows: those that the budget does not allow to be
 * probed all the time, by what they cost the process they cost most.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "monitor/private.h"
#include "probe/catalogue.h"

/* Shares of the budget. Together with what a trip lets through they stay below all of it. */
#define ALL_FITS 0.5	   /* everything probed always: up to here */
#define STEADY_SHARE 0.2   /* what is probed always beside windows */
#define CALM_NS 10000000000LL  /* that something has to fit before its windows end */
#define SETTLE_NS 1000000000LL /* the same, for the first time */
#define LOADS_MAX 256

struct load { /* of one API, of the process it costs most */
	uint16_t api;
	double cost; /* share of a thread's time */
};

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
	double factor = cost_of(m, p).factor;
	size_t n = 0, k;

	*sum = 0;
	for (k = 0; k < p->apis_count && n < max; k++) {
		const struct mon_api *a = p->apis[k];
		double cost = a->peak * mon_cost(m, a->class) * factor / 1e9;

		*sum += cost;
		out[n++] = (struct load){a->api, cost};
	}
	qsort(out, n, sizeof(*out), by_cost);
	return n;
}

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

void plan_mark(struct monitor *m, struct mon_process *p, bool still)
{
	const struct mon_image *item = p->image ? find_item(m, p->image) : NULL;
	const struct image_site *site;
	size_t n;

	for (n = 0; item && n < p->apis_count; n++) {
		struct mon_api *a = p->apis[n];
		bool was = a->hot;

		site = site_of(p->image, a->api);
		a->hot = site && site->hot && !item->always;
		a->mixed |= a->hot != was && still;
	}
}

/* From here on this is probed in windows, and that is not. */
static void item_turn(struct monitor *m, struct mon_image *item, bool was)
{
	size_t k;

	item->hot = windows_hot(item->image) && !item->always;
	harvest_turn(m, item, item->hot, mon_now());
	item->known = false;
	for (k = 0; k < m->processes_count; k++)
		if (m->processes[k]->image == item->image)
			plan_mark(m, m->processes[k], item->hot && was);
}

/* The sites as they are marked now: the old link goes when the new one is there. */
static int item_replan(struct monitor *m, struct mon_image *item)
{
	struct image *i = item->image;
	struct probe_link *old;
	bool was = item->hot;
	int err = image_replan(i, m->probes, &old);

	if (err)
		return err == -ENOMEM ? err : 0; /* the next plan tries again */
	m->counts.image_state[i->slot] &= ~(uint32_t)(GBPF_IMAGE_WINDOW - 1);
	m->counts.image_state[i->slot] |= i->parity ? GBPF_IMAGE_PARITY : 0;
	closer_give(m->closer, old);
	item_turn(m, item, was);
	return 0;
}

/* What the probes cost the worst process, per time a window is open and around it. */
void plan_measure(const struct monitor *m, struct mon_image *item)
{
	size_t i, k;

	item->peak = 0;
	for (i = 0; i < m->processes_count; i++) {
		const struct mon_process *p = m->processes[i];

		if (p->image != item->image)
			continue;
		item->peak = fmax(item->peak, p->hot_peak);
		for (k = 0; k < p->threads_count; k++)
			item->peak = fmax(item->peak, p->threads[k]->hot_peak);
	}
}

/* Windows for what needs them, and for nothing else. */
static int item_follow_need(struct monitor *m, struct mon_image *item)
{
	struct image *i = item->image;
	size_t k;

	if (item->open)
		window_close(m, item);
	item->always = false;
	for (k = 0; k < i->sites_count; k++)
		i->sites[k].hot = i->sites[k].need;
	item->calm = 0;
	item->settled = true;
	return item_replan(m, item);
}

/*
 * All of it fits: the window stays open. It stays a link of its own, so that it is
 * gone at once should a job grow busy.
 */
static int item_stay_open(struct monitor *m, struct mon_image *item)
{
	int err = item->open ? 0 : window_open(m, item);

	if (err || !item->open)
		return err;
	harvest_window_read(m, item);
	window_tell(m, item, mon_now());
	m->counts.image_state[item->image->slot] &= ~(uint32_t)GBPF_IMAGE_SPARSE;
	item->always = true;
	item->calm = 0;
	item->settled = true;
	item_turn(m, item, true);
	return 0;
}

void plan_leave_open(struct monitor *m, struct mon_image *item)
{
	harvest_steady(m);
	item->always = false;
	item_turn(m, item, false);
}

struct needs {
	bool any, more, less; /* more than is hot, less than is */
};

static struct needs item_needs(const struct monitor *m, struct mon_image *item)
{
	struct image *image = item->image;
	struct needs n = {0};
	size_t i;

	for (i = 0; i < image->sites_count; i++)
		image->sites[i].need = m->options.max_overhead <= 0;
	for (i = 0; i < m->processes_count; i++)
		if (m->processes[i]->image == image)
			process_need(m, m->processes[i], image);
	for (i = 0; i < image->sites_count; i++) {
		if (image->sites[i].state == SITE_NOT_HOOKED)
			continue;
		n.any |= image->sites[i].need;
		n.more |= image->sites[i].need && !image->sites[i].hot;
		n.less |= !image->sites[i].need && image->sites[i].hot;
	}
	return n;
}

static int item_plan(struct monitor *m, struct mon_image *item, int64_t now)
{
	struct needs n = item_needs(m, item);
	size_t i;

	plan_measure(m, item);
	if (n.any && item->always)
		window_leave(m, item);
	if (n.more) {
		/* what was needed a moment ago is kept: attaching and detaching are not free */
		for (i = 0; i < item->image->sites_count; i++)
			item->image->sites[i].need |= item->image->sites[i].hot;
		return item_follow_need(m, item);
	}
	if (!n.less || item->always || !windows_possible(m) || !item->known ||
	    !window_used(m, item))
		item->calm = 0;
	else if (!item->calm)
		item->calm = now;
	if (!item->calm || now - item->calm < (item->settled ? CALM_NS : SETTLE_NS))
		return 0;
	return n.any ? item_follow_need(m, item) : item_stay_open(m, item);
}

int plan_all(struct monitor *m, int64_t now)
{
	int err = 0;
	size_t i;

	for (i = 0; !err && i < m->items_count; i++)
		err = item_plan(m, &m->items[i], now);
	return err;
}
