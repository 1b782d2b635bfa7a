// SPDX-License-Identifier: BSD-2-Clause
#include "util/select.h"

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
int64_t select_rank(int64_t *v, size_t count, size_t rank)
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
