/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/events.h"

#include <errno.h>

#include "record/events_layout.h"

/* Events that are fetched before their turn: other threads' lie between. */
#define AHEAD 8

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
		const struct event *later =
			&events[c->order[i + AHEAD < c->start[t + 1] ? i + AHEAD : i]];
		struct event *e = &events[c->order[i]];
		uint64_t word = c->column[COL_FORM][c->n[GROUP_ALL]++];
		enum form form = (enum form)(word & 0xff);

		__builtin_prefetch(later, 1);
		__builtin_prefetch((const char *)later + 64, 1);
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
	    column_get(in, c->column[COL_THREAD], count, events_layout[COL_THREAD].bytes) ||
	    column_get(in, c->column[COL_FORM], count, events_layout[COL_FORM].bytes) ||
	    count_groups(c, count, n))
		return -EBADMSG;
	for (int col = COL_FORM + 1; col < COLUMNS && !err; col++) {
		const struct column_layout *l = &events_layout[col];

		err = column_get(in, c->column[col], n[l->group], l->bytes);
	}
	return err;
}

int events_decode(struct events_codec *c, const uint8_t *in, size_t size, struct event *events,
		  size_t count)
{
	struct cursor cursor = {in + 12, in + size};
	uint64_t base;

	if (size < 12)
		return -EBADMSG;
	base = get_u64(in);
	c->threads = get_u32(in + 8);
	if (c->threads > count || get_columns(c, &cursor, count))
		return -EBADMSG;
	events_sort(c, count);
	memset(c->n, 0, sizeof(c->n));
	for (uint32_t t = 0; t < c->threads; t++)
		take_thread(c, events, t, base);
	return 0;
}
