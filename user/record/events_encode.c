/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/events.h"
#include "record/events_layout.h"

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
	uint32_t mask = (2u << c->bits) - 1;
	uint32_t at = (uint32_t)(key * 0x9e3779b97f4a7c15ULL >> (63 - c->bits));
	uint32_t t;

	while (c->slot[at]) {
		t = c->slot[at] - 1;
		if (c->pid[t] == pid && c->tid[t] == tid)
			return t;
		at = (at + 1) & mask;
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
	events_sort(c, count);
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
		at = column_put(at, c->column[col], c->n[events_layout[col].group]);
	return (size_t)(at - out);
}
