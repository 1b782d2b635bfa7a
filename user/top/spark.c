/* SPDX-License-Identifier: BSD-2-Clause */
#include "top/spark.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LEVELS 8

static const char *const blocks[LEVELS] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
/* By their height in a line of text. */
static const char *const marks[LEVELS] = {"_", ".", ":", "-", "=", "+", "*", "#"};

bool spark_range(const float *values, size_t count, double *low, double *high)
{
	bool known = false;

	for (size_t i = 0; i < count; i++) {
		if (isnan(values[i]))
			continue;
		if (!known || values[i] < *low)
			*low = values[i];
		if (!known || values[i] > *high)
			*high = values[i];
		known = true;
	}
	return known;
}

static double mean(const float *values, size_t count)
{
	double sum = 0;
	size_t known = 0;

	for (size_t i = 0; i < count; i++) {
		if (isnan(values[i]))
			continue;
		sum += values[i];
		known++;
	}
	return known ? sum / (double)known : NAN;
}

/*
 * How many values a group has, so that the groups fit wherever the first value lies
 * in its own: else they would change with every sample.
 */
static uint64_t group_size(size_t count, uint64_t first, size_t columns)
{
	if (count <= columns)
		return 1;
	if (columns == 1)
		return first + count;
	return (count + columns - 2) / (columns - 1);
}

static void append(char *buf, size_t size, size_t *at, const char *text)
{
	if (*at + strlen(text) < size)
		*at += (size_t)snprintf(buf + *at, size - *at, "%s", text);
}

const char *spark_draw(const float *values, size_t count, uint64_t first, size_t columns,
		       bool utf8, char *buf, size_t size)
{
	const char *const *glyphs = utf8 ? blocks : marks;
	size_t groups, at = 0, i = 0;
	uint64_t per;
	double low, high = 0;

	if (size == 0)
		return buf;
	buf[0] = '\0';
	if (columns == 0)
		return buf;
	per = group_size(count, first, columns);
	groups = count ? (size_t)((first + count - 1) / per - first / per + 1) : 0;
	spark_range(values, count, &low, &high);
	for (size_t blank = groups; blank < columns; blank++)
		append(buf, size, &at, " ");
	while (i < count) {
		size_t n = per - (size_t)((first + i) % per);
		double value;
		int level;

		if (n > count - i)
			n = count - i;
		value = mean(values + i, n);
		level = high > 0 && !isnan(value) ? (int)ceil(value / high * LEVELS) - 1 : 0;
		level = level < 0 ? 0 : level >= LEVELS ? LEVELS - 1 : level;
		append(buf, size, &at, isnan(value) ? " " : glyphs[level]);
		i += n;
	}
	return buf;
}
