// SPDX-License-Identifier: BSD-2-Clause
/* Everything that ran, one row each: gpu_trace. */
#include <errno.h>
#include <stdlib.h>

#include "model/gpu.h"
#include "report/filter.h"
#include "report/row.h"

#define BATCH 4096 /* rows */

static const char *flags_text(uint32_t flags)
{
	if (flags & WORK_BACK_PRESSURED)
		return "back-pressured";
	if (flags & WORK_SHORT)
		return flags & WORK_UNCONTENDED ? "uncontended, short" : "short";
	return flags & WORK_UNCONTENDED ? "uncontended" : NULL;
}

static void fill_shape(const struct session *s, const struct work *w, struct row *r)
{
	const struct record_shape *shape;

	if (w->shape == SHAPE_NONE)
		return;
	shape = &s->shapes[w->shape];
	for (int i = 0; i < 3; i++) {
		r->grid[i] = shape->grid[i];
		r->block[i] = shape->block[i];
	}
	r->work.registers = shape->registers;
	r->work.smem_static = shape->smem_static;
	r->work.smem_dynamic = shape->smem_dynamic;
}

static void fill_cause(const struct report_ctx *ctx, uint32_t work, struct row *r)
{
	const struct session *s = ctx->s;
	const struct work_times *t = &ctx->times[work];
	const struct call *c;

	if (s->works[work].call == CALL_NONE)
		return;
	c = &s->calls[s->works[work].call];
	r->tid = s->threads[c->thread].tid;
	r->name = s->apis[c->api].display;
	r->work.launch_to_start = t->launch_to_start;
	r->work.queue_time = t->queue_time;
	r->work.depth = t->depth;
	r->work.flags = flags_text(t->flags);
}

static int64_t limited(uint64_t v)
{
	return v > INT64_MAX ? INT64_MAX : (int64_t)v;
}

static void fill_work(const struct report_ctx *ctx, uint32_t work, struct row *r)
{
	const struct session *s = ctx->s;
	const struct work *w = &s->works[work];
	const struct session_stream *st = &s->streams[w->stream];
	bool kernel = w->kind == RECORD_WORK_KERNEL;

	row_init_work(r);
	r->begin = w->begin - s->begin;
	r->total = w->end - w->begin;
	r->pid = s->processes[st->process].pid;
	r->work.correlation = w->correlation;
	r->work.device = s->devices[st->device].about.ordinal;
	r->work.context = st->context;
	r->work.stream = st->id;
	r->kernel = kernel ? kernel_name(s, w->kernel, ctx->o->names) : work_operation(w);
	if (w->graph) {
		r->work.graph = w->graph;
		r->work.node = limited(w->graph_node);
	}
	if (!kernel) {
		r->bytes = limited(w->bytes);
		r->work.throughput = work_throughput(w->bytes, r->total);
		r->work.source = w->kind == RECORD_WORK_SET ? NULL : memory_word(w->source);
		r->work.target = memory_word(w->target);
	}
	fill_shape(s, w, r);
	fill_cause(ctx, work, r);
}

struct start {
	int64_t begin;
	uint32_t work;
};

static int start_order(const void *pa, const void *pb)
{
	const struct start *a = pa, *b = pb;

	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	return a->work < b->work ? -1 : a->work > b->work;
}

/* The works by time; kept for the batches that follow. */
static int find_order(struct report_ctx *ctx)
{
	const struct session *s = ctx->s;
	struct start *starts = calloc(s->works_count + 1, sizeof(*starts));

	if (!starts)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->works_count; i++)
		starts[i] = (struct start){ s->works[i].begin, i };
	qsort(starts, s->works_count, sizeof(*starts), start_order);
	ctx->order = starts;
	return works_prepare(ctx);
}

/* What the filter would throw away is not kept, nor what comes after --top. */
static int build_trace(struct report_ctx *ctx)
{
	const struct start *starts;
	struct row *r;
	int err = ctx->order ? 0 : find_order(ctx);

	starts = ctx->order;
	for (; !err && ctx->at < ctx->s->works_count; ctx->at++) {
		if (ctx->in_order && ctx->o->top &&
		    ctx->printed + ctx->rows.count == ctx->o->top)
			break;
		if (ctx->batched && ctx->rows.count == BATCH)
			break;
		err = rows_add(&ctx->rows, &r);
		if (err)
			break;
		fill_work(ctx, starts[ctx->at].work, r);
		if (ctx->filter && !filter_match(ctx->filter, r))
			ctx->rows.count--;
	}
	return err;
}

static const struct column columns_trace[] = {
	COLUMN("start_ns", "Start", INT, NS, begin),
	COLUMN("duration_ns", "Duration", INT, NS, total),
	COLUMN("correlation", "CorrId", INT, ID, work.correlation),
	COLUMN("grid", "Grid", DIM3, NONE, grid),
	COLUMN("block", "Block", DIM3, NONE, block),
	COLUMN_OPTIONAL("registers", "Reg/Trd", INT, NONE, work.registers),
	COLUMN_OPTIONAL("smem_static_bytes", "StcSMem", INT, BYTES, work.smem_static),
	COLUMN_OPTIONAL("smem_dynamic_bytes", "DymSMem", INT, BYTES, work.smem_dynamic),
	COLUMN_OPTIONAL("bytes", "Size", INT, BYTES, bytes),
	COLUMN_OPTIONAL("gb_per_s", "Throughput (GB/s)", INT, MILLI, work.throughput),
	COLUMN_OPTIONAL("source", "SrcMemKd", TEXT, NONE, work.source),
	COLUMN_OPTIONAL("target", "DstMemKd", TEXT, NONE, work.target),
	COLUMN_OPTIONAL("device", "Device", INT, ID, work.device),
	COLUMN_OPTIONAL("context", "Ctx", INT, ID, work.context),
	COLUMN("stream", "Strm", INT, ID, work.stream),
	TIME_OPTIONAL("launch_to_start_ns", "Launch to start", work.launch_to_start,
		      work.launch_to_start),
	TIME_OPTIONAL("queue_ns", "Queue", work.queue_time, work.launch_to_start),
	COLUMN_OPTIONAL("depth", "Depth", INT, NONE, work.depth),
	COLUMN_OPTIONAL("graph", "Graph", INT, ID, work.graph),
	COLUMN_OPTIONAL("graph_node", "Node", INT, ID, work.node),
	COLUMN_OPTIONAL("flags", "Flags", TEXT, NONE, work.flags),
	COLUMN("pid", "PID", INT, ID, pid),
	COLUMN_OPTIONAL("tid", "TID", INT, ID, tid),
	COLUMN_OPTIONAL("api", "API", TEXT, NONE, name),
	COLUMN("name", "Name", TEXT, NONE, kernel),
	{ 0 },
};

const struct view view_trace = {
	.about = { "gpu_trace", "cuda_gpu_trace", "every kernel, copy and set, by time" },
	.columns = columns_trace,
	.sort = "+start_ns",
	.bases = "Start: after the trace began. Launch to start: from the entry of the call that "
		 "caused it. Queue: from its return. Depth: launches that waited on the stream.",
	.of_work = true,
	.batches = true,
	.build = build_trace,
};
