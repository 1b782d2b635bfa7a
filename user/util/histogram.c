// SPDX-License-Identifier: BSD-2-Clause
#include "util/histogram.h"

#include <math.h>
#include <stdbool.h>

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

static bool eight_empty(const uint64_t *b)
{
	return !(b[0] | b[1] | b[2] | b[3] | b[4] | b[5] | b[6] | b[7]);
}

/* The first bucket from i on that holds something, or GBPF_BUCKETS: most hold nothing. */
static unsigned next_used(const struct histogram *h, unsigned i)
{
	while (i + 8 <= GBPF_BUCKETS && eight_empty(&h->bucket[i]))
		i += 8;
	while (i < GBPF_BUCKETS && !h->bucket[i])
		i++;
	return i;
}

/* The last bucket that holds something, or 0. */
static unsigned last_used(const struct histogram *h)
{
	unsigned top = LAST;

	while (top >= 8 && eight_empty(&h->bucket[top - 7]))
		top -= 8;
	while (top && !h->bucket[top])
		top--;
	return top;
}

void histogram_limit(struct histogram *h, uint64_t longest)
{
	unsigned top = last_used(h);

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

/* Sums are wider than counts, as the largest of these may be many. */
int64_t histogram_quantile(const struct histogram *h, double q)
{
	unsigned __int128 all = 0, below = 0, need;
	double rank;
	unsigned i;

	/* not h->count: buckets of the kernel are read while it counts */
	for (i = next_used(h, 0); i < GBPF_BUCKETS; i = next_used(h, i + 1))
		all += h->bucket[i];
	if (!all)
		return -1;
	if (!(q > 0))
		q = 0;
	rank = (q < 1 ? q : 1) * (double)all;
	need = (unsigned __int128)ceil(rank);
	for (i = next_used(h, 0); i < GBPF_BUCKETS; i = next_used(h, i + 1)) {
		double here = (double)h->bucket[i];

		if (below + h->bucket[i] >= need)
			return within(h, i, (rank - (double)below) / here);
		below += h->bucket[i];
	}
	return within(h, last_used(h), 1); /* rounding left the rank beyond the end */
}
