// SPDX-License-Identifier: BSD-2-Clause
/* First calls beside the later ones of the same function or kernel: cold_sum. */
#include <stdlib.h>

#include "report/row.h"

static bool is_cold_api(const struct call *c)
{
	return c->flags & CALL_COLD_API;
}

static bool is_cold_kernel(const struct call *c)
{
	return c->flags & CALL_COLD_KERNEL;
}

static void add_cold(const struct report_ctx *ctx, const struct call *c, struct row *r)
{
	const struct session *s = ctx->s;
	const struct session_process *p = &s->processes[s->threads[c->thread].process];

	r->state = "cold";
	r->first = call_duration(c) >= 0 ? call_duration(c) : NA;
	r->begin = c->begin - s->begin;
	if (p->started)
		r->evidence = "process started in the trace";
	else if (c->flags & CALL_COLD_LOAD)
		r->evidence = "module loaded just before";
	else
		r->evidence = "function looked up in the trace";
}

static void add_cold_api(const struct report_ctx *ctx, const struct call *c, struct row *r)
{
	if (is_cold_api(c))
		add_cold(ctx, c, r);
}

static void add_cold_kernel(const struct report_ctx *ctx, const struct call *c, struct row *r)
{
	if (is_cold_kernel(c))
		add_cold(ctx, c, r);
}

static void fill_function(const struct report_ctx *ctx, const struct call *c, struct row *r)
{
	fill_api(ctx, c, r);
	r->kind = "function";
}

static void fill_kernel(const struct report_ctx *ctx, const struct call *c, struct row *r)
{
	fill_api(ctx, c, r);
	r->kind = "kernel";
	r->name = kernel_name(ctx->s, c->kernel, ctx->o->names);
}

/* Adds to c the rows of g that have a first call. */
static int build_part(struct report_ctx *c, const struct grouping *g)
{
	struct report_ctx part = { .s = c->s, .o = c->o };
	int err = group_calls(&part, g);

	for (size_t i = 0; i < part.rows.count && !err; i++) {
		struct row *r = &part.rows.items[i], *kept;

		if (!r->state)
			continue;
		r->calls--; /* the later ones */
		if (r->first != NA && r->p50 != NA && r->p50 > 0)
			r->ratio = share(r->first, r->p50) / 100;
		err = rows_add(&c->rows, &kept);
		if (!err)
			*kept = *r;
	}
	free(part.rows.items);
	return err;
}

static int build_cold(struct report_ctx *c)
{
	static const struct grouping functions = { .key = key_api, .fill = fill_function,
						   .add = add_cold_api, .leave_out = is_cold_api };
	static const struct grouping kernels = { .key = key_kernel, .fill = fill_kernel,
						 .add = add_cold_kernel,
						 .leave_out = is_cold_kernel };
	bool any = false;
	int err;

	for (size_t i = 0; i < c->s->calls_count && !any; i++)
		any = c->s->calls[i].flags & CALL_COLD;
	if (!any)
		return 0;
	err = build_part(c, &functions);
	return err ? err : build_part(c, &kernels);
}

static const struct column columns_cold[] = {
	TIME("first_ns", "First", first, first),
	TIME("p50_ns", "Later, med", p50, first),
	COLUMN("ratio", "First / med", INT, MILLI, ratio),
	TIME_OPTIONAL("avg_ns", "Later, avg", avg, first),
	TIME_OPTIONAL("p99_ns", "Later, p99", p99, first),
	COLUMN("later_calls", "Later calls", INT, NONE, calls),
	COLUMN("begin_ns", "At", INT, NS, begin),
	COLUMN("kind", "What", TEXT, NONE, kind),
	COLUMN_OPTIONAL("evidence", "Evidence", TEXT, NONE, evidence),
	COLUMN("pid", "PID", INT, ID, pid),
	COLUMN("name", "Name", TEXT, NONE, name),
	{ 0 },
};

const struct view view_cold = {
	.about = { "cold_sum", NULL, "first calls of functions and kernels, where proven first" },
	.columns = columns_cold,
	.sort = "-first_ns",
	.bases = "At: after the trace began. Only calls that are proven to be first are listed.",
	.build = build_cold,
};
