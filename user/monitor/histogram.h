/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Durations counted in log2-linear buckets, as bpf/monitor.h lays them out: eight
 * to an octave, so that a value told by its bucket is off by 6 % at the most.
 */
#ifndef GBPF_MONITOR_HISTOGRAM_H
#define GBPF_MONITOR_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/buckets.h"

struct histogram {
	uint64_t count, sum_ns, max_ns;
	uint64_t bucket[GBPF_BUCKETS];
};

/* Bounds of a bucket, ns: [low, high). The last one has no end: INT64_MAX. */
int64_t bucket_low(unsigned i);
int64_t bucket_high(unsigned i);
/* What stands for a bucket's values: the harmonic mean of its bounds, off by 5.9 % at most. */
int64_t bucket_value(unsigned i);

void histogram_count(struct histogram *h, uint64_t ns);
void histogram_add(struct histogram *to, const struct histogram *from);
/* to -= from; from was part of it. */
void histogram_subtract(struct histogram *to, const struct histogram *from);
/* Value at quantile q (0..1), interpolated within its bucket; -1 when empty. */
int64_t histogram_quantile(const struct histogram *h, double q);

#endif
