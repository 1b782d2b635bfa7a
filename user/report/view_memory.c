// SPDX-License-Identifier: BSD-2-Clause
/* Copies and sets as the GPU made them: gpu_mem_sum; and beside calls and kernels: api_gpu_sum. */
#include <stdlib.h>
#include <string.h>

#include "model/gpu.h"
#include "report/row.h"

static bool memory_key(const struct report_ctx *ctx, uint32_t work, uint64_t key[GROUP_WORDS])
{
	const struct work *w = &ctx->s->works[work];

	key[0] = ctx->s->streams[w->stream].process;
	key[1] = (uintptr_t)work_operation(w);
	key[2] = (uint64_t)w->source << 8 | w->target;
	return w->kind != RECORD_WORK_KERNEL;
}

static void fill_memory(const struct report_ctx *ctx, uint32_t work, struct row *r)
{
	const struct session *s = ctx->s;
	const struct work *w = &s->works[work];
	uint32_t process = s->streams[w->stream].process;
	bool known = w->source || w->target;

	r->pid = s->processes[process].pid;
	r->work.window = process_window(s, process);
	r->work.operation = work_operation(w);
	r->work.source = w->kind == RECORD_WORK_SET ? NULL : memory_word(w->source);
	r->work.target = memory_word(w->target);
	if (known && w->kind == RECORD_WORK_COPY)
		r->work.pageable = w->source == RECORD_MEMORY_PAGEABLE ||
						   w->target == RECORD_MEMORY_PAGEABLE
					   ? "yes"
					   : "no";
}

static void add_memory(const struct report_ctx *ctx, uint32_t work, struct row *r)
{
	uint64_t raw = ctx->s->works[work].bytes;
	int64_t bytes = raw > INT64_MAX ? INT64_MAX : (int64_t)raw, sum;

	sum = r->bytes == NA ? 0 : r->bytes;
	r->bytes = __builtin_add_overflow(sum, bytes, &sum) ? INT64_MAX : sum;
	r->work.unmatched += work_unmatched(&ctx->s->works[work]);
}

static int64_t bytes_of(const struct report_ctx *ctx, uint32_t work)
{
	uint64_t bytes = ctx->s->works[work].bytes;

	return bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
}

static void put_bytes(struct row *r, const struct row *stats)
{
	spread_put(&r->work.size, stats);
}

static int build_memory(struct report_ctx *ctx)
{
	static const struct work_grouping g = { memory_key, fill_memory, add_memory };
	uint32_t *row_of = NULL;
	int err = group_works(ctx, &g, &row_of);

	if (!err)
		err = spread_works(ctx, row_of, bytes_of, put_bytes);
	for (size_t i = 0; i < ctx->rows.count && !err; i++) {
		struct row *r = &ctx->rows.items[i];

		r->work.throughput = work_throughput((uint64_t)r->bytes, r->total);
	}
	free(row_of);
	return err;
}

static const struct column columns_memory[] = {
	COLUMN("listed_pct", "% listed", INT, PERCENT, listed_share),
	COLUMN("window_pct", "% window", INT, PERCENT, work.window_share),
	COLUMN("total_ns", "Total", INT, NS, total),
	COLUMN("count", "Count", INT, NONE, calls),
	TIME("avg_ns", "Avg", avg, avg),
	TIME("p50_ns", "Med", p50, avg),
	TIME("min_ns", "Min", min, avg),
	TIME("max_ns", "Max", max, avg),
	TIME_OPTIONAL("stddev_ns", "StdDev", stddev, avg),
	TIME_OPTIONAL("p90_ns", "p90", p90, avg),
	TIME_OPTIONAL("p99_ns", "p99", p99, avg),
	COLUMN("bytes", "Size", INT, BYTES, bytes),
	COLUMN_OPTIONAL("avg_bytes", "Avg size", INT, BYTES, work.size.avg),
	COLUMN_OPTIONAL("p50_bytes", "Med size", INT, BYTES, work.size.p50),
	COLUMN_OPTIONAL("min_bytes", "Min size", INT, BYTES, work.size.min),
	COLUMN_OPTIONAL("max_bytes", "Max size", INT, BYTES, work.size.max),
	COLUMN_OPTIONAL("stddev_bytes", "StdDev size", INT, BYTES, work.size.stddev),
	COLUMN("gb_per_s", "GB/s", INT, MILLI, work.throughput),
	COLUMN("pageable", "Pageable", TEXT, NONE, work.pageable),
	COLUMN_OPTIONAL("source", "From", TEXT, NONE, work.source),
	COLUMN_OPTIONAL("target", "To", TEXT, NONE, work.target),
	COLUMN_OPTIONAL("unmatched", "Unmatched", INT, NONE, work.unmatched),
	COLUMN("pid", "PID", INT, ID, pid),
	COLUMN("operation", "Operation", TEXT, NONE, work.operation),
	{ 0 },
};

const struct view view_memory = {
	.about = { "gpu_mem_sum",
		   "cuda_gpu_mem_time_sum cuda_gpu_mem_size_sum gpu_mem_time_sum gpu_mem_size_sum",
		   "copies and sets: time on the GPU, bytes, throughput" },
	.columns = columns_memory,
	.sort = "-total_ns",
	.bases = "% listed: of this view's total, before --filter and --top. % window: of the time "
		 "that the sidecar recorded the process. GB/s: 10^9 bytes, Size divided by Total.",
	.of_work = true,
	.build = build_memory,
};

/* ---- api_gpu_sum ---- */

static bool both_key(const struct report_ctx *ctx, uint32_t work, uint64_t key[GROUP_WORDS])
{
	const struct work *w = &ctx->s->works[work];

	key[0] = ctx->s->streams[w->stream].process;
	key[1] = w->kind == RECORD_WORK_KERNEL ? w->kernel : 0;
	key[2] = w->kind == RECORD_WORK_KERNEL ? 0 : (uintptr_t)work_operation(w);
	return true;
}

static void fill_both(const struct report_ctx *ctx, uint32_t work, struct row *r)
{
	const struct session *s = ctx->s;
	const struct work *w = &s->works[work];
	bool kernel = w->kind == RECORD_WORK_KERNEL;
	uint32_t process = s->streams[w->stream].process;

	r->pid = s->processes[process].pid;
	r->work.window = process_window(s, process);
	r->work.category = kernel ? "kernel" : "memory";
	r->work.operation = kernel ? kernel_name(s, w->kernel, ctx->o->names) : work_operation(w);
}

static void fill_call(const struct report_ctx *ctx, const struct call *c, struct row *r)
{
	row_init_work(r);
	r->first_call = c - ctx->s->calls;
	fill_api(ctx, c, r);
	r->work.category = "API";
	r->work.operation = r->name;
}

static int64_t plus(int64_t a, int64_t b)
{
	int64_t sum;

	if (a == NA || b == NA)
		return a == NA ? b : a;
	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* The calls' rows and the works' rows are one list: shares are of both. */
static int append_works(struct report_ctx *ctx)
{
	static const struct work_grouping g = { both_key, fill_both, NULL };
	struct report_ctx works = { .s = ctx->s, .o = ctx->o };
	int64_t listed = 0;
	struct row *r;
	int err = group_works(&works, &g, NULL);

	for (size_t i = 0; i < works.rows.count && !err; i++) {
		err = rows_add(&ctx->rows, &r);
		if (!err)
			*r = works.rows.items[i];
	}
	free(works.rows.items);
	for (size_t i = 0; i < ctx->rows.count; i++)
		listed = plus(listed, ctx->rows.items[i].total);
	for (size_t i = 0; i < ctx->rows.count; i++)
		ctx->rows.items[i].listed_share = share(ctx->rows.items[i].total, listed);
	return err;
}

static int build_both(struct report_ctx *ctx)
{
	static const struct grouping g = { .key = key_api, .fill = fill_call };
	int err = group_calls(ctx, &g);

	return err ? err : append_works(ctx);
}

static const struct column columns_both[] = {
	COLUMN("listed_pct", "% listed", INT, PERCENT, listed_share),
	COLUMN("total_ns", "Total", INT, NS, total),
	COLUMN("instances", "Instances", INT, NONE, calls),
	TIME("avg_ns", "Avg", avg, avg),
	TIME("p50_ns", "Med", p50, avg),
	TIME("min_ns", "Min", min, avg),
	TIME("max_ns", "Max", max, avg),
	TIME_OPTIONAL("stddev_ns", "StdDev", stddev, avg),
	TIME_OPTIONAL("p90_ns", "p90", p90, avg),
	TIME_OPTIONAL("p99_ns", "p99", p99, avg),
	COLUMN("category", "Category", TEXT, NONE, work.category),
	COLUMN("pid", "PID", INT, ID, pid),
	COLUMN("operation", "Operation", TEXT, NONE, work.operation),
	{ 0 },
};

const struct view view_api_gpu = {
	.about = { "api_gpu_sum", "cuda_api_gpu_sum", "calls, kernels, copies and sets in one" },
	.columns = columns_both,
	.sort = "-total_ns",
	.bases = "% listed: of this view's total, before --filter and --top, CPU and GPU together. "
		 "Calls are of the whole trace, the rest of the sidecar's windows.",
	.of_work = true,
	.build = build_both,
};
