/* SPDX-License-Identifier: BSD-2-Clause */
/* Looking something up in what is in order, near where the last one was found. */
#ifndef GBPF_UTIL_NEAR_H
#define GBPF_UTIL_NEAR_H

#include <stddef.h>
#include <stdint.h>

/*
 * The first of count rising values that is least or more; count: none is. They are stride
 * bytes apart, as a member of structs is. The search goes out from the guess, which may be
 * anything, in steps that double.
 */
static inline size_t near_find(const int64_t *values, size_t stride, size_t count, int64_t least,
			       size_t guess)
{
#define NEAR_AT(i) (*(const int64_t *)((const char *)values + (i) * stride))
	size_t low = guess < count ? guess : count, high = low, step = 1;

	if (low < count && NEAR_AT(low) < least) {
		for (high = ++low; high < count && NEAR_AT(high) < least; step *= 2) {
			low = high + 1;
			high += step;
		}
		high = high < count ? high : count;
	} else {
		for (; low && NEAR_AT(low - 1) >= least; step *= 2) {
			high = low - 1;
			low = high > step ? high - step : 0;
		}
	}
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (NEAR_AT(middle) < least)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
#undef NEAR_AT
}

#endif
