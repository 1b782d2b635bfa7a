/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a hit costs: calibrated on a function of our own when the monitor starts, and then
 * seen in every process where it is. It differs by half with what the CPU's other thread
 * does, and everything that windows tell of a busy job depends on it.
 *
 * Of launches in windows one in GBPF_SPARSE is seen at its return, too. Which, has
 * nothing to do with the job, so the next launch is later after those by what a return
 * costs there: the difference of two means, whatever else the job does. How far that is from
 * what was calibrated has two reasons, which only all of the past tells apart: the machine
 * (then entries cost as much more) and the program (then they do not). docs/measurements.md
 * has what was seen of both.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "monitor/private.h"
#include "probe/catalogue.h"

#define MACHINE_SD 0.2	/* by what share a cost differs from its calibration */
#define PROGRAM_MEAN 1.08 /* a return's cost in a program, of that in calibration's loop, */
#define PROGRAM_SD 0.1	/* and how much programs differ in that */
#define FEWEST_GAPS 64	/* of each kind */
#define SHORT_SHARE 0.1 /* of gaps at least that are short enough to show a difference */
#define GAPS_DECAY 0.98 /* a window */
/*
 * A program that does much between two calls has by the next one thrown what a hit needs out of
 * its caches: a training step lost 1.57 times what calibration says while all of it was traced,
 * and 1.74 times in windows (docs/measurements.md, "The monitor on a real GPU"). Calls that
 * come this closely find it still there.
 */
#define COLD 1.6
#define COLD_SD 0.2 /* by how much programs differ in that, returns and entries alike or not */
#define WARM_GAP_NS 5000.0

/* Two of three shapes measured: the next is a launch. */
struct calibration_turn {
	struct monitor *m;
	unsigned turn;
};

static int on_calibration_turn(void *ctx)
{
	struct calibration_turn *t = ctx;

	if (++t->turn == 2)
		t->m->counts.api_class[0] = GBPF_CLASS_LAUNCH;
	return 0;
}

/* How long a call that does nothing seems to take: what lies between our two clock readings. */
static uint32_t inside_ns(const struct monitor *m)
{
	struct histogram h = {0};
	size_t i, k;

	for (i = 0; i < GBPF_CELLS; i++)
		for (k = 0; m->counts.cells_keys[i] && k < GBPF_BUCKETS; k++) {
			h.bucket[k] += m->counts.cells[i].bucket[k];
			h.count += m->counts.cells[i].bucket[k];
		}
	return h.count ? (uint32_t)histogram_quantile(&h, 0.5) : 0;
}

static void tables_clear(struct monitor *m)
{
	size_t i;

	for (i = 0; i < GBPF_CELLS; i++)
		if (m->counts.cells_keys[i])
			counts_free_cell(&m->counts, i);
	for (i = 0; i < GBPF_THREADS; i++)
		if (m->counts.threads_keys[i])
			counts_free_thread(&m->counts, i);
	for (i = 0; i < GBPF_KERNELS; i++)
		if (m->counts.kernels_keys[i])
			counts_free_kernel(&m->counts, i);
}

/* ns by which the next launch is later, and the variance of that; false: not enough of them. */
static bool difference(const struct gaps *g, double *ns, double *variance)
{
	double mean[2], var = 0, share = 0;
	unsigned i;

	for (i = 0; i < 2; i++) {
		if (g->count[i] < FEWEST_GAPS)
			return false;
		mean[i] = g->sum[i] / g->count[i];
		share += g->below[i] / g->count[i] / 2;
		var += fmax(0, g->squares[i] / g->count[i] - mean[i] * mean[i]) / g->count[i];
	}
	if (share < SHORT_SHARE)
		return false;
	*ns = (mean[1] - mean[0]) / share; /* longer ones count as the longest, and show nothing */
	*variance = var / (share * share);
	return true;
}

static void gaps_take(struct gaps *g, const struct gbpf_gap *from, const struct gbpf_gap *to)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		g->count[i] += (double)(to[i].count - from[i].count);
		g->below[i] += (double)(to[i].below - from[i].below);
		g->sum[i] += (double)(to[i].sum - from[i].sum);
		g->squares[i] += (double)(to[i].squares - from[i].squares);
	}
}

/* As launches in windows are probed. Where that does not work, all of them are timed. */
static int sparse_measure(struct monitor *m)
{
	struct gbpf_monitor_switches *mon = m->counts.mon;
	static const struct gbpf_gap none[2];
	struct gaps g = {.count = {0, 0}};
	double mean = 0, ns, variance, timed;
	size_t i;
	int err;

	mon->cost_untimed = mon->cost_entry;
	if (probes_rung(m->probes) != RUNG_SESSION || !probes_returns(m->probes))
		return 0;
	m->counts.image_state[GBPF_IMAGE_CALIBRATION] = GBPF_IMAGE_OPEN | GBPF_IMAGE_SPARSE;
	err = calibrate_launches(m->probes, GBPF_COOKIE_HOT, &mean);
	m->counts.image_state[GBPF_IMAGE_CALIBRATION] = 0;
	for (i = 0; i < GBPF_THREADS; i++)
		if (m->counts.threads_keys[i])
			gaps_take(&g, none, m->counts.threads[i].gap);
	if (err || !difference(&g, &ns, &variance) || ns < 1)
		return err;
	timed = g.count[1] / (g.count[0] + g.count[1]);
	if (mean - timed * ns < ns / 4) /* an entry costs more than a return: this was noise */
		return 0;
	m->return_ns = ns;
	mon->cost_untimed = (uint32_t)(mean - timed * ns);
	mon->cost_launch = (uint32_t)(mean - timed * ns + ns);
	/* others do less; what was measured without a twin to compare with may be far off */
	if (mon->cost_entry > mon->cost_untimed)
		mon->cost_entry = mon->cost_untimed;
	if (mon->cost_pair > mon->cost_launch)
		mon->cost_pair = mon->cost_launch;
	return 0;
}

int cost_measure(struct monitor *m)
{
	struct calibration_turn turn = {.m = m};
	struct gbpf_monitor_switches *mon = m->counts.mon;
	size_t i;
	int err;

	err = calibrate(m->probes, &m->cost, on_calibration_turn, &turn);
	if (err)
		return err;
	mon->inside_ns = probes_returns(m->probes) ? inside_ns(m) : 0;
	mon->cost_entry = (uint32_t)m->cost.begin_ns;
	mon->cost_pair = (uint32_t)m->cost.pair_ns;
	mon->cost_launch = (uint32_t)m->cost.launch_ns;
	err = sparse_measure(m);
	if (err)
		return err;
	/* to leave a CPU and come back costs about as much (docs/measurements.md) */
	mon->cost_switch = mon->cost_entry;
	tables_clear(m);
	windows_allow(m);
	m->counts.api_class[0] = GBPF_CLASS_OTHER;
	for (i = 1; i <= catalogue_count(); i++)
		m->counts.api_class[i] = (uint8_t)mon_class(catalogue_get((uint16_t)i));
	return 0;
}

double cost_together(double most, double sum, double abreast)
{
	return fmax(most, sum / fmax(1, abreast));
}

void cost_window(struct mon_process *p)
{
	struct gaps *g = &p->gaps;
	size_t k;
	unsigned i;

	for (i = 0; i < 2; i++) {
		g->count[i] *= GAPS_DECAY;
		g->below[i] *= GAPS_DECAY;
		g->sum[i] *= GAPS_DECAY;
		g->squares[i] *= GAPS_DECAY;
	}
	for (k = 0; k < p->threads_count; k++)
		gaps_take(g, p->threads[k]->opened.gap, p->threads[k]->closed.gap);
}

static double coldness(const struct gaps *g, double hit)
{
	double count = g->count[0] + g->count[1], warm = hit + WARM_GAP_NS, beyond;

	if (count < FEWEST_GAPS || warm >= GBPF_GAP_MOST_NS)
		return 1;
	beyond = ((g->sum[0] + g->sum[1]) / count - warm) / (GBPF_GAP_MOST_NS - warm);
	return 1 + (COLD - 1) * fmin(fmax(beyond, 0), 1);
}

/*
 * Two readings of the machine's part, the calibration's own (1) and what returns say, each
 * weighed by how sure it is; returns themselves cost what they are seen to cost.
 */
struct cost cost_of(const struct monitor *m, const struct mon_process *p)
{
	double entry = m->counts.mon->cost_untimed, back = m->return_ns, all;
	double cold = coldness(&p->gaps, entry), program = PROGRAM_MEAN * cold;
	double doubt = COLD_SD * (cold - 1) / (COLD - 1);
	double ns, variance, own = MACHINE_SD * MACHINE_SD, seen, machine;
	struct cost c = {.factor = cold, .sd = hypot(MACHINE_SD * cold, doubt)};

	if (back <= 0 || !difference(&p->gaps, &ns, &variance))
		return c;
	variance /= back * back;
	seen = (PROGRAM_SD + doubt) * (PROGRAM_SD + doubt) + variance;
	machine = 1 + own / (own + seen) * (ns / back / program - 1);
	machine = fmin(fmax(machine, 0.4), 2.5);
	/* the less is seen of returns, the more they are taken to follow the machine */
	ns += variance / (own + variance) * (machine * program * back - ns);
	all = entry + back / GBPF_SPARSE;
	c.factor = (machine * cold * entry + fmax(ns, 0) / GBPF_SPARSE) / all;
	c.sd = sqrt(own * seen / (own + seen)) * cold * entry / all +
	       sqrt(own * variance / (own + variance)) * back / GBPF_SPARSE / all;
	return c;
}
