// SPDX-License-Identifier: BSD-2-Clause
/* Kernels as the GPU ran them: kern_sum, kern_gb_sum, kern_exec_sum. */
#include <stdlib.h>
#include <string.h>

#include "model/gpu.h"
#include "report/row.h"

/* The columns nsys has, in its order. */
#define COLUMNS_WORK(calls_title)                                                                  \
	COLUMN("listed_pct", "% listed", INT, PERCENT, listed_share),                              \
	COLUMN("window_pct", "% window", INT, PERCENT, work.window_share),                         \
	COLUMN("total_ns", "Total", INT, NS, total),                                               \
	COLUMN("instances", calls_title, INT, NONE, calls),                                        \
	TIME("avg_ns", "Avg", avg, avg), TIME("p50_ns", "Med", p50, avg),                          \
	TIME("min_ns", "Min", min, avg), TIME("max_ns", "Max", max, avg),                          \
	TIME_OPTIONAL("stddev_ns", "StdDev", stddev, avg),                                         \
	TIME_OPTIONAL("p90_ns", "p90", p90, avg), TIME_OPTIONAL("p99_ns", "p99", p99, avg)

#define COLUMNS_KERNEL                                                                             \
	COLUMN("short_pct", "Short (%)", INT, PERCENT, work.short_share),                          \
	TIME_OPTIONAL("latency_p50_ns", "Latency, med", work.latency_p50, work.latency_p50),       \
	COLUMN_OPTIONAL("uncontended", "Uncontended", INT, NONE, work.uncontended),                \
	COLUMN_OPTIONAL("unmatched", "Unmatched", INT, NONE, work.unmatched),                      \
	COLUMN_OPTIONAL("registers", "Regs/thread", INT, NONE, work.registers),                    \
	COLUMN_OPTIONAL("smem_static_bytes", "Static smem", INT, BYTES, work.smem_static),         \
	COLUMN_OPTIONAL("smem_dynamic_bytes", "Dynamic smem", INT, BYTES, work.smem_dynamic),      \
	COLUMN_OPTIONAL("occupancy_pct", "Occupancy (%)", INT, PERCENT, work.occupancy)

#define BASES                                                                                      \
	"% listed: of this view's total, before --filter and --top; kernels that overlap add up. " \
	"% window: of the time that the sidecar recorded the process. Short: share of the "        \
	"instances that took less than their launch. Latency: from entry of the launch to start, " \
	"where the stream was free. Occupancy: the most warps that fit, of those possible."

static void same_or_na(int64_t *field, int64_t value)
{
	if (*field != value)
		*field = NA;
}

static void fill_shape(const struct report_ctx *ctx, uint32_t work, struct row *r)
{
	const struct session *s = ctx->s;
	const struct work *w = &s->works[work];
	const struct record_device *d = &s->devices[s->streams[w->stream].device].about;
	const struct record_shape *shape;
	struct occupancy o;

	r->work.shape = w->shape;
	if (w->shape == SHAPE_NONE)
		return;
	shape = &s->shapes[w->shape];
	r->work.registers = shape->registers;
	r->work.smem_static = shape->smem_static;
	r->work.smem_dynamic = shape->smem_dynamic;
	if (!occupancy_of(d, shape, &o))
		r->work.occupancy = share((int64_t)o.blocks_per_sm * shape->block[0] *
						  shape->block[1] * shape->block[2],
					  d->sm_threads);
}

static void fill_kernel(const struct report_ctx *ctx, uint32_t work, struct row *r)
{
	const struct session *s = ctx->s;
	const struct work *w = &s->works[work];
	uint32_t process = s->streams[w->stream].process;

	r->pid = s->processes[process].pid;
	r->comm = s->processes[process].comm;
	r->kernel = kernel_name(s, w->kernel, ctx->o->names);
	r->work.class = work_class(s, w) == WORK_CLASS_COMM ? "communication" : "compute";
	r->work.window = process_window(s, process);
	fill_shape(ctx, work, r);
}

/* What is not the same in all instances of a row is not known of the row. */
static void add_kernel(const struct report_ctx *ctx, uint32_t work, struct row *r)
{
	struct row one;

	if (r->work.shape != ctx->s->works[work].shape) {
		row_init_work(&one);
		fill_shape(ctx, work, &one);
		same_or_na(&r->work.registers, one.work.registers);
		same_or_na(&r->work.smem_static, one.work.smem_static);
		same_or_na(&r->work.smem_dynamic, one.work.smem_dynamic);
		same_or_na(&r->work.occupancy, one.work.occupancy);
		r->work.shape = one.work.shape;
	}
	r->work.unmatched += work_unmatched(&ctx->s->works[work]);
	r->work.shorts += !!(ctx->times[work].flags & WORK_SHORT);
	r->work.uncontended += !!(ctx->times[work].flags & WORK_UNCONTENDED);
}

static int64_t latency(const struct report_ctx *ctx, uint32_t work)
{
	return ctx->times[work].flags & WORK_UNCONTENDED ? ctx->times[work].launch_to_start : NA;
}

static void put_latency(struct row *r, const struct row *stats)
{
	r->work.latency_p50 = stats->p50;
}

static int build_kernels(struct report_ctx *ctx, const struct work_grouping *g)
{
	uint32_t *row_of = NULL;
	int err = works_prepare(ctx);

	if (!err)
		err = group_works(ctx, g, &row_of);
	if (!err)
		err = spread_works(ctx, row_of, latency, put_latency);
	free(row_of);
	return err;
}

static bool kern_key(const struct report_ctx *ctx, uint32_t work, uint64_t key[GROUP_WORDS])
{
	const struct work *w = &ctx->s->works[work];

	key[0] = ctx->s->streams[w->stream].process;
	key[1] = w->kernel;
	return w->kind == RECORD_WORK_KERNEL;
}

static int build_kern(struct report_ctx *ctx)
{
	static const struct work_grouping g = { kern_key, fill_kernel, add_kernel };

	return build_kernels(ctx, &g);
}

static const struct column columns_kern[] = {
	COLUMNS_WORK("Instances"),
	COLUMNS_KERNEL,
	COLUMN_OPTIONAL("class", "Class", TEXT, NONE, work.class),
	COLUMN("pid", "PID", INT, ID, pid),
	COLUMN("kernel", "Kernel", TEXT, NONE, kernel),
	{ 0 },
};

const struct view view_kern = {
	.about = { "kern_sum", "cuda_gpu_kern_sum gpu_kern_sum",
		   "kernels: time on the GPU, by process" },
	.columns = columns_kern,
	.sort = "-total_ns",
	.bases = BASES,
	.of_work = true,
	.build = build_kern,
};

/* ---- kern_gb_sum ---- */

static bool gb_key(const struct report_ctx *ctx, uint32_t work, uint64_t key[GROUP_WORDS])
{
	const struct work *w = &ctx->s->works[work];
	const struct record_shape *shape;

	key[0] = (uint64_t)ctx->s->streams[w->stream].process << 32 | w->kernel;
	if (w->shape != SHAPE_NONE) {
		shape = &ctx->s->shapes[w->shape];
		key[1] = 1;
		key[2] = (uint64_t)shape->grid[0] << 32 | shape->grid[1];
		key[3] = (uint64_t)shape->grid[2] << 32 | shape->block[0];
		key[4] = (uint64_t)shape->block[1] << 32 | shape->block[2];
	}
	return w->kind == RECORD_WORK_KERNEL;
}

static void fill_gb(const struct report_ctx *ctx, uint32_t work, struct row *r)
{
	const struct work *w = &ctx->s->works[work];

	fill_kernel(ctx, work, r);
	for (int i = 0; i < 3 && w->shape != SHAPE_NONE; i++) {
		r->grid[i] = ctx->s->shapes[w->shape].grid[i];
		r->block[i] = ctx->s->shapes[w->shape].block[i];
	}
}

static int build_gb(struct report_ctx *ctx)
{
	static const struct work_grouping g = { gb_key, fill_gb, add_kernel };

	return build_kernels(ctx, &g);
}

static const struct column columns_gb[] = {
	COLUMNS_WORK("Instances"),
	COLUMN("grid", "Grid", DIM3, NONE, grid),
	COLUMN("block", "Block", DIM3, NONE, block),
	COLUMNS_KERNEL,
	COLUMN_OPTIONAL("class", "Class", TEXT, NONE, work.class),
	COLUMN("pid", "PID", INT, ID, pid),
	COLUMN("kernel", "Kernel", TEXT, NONE, kernel),
	{ 0 },
};

const struct view view_kern_gb = {
	.about = { "kern_gb_sum", "cuda_gpu_kern_gb_sum gpu_kern_gb_sum",
		   "the same by grid and block" },
	.columns = columns_gb,
	.sort = "-total_ns",
	.bases = BASES,
	.of_work = true,
	.build = build_gb,
};
