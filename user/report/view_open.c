// SPDX-License-Identifier: BSD-2-Clause
/* What threads were in when the trace ended, and what they did last: open_sum. */
#include "report/row.h"

static int64_t object_of(const struct session *s, const struct call *c)
{
	if (c->flags & CALL_POLL)
		return (int64_t)s->polls[c->args].object;
	if (c->flags & CALL_ARGS_CALL)
		return (int64_t)s->transfers[c->args].object;
	return NA;
}

static const char *state_of(const struct call *c)
{
	if (c->flags & CALL_OPEN)
		return "open";
	if (c->flags & CALL_ENTRY_ONLY)
		return "entered"; /* whether it returned is not known */
	if (c->flags & CALL_CUT && c->flags & CALL_NO_END)
		return "window ended";
	return c->flags & CALL_NO_END ? "never returned" : "returned";
}

static int open_row(struct report_ctx *ctx, const struct call *c)
{
	const struct session *s = ctx->s;
	const struct session_thread *t = &s->threads[c->thread];
	const struct session_process *p = &s->processes[t->process];
	struct row *r;
	int err = rows_add(&ctx->rows, &r);

	if (err)
		return err;
	fill_api(ctx, c, r);
	fill_process(p, r);
	r->name = s->apis[c->api].display;
	r->tid = t->tid;
	r->thread = t->comm && *t->comm ? t->comm : r->comm;
	r->state = state_of(c);
	r->kernel = kernel_name(s, c->kernel, ctx->o->names);
	r->object = object_of(s, c);
	if (c->flags & CALL_ARGS_LAUNCH)
		r->stream = (int64_t)s->launches[c->args].stream;
	if (!(c->flags & CALL_NO_BEGIN))
		r->begin = c->begin - s->begin;
	if (c->flags & CALL_OPEN)
		r->open = s->end > c->begin ? s->end - c->begin : 0;
	else if (!(c->flags & (CALL_NO_END | CALL_ENTRY_ONLY)))
		r->ago = s->end > c->end ? s->end - c->end : 0;
	return 0;
}

static int build_open(struct report_ctx *ctx)
{
	const struct session *s = ctx->s;
	int err = 0;

	for (size_t i = 0; i < s->threads_count && !err; i++) {
		const struct session_thread *t = &s->threads[i];
		uint32_t end = t->first_call + t->calls;

		for (uint32_t c = t->first_call; c < end && !err; c++)
			if (s->calls[c].flags & CALL_OPEN)
				err = open_row(ctx, &s->calls[c]);
		if (!err && t->calls && !(s->calls[end - 1].flags & CALL_OPEN))
			err = open_row(ctx, &s->calls[end - 1]);
	}
	return err;
}

static const struct column columns_open[] = {
	COLUMN("open_ns", "Open for", INT, NS, open),
	COLUMN("begin_ns", "Begun at", INT, NS, begin),
	COLUMN("ago_ns", "Returned before end", INT, NS, ago),
	COLUMN("state", "State", TEXT, NONE, state),
	COLUMN("pid", "PID", INT, ID, pid),
	COLUMN("tid", "TID", INT, ID, tid),
	COLUMN("thread", "Thread", TEXT, NONE, thread),
	COLUMN_OPTIONAL("kind", "Kind", TEXT, NONE, kind),
	COLUMN_OPTIONAL("object", "Object", HEX, NONE, object),
	COLUMN_OPTIONAL("stream", "Stream", HEX, NONE, stream),
	COLUMN("name", "Name", TEXT, NONE, name),
	COLUMN_OPTIONAL("kernel", "Kernel", TEXT, NONE, kernel),
	{ 0 },
};

const struct view view_open = {
	.about = { "open_sum", NULL, "calls not returned at the end, and each thread's last" },
	.columns = columns_open,
	.sort = "-open_ns",
	.bases = "Begun at: after the trace began. Open for: until the trace ended, so at least.",
	.build = build_open,
};
