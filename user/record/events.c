/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/events.h"

#include <errno.h>
#include <stdlib.h>

#include "record/bytes.h"
#include "record/columns.h"

#define THREAD_SLOT_BITS 17
#define THREAD_SLOTS (1u << THREAD_SLOT_BITS)
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

static const struct {
	uint8_t group; /* enum group */
	uint8_t bytes; /* that a value may need */
} layout[COLUMNS] = {
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
	uint64_t column[COLUMNS][CHUNK_RECORDS_MAX];
	uint64_t pid[CHUNK_RECORDS_MAX], tid[CHUNK_RECORDS_MAX];
	uint32_t threads;
	uint32_t start[CHUNK_RECORDS_MAX + 1]; /* of a thread's events in order[] */
	uint32_t order[CHUNK_RECORDS_MAX];     /* positions, thread by thread */
	uint32_t slot[THREAD_SLOTS];	       /* 1 + thread; 0 is free */
	uint32_t used[CHUNK_RECORDS_MAX];      /* slots to free again */
	size_t n[GROUPS];		       /* values so far, put or taken */
};

int events_codec_new(struct events_codec **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
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

/* ---- what both directions share ---- */

static uint64_t zigzag(uint64_t difference)
{
	return difference << 1 ^ (0 - (difference >> 63));
}

static uint64_t unzigzag(uint64_t value)
{
	return value >> 1 ^ (0 - (value & 1));
}

static uint64_t site_of(uint16_t api, uint16_t image, uint32_t sp)
{
	return (uint64_t)api | (uint64_t)image << 16 | (uint64_t)sp << 32;
}

/* Stacks grow down: a call still open below a new call's frame has lost its end. */
static void open_push(struct open_calls *o, uint64_t site)
{
	while (o->depth && o->site[o->depth - 1] >> 32 < site >> 32)
		o->depth--;
	if (o->depth == OPEN_MAX_DEPTH)
		memmove(o->site, o->site + 1, --o->depth * sizeof(o->site[0]));
	o->site[o->depth++] = site;
}

static uint64_t open_pop(struct open_calls *o)
{
	return o->depth ? o->site[--o->depth] : 0;
}

/* From column THREAD: order[] and start[]. */
static void sort_by_thread(struct events_codec *c, size_t count)
{
	const uint64_t *thread = c->column[COL_THREAD];
	uint32_t sum = 0;

	memset(c->start, 0, (c->threads + 1) * sizeof(c->start[0]));
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

/* ---- writing ---- */

static int form_of(const struct event *e)
{
	switch (e->kind) {
	case EVENT_BEGIN:
		return e->args <= EVENT_ARGS_CALL ? FORM_BEGIN + e->args : -1;
	case EVENT_END:
		return e->has_out ? FORM_END_OUT : FORM_END;
	case EVENT_POLL:
		return e->poll.last_end ? FORM_POLL : FORM_POLL_OPEN;
	default:
		return -1;
	}
}

bool events_valid(const struct event *e)
{
	return form_of(e) >= 0;
}

/* The event's thread, by its number in this chunk. */
static uint32_t thread_of(struct events_codec *c, uint32_t pid, uint32_t tid)
{
	uint64_t key = (uint64_t)pid << 32 | tid;
	uint32_t at = (uint32_t)(key * 0x9e3779b97f4a7c15ULL >> (64 - THREAD_SLOT_BITS));
	uint32_t t;

	while (c->slot[at]) {
		t = c->slot[at] - 1;
		if (c->pid[t] == pid && c->tid[t] == tid)
			return t;
		at = (at + 1) % THREAD_SLOTS;
	}
	t = c->threads++;
	c->pid[t] = pid;
	c->tid[t] = tid;
	c->slot[at] = t + 1;
	c->used[t] = at;
	return t;
}

static void number_threads(struct events_codec *c, const struct event *events, size_t count)
{
	uint32_t last = 0;

	c->threads = 0;
	for (size_t i = 0; i < count; i++) {
		const struct event *e = &events[i];

		if (!i || c->tid[last] != e->tid || c->pid[last] != e->pid)
			last = thread_of(c, e->pid, e->tid);
		c->column[COL_THREAD][i] = last;
	}
	for (size_t t = 0; t < c->threads; t++)
		c->slot[c->used[t]] = 0;
}

static void put_launch(struct events_codec *c, const struct event *e)
{
	size_t n = c->n[GROUP_LAUNCH]++;

	c->column[COL_FUNC][n] = e->launch.func;
	c->column[COL_STREAM][n] = e->launch.stream;
	c->column[COL_SMEM][n] = e->launch.smem;
	for (int i = 0; i < 3; i++) {
		c->column[COL_GRID + i][n] = e->launch.grid[i];
		c->column[COL_BLOCK + i][n] = e->launch.block[i];
	}
}

static void put_call(struct events_codec *c, const struct event *e)
{
	size_t n = c->n[GROUP_CALL]++;

	c->column[COL_CALL_OBJECT][n] = e->call.object;
	c->column[COL_CALL_STREAM][n] = e->call.stream;
	c->column[COL_CALL_SOURCE][n] = e->call.source;
	c->column[COL_CALL_BYTES][n] = e->call.bytes;
	c->column[COL_CALL_KIND][n] = e->call.kind;
}

static void put_poll(struct events_codec *c, const struct event *e)
{
	size_t n = c->n[GROUP_POLL]++;

	c->column[COL_POLL_OBJECT][n] = e->poll.object;
	c->column[COL_POLL_INSIDE][n] = (uint64_t)e->poll.inside;
	c->column[COL_POLL_MIN][n] = e->poll.min;
	c->column[COL_POLL_MAX][n] = e->poll.max;
	c->column[COL_POLL_COUNT][n] = e->poll.count;
	c->column[COL_POLL_RET][n] = (uint32_t)e->poll.ret;
	if (e->poll.last_end)
		c->column[COL_POLL_LAST_END][c->n[GROUP_CLOSED]++] =
			zigzag((uint64_t)e->poll.last_end - (uint64_t)e->ts);
}

static void put_end(struct events_codec *c, const struct event *e, struct thread_state *s)
{
	size_t n = c->n[GROUP_END]++;

	c->column[COL_END_TS][n] = zigzag((uint64_t)e->ts - s->ts);
	c->column[COL_END_SITE][n] = site_of(e->api, e->image, e->sp) ^ open_pop(&s->open);
	c->column[COL_RET][n] = (uint64_t)e->end.ret;
	if (e->has_out)
		c->column[COL_OUT][c->n[GROUP_OUT]++] = e->end.out;
}

static void put_entry(struct events_codec *c, const struct event *e, struct thread_state *s)
{
	size_t n = c->n[GROUP_ENTRY]++;

	c->column[COL_ENTRY_TS][n] = zigzag((uint64_t)e->ts - s->ts);
	c->column[COL_ENTRY_SP][n] = e->sp;
	if (e->kind == EVENT_POLL) {
		put_poll(c, e);
		return;
	}
	open_push(&s->open, site_of(e->api, e->image, e->sp));
	if (e->args == EVENT_ARGS_LAUNCH)
		put_launch(c, e);
	else if (e->args == EVENT_ARGS_CALL)
		put_call(c, e);
}

static void put_event(struct events_codec *c, const struct event *e, struct thread_state *s)
{
	uint64_t form = (uint64_t)form_of(e);

	if (e->kind == EVENT_END) {
		put_end(c, e, s);
	} else {
		form |= (uint64_t)e->api << 8 | (uint64_t)e->image << 24;
		put_entry(c, e, s);
	}
	c->column[COL_FORM][c->n[GROUP_ALL]++] = form;
	s->ts = (uint64_t)e->ts;
}

size_t events_encode(struct events_codec *c, const struct event *events, size_t count,
		     uint8_t *out)
{
	uint64_t base = (uint64_t)events[0].ts;
	uint8_t *at = out + 12;

	number_threads(c, events, count);
	sort_by_thread(c, count);
	memset(c->n, 0, sizeof(c->n));
	for (size_t t = 0; t < c->threads; t++) {
		struct thread_state s = {.ts = base};

		for (uint32_t i = c->start[t]; i < c->start[t + 1]; i++)
			put_event(c, &events[c->order[i]], &s);
	}
	put_u64(out, base);
	put_u32(out + 8, c->threads);
	at = column_put(at, c->pid, c->threads);
	at = column_put(at, c->tid, c->threads);
	for (int col = 0; col < COLUMNS; col++)
		at = column_put(at, c->column[col], c->n[layout[col].group]);
	return (size_t)(at - out);
}

/* ---- reading ---- */

static void take_launch(struct events_codec *c, struct event *e)
{
	size_t n = c->n[GROUP_LAUNCH]++;

	e->args = EVENT_ARGS_LAUNCH;
	e->launch.func = c->column[COL_FUNC][n];
	e->launch.stream = c->column[COL_STREAM][n];
	e->launch.smem = c->column[COL_SMEM][n];
	for (int i = 0; i < 3; i++) {
		e->launch.grid[i] = (uint32_t)c->column[COL_GRID + i][n];
		e->launch.block[i] = (uint32_t)c->column[COL_BLOCK + i][n];
	}
}

static void take_call(struct events_codec *c, struct event *e)
{
	size_t n = c->n[GROUP_CALL]++;

	e->args = EVENT_ARGS_CALL;
	e->call.object = c->column[COL_CALL_OBJECT][n];
	e->call.stream = c->column[COL_CALL_STREAM][n];
	e->call.source = c->column[COL_CALL_SOURCE][n];
	e->call.bytes = c->column[COL_CALL_BYTES][n];
	e->call.kind = c->column[COL_CALL_KIND][n];
}

static void take_poll(struct events_codec *c, struct event *e, enum form form)
{
	size_t n = c->n[GROUP_POLL]++;

	e->kind = EVENT_POLL;
	e->poll.object = c->column[COL_POLL_OBJECT][n];
	e->poll.inside = (int64_t)c->column[COL_POLL_INSIDE][n];
	e->poll.min = (uint32_t)c->column[COL_POLL_MIN][n];
	e->poll.max = (uint32_t)c->column[COL_POLL_MAX][n];
	e->poll.count = (uint32_t)c->column[COL_POLL_COUNT][n];
	e->poll.ret = (int32_t)(uint32_t)c->column[COL_POLL_RET][n];
	if (form == FORM_POLL) {
		n = c->n[GROUP_CLOSED]++;
		e->poll.last_end = (int64_t)((uint64_t)e->ts +
					     unzigzag(c->column[COL_POLL_LAST_END][n]));
	}
}

static void take_end(struct events_codec *c, struct event *e, struct thread_state *s,
		     enum form form)
{
	size_t n = c->n[GROUP_END]++;
	uint64_t site = c->column[COL_END_SITE][n] ^ open_pop(&s->open);

	e->kind = EVENT_END;
	e->ts = (int64_t)(s->ts + unzigzag(c->column[COL_END_TS][n]));
	e->api = (uint16_t)site;
	e->image = (uint16_t)(site >> 16);
	e->sp = (uint32_t)(site >> 32);
	e->end.ret = (int64_t)c->column[COL_RET][n];
	if (form == FORM_END_OUT) {
		e->has_out = 1;
		e->end.out = c->column[COL_OUT][c->n[GROUP_OUT]++];
	}
}

static void take_entry(struct events_codec *c, struct event *e, struct thread_state *s,
		       uint64_t word)
{
	enum form form = (enum form)(word & 0xff);
	size_t n = c->n[GROUP_ENTRY]++;

	e->kind = EVENT_BEGIN;
	e->ts = (int64_t)(s->ts + unzigzag(c->column[COL_ENTRY_TS][n]));
	e->sp = (uint32_t)c->column[COL_ENTRY_SP][n];
	e->api = (uint16_t)(word >> 8);
	e->image = (uint16_t)(word >> 24);
	if (form >= FORM_POLL) {
		take_poll(c, e, form);
		return;
	}
	open_push(&s->open, site_of(e->api, e->image, e->sp));
	if (form == FORM_LAUNCH)
		take_launch(c, e);
	else if (form == FORM_CALL)
		take_call(c, e);
}

static void take_thread(struct events_codec *c, struct event *events, uint32_t t, uint64_t base)
{
	struct thread_state s = {.ts = base};

	for (uint32_t i = c->start[t]; i < c->start[t + 1]; i++) {
		struct event *e = &events[c->order[i]];
		uint64_t word = c->column[COL_FORM][c->n[GROUP_ALL]++];
		enum form form = (enum form)(word & 0xff);

		memset(e, 0, sizeof(*e));
		e->pid = (uint32_t)c->pid[t];
		e->tid = (uint32_t)c->tid[t];
		if (form == FORM_END || form == FORM_END_OUT)
			take_end(c, e, &s, form);
		else
			take_entry(c, e, &s, word);
		s.ts = (uint64_t)e->ts;
	}
}

/* How many values each group of columns has, from the first two columns. */
static int count_groups(const struct events_codec *c, size_t count, size_t n[GROUPS])
{
	size_t forms[FORMS] = {0};

	for (size_t i = 0; i < count; i++) {
		if (c->column[COL_THREAD][i] >= c->threads ||
		    (c->column[COL_FORM][i] & 0xff) >= FORMS)
			return -EBADMSG;
		forms[c->column[COL_FORM][i] & 0xff]++;
	}
	n[GROUP_ALL] = count;
	n[GROUP_END] = forms[FORM_END] + forms[FORM_END_OUT];
	n[GROUP_ENTRY] = count - n[GROUP_END];
	n[GROUP_LAUNCH] = forms[FORM_LAUNCH];
	n[GROUP_CALL] = forms[FORM_CALL];
	n[GROUP_OUT] = forms[FORM_END_OUT];
	n[GROUP_POLL] = forms[FORM_POLL] + forms[FORM_POLL_OPEN];
	n[GROUP_CLOSED] = forms[FORM_POLL];
	return 0;
}

static int get_columns(struct events_codec *c, struct cursor *in, size_t count)
{
	size_t n[GROUPS];
	int err = 0;

	if (column_get(in, c->pid, c->threads, 4) || column_get(in, c->tid, c->threads, 4) ||
	    column_get(in, c->column[COL_THREAD], count, layout[COL_THREAD].bytes) ||
	    column_get(in, c->column[COL_FORM], count, layout[COL_FORM].bytes) ||
	    count_groups(c, count, n))
		return -EBADMSG;
	for (int col = COL_FORM + 1; col < COLUMNS && !err; col++)
		err = column_get(in, c->column[col], n[layout[col].group], layout[col].bytes);
	return err;
}

int events_decode(struct events_codec *c, const uint8_t *in, size_t size, struct event *events,
		  size_t count)
{
	struct cursor cursor = {in + 12, in + size};
	uint64_t base;

	if (size < 12 || count > CHUNK_RECORDS_MAX)
		return -EBADMSG;
	base = get_u64(in);
	c->threads = get_u32(in + 8);
	if (c->threads > count || get_columns(c, &cursor, count))
		return -EBADMSG;
	sort_by_thread(c, count);
	memset(c->n, 0, sizeof(c->n));
	for (uint32_t t = 0; t < c->threads; t++)
		take_thread(c, events, t, base);
	return 0;
}
