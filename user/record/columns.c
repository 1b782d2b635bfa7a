/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/columns.h"

#include <errno.h>
#include <stdbool.h>

#include "record/bytes.h"

/* First byte of a column; 1..8 is the number of byte planes. */
#define COLUMN_CONSTANT 0
#define COLUMN_TABLE 9

#define TABLE_MAX 256
#define PLANE_BLOCK 512
#define SLOT_BITS 10
#define SLOTS (1u << SLOT_BITS)

/* The distinct values so far, in order of appearance. */
struct table {
	uint64_t value[TABLE_MAX];
	size_t count;
	uint16_t slot[SLOTS]; /* 1 + index; 0 is free */
};

static unsigned int bytes_of(uint64_t value)
{
	return value ? (71 - (unsigned int)__builtin_clzll(value)) / 8 : 1;
}

/* Index of value, added if new; -1 when the table is full. */
static int table_index(struct table *t, uint64_t value)
{
	uint32_t at = (uint32_t)(value * 0x9e3779b97f4a7c15ULL >> (64 - SLOT_BITS));

	while (t->slot[at]) {
		if (t->value[t->slot[at] - 1] == value)
			return t->slot[at] - 1;
		at = (at + 1) % SLOTS;
	}
	if (t->count == TABLE_MAX)
		return -1;
	t->value[t->count] = value;
	t->slot[at] = (uint16_t)++t->count;
	return (int)t->count - 1;
}

/* Fills index[0..n); false when there are too many distinct values. */
static bool table_fill(struct table *t, uint8_t *index, const uint64_t *values, size_t n)
{
	uint64_t last = values[0];
	int at = 0;

	memset(t->slot, 0, sizeof(t->slot));
	t->count = 0;
	table_index(t, last);
	for (size_t i = 0; i < n; i++) {
		if (values[i] != last) {
			last = values[i];
			at = table_index(t, last);
			if (at < 0)
				return false;
		}
		index[i] = (uint8_t)at;
	}
	return true;
}

/*
 * The indexes are written where they belong if the table is full, and moved
 * down to the end of the table's real size afterwards.
 */
static uint8_t *put_table(uint8_t *out, const uint64_t *values, size_t n, unsigned int width)
{
	struct table t;
	uint8_t *index = out + 2 + (size_t)TABLE_MAX * 8;

	/* Only where a full table would still be smaller than the planes is there room. */
	if (n * (width - 1) <= (size_t)TABLE_MAX * 8 + 2 || !table_fill(&t, index, values, n))
		return NULL;
	out[0] = COLUMN_TABLE;
	out[1] = (uint8_t)(t.count - 1);
	for (size_t i = 0; i < t.count; i++)
		put_u64(out + 2 + i * 8, t.value[i]);
	memmove(out + 2 + t.count * 8, index, n);
	return out + 2 + t.count * 8 + n;
}

static uint8_t *put_planes(uint8_t *out, const uint64_t *values, size_t n, unsigned int width)
{
	*out++ = (uint8_t)width;
	for (unsigned int shift = 0; shift < width * 8; shift += 8) {
		for (size_t i = 0; i < n; i++)
			out[i] = (uint8_t)(values[i] >> shift);
		out += n;
	}
	return out;
}

uint8_t *column_put(uint8_t *out, const uint64_t *values, size_t n)
{
	uint64_t any = 0, differ = 0;
	uint8_t *end = NULL;
	unsigned int width;

	if (!n)
		return out;
	for (size_t i = 0; i < n; i++) {
		any |= values[i];
		differ |= values[i] ^ values[0];
	}
	if (!differ) {
		out[0] = COLUMN_CONSTANT;
		put_u64(out + 1, values[0]);
		return out + 9;
	}
	width = bytes_of(any);
	if (width > 1)
		end = put_table(out, values, n, width);
	return end ? end : put_planes(out, values, n, width);
}

static int get_table(struct cursor *in, uint64_t *values, size_t n, uint64_t max)
{
	uint64_t value[TABLE_MAX];
	const uint8_t *index;
	uint8_t largest = 0;
	size_t count;

	if (in->at == in->end)
		return -EBADMSG;
	count = (size_t)*in->at++ + 1;
	if ((size_t)(in->end - in->at) < count * 8 + n)
		return -EBADMSG;
	for (size_t i = 0; i < count; i++) {
		value[i] = get_u64(in->at + i * 8);
		if (value[i] > max)
			return -EBADMSG;
	}
	index = in->at + count * 8;
	for (size_t i = 0; i < n; i++)
		largest = index[i] > largest ? index[i] : largest;
	if (largest >= count)
		return -EBADMSG;
	for (size_t i = 0; i < n; i++)
		values[i] = value[index[i]];
	in->at = index + n;
	return 0;
}

static int get_constant(struct cursor *in, uint64_t *values, size_t n, uint64_t max)
{
	uint64_t value;

	if (in->end - in->at < 8)
		return -EBADMSG;
	value = get_u64(in->at);
	if (value > max)
		return -EBADMSG;
	for (size_t i = 0; i < n; i++)
		values[i] = value;
	in->at += 8;
	return 0;
}

/* Adds the byte planes of count values, of which at is the first one's lowest byte. */
static inline void planes_add(uint64_t *values, const uint8_t *at, size_t n, size_t count,
			      unsigned int width)
{
	for (size_t i = 0; i < count; i++)
		values[i] = at[i];
	for (unsigned int plane = 1; plane < width; plane++)
		for (size_t i = 0; i < count; i++)
			values[i] |= (uint64_t)at[plane * n + i] << plane * 8;
}

/* In blocks that stay in the nearest cache until they have all their planes. */
static int get_planes(struct cursor *in, uint64_t *values, size_t n, unsigned int width)
{
	size_t i = 0;

	if ((size_t)(in->end - in->at) / width < n)
		return -EBADMSG;
	for (; i + PLANE_BLOCK <= n; i += PLANE_BLOCK)
		planes_add(values + i, in->at + i, n, PLANE_BLOCK, width);
	planes_add(values + i, in->at + i, n, n - i, width);
	in->at += n * width;
	return 0;
}

int column_get(struct cursor *in, uint64_t *values, size_t n, unsigned int bytes)
{
	uint64_t max = UINT64_MAX >> (64 - bytes * 8);
	unsigned int form;

	if (!n)
		return 0;
	if (in->at == in->end)
		return -EBADMSG;
	form = *in->at++;
	if (form == COLUMN_CONSTANT)
		return get_constant(in, values, n, max);
	if (form == COLUMN_TABLE)
		return get_table(in, values, n, max);
	return form <= bytes ? get_planes(in, values, n, form) : -EBADMSG;
}
