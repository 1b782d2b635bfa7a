// SPDX-License-Identifier: BSD-2-Clause
#include "util/histogram.h"

#include <math.h>

#define LAST (GBPF_BUCKETS - 1)
#define BELOW_MIN (INT64_C(1) << GBPF_BUCKET_MIN_SHIFT)

int64_t bucket_low(unsigned i)
{
	unsigned octave;

	if (i == 0)
		return 0;
	if (i > LAST)
		i = LAST;
	octave = (i - 1) / 8;
	return (int64_t)(8 + (i - 1) % 8) << (octave + GBPF_BUCKET_MIN_SHIFT - 3);
}

int64_t bucket_high(unsigned i)
{
	return i < LAST ? bucket_low(i + 1) : INT64_MAX;
}

int64_t bucket_value(unsigned i)
{
	double low, high;

	if (i == 0)
		return BELOW_MIN / 2;
	if (i >= LAST)
		return bucket_low(LAST);
	low = (double)bucket_low(i);
	high = (double)bucket_high(i);
	return (int64_t)(2 * low * high / (low + high) + 0.5);
}

/* Sums stay at the top rather than start again at 0: they come from other processes' calls. */
static uint64_t plus(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

void histogram_count(struct histogram *h, uint64_t ns)
{
	uint64_t *bucket = &h->bucket[gbpf_bucket(ns)];

	h->count = plus(h->count, 1);
	h->sum_ns = plus(h->sum_ns, ns);
	if (h->max_ns < ns)
		h->max_ns = ns;
	*bucket = plus(*bucket, 1);
}

void histogram_add(struct histogram *to, const struct histogram *from)
{
	to->count = plus(to->count, from->count);
	to->sum_ns = plus(to->sum_ns, from->sum_ns);
	if (to->max_ns < from->max_ns)
		to->max_ns = from->max_ns;
	for (unsigned i = 0; i < GBPF_BUCKETS; i++)
		to->bucket[i] = plus(to->bucket[i], from->bucket[i]);
}

void histogram_subtract(struct histogram *to, const struct histogram *from)
{
	uint64_t left = 0;

	for (unsigned i = 0; i < GBPF_BUCKETS; i++) {
		to->bucket[i] = minus(to->bucket[i], from->bucket[i]);
		left = plus(left, to->bucket[i]);
	}
	to->count = left;
	to->sum_ns = left ? minus(to->sum_ns, from->sum_ns) : 0;
	histogram_limit(to, to->max_ns);
}

void histogram_limit(struct histogram *h, uint64_t longest)
{
	unsigned top = LAST;

	while (top && !h->bucket[top])
		top--;
	if (!h->bucket[top])
		h->max_ns = 0;
	else if (longest >= (uint64_t)bucket_low(top) && longest < (uint64_t)bucket_high(top))
		h->max_ns = longest;
	else
		h->max_ns = (uint64_t)(top < LAST ? bucket_high(top) - 1 : bucket_low(top));
}

/* The point `part` (0..1) of the way through bucket i, but not beyond the longest that was seen. */
static int64_t within(const struct histogram *h, unsigned i, double part)
{
	int64_t low = bucket_low(i), high = bucket_high(i);

	if (h->max_ns >= (uint64_t)low && h->max_ns < (uint64_t)high)
		high = (int64_t)h->max_ns;
	else if (i == LAST) /* max_ns says nothing of it */
		high = low;
	return low + (int64_t)(part * (double)(high - low));
}

/*
 * Most buckets are empty, and which are not nobody can foresee: sums of all of them take less
 * time than asking each. They are wider than counts, as the largest of these may be many.
 */
int64_t histogram_quantile(const struct histogram *h, double q)
{
	unsigned __int128 all = 0, below = 0, need;
	double rank;
	unsigned i;

	/* not h->count: buckets of the kernel are read while it counts */
	for (i = 0; i < GBPF_BUCKETS; i++)
		all += h->bucket[i];
	if (!all)
		return -1;
	if (!(q > 0))
		q = 0;
	rank = (q < 1 ? q : 1) * (double)all;
	need = (unsigned __int128)ceil(rank);
	for (i = 0; i < GBPF_BUCKETS; i++) {
		below += h->bucket[i];
		if (below >= need && h->bucket[i]) {
			double here = (double)h->bucket[i];

			below -= h->bucket[i];
			return within(h, i, (rank - (double)below) / here);
		}
	}
	while (!h->bucket[--i])
		;
	return within(h, i, 1); /* rounding left the rank beyond the end */
}
