/* SPDX-License-Identifier: BSD-2-Clause */
/* A histogram's buckets put together until they fit the rows there are. */
#ifndef GBPF_TOP_BARS_H
#define GBPF_TOP_BARS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/histogram.h"

struct bar {
	int64_t low, high; /* ns, [low, high); INT64_MAX: no end */
	uint64_t count;
};

/*
 * From the first bar with a count to the last: octaves halved, quartered or cut in
 * eight as long as they fit in max of out, else put together. Returns how many.
 */
size_t bars_make(const struct histogram *h, struct bar *out, size_t max);

/* The bar in which a duration lies; count if in none. */
size_t bars_find(const struct bar *bars, size_t count, int64_t ns);

/* Eighths of a column that stand for count, of columns for largest; at least 1 where count is. */
size_t bars_length(uint64_t count, uint64_t largest, size_t columns, bool log_counts);

/* Into buf: 3 bytes a column and one. */
const char *bars_draw(size_t eighths, bool utf8, char *buf, size_t size);

#endif
