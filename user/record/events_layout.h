/* SPDX-License-Identifier: BSD-2-Clause */
/* What writing and reading an EVENTS chunk share, and nobody else includes. */
#ifndef GBPF_RECORD_EVENTS_LAYOUT_H
#define GBPF_RECORD_EVENTS_LAYOUT_H

#include "record/bytes.h"
#include "record/chunk.h"
#include "record/columns.h"

#define OPEN_MAX_DEPTH 8

/* What an event is, and with that which columns have a value of it. */
enum form {
	FORM_BEGIN = 0,
	FORM_LAUNCH = 1,
	FORM_CALL = 2,
	FORM_END = 3,
	FORM_END_OUT = 4,
	FORM_POLL = 5,
	FORM_POLL_OPEN = 6, /* last_end is 0 */
	FORMS = 7,
};

/* Columns that have a value of the same events. */
enum group {
	GROUP_ALL,
	GROUP_ENTRY, /* all but ends */
	GROUP_LAUNCH,
	GROUP_CALL,
	GROUP_END, /* with or without out */
	GROUP_OUT,
	GROUP_POLL, /* open or not */
	GROUP_CLOSED,
	GROUPS,
};

enum column { /* in the order of the chunk */
	COL_THREAD,
	COL_FORM,
	COL_ENTRY_TS,
	COL_ENTRY_SP,
	COL_END_TS,
	COL_END_SITE,
	COL_FUNC,
	COL_STREAM,
	COL_SMEM,
	COL_GRID,
	COL_BLOCK = COL_GRID + 3,
	COL_CALL_OBJECT = COL_BLOCK + 3,
	COL_CALL_STREAM,
	COL_CALL_SOURCE,
	COL_CALL_BYTES,
	COL_CALL_KIND,
	COL_RET,
	COL_OUT,
	COL_POLL_OBJECT,
	COL_POLL_LAST_END,
	COL_POLL_INSIDE,
	COL_POLL_MIN,
	COL_POLL_MAX,
	COL_POLL_COUNT,
	COL_POLL_RET,
	COLUMNS,
};

struct column_layout {
	uint8_t group; /* enum group */
	uint8_t bytes; /* that a value may need */
};

extern const struct column_layout events_layout[COLUMNS];

/* Calls of one thread that have begun and not ended: the next end is the top one's. */
struct open_calls {
	uint64_t site[OPEN_MAX_DEPTH];
	unsigned int depth;
};

/* Where one thread's events stand, coding or decoding. */
struct thread_state {
	uint64_t ts; /* of its event before */
	struct open_calls open;
};

struct events_codec {
	unsigned int bits;	   /* room for 1 << bits events */
	uint64_t *column[COLUMNS]; /* this and all below: one piece of memory */
	uint64_t *pid, *tid;	   /* of each thread */
	uint32_t threads;
	uint32_t *start; /* of a thread's events in order[]; one more than threads */
	uint32_t *order; /* positions, thread by thread */
	uint32_t *slot;	 /* twice the room, by hash: 1 + thread; 0 is free */
	uint32_t *used;	 /* slots to free again */
	size_t n[GROUPS]; /* values so far, put or taken */
};

static inline uint64_t zigzag(uint64_t difference)
{
	return difference << 1 ^ (0 - (difference >> 63));
}

static inline uint64_t unzigzag(uint64_t value)
{
	return value >> 1 ^ (0 - (value & 1));
}

static inline uint64_t site_of(uint16_t api, uint16_t image, uint32_t sp)
{
	return (uint64_t)api | (uint64_t)image << 16 | (uint64_t)sp << 32;
}

/* Stacks grow down: a call still open below a new call's frame has lost its end. */
static inline void open_push(struct open_calls *o, uint64_t site)
{
	while (o->depth && o->site[o->depth - 1] >> 32 < site >> 32)
		o->depth--;
	if (o->depth == OPEN_MAX_DEPTH)
		memmove(o->site, o->site + 1, --o->depth * sizeof(o->site[0]));
	o->site[o->depth++] = site;
}

static inline uint64_t open_pop(struct open_calls *o)
{
	return o->depth ? o->site[--o->depth] : 0;
}

/* From column THREAD: order[] and start[]. */
void events_sort(struct events_codec *c, size_t count);

#endif
