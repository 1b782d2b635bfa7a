/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/events.h"

#include <errno.h>
#include <stdlib.h>

#include "record/events_layout.h"

const struct column_layout events_layout[COLUMNS] = {
	[COL_THREAD] = {GROUP_ALL, 2},
	[COL_FORM] = {GROUP_ALL, 5},
	[COL_ENTRY_TS] = {GROUP_ENTRY, 8},
	[COL_ENTRY_SP] = {GROUP_ENTRY, 4},
	[COL_END_TS] = {GROUP_END, 8},
	[COL_END_SITE] = {GROUP_END, 8},
	[COL_FUNC] = {GROUP_LAUNCH, 8},
	[COL_STREAM] = {GROUP_LAUNCH, 8},
	[COL_SMEM] = {GROUP_LAUNCH, 8},
	[COL_GRID] = {GROUP_LAUNCH, 4},
	[COL_GRID + 1] = {GROUP_LAUNCH, 4},
	[COL_GRID + 2] = {GROUP_LAUNCH, 4},
	[COL_BLOCK] = {GROUP_LAUNCH, 4},
	[COL_BLOCK + 1] = {GROUP_LAUNCH, 4},
	[COL_BLOCK + 2] = {GROUP_LAUNCH, 4},
	[COL_CALL_OBJECT] = {GROUP_CALL, 8},
	[COL_CALL_STREAM] = {GROUP_CALL, 8},
	[COL_CALL_SOURCE] = {GROUP_CALL, 8},
	[COL_CALL_BYTES] = {GROUP_CALL, 8},
	[COL_CALL_KIND] = {GROUP_CALL, 8},
	[COL_RET] = {GROUP_END, 8},
	[COL_OUT] = {GROUP_OUT, 8},
	[COL_POLL_OBJECT] = {GROUP_POLL, 8},
	[COL_POLL_LAST_END] = {GROUP_CLOSED, 8},
	[COL_POLL_INSIDE] = {GROUP_POLL, 8},
	[COL_POLL_MIN] = {GROUP_POLL, 4},
	[COL_POLL_MAX] = {GROUP_POLL, 4},
	[COL_POLL_COUNT] = {GROUP_POLL, 4},
	[COL_POLL_RET] = {GROUP_POLL, 4},
};

/* Hands out the memory behind the struct. */
static void lay_out(struct events_codec *c)
{
	size_t room = (size_t)1 << c->bits;
	uint64_t *wide = (uint64_t *)(c + 1);
	uint32_t *narrow = (uint32_t *)(wide + (COLUMNS + 2) * room);

	for (size_t i = 0; i < COLUMNS; i++)
		c->column[i] = wide + i * room;
	c->pid = wide + COLUMNS * room;
	c->tid = c->pid + room;
	c->slot = narrow;
	c->order = narrow + 2 * room;
	c->used = narrow + 3 * room;
	c->start = narrow + 4 * room; /* last, for it has one more */
	/* All else is written before it is read, and most of it perhaps never. */
	memset(c->slot, 0, 2 * room * sizeof(c->slot[0]));
}

int events_codec_reserve(struct events_codec **c, size_t count)
{
	unsigned int bits = 6;
	size_t room;

	if (*c && count <= (size_t)1 << (*c)->bits)
		return 0;
	while ((size_t)1 << bits < count)
		bits++;
	room = (size_t)1 << bits;
	free(*c);
	*c = malloc(sizeof(**c) + room * ((COLUMNS + 2) * 8 + 5 * 4) + 4);
	if (!*c)
		return -ENOMEM;
	(*c)->bits = bits;
	lay_out(*c);
	return 0;
}

void events_codec_free(struct events_codec *c)
{
	free(c);
}

size_t events_bound(void)
{
	size_t bound = 8 + 4 + 2 * column_bound(CHUNK_RECORDS_MAX);

	return bound + COLUMNS * column_bound(CHUNK_RECORDS_MAX) / 2;
}

void events_sort(struct events_codec *c, size_t count)
{
	const uint64_t *thread = c->column[COL_THREAD];
	uint32_t sum = 0;

	memset(c->start, 0, (c->threads + 1) * sizeof(c->start[0]));
	if (c->threads == 1) {
		for (size_t i = 0; i < count; i++)
			c->order[i] = (uint32_t)i;
		c->start[1] = (uint32_t)count;
		return;
	}
	for (size_t i = 0; i < count; i++)
		c->start[thread[i]]++;
	for (size_t t = 0; t <= c->threads; t++) {
		uint32_t n = c->start[t];

		c->start[t] = sum;
		sum += n;
	}
	for (size_t i = 0; i < count; i++)
		c->order[c->start[thread[i]]++] = (uint32_t)i;
	memmove(c->start + 1, c->start, c->threads * sizeof(c->start[0]));
	c->start[0] = 0;
}
