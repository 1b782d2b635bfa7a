// SPDX-License-Identifier: BSD-2-Clause
#include <math.h>

#include "report/row.h"
#include "util/select.h"

size_t stats_rank(size_t count, unsigned percent)
{
	size_t rank = (size_t)(((unsigned __int128)count * percent + 99) / 100);

	return rank ? rank - 1 : 0;
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
	r->p50 = select_rank(times, count, median);
	r->p90 = select_rank(times + median, count - median, high - median);
	r->p99 = select_rank(times + high, count - high, top - high);
}
