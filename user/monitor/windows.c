/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What does not fit the budget is probed in windows: as long as a share of it allows
 * at the highest rate seen lately, at random times, so that they do not beat with
 * what the job does.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "monitor/private.h"

/* Shares of the budget; plan.c has those of what is probed always. */
#define WINDOW_SHARE 0.5 /* what windows may take of it */
#define TRIP_SHARE 0.7	 /* of a period's; what is on its way out still costs a little */
#define LENGTH_MIN 2000000LL
#define LONGEST_SHARE 0.8 /* of a stratum that a window can be */
#define GAP_MIN_NS 5000000LL
#define PERIOD_MAX 5000000000LL
#define OPENS_A_SECOND 10 /* of all files together */

bool windows_possible(const struct monitor *m)
{
	return probes_rung(m->probes) != RUNG_SINGLE && m->options.max_overhead > 0;
}

void window_tell(struct monitor *m, struct mon_image *item, int64_t now)
{
	int64_t length = now - item->opened;

	if (length < 1)
		length = 1;
	harvest(m); /* whoever called for the first time; if it fails, the next look says so */
	harvest_window_end(m, item, length);
	item->covered += length;
	item->windows++;
}

void window_close(struct monitor *m, struct mon_image *item)
{
	int64_t now;

	m->counts.image_state[item->image->slot] &= ~(uint32_t)(GBPF_IMAGE_OPEN |
								GBPF_IMAGE_SPARSE);
	now = mon_now(); /* not when we decided: what is counted is counted until here */
	harvest_window_read(m, item);
	closer_give(m->closer, image_window_take(item->image));
	item->open = false;
	windows_allow(m);
	if (!item->always)
		window_tell(m, item, now);
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
		if (!item->open || item->always)
			continue;
		now = mon_now();
		harvest_window_read(m, item);
		window_tell(m, item, now);
		harvest_window_begin(m, item);
		item->opened = mon_now();
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
		if (m->items[i].open && !m->items[i].always && (double)m->items[i].period > most)
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

bool window_used(const struct monitor *m, const struct mon_image *item)
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
	double worst = 0, spent, most, sum;
	size_t i, k;

	for (i = 0; i < m->processes_count; i++) {
		const struct mon_process *p = m->processes[i];
		double factor = p->image == item->image ? cost_of(m, p).factor : 1;

		most = sum = 0;
		for (k = 0; p->image == item->image && k < p->threads_count; k++) {
			const struct mon_thread *t = p->threads[k];

			spent = (double)m->counts.threads[t->slot].spent[1] -
				(double)t->spent_opened;
			spent *= factor;
			most = fmax(most, spent);
			sum += spent;
		}
		worst = fmax(worst, cost_together(most, sum, p->abreast));
	}
	return item->first_opened + (int64_t)(worst / (WINDOW_SHARE * m->options.max_overhead));
}

int window_open(struct monitor *m, struct mon_image *item)
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
	m->counts.mon->opened = (uint64_t)item->opened;
	m->counts.image_state[item->image->slot] += GBPF_IMAGE_WINDOW;
	m->counts.image_state[item->image->slot] |=
		GBPF_IMAGE_OPEN | (m->return_ns > 0 ? GBPF_IMAGE_SPARSE : 0);
	item->told = 0;
	item->next = item->opened + item->length;
	return 0;
}

static int item_step(struct monitor *m, struct mon_image *item, int64_t now)
{
	if (now < item->next)
		return 0;
	if (item->always) {
		item->next = now + PERIOD_MAX;
		return 0;
	}
	if (item->open) {
		window_close(m, item);
		item_next(m, item, item->closed);
		return 0;
	}
	/* the closer still takes the last one away: it would be in the way of this one */
	if (!item->hot || !windows_possible(m) || !window_used(m, item) ||
	    closer_waiting(m->closer) > m->items_count) {
		item->next = now + PERIOD_NS;
		return 0;
	}
	if (item->known && item_paid(m, item) > now) {
		item_next(m, item, now); /* this stratum goes without */
		return 0;
	}
	return window_open(m, item);
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

void window_leave(struct monitor *m, struct mon_image *item)
{
	window_close(m, item);
	plan_leave_open(m, item);
	/* what it cost lately is a debt like that of any window */
	harvest_debt(m, item);
	plan_measure(m, item);
	item->first_opened = item->closed - PERIOD_NS;
	item->known = true;
	item_next(m, item, item->closed);
}

int windows_trip(struct monitor *m, uint32_t pid)
{
	const struct mon_process *p = process_get(m, pid);
	struct mon_image *item = p && p->image ? find_item(m, p->image) : NULL;

	if (!item || !item->open)
		return 0;
	if (item->always) {
		window_leave(m, item);
		return 0;
	}
	window_close(m, item);
	plan_measure(m, item);
	item_next(m, item, item->closed);
	return 0;
}
