/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef GBPF_DIAGNOSE_COMPARE_PRIVATE_H
#define GBPF_DIAGNOSE_COMPARE_PRIVATE_H

#include "diagnose/compare.h"

/* One measure of one recording: its logarithm's mean and the variance of that mean. */
struct value {
	bool known;
	double log, variance;
};

/* Adds the logarithms of what blocks say. */
struct blocks {
	double sum, square;
	size_t count;
};
void block_add(struct blocks *b, double v); /* what is not positive is left out */
struct value block_value(const struct blocks *b);

/* a[i] and b[i] follow each other; so many measures share the chance of error. */
struct difference compare_values(const struct value *a, const struct value *b, size_t n,
				 size_t measures);

/* Fills changes; steps: of all recordings of each side, 0 where they have none. 0 or -ENOMEM. */
int compare_changes(const struct session *const *before, const struct session *const *after,
		    size_t n, const size_t steps[2], struct comparison *out);

#endif
