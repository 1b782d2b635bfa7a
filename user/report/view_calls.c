// SPDX-License-Identifier: BSD-2-Clause
/* The views that are sums over calls: api_sum, launch_sum, sync_sum, copy_sum. */
#include "probe/catalogue.h"
#include "report/row.h"

/* The columns nsys has, in its order; what gbpf adds follows. */
#define COLUMNS_TIME(calls_key, calls_title, calls_field)                                          \
	COLUMN("listed_pct", "% listed", INT, PERCENT, listed_share),                              \
	COLUMN("wall_pct", "% wall", INT, PERCENT, wall_share),                                    \
	COLUMN("total_ns", "Total", INT, NS, total),                                               \
	COLUMN(calls_key, calls_title, INT, NONE, calls_field),                                    \
	TIME("avg_ns", "Avg", avg, avg), TIME("p50_ns", "Med", p50, avg),                          \
	TIME("min_ns", "Min", min, avg), TIME("max_ns", "Max", max, avg),                          \
	TIME_OPTIONAL("stddev_ns", "StdDev", stddev, avg),                                         \
	TIME_OPTIONAL("p90_ns", "p90", p90, avg), TIME("p99_ns", "p99", p99, avg)

#define BASES                                                                                      \
	"% listed: of this view's total, before --filter and --top. % wall, and rates: of the "    \
	"time traced while the process lived; threads add up."

static uint64_t process_of(const struct session *s, const struct call *c)
{
	return s->threads[c->thread].process;
}

void fill_api(const struct report_ctx *ctx, const struct call *c, struct row *r)
{
	const struct session *s = ctx->s;
	const struct session_process *p = &s->processes[s->threads[c->thread].process];

	r->name = s->apis[c->api].display;
	r->library = s->apis[c->api].library ? api_library_name(s->apis[c->api].library) : NULL;
	r->kind = api_kind_name(s->apis[c->api].kind);
	r->pid = p->pid;
	r->comm = p->comm;
}

/* ---- api_sum ---- */

bool key_api(const struct session *s, const struct call *c, uint64_t key[GROUP_WORDS])
{
	key[0] = process_of(s, c);
	key[1] = c->api;
	return true;
}

static void add_first(const struct report_ctx *ctx, const struct call *c, struct row *r)
{
	if (c->flags & CALL_COLD_API)
		r->first = call_duration(c) >= 0 ? call_duration(c) : NA;
}

static int build_api(struct report_ctx *c)
{
	static const struct grouping g = { .key = key_api, .fill = fill_api, .add = add_first };

	return group_calls(c, &g);
}

static const struct column columns_api[] = {
	COLUMNS_TIME("calls", "Calls", calls),
	TIME_OPTIONAL("self_ns", "Self", self, total),
	COLUMN("errors", "Errors", INT, NONE, errors),
	COLUMN_OPTIONAL("calls_per_s", "Calls/s", INT, MILLI, rate),
	TIME_OPTIONAL("first_ns", "First", first, avg),
	COLUMN_OPTIONAL("library", "Library", TEXT, NONE, library),
	COLUMN_OPTIONAL("kind", "Kind", TEXT, NONE, kind),
	COLUMN("pid", "PID", INT, ID, pid),
	COLUMN("name", "Name", TEXT, NONE, name),
	{ 0 },
};

const struct view view_api = {
	.about = { "api_sum", "cuda_api_sum", "time in each function, by process" },
	.columns = columns_api,
	.sort = "-total_ns",
	.bases = BASES,
	.build = build_api,
};

/* ---- launch_sum ---- */

bool key_kernel(const struct session *s, const struct call *c, uint64_t key[GROUP_WORDS])
{
	if (c->kernel == UINT32_MAX || !is_launch(s, c) || is_inside(s, c, is_launch))
		return false;
	key[0] = process_of(s, c);
	key[1] = c->kernel;
	return true;
}

static bool launch_key(const struct session *s, const struct call *c, uint64_t key[GROUP_WORDS])
{
	const struct launch_args *a;

	if (!is_launch(s, c) || is_inside(s, c, is_launch))
		return false;
	key[0] = process_of(s, c) << 32 | c->kernel;
	key[1] = c->kernel == UINT32_MAX ? c->api : 0;
	if (!(c->flags & CALL_ARGS_LAUNCH))
		return true;
	a = &s->launches[c->args];
	key[1] |= 1u << 16;
	key[2] = (uint64_t)a->grid[0] << 32 | a->grid[1];
	key[3] = (uint64_t)a->grid[2] << 32 | a->block[0];
	key[4] = (uint64_t)a->block[1] << 32 | a->block[2];
	return true;
}

static void fill_launch(const struct report_ctx *ctx, const struct call *c, struct row *r)
{
	fill_api(ctx, c, r);
	r->kernel = kernel_name(ctx->s, c->kernel, ctx->o->names);
	if (!(c->flags & CALL_ARGS_LAUNCH))
		return;
	for (int i = 0; i < 3; i++) {
		r->grid[i] = ctx->s->launches[c->args].grid[i];
		r->block[i] = ctx->s->launches[c->args].block[i];
	}
	r->stream = (int64_t)ctx->s->launches[c->args].stream;
	r->smem = (int64_t)ctx->s->launches[c->args].smem;
}

/* What is not the same in all launches of a row is not known of the row. */
static void add_launch(const struct report_ctx *ctx, const struct call *c, struct row *r)
{
	const struct session *s = ctx->s;

	if (r->name && s->apis[c->api].display != r->name)
		r->name = "(several)";
	if (!(c->flags & CALL_ARGS_LAUNCH))
		return;
	if (r->stream != (int64_t)s->launches[c->args].stream)
		r->stream = NA;
	if (r->smem != (int64_t)s->launches[c->args].smem)
		r->smem = NA;
	if (c->flags & CALL_COLD_KERNEL)
		r->first = call_duration(c) >= 0 ? call_duration(c) : NA;
}

static int build_launch(struct report_ctx *c)
{
	static const struct grouping g = { .key = launch_key, .fill = fill_launch,
					   .add = add_launch, .by_args = true };

	return group_calls(c, &g);
}

static const struct column columns_launch[] = {
	COLUMNS_TIME("calls", "Launches", calls),
	TIME_OPTIONAL("self_ns", "Self", self, total),
	COLUMN("errors", "Errors", INT, NONE, errors),
	COLUMN("calls_per_s", "Launches/s", INT, MILLI, rate),
	TIME_OPTIONAL("first_ns", "First", first, avg),
	COLUMN("grid", "Grid", DIM3, NONE, grid),
	COLUMN("block", "Block", DIM3, NONE, block),
	COLUMN_OPTIONAL("smem_bytes", "Dynamic smem", INT, BYTES, smem),
	COLUMN_OPTIONAL("stream", "Stream", HEX, NONE, stream),
	COLUMN("name", "API", TEXT, NONE, name),
	COLUMN("pid", "PID", INT, ID, pid),
	COLUMN("kernel", "Kernel", TEXT, NONE, kernel),
	{ 0 },
};

const struct view view_launch = {
	.about = { "launch_sum", NULL, "what launching each kernel, grid and block cost the CPU" },
	.columns = columns_launch,
	.sort = "-total_ns",
	.bases = BASES,
	.build = build_launch,
};

/* ---- sync_sum ---- */

static bool sync_key(const struct session *s, const struct call *c, uint64_t key[GROUP_WORDS])
{
	if (!is_wait(s, c) || is_inside(s, c, is_wait))
		return false;
	return key_api(s, c, key);
}

static int build_sync(struct report_ctx *c)
{
	static const struct grouping g = { .key = sync_key, .fill = fill_api, .span = true };

	return group_calls(c, &g);
}

static const struct column columns_sync[] = {
	COLUMNS_TIME("waits", "Waits", waits),
	COLUMN_OPTIONAL("calls", "Calls", INT, NONE, calls),
	COLUMN("errors", "Errors", INT, NONE, errors),
	COLUMN_OPTIONAL("calls_per_s", "Calls/s", INT, MILLI, rate),
	COLUMN("kind", "Kind", TEXT, NONE, kind),
	COLUMN("pid", "PID", INT, ID, pid),
	COLUMN("name", "Name", TEXT, NONE, name),
	{ 0 },
};

const struct view view_sync = {
	.about = { "sync_sum", "cuda_api_sync", "waits: syncs, blocking copies, polls" },
	.columns = columns_sync,
	.sort = "-total_ns",
	.bases = BASES,
	.build = build_sync,
};

/* ---- copy_sum ---- */

static bool copy_key(const struct session *s, const struct call *c, uint64_t key[GROUP_WORDS])
{
	if (!is_copy(s, c) || is_inside(s, c, is_copy))
		return false;
	key_api(s, c, key);
	key[2] = (uintptr_t)copy_direction(s, c);
	return true;
}

static void fill_copy(const struct report_ctx *ctx, const struct call *c, struct row *r)
{
	fill_api(ctx, c, r);
	r->direction = copy_direction(ctx->s, c);
	r->state = is_wait(ctx->s, c) ? "yes" : "no";
}

static void add_copy(const struct report_ctx *ctx, const struct call *c, struct row *r)
{
	uint64_t raw;
	int64_t bytes, sum;

	if (!(c->flags & CALL_ARGS_CALL))
		return;
	raw = ctx->s->transfers[c->args].bytes;
	bytes = raw > INT64_MAX ? INT64_MAX : (int64_t)raw;
	if (r->bytes == NA)
		r->bytes = 0;
	r->bytes = __builtin_add_overflow(r->bytes, bytes, &sum) ? INT64_MAX : sum;
	if (r->bytes_min == NA || bytes < r->bytes_min)
		r->bytes_min = bytes;
	if (r->bytes_max == NA || bytes > r->bytes_max)
		r->bytes_max = bytes;
	r->sized++;
}

static int build_copy(struct report_ctx *c)
{
	static const struct grouping g = { .key = copy_key, .fill = fill_copy, .add = add_copy };
	int err = group_calls(c, &g);

	for (size_t i = 0; i < c->rows.count; i++)
		if (c->rows.items[i].sized)
			c->rows.items[i].bytes_avg =
				c->rows.items[i].bytes / c->rows.items[i].sized;
	return err;
}

static const struct column columns_copy[] = {
	COLUMNS_TIME("calls", "Copies", calls),
	COLUMN("errors", "Errors", INT, NONE, errors),
	COLUMN_OPTIONAL("calls_per_s", "Copies/s", INT, MILLI, rate),
	COLUMN("bytes", "Size", INT, BYTES, bytes),
	COLUMN("avg_bytes", "Avg size", INT, BYTES, bytes_avg),
	COLUMN_OPTIONAL("min_bytes", "Min size", INT, BYTES, bytes_min),
	COLUMN_OPTIONAL("max_bytes", "Max size", INT, BYTES, bytes_max),
	COLUMN("direction", "Direction", TEXT, NONE, direction),
	COLUMN_OPTIONAL("blocking", "Blocking", TEXT, NONE, state),
	COLUMN("pid", "PID", INT, ID, pid),
	COLUMN("name", "Name", TEXT, NONE, name),
	{ 0 },
};

const struct view view_copy = {
	.about = { "copy_sum", NULL, "copies and sets: bytes, direction, time in the call" },
	.columns = columns_copy,
	.sort = "-total_ns",
	.bases = BASES,
	.build = build_copy,
};
