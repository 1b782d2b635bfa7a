/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Durations counted in log2-linear buckets, as bpf/buckets.h lays them out: eight
 * to an octave, so that a value told by its bucket is off by 6 % at the most.
 */
#ifndef GBPF_UTIL_HISTOGRAM_H
#define GBPF_UTIL_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/buckets.h"

struct histogram {
	uint64_t count, sum_ns, max_ns;
	uint64_t bucket[GBPF_BUCKETS];
};

/*
 * Bounds of a bucket, ns: [low, high). Bucket 0 begins at 0, the last one has no
 * end: INT64_MAX. Numbers beyond the last bucket mean the last one.
 */
int64_t bucket_low(unsigned i);
int64_t bucket_high(unsigned i);
/*
 * What stands for a bucket's values, ns: the harmonic mean of its bounds, off by
 * 1/17 (5.9 %) at most. Of bucket 0 it is the middle, of the last one its low bound.
 */
int64_t bucket_value(unsigned i);

/* Counts and sums that would overflow stay at UINT64_MAX. No argument may be NULL. */
void histogram_count(struct histogram *h, uint64_t ns);
void histogram_add(struct histogram *to, const struct histogram *from);
/*
 * to -= from, where from is an earlier reading of the same counters. Nothing goes
 * below zero if it was not; count is then what is left in the buckets, and max_ns
 * as histogram_limit() finds it from what it was.
 */
void histogram_subtract(struct histogram *to, const struct histogram *from);
/*
 * Sets max_ns, ns, where the buckets hold a part of what was counted, and longest was the
 * longest of all of that: it, if it may be of that part, else the end of the highest bucket
 * in use, which is 12.5 % too long at most. 0 if all buckets are empty.
 */
void histogram_limit(struct histogram *h, uint64_t longest);
/*
 * Value at quantile q (0..1), ns; -1 when all buckets are empty. Interpolated
 * within its bucket, which ends at max_ns if that lies in it: values spread over
 * several buckets are told within 6 %, values that all lie in one within 12.5 %
 * (the width of a bucket). In the last bucket without a max_ns: its low bound.
 */
int64_t histogram_quantile(const struct histogram *h, double q);

#endif
