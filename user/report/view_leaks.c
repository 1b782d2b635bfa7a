// SPDX-License-Identifier: BSD-2-Clause
/* Memory as the calls tell it: mem_sum, leak_sum. Where threads wait: sync_sites. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/map.h"
#include "model/memory.h"
#include "report/row.h"

static int64_t known(uint64_t v)
{
	return v > INT64_MAX ? INT64_MAX : (int64_t)v;
}

/* ---- mem_sum ---- */

static int use_row(struct report_ctx *c, uint32_t process, const struct memory_use *u)
{
	const struct session_process *p = &c->s->processes[process];
	struct row *r;
	int err = rows_add(&c->rows, &r);

	if (err)
		return err;
	fill_process(p, r);
	r->memory = (struct row_memory){
		.allocations = known(u->allocations), .frees = known(u->frees),
		.failed = known(u->failed), .before = known(u->before), .twice = known(u->twice),
		.allocated = known(u->bytes), .live = known(u->live), .peak = known(u->peak),
		.host_live = known(u->host_live),
	};
	r->begin = u->peak ? u->peak_at - c->s->begin : NA;
	r->rate = rate(known(u->allocations), process_wall(c->s, p));
	return 0;
}

static int build_memory(struct report_ctx *c)
{
	struct memory m;
	int err = memory_find(c->s, &m);

	if (err)
		return err;
	for (uint32_t i = 0; !err && i < c->s->processes_count; i++) {
		const struct memory_use *u = &m.uses[i];

		if (u->allocations || u->frees || u->failed)
			err = use_row(c, i, u);
	}
	memory_free(&m);
	return err;
}

static const struct column columns_memory[] = {
	COLUMN("live_bytes", "Live", INT, BYTES, memory.live),
	COLUMN("peak_bytes", "Peak", INT, BYTES, memory.peak),
	COLUMN("peak_at_ns", "Peak at", INT, NS, begin),
	COLUMN("allocated_bytes", "Allocated", INT, BYTES, memory.allocated),
	COLUMN_OPTIONAL("host_live_bytes", "Host, live", INT, BYTES, memory.host_live),
	COLUMN("allocations", "Allocs", INT, NONE, memory.allocations),
	COLUMN("allocations_per_s", "Allocs/s", INT, MILLI, rate),
	COLUMN("frees", "Frees", INT, NONE, memory.frees),
	COLUMN_OPTIONAL("frees_of_before", "Of before", INT, NONE, memory.before),
	COLUMN_OPTIONAL("frees_again", "Freed again", INT, NONE, memory.twice),
	COLUMN("failed", "Failed", INT, NONE, memory.failed),
	COLUMN("pid", "PID", INT, ID, pid),
	COLUMN("comm", "Command", TEXT, NONE, comm),
	{ 0 },
};

const struct view view_mem = {
	.about = { "mem_sum", NULL, "memory of each process: live, peak, allocations, failures" },
	.columns = columns_memory,
	.sort = "-live_bytes",
	.bases = "Live and peak: device memory, of what was allocated within the trace; what a "
		 "caching allocator keeps is live. Of before: frees of what was allocated before "
		 "the trace. Peak at: after the trace began.",
	.build = build_memory,
};

/* ---- leak_sum ---- */

static int leak_row(struct report_ctx *c, struct map *index, const struct allocation *a,
		    struct row **out)
{
	const struct session *s = c->s;
	uint64_t where = (uint64_t)a->process << 16 | s->calls[a->call].api;
	uint32_t at = map_get(index, where, a->bytes);
	int err;

	if (at != MAP_NONE) {
		*out = &c->rows.items[at];
		return 0;
	}
	at = (uint32_t)c->rows.count;
	err = rows_add(&c->rows, out);
	if (!err)
		err = map_put(index, where, a->bytes, at);
	if (err)
		return err;
	(*out)->pid = s->processes[a->process].pid;
	(*out)->comm = s->processes[a->process].comm;
	(*out)->name = s->apis[s->calls[a->call].api].display;
	(*out)->bytes_avg = known(a->bytes);
	(*out)->memory = (struct row_memory){ 0 };
	(*out)->state = a->host ? "host" : "device";
	return 0;
}

static int build_leaks(struct report_ctx *c)
{
	struct map index = { 0 };
	struct memory m;
	size_t kept = 0;
	int err = memory_find(c->s, &m);

	if (err)
		return err;
	for (size_t i = 0; !err && i < m.count; i++) {
		const struct allocation *a = &m.items[i];
		struct row *r;

		err = leak_row(c, &index, a, &r);
		if (err)
			break;
		r->memory.allocations++;
		if (a->end != NOT_FREED) {
			r->memory.frees++;
			continue;
		}
		r->memory.live += known(a->bytes);
		r->calls = r->calls == NA ? 1 : r->calls + 1;
		r->begin = r->begin == NA ? a->begin - c->s->begin : r->begin;
		r->ago = r->ago == NA ? c->s->end - a->begin : r->ago;
	}
	for (size_t i = 0; !err && i < c->rows.count; i++)
		if (c->rows.items[i].calls != NA)
			c->rows.items[kept++] = c->rows.items[i];
	if (!err)
		c->rows.count = kept;
	map_free(&index);
	memory_free(&m);
	return err;
}

static const struct column columns_leak[] = {
	COLUMN("live_bytes", "Not freed", INT, BYTES, memory.live),
	COLUMN("not_freed", "Blocks", INT, NONE, calls),
	COLUMN("allocations", "Of allocs", INT, NONE, memory.allocations),
	COLUMN("frees", "Freed", INT, NONE, memory.frees),
	COLUMN("bytes", "Size", INT, BYTES, bytes_avg),
	COLUMN("oldest_ago_ns", "Oldest ago", INT, NS, ago),
	COLUMN_OPTIONAL("oldest_at_ns", "Oldest at", INT, NS, begin),
	COLUMN("memory", "Memory", TEXT, NONE, state),
	COLUMN("pid", "PID", INT, ID, pid),
	COLUMN_OPTIONAL("comm", "Command", TEXT, NONE, comm),
	COLUMN("name", "API", TEXT, NONE, name),
	{ 0 },
};

const struct view view_leak = {
	.about = { "leak_sum", NULL, "what was allocated in the trace and not freed, by size" },
	.columns = columns_leak,
	.sort = "-live_bytes",
	.bases = "A row a process, function and size. Not freed by the end of the trace is no "
		 "leak yet: buffers of the job and caches are here, too. What grows with the "
		 "length of the trace is. Oldest at: after the trace began.",
	.build = build_leaks,
};

/* ---- sync_sites ---- */

/* The call before it on its thread, outside other calls; NULL: there was none. */
static const struct call *before(const struct session *s, const struct call *c)
{
	size_t at = (size_t)(c - s->calls);
	const struct session_thread *t = &s->threads[c->thread];

	while (at-- > t->first_call)
		if (s->calls[at].parent == CALL_NONE && s->calls[at].end <= c->begin)
			return &s->calls[at];
	return NULL;
}

static bool site_key(const struct session *s, const struct call *c, uint64_t key[GROUP_WORDS])
{
	const struct call *previous;

	if (!is_wait(s, c) || is_inside(s, c, is_wait) || !key_api(s, c, key))
		return false;
	previous = before(s, c);
	key[2] = previous ? previous->api + 1ull : 0;
	key[3] = previous && previous->kernel != UINT32_MAX ? previous->kernel + 1ull : 0;
	key[4] = c->thread;
	return true;
}

static void fill_site(const struct report_ctx *ctx, const struct call *c, struct row *r)
{
	const struct session *s = ctx->s;
	const struct session_thread *t = &s->threads[c->thread];
	const struct call *previous = before(s, c);

	fill_api(ctx, c, r);
	r->tid = t->tid;
	r->thread = t->comm;
	r->top_api = previous ? s->apis[previous->api].display : NULL;
	r->kernel = previous ? kernel_name(s, previous->kernel, ctx->o->names) : NULL;
}

static int build_sites(struct report_ctx *c)
{
	static const struct grouping g = { .key = site_key, .fill = fill_site, .span = true };

	return group_calls(c, &g);
}

static const struct column columns_site[] = {
	COLUMN("listed_pct", "% listed", INT, PERCENT, listed_share),
	COLUMN("wall_pct", "% wall", INT, PERCENT, wall_share),
	COLUMN("total_ns", "Total", INT, NS, total),
	COLUMN("waits", "Waits", INT, NONE, waits),
	TIME("avg_ns", "Avg", avg, avg),
	TIME("p50_ns", "Med", p50, avg),
	TIME_OPTIONAL("min_ns", "Min", min, avg),
	TIME("max_ns", "Max", max, avg),
	TIME_OPTIONAL("stddev_ns", "StdDev", stddev, avg),
	TIME_OPTIONAL("p90_ns", "p90", p90, avg),
	TIME_OPTIONAL("p99_ns", "p99", p99, avg),
	COLUMN("pid", "PID", INT, ID, pid),
	COLUMN("tid", "TID", INT, ID, tid),
	COLUMN_OPTIONAL("thread", "Thread", TEXT, NONE, thread),
	COLUMN("name", "Waits in", TEXT, NONE, name),
	COLUMN("after", "After", TEXT, NONE, top_api),
	COLUMN("kernel", "Kernel", TEXT, NONE, kernel),
	{ 0 },
};

const struct view view_site = {
	.about = { "sync_sites", NULL, "waits by what the thread had called just before" },
	.columns = columns_site,
	.sort = "-total_ns",
	.bases = "% listed: of this view's total, before --filter and --top. % wall: of the "
		 "process's wall time; threads add up.",
	.build = build_sites,
};
