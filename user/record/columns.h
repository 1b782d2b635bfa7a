/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A column: n unsigned numbers as one constant, as byte planes, or as indexes
 * into a table of the distinct values. docs/format.md, "Columns".
 */
#ifndef GBPF_RECORD_COLUMNS_H
#define GBPF_RECORD_COLUMNS_H

#include <stddef.h>
#include <stdint.h>

/* What is left to read of a chunk's content. */
struct cursor {
	const uint8_t *at, *end;
};

/* Bytes that column_put() needs at most for n values. */
static inline size_t column_bound(size_t n)
{
	return n * 8 + 9;
}

/*
 * Writes values[0..n) in whichever form is smallest and returns the end of
 * what it wrote. Nothing is written for n = 0.
 */
uint8_t *column_put(uint8_t *out, const uint64_t *values, size_t n);

/*
 * Reads n values, of which none may need more than bytes (1..8) bytes, and
 * moves the cursor behind them. -EBADMSG: too short, or not such a column.
 */
int column_get(struct cursor *in, uint64_t *values, size_t n, unsigned int bytes);

#endif
