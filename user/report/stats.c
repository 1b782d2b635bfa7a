// SPDX-License-Identifier: BSD-2-Clause
#include <math.h>

#include "report/row.h"

size_t stats_rank(size_t count, unsigned percent)
{
	size_t rank = (size_t)(((unsigned __int128)count * percent + 99) / 100);

	return rank ? rank - 1 : 0;
}

static int64_t median3(int64_t a, int64_t b, int64_t c)
{
	if ((a <= b) == (b <= c))
		return b;
	return (b <= a) == (a <= c) ? a : c;
}

/*
 * Partitions v[low, high) into less, equal and greater than pivot; the equal
 * ones are v[*low, *high) afterwards.
 */
static void partition(int64_t *v, size_t *low, size_t *high, int64_t pivot)
{
	size_t less = *low, i = *low, greater = *high;

	while (i < greater) {
		int64_t x = v[i];

		if (x < pivot) {
			v[i++] = v[less];
			v[less++] = x;
		} else if (x > pivot) {
			v[i] = v[--greater];
			v[greater] = x;
		} else {
			i++;
		}
	}
	*low = less;
	*high = greater;
}

/*
 * Quickselect with pivots drawn at random, since durations come sorted as
 * often as not, and three ways, since many are equal.
 */
int64_t stats_select(int64_t *v, size_t count, size_t rank)
{
	size_t from = 0, to = count;
	uint64_t state = 0x9e3779b97f4a7c15u ^ count;

	while (to - from > 1) {
		size_t low = from, high = to, pick[3];

		for (int i = 0; i < 3; i++) {
			state ^= state << 13;
			state ^= state >> 7;
			state ^= state << 17;
			pick[i] = from + state % (to - from);
		}
		partition(v, &low, &high, median3(v[pick[0]], v[pick[1]], v[pick[2]]));
		if (rank < low)
			to = low;
		else if (rank >= high)
			from = high;
		else
			break;
	}
	return v[rank];
}

static int64_t deviation(const int64_t *times, size_t count)
{
	double mean = 0, squares = 0;

	for (size_t i = 0; i < count; i++)
		mean += (double)times[i];
	mean /= (double)count;
	for (size_t i = 0; i < count; i++) {
		double d = (double)times[i] - mean;

		squares += d * d;
	}
	return llround(sqrt(squares / (double)(count - 1)));
}

void stats_fill(struct row *r, int64_t *times, size_t count)
{
	size_t median, high, top;

	if (r->timed && r->total != NA)
		r->avg = llround((double)r->total / (double)r->timed);
	r->samples = count;
	if (!count)
		return;
	if (count > 1)
		r->stddev = deviation(times, count);
	/* Each selection leaves what is greater behind it, for the next. */
	median = stats_rank(count, 50);
	high = stats_rank(count, 90);
	top = stats_rank(count, 99);
	r->p50 = stats_select(times, count, median);
	r->p90 = stats_select(times + median, count - median, high - median);
	r->p99 = stats_select(times + high, count - high, top - high);
}
