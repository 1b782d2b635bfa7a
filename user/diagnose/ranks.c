// SPDX-License-Identifier: BSD-2-Clause
/* Ranks of one job against the median of their peers. */
#include "diagnose/ranks.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "diagnose/compare_private.h"

#define LEAST_BLOCKS 5 /* in which all were there */

/* Of one job: what each rank had in each part, and the same sorted. */
struct table {
	const struct ranks *r;
	size_t *look; /* of each row */
	size_t rows;
	double *value;	/* [row * RANK_BLOCKS + block] */
	double *sorted; /* of one column, or of one number a row */
	bool usable[RANK_BLOCKS];
};

static int value_order(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return a < b ? -1 : a > b;
}

/* Of the n sorted values without one of them, which is own. */
static double median_without(const double *sorted, size_t n, double own)
{
	size_t at = 0, low = (n - 2) / 2, high = (n - 1) / 2;

	while (at + 1 < n && sorted[at] < own)
		at++;
	low += low >= at;
	high += high >= at;
	return (sorted[low] + sorted[high]) / 2;
}

/* median[row * RANK_BLOCKS + block]: of the others in that part. */
static void medians(struct table *t, double *median)
{
	for (int b = 0; b < RANK_BLOCKS; b++) {
		for (size_t i = 0; i < t->rows; i++)
			t->sorted[i] = t->value[i * RANK_BLOCKS + (size_t)b];
		qsort(t->sorted, t->rows, sizeof(double), value_order);
		for (size_t i = 0; i < t->rows; i++) {
			size_t at = i * RANK_BLOCKS + (size_t)b;

			median[at] = median_without(t->sorted, t->rows, t->value[at]);
		}
	}
}

/* Of one number a rank: the others' median for each row. */
static void medians_of(struct table *t, double (*number)(const struct rank_look *l),
		       double *median)
{
	for (size_t i = 0; i < t->rows; i++)
		t->sorted[i] = number(&t->r->looks[t->look[i]]);
	qsort(t->sorted, t->rows, sizeof(double), value_order);
	for (size_t i = 0; i < t->rows; i++)
		median[i] = median_without(t->sorted, t->rows,
					   number(&t->r->looks[t->look[i]]));
}

static double waits_a_launch(const struct rank_look *l)
{
	return (double)l->waits / (double)l->launches;
}

static double wait_share(const struct rank_look *l)
{
	double waited = 0, all = 0;

	for (int b = 0; b < RANK_BLOCKS; b++) {
		waited += l->waited[b];
		all += l->ns[b];
	}
	return all > 0 ? waited / all : 0;
}

static double bound_share(const struct rank_look *l)
{
	double bound = 0, all = 0;

	for (int b = 0; b < RANK_BLOCKS; b++) {
		bound += l->bound_ns[b];
		all += l->ns[b];
	}
	return all > 0 ? bound / all : 0;
}

static bool have_collectives(const struct table *t)
{
	for (size_t i = 0; i < t->rows; i++)
		if (t->r->looks[t->look[i]].bound_all < RANK_COLLECTIVES)
			return false;
	return true;
}

/* What is compared of a rank in a part; negative: there is nothing. */
static double in_collectives(const struct rank_look *l, int b)
{
	return l->bound[b] > 0 ? l->bound_ns[b] / l->bound[b] : -1; /* ns each */
}

static double in_waits(const struct rank_look *l, int b)
{
	return l->ns[b] > 0 ? l->waited[b] / l->ns[b] : -1; /* share */
}

static double in_dispatch(const struct rank_look *l, int b)
{
	return l->dispatch[b] > 0 ? l->dispatch[b] : -1; /* ns */
}

/* A part counts in which every rank was there and has a value; how many do. */
static size_t fill(struct table *t, double (*value)(const struct rank_look *l, int b))
{
	size_t n = 0;

	for (int b = 0; b < RANK_BLOCKS; b++) {
		t->usable[b] = t->r->block_ns > 0;
		for (size_t i = 0; i < t->rows; i++) {
			const struct rank_look *l = &t->r->looks[t->look[i]];
			double v = value(l, b);

			t->value[i * RANK_BLOCKS + (size_t)b] = v;
			t->usable[b] = t->usable[b] && v >= 0 &&
				       l->ns[b] >= 0.9 * t->r->block_ns;
		}
		n += t->usable[b];
	}
	return n;
}

/* By how much a row is below the others, and half of the interval of that. */
static double below(const struct table *t, const double *median, size_t row, size_t blocks,
		    double *half)
{
	double sum = 0, square = 0, n = (double)blocks, mean, variance;

	for (size_t b = 0; b < RANK_BLOCKS; b++) {
		double d = median[row * RANK_BLOCKS + b] - t->value[row * RANK_BLOCKS + b];

		sum += t->usable[b] ? d : 0;
		square += t->usable[b] ? d * d : 0;
	}
	mean = sum / n;
	variance = (square / n - mean * mean) / (n - 1);
	*half = student_t(COMPARE_LEVEL / (double)t->rows, n - 1) *
		sqrt(variance > 0 ? variance : 0);
	return mean;
}

static double traced(const struct rank_look *l)
{
	double all = 0;

	for (int b = 0; b < RANK_BLOCKS; b++)
		all += l->ns[b];
	return all;
}

static double kernels_of(const struct rank_look *l) { return l->share_kernels; }
static double dispatch_of(const struct rank_look *l) { return l->share_dispatch; }
static double away_of(const struct rank_look *l) { return l->share_away; }
static double cold_of(const struct rank_look *l) { return l->share_cold; }

/* What a straggler spends more time in than its peers: where most of the difference is. */
static void find_reasons(struct table *t, double *median)
{
	static const struct {
		double (*share)(const struct rank_look *l);
		const char *words;
	} reasons[] = {
		{ kernels_of, "in its kernels" },
		{ dispatch_of, "preparing and dispatching work" },
		{ away_of, "away from CUDA" },
		{ cold_of, "in first calls and loading" },
	};

	for (size_t k = 0; k < sizeof(reasons) / sizeof(reasons[0]); k++) {
		medians_of(t, reasons[k].share, median);
		for (size_t i = 0; i < t->rows; i++) {
			struct rank_verdict *v = &t->r->of[t->look[i]];
			double more = reasons[k].share(&t->r->looks[t->look[i]]) - median[i];

			/* median[rows + i]: the most so far */
			if (!k)
				median[t->rows + i] = v->lost / 3;
			if (!v->straggles || more <= median[t->rows + i])
				continue;
			median[t->rows + i] = more;
			v->more_time = reasons[k].words;
		}
	}
}

/*
 * Without GPU time the lengths of waits compare only where they are as many; and a rank that
 * waits for its GPU about as long as the others is held up by that, whatever its CPU does
 * meanwhile.
 */
static void doubt_waits(struct table *t, double *usual)
{
	medians_of(t, waits_a_launch, usual);
	for (size_t i = 0; i < t->rows; i++) {
		struct rank_verdict *v = &t->r->of[t->look[i]];
		double own = waits_a_launch(&t->r->looks[t->look[i]]);
		double more = own > usual[i] ? own : usual[i];

		if (fabs(own - usual[i]) > RANK_SAME_WAITS * more ||
		    v->wait_share * 2 > v->others_share)
			v->straggles = false;
	}
}

static void judge_waits(struct table *t, double *median)
{
	bool collectives = have_collectives(t);
	size_t blocks = fill(t, collectives ? in_collectives : in_waits);
	double *usual = median + t->rows * RANK_BLOCKS;

	if (blocks < LEAST_BLOCKS)
		return;
	medians(t, median);
	for (size_t i = 0; i < t->rows; i++) {
		struct rank_verdict *v = &t->r->of[t->look[i]];
		const struct rank_look *l = &t->r->looks[t->look[i]];
		double scale = collectives ? (double)l->bound_all / traced(l) : 1;

		v->compared = true;
		v->by_collectives = collectives;
		v->lost = below(t, median, i, blocks, &v->lost_error) * scale;
		v->lost_error *= scale;
		v->straggles = v->lost - v->lost_error > 0 && v->lost >= STRAGGLER_MATTERS;
		v->wait_share = collectives ? bound_share(l) : wait_share(l);
	}
	medians_of(t, collectives ? bound_share : wait_share, usual);
	for (size_t i = 0; i < t->rows; i++)
		t->r->of[t->look[i]].others_share = usual[i];
	if (!collectives)
		doubt_waits(t, usual);
	find_reasons(t, median);
}

static void judge_dispatch(struct table *t, double *median)
{
	if (fill(t, in_dispatch) < LEAST_BLOCKS)
		return;
	medians(t, median);
	for (size_t i = 0; i < t->rows; i++) {
		struct blocks own = { 0 }, others = { 0 };
		struct value a, b;

		for (size_t k = 0; k < RANK_BLOCKS; k++) {
			if (!t->usable[k])
				continue;
			block_add(&own, t->value[i * RANK_BLOCKS + k]);
			block_add(&others, median[i * RANK_BLOCKS + k]);
		}
		a = block_value(&others);
		b = block_value(&own);
		t->r->of[t->look[i]].dispatch = compare_values(&a, &b, 1, t->rows);
	}
}

static int compare_job(struct ranks *r, uint32_t job)
{
	struct table t = { .r = r };
	double *median;
	size_t n = 0;
	bool ok;

	for (size_t i = 0; i < r->count; i++)
		t.rows += r->of[i].job == job;
	if (t.rows < 2)
		return 0;
	t.look = calloc(t.rows, sizeof(*t.look));
	t.value = calloc(t.rows * RANK_BLOCKS, sizeof(double));
	t.sorted = calloc(t.rows, sizeof(double));
	median = calloc(t.rows * (RANK_BLOCKS + 1), sizeof(double));
	ok = t.look && t.value && t.sorted && median;
	for (size_t i = 0; ok && i < r->count; i++)
		if (r->of[i].job == job)
			t.look[n++] = i;
	if (ok) {
		judge_waits(&t, median);
		judge_dispatch(&t, median);
	}
	free(t.look);
	free(t.value);
	free(t.sorted);
	free(median);
	return ok ? 0 : -ENOMEM;
}

int ranks_compare(struct ranks *r)
{
	int err = 0;

	if (!r->looks)
		return 0;
	ranks_group(r);
	for (uint32_t job = 0; !err && job < r->jobs; job++)
		err = compare_job(r, job);
	return err;
}

const struct rank_verdict *ranks_of(const struct ranks *r, uint32_t process)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->looks[i].process == process && r->of[i].job != UINT32_MAX)
			return &r->of[i];
	return NULL;
}
