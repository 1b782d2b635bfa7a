/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef GBPF_TOP_SPARK_H
#define GBPF_TOP_SPARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The last values as a line of bars from 0 to the largest of them, the newest at
 * the right. values[0] is sample number first; NAN: not known, left blank. Where
 * there are more values than columns, as many are averaged in one as needed, in
 * groups that stay the same as samples are added. Fills columns with blanks at the
 * left. Into buf (3 bytes a column and one). Returns buf.
 */
const char *spark_draw(const float *values, size_t count, uint64_t first, size_t columns,
		       bool utf8, char *buf, size_t size);

/* Smallest and largest of what is known; false: nothing is. */
bool spark_range(const float *values, size_t count, double *low, double *high);

#endif
