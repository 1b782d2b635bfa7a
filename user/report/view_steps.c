// SPDX-License-Identifier: BSD-2-Clause
/* Steps of each process: step_sum. Kernels whose times vary: variation_sum. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/gpu.h"
#include "model/steps.h"
#include "report/row.h"

/* ---- step_sum ---- */

static int fill_steps(struct row *r, const struct steps *v)
{
	int64_t *ns = malloc(v->count * sizeof(*ns));
	size_t n = 0;

	if (!ns)
		return -ENOMEM;
	r->total = 0;
	for (size_t i = 0; i + 1 < v->count; i++) {
		if (v->cut[i])
			continue;
		ns[n] = steps_length(v, i);
		r->total += ns[n++];
	}
	r->timed = n;
	r->min = v->shortest;
	r->max = v->longest;
	stats_fill(r, ns, n);
	free(ns);
	return 0;
}

static int step_row(struct report_ctx *c, uint32_t process, const struct steps *v)
{
	const struct session *s = c->s;
	const struct call *anchor = &s->calls[v->anchor];
	struct row *r;
	int err = rows_add(&c->rows, &r);

	if (err)
		return err;
	fill_process(&s->processes[process], r);
	r->calls = (int64_t)steps_whole(v);
	r->launches = (int64_t)v->calls;
	r->ratio = (int64_t)(v->confidence * 1000);
	r->begin = v->begins[0] - s->begin;
	r->name = s->apis[anchor->api].display;
	r->kernel = kernel_name(s, anchor->kernel, c->o->names);
	err = fill_steps(r, v);
	r->wall_share = share(r->total, process_wall(s, &s->processes[process]));
	return err;
}

static int build_steps(struct report_ctx *c)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < c->s->processes_count; i++) {
		struct steps v;

		err = steps_find(c->s, i, &v);
		if (!err && v.count > 1)
			err = step_row(c, i, &v);
		steps_free(&v);
	}
	return err;
}

static const struct column columns_step[] = {
	COLUMN("steps", "Steps", INT, NONE, calls),
	TIME("p50_ns", "Med", p50, p50),
	TIME("avg_ns", "Avg", avg, p50),
	TIME("min_ns", "Min", min, p50),
	TIME("max_ns", "Max", max, p50),
	TIME_OPTIONAL("stddev_ns", "StdDev", stddev, p50),
	TIME_OPTIONAL("p90_ns", "p90", p90, p50),
	TIME_OPTIONAL("p99_ns", "p99", p99, p50),
	COLUMN("tokens_per_step", "Tokens/step", INT, NONE, launches),
	COLUMN("confidence", "Confidence", INT, MILLI, ratio),
	COLUMN("wall_pct", "% wall", INT, PERCENT, wall_share),
	COLUMN_OPTIONAL("begin_ns", "First at", INT, NS, begin),
	COLUMN("pid", "PID", INT, ID, pid),
	COLUMN_OPTIONAL("comm", "Command", TEXT, NONE, comm),
	COLUMN("name", "Begins with", TEXT, NONE, name),
	COLUMN("kernel", "Kernel", TEXT, NONE, kernel),
	{ 0 },
};

const struct view view_step = {
	.about = { "step_sum", NULL, "steps of each process, found in the order of its calls" },
	.columns = columns_step,
	.sort = "-steps",
	.bases = "% wall: of the process's wall time, in steps. First at: after the trace began. "
		 "A process in which nothing repeats has no row.",
	.build = build_steps,
};

/* ---- variation_sum ---- */

#define VARIATION_LEAST 3 /* instances */

static bool variation_key(const struct report_ctx *ctx, uint32_t work, uint64_t key[GROUP_WORDS])
{
	const struct work *w = &ctx->s->works[work];
	const struct record_shape *shape;

	if (w->kind != RECORD_WORK_KERNEL || w->shape == SHAPE_NONE)
		return false;
	shape = &ctx->s->shapes[w->shape];
	key[0] = (uint64_t)ctx->s->streams[w->stream].process << 32 | w->kernel;
	key[1] = (uint64_t)shape->grid[0] << 32 | shape->grid[1];
	key[2] = (uint64_t)shape->grid[2] << 32 | shape->block[0];
	key[3] = (uint64_t)shape->block[1] << 32 | shape->block[2];
	return true;
}

static void fill_variation(const struct report_ctx *ctx, uint32_t work, struct row *r)
{
	const struct work *w = &ctx->s->works[work];
	const struct record_shape *shape = &ctx->s->shapes[w->shape];
	uint32_t process = ctx->s->streams[w->stream].process;

	r->pid = ctx->s->processes[process].pid;
	r->kernel = kernel_name(ctx->s, w->kernel, ctx->o->names);
	for (int i = 0; i < 3; i++) {
		r->grid[i] = shape->grid[i];
		r->block[i] = shape->block[i];
	}
}

static int build_variation(struct report_ctx *c)
{
	static const struct work_grouping g = { .key = variation_key, .fill = fill_variation };
	size_t kept = 0;
	int err = group_works(c, &g, NULL);

	for (size_t i = 0; !err && i < c->rows.count; i++) {
		struct row r = c->rows.items[i];

		if (r.calls < VARIATION_LEAST)
			continue;
		r.wall_share = share(r.stddev, r.avg); /* coefficient of variation */
		r.ratio = r.p50 > 0 && r.p99 != NA ? share(r.p99, r.p50) / 100 : NA;
		c->rows.items[kept++] = r;
	}
	if (!err)
		c->rows.count = kept;
	return err;
}

static const struct column columns_variation[] = {
	COLUMN("cv_pct", "StdDev/avg (%)", INT, PERCENT, wall_share),
	COLUMN("p99_to_p50", "p99/med", INT, MILLI, ratio),
	COLUMN("instances", "Instances", INT, NONE, calls),
	COLUMN("listed_pct", "% listed", INT, PERCENT, listed_share),
	TIME("avg_ns", "Avg", avg, avg),
	TIME("p50_ns", "Med", p50, avg),
	TIME("min_ns", "Min", min, avg),
	TIME("max_ns", "Max", max, avg),
	TIME_OPTIONAL("stddev_ns", "StdDev", stddev, avg),
	TIME_OPTIONAL("p90_ns", "p90", p90, avg),
	TIME_OPTIONAL("p99_ns", "p99", p99, avg),
	COLUMN("grid", "Grid", DIM3, NONE, grid),
	COLUMN("block", "Block", DIM3, NONE, block),
	COLUMN("pid", "PID", INT, ID, pid),
	COLUMN("kernel", "Kernel", TEXT, NONE, kernel),
	{ 0 },
};

const struct view view_variation = {
	.about = { "variation_sum", NULL, "how much the GPU time of each kernel and shape varies" },
	.columns = columns_variation,
	.sort = "-cv_pct",
	.bases = "% listed: of the GPU time of all kernels listed, before --filter and --top. "
		 "Kernels that ran three times or more with this grid and block.",
	.of_work = true,
	.build = build_variation,
};
