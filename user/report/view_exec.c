// SPDX-License-Identifier: BSD-2-Clause
/* Launch, queue and kernel of each launch together: kern_exec_sum. */
#include <stdlib.h>

#include "model/gpu.h"
#include "report/row.h"

static const struct call *cause(const struct report_ctx *ctx, uint32_t work)
{
	return &ctx->s->calls[ctx->s->works[work].call];
}

static bool exec_key(const struct report_ctx *ctx, uint32_t work, uint64_t key[GROUP_WORDS])
{
	const struct session *s = ctx->s;
	const struct work *w = &s->works[work];

	if (w->kind != RECORD_WORK_KERNEL || w->call == CALL_NONE)
		return false;
	key[0] = cause(ctx, work)->thread;
	key[1] = s->streams[w->stream].device;
	key[2] = cause(ctx, work)->api;
	key[3] = w->kernel;
	return true;
}

static void fill_exec(const struct report_ctx *ctx, uint32_t work, struct row *r)
{
	const struct session *s = ctx->s;
	const struct work *w = &s->works[work];
	const struct session_thread *t = &s->threads[cause(ctx, work)->thread];

	r->pid = t->pid;
	r->tid = t->tid;
	r->work.device = s->devices[s->streams[w->stream].device].about.ordinal;
	r->name = s->apis[cause(ctx, work)->api].display;
	r->kernel = kernel_name(s, w->kernel, ctx->o->names);
	r->work.window = process_window(s, t->process);
}

static void add_exec(const struct report_ctx *ctx, uint32_t work, struct row *r)
{
	r->work.queued += ctx->times[work].queue_time > 0;
	r->work.back_pressured += !!(ctx->times[work].flags & WORK_BACK_PRESSURED);
	r->work.uncontended += !!(ctx->times[work].flags & WORK_UNCONTENDED);
}

static int64_t total_of(const struct report_ctx *ctx, uint32_t work)
{
	return ctx->times[work].total;
}

static int64_t api_of(const struct report_ctx *ctx, uint32_t work)
{
	int64_t took = call_duration(cause(ctx, work));

	return took < 0 ? NA : took;
}

/* Like nsys: of those that were queued. */
static int64_t queue_of(const struct report_ctx *ctx, uint32_t work)
{
	return ctx->times[work].queue_time > 0 ? ctx->times[work].queue_time : NA;
}

static int64_t kernel_of(const struct report_ctx *ctx, uint32_t work)
{
	return ctx->s->works[work].end - ctx->s->works[work].begin;
}

static int64_t latency_of(const struct report_ctx *ctx, uint32_t work)
{
	return ctx->times[work].flags & WORK_UNCONTENDED ? ctx->times[work].launch_to_start : NA;
}

static int64_t depth_of(const struct report_ctx *ctx, uint32_t work)
{
	return ctx->times[work].depth;
}

static void put_total(struct row *r, const struct row *stats)
{
	spread_put(&r->work.total, stats);
}

static void put_api(struct row *r, const struct row *stats)
{
	spread_put(&r->work.api, stats);
}

static void put_queue(struct row *r, const struct row *stats)
{
	spread_put(&r->work.queue, stats);
}

static void put_kernel(struct row *r, const struct row *stats)
{
	spread_put(&r->work.kernel, stats);
}

static void put_latency(struct row *r, const struct row *stats)
{
	r->work.latency_p50 = stats->p50;
}

static void put_depth(struct row *r, const struct row *stats)
{
	r->work.depth_p50 = stats->p50;
	r->work.depth_max = stats->max;
}

static int build_exec(struct report_ctx *ctx)
{
	static const struct work_grouping g = { exec_key, fill_exec, add_exec };
	static const struct {
		int64_t (*value)(const struct report_ctx *ctx, uint32_t work);
		void (*put)(struct row *r, const struct row *stats);
	} spreads[] = {
		{ total_of, put_total },   { api_of, put_api },		{ queue_of, put_queue },
		{ kernel_of, put_kernel }, { latency_of, put_latency }, { depth_of, put_depth },
	};
	uint32_t *row_of = NULL;
	int err = works_prepare(ctx);

	if (!err)
		err = group_works(ctx, &g, &row_of);
	for (size_t i = 0; i < sizeof(spreads) / sizeof(spreads[0]) && !err; i++)
		err = spread_works(ctx, row_of, spreads[i].value, spreads[i].put);
	free(row_of);
	return err;
}

/* NOLINTBEGIN(bugprone-macro-parentheses): fields, for offsetof() */
#define SPREAD(key, title, field)                                                                  \
	TIME(key "_avg_ns", title "Avg", field.avg, field.avg),                                    \
	TIME(key "_p50_ns", title "Med", field.p50, field.avg),                                    \
	TIME_OPTIONAL(key "_min_ns", title "Min", field.min, field.avg),                           \
	TIME_OPTIONAL(key "_max_ns", title "Max", field.max, field.avg),                           \
	TIME_OPTIONAL(key "_stddev_ns", title "StdDev", field.stddev, field.avg)
/* NOLINTEND(bugprone-macro-parentheses) */

static const struct column columns_exec[] = {
	COLUMN("pid", "PID", INT, ID, pid),
	COLUMN("tid", "TID", INT, ID, tid),
	COLUMN_OPTIONAL("device", "DevId", INT, ID, work.device),
	COLUMN("count", "Count", INT, NONE, calls),
	COLUMN("queued", "QCount", INT, NONE, work.queued),
	SPREAD("t", "T", work.total),
	SPREAD("a", "A", work.api),
	SPREAD("q", "Q", work.queue),
	SPREAD("k", "K", work.kernel),
	COLUMN_OPTIONAL("depth_p50", "Depth, med", INT, NONE, work.depth_p50),
	COLUMN("depth_max", "Depth, max", INT, NONE, work.depth_max),
	TIME_OPTIONAL("latency_p50_ns", "Latency, med", work.latency_p50, work.latency_p50),
	COLUMN_OPTIONAL("uncontended", "Uncontended", INT, NONE, work.uncontended),
	COLUMN_OPTIONAL("back_pressured", "Back-pressured", INT, NONE, work.back_pressured),
	COLUMN_OPTIONAL("total_ns", "Total", INT, NS, total),
	COLUMN("name", "API", TEXT, NONE, name),
	COLUMN("kernel", "Kernel", TEXT, NONE, kernel),
	{ 0 },
};

const struct view view_kern_exec = {
	.about = { "kern_exec_sum", "cuda_kern_exec_sum",
		   "launch, queue and kernel time together, by thread and kernel" },
	.columns = columns_exec,
	.sort = "-total_ns",
	.bases = "T: from entry of the launch to the end of kernel or launch. A: the launch. Q: "
		 "from its return to the kernel's start; of the QCount that waited. K, and Total: "
		 "the kernel. Depth: launches that waited on the stream. Latency: launch to start "
		 "where the stream was free.",
	.of_work = true,
	.build = build_exec,
};
