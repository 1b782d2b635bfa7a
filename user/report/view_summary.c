// SPDX-License-Identifier: BSD-2-Clause
/* The lines that matter, and the command to run next. */
#include <inttypes.h>
#include <stdlib.h>

#include "report/row.h"
#include "util/term.h"
#include "util/text.h"

static bool key_any_launch(const struct session *s, const struct call *c,
			   uint64_t key[GROUP_WORDS])
{
	key[0] = !is_kernel_launch(s, c);
	key[1] = !is_graph_launch(s, c);
	return is_launch(s, c) && !(key[0] && key[1]) && !is_inside(s, c, is_launch);
}

static bool is_cold(const struct call *c)
{
	return c->flags & CALL_COLD;
}

static void fill_nothing(const struct report_ctx *ctx, const struct call *c, struct row *r)
{
}

static void fill_top_kernel(const struct report_ctx *ctx, const struct call *c, struct row *r)
{
	r->kernel = kernel_name(ctx->s, c->kernel, ctx->o->names);
}

/*
 * Median and p99 of what one launch cost its thread, first calls left out: of
 * kernels, or of graphs where nothing else is launched.
 */
static int sum_launches(struct report_ctx *c, struct row *out)
{
	static const struct grouping g = { .key = key_any_launch, .fill = fill_nothing,
					   .leave_out = is_cold };
	struct report_ctx part = { .s = c->s, .o = c->o };
	int err = group_calls(&part, &g);

	for (size_t i = 0; i < part.rows.count && !err; i++) {
		const struct row *r = &part.rows.items[i];

		if (part.rows.count > 1 && is_graph_launch(c->s, &c->s->calls[r->first_call]))
			continue;
		out->p50 = r->p50;
		out->p99 = r->p99;
	}
	free(part.rows.items);
	return err;
}

static int find_top_api(struct report_ctx *c, struct row *out)
{
	static const struct grouping g = { .key = key_api, .fill = fill_api, .sums = true };
	struct report_ctx part = { .s = c->s, .o = c->o };
	const struct row *best = NULL;
	int64_t all = 0, sum;
	int err = group_calls(&part, &g);

	for (size_t i = 0; i < part.rows.count && !err; i++) {
		const struct row *r = &part.rows.items[i];

		if (r->self == NA)
			continue;
		all = __builtin_add_overflow(all, r->self, &sum) ? INT64_MAX : sum;
		if (!best || r->self > best->self)
			best = r;
	}
	if (best) {
		out->top_api = best->name;
		out->top_api_share = share(best->self, all);
	}
	free(part.rows.items);
	return err;
}

static int find_top_kernel(struct report_ctx *c, struct row *out)
{
	static const struct grouping g = { .key = key_kernel, .fill = fill_top_kernel,
					   .sums = true };
	struct report_ctx part = { .s = c->s, .o = c->o };
	int err = group_calls(&part, &g);

	for (size_t i = 0; i < part.rows.count && !err; i++) {
		const struct row *r = &part.rows.items[i];

		if (out->top_kernel && r->calls <= out->top_kernel_launches)
			continue;
		out->top_kernel = r->kernel;
		out->top_kernel_launches = r->calls;
	}
	free(part.rows.items);
	return err;
}

static void take_thread(const struct session *s, const struct session_thread *t,
			const struct busy *b, struct row *r)
{
	const struct session_process *p = &s->processes[t->process];
	int64_t wall = process_wall(s, p);

	r->tid = t->tid;
	r->pid = t->pid;
	r->thread = t->comm && *t->comm ? t->comm : p->comm && *p->comm ? p->comm : NULL;
	r->dispatch_share = r->waiting_share = r->elsewhere_share = NA;
	if (b->unknown)
		return;
	r->dispatch_share = share(b->dispatch, wall);
	r->waiting_share = share(b->waiting, wall);
	r->elsewhere_share = share(busy_elsewhere(b, wall), wall);
}

/* The launching thread is the one with most launches; without any, with most calls. */
static void sum_threads(const struct session *s, struct row *r)
{
	uint64_t most_launches = 0, most_calls = 0;

	for (size_t i = 0; i < s->threads_count; i++) {
		struct busy b;
		uint64_t launches;

		thread_busy(s, &s->threads[i], &b);
		launches = b.launches + b.graph_launches;
		r->calls += (int64_t)b.calls;
		r->launches += (int64_t)b.launches;
		r->graph_launches += (int64_t)b.graph_launches;
		r->errors += (int64_t)b.errors;
		if (launches < most_launches)
			continue;
		if (launches == most_launches && b.calls <= most_calls)
			continue;
		most_launches = launches;
		most_calls = b.calls;
		take_thread(s, &s->threads[i], &b, r);
	}
}

static int build_summary(struct report_ctx *c)
{
	const struct session *s = c->s;
	struct row *r;
	int err = rows_add(&c->rows, &r);

	if (err)
		return err;
	r->wall = wall_in_windows(s, 0, INT64_MAX);
	r->threads = (int64_t)s->threads_count;
	r->processes = (int64_t)s->processes_count;
	sum_threads(s, r);
	r->rate = rate(r->launches + r->graph_launches, r->wall);
	for (size_t i = 0; i < s->calls_count; i++)
		r->open_calls += !!(s->calls[i].flags & CALL_OPEN);
	r->lost = (int64_t)quality_lost(s);
	err = sum_launches(c, r);
	if (!err)
		err = find_top_api(c, r);
	return err ? err : find_top_kernel(c, r);
}

static const struct column columns_summary[] = {
	COLUMN("wall_ns", "Traced", INT, NS, wall),
	COLUMN("processes", "Processes", INT, NONE, processes),
	COLUMN("threads", "Threads", INT, NONE, threads),
	COLUMN("calls", "Calls", INT, NONE, calls),
	COLUMN("launches", "Kernel launches", INT, NONE, launches),
	COLUMN("graph_launches", "Graph launches", INT, NONE, graph_launches),
	COLUMN("launches_per_s", "Launches/s", INT, MILLI, rate),
	COLUMN("launch_p50_ns", "Launch, med", INT, NS, p50),
	COLUMN("launch_p99_ns", "Launch, p99", INT, NS, p99),
	COLUMN("pid", "Launching PID", INT, ID, pid),
	COLUMN("tid", "Launching TID", INT, ID, tid),
	COLUMN("thread", "Launching thread", TEXT, NONE, thread),
	COLUMN("dispatch_pct", "Dispatch, % of its wall", INT, PERCENT, dispatch_share),
	COLUMN("waiting_pct", "Waiting, % of its wall", INT, PERCENT, waiting_share),
	COLUMN("elsewhere_pct", "Elsewhere, % of its wall", INT, PERCENT, elsewhere_share),
	COLUMN("top_api", "Top function", TEXT, NONE, top_api),
	COLUMN("top_api_pct", "Top function, % of self time", INT, PERCENT, top_api_share),
	COLUMN("top_kernel", "Top kernel", TEXT, NONE, top_kernel),
	COLUMN("top_kernel_launches", "Its launches", INT, NONE, top_kernel_launches),
	COLUMN("errors", "Errors", INT, NONE, errors),
	COLUMN("open_calls", "Open calls", INT, NONE, open_calls),
	COLUMN("lost_events", "Lost events", INT, NONE, lost),
	{ 0 },
};

/* ---- for people ---- */

#define LABEL "%-19s"

static const char *count_text(int64_t n, char *buf, size_t size)
{
	return text_count((uint64_t)n, buf, size);
}

static void print_label(const struct report_ctx *c, FILE *out, const char *label)
{
	fprintf(out, "%s" LABEL "%s", term_style(c->o->colour, TERM_BOLD), label,
		term_style(c->o->colour, TERM_PLAIN));
}

static size_t room(const struct report_ctx *c, size_t taken)
{
	if (!c->o->width)
		return 0;
	return c->o->width > taken + 16 ? c->o->width - taken : 16;
}

static void print_traced(const struct report_ctx *c, const struct row *r, FILE *out)
{
	char wall[32], calls[32];

	print_label(c, out, "Traced");
	fprintf(out, "%s, %" PRId64 " process%s, %" PRId64 " thread%s with %s CUDA calls",
		text_duration(r->wall, wall, sizeof(wall)), r->processes,
		r->processes == 1 ? "" : "es", r->threads, r->threads == 1 ? "" : "s",
		count_text(r->calls, calls, sizeof(calls)));
	fprintf(out, ", %s returned an error\n",
		r->errors ? count_text(r->errors, calls, sizeof(calls)) : "none");
}

static void print_launches(const struct report_ctx *c, const struct row *r, FILE *out)
{
	char a[32], b[32];

	print_label(c, out, "Launches");
	fprintf(out, "%s kernels", count_text(r->launches, a, sizeof(a)));
	if (r->graph_launches)
		fprintf(out, " and %s graphs", count_text(r->graph_launches, a, sizeof(a)));
	if (r->rate != NA)
		fprintf(out, ", %s/s", count_text((r->rate + 500) / 1000, a, sizeof(a)));
	if (r->p50 != NA)
		fprintf(out, "; dispatch time a launch: median %s, p99 %s (first calls left out)",
			text_duration(r->p50, a, sizeof(a)), text_duration(r->p99, b, sizeof(b)));
	fputc('\n', out);
}

static void print_thread(const struct report_ctx *c, const struct row *r, FILE *out)
{
	char name[128];
	bool launching;

	if (r->tid == NA)
		return;
	launching = r->launches + r->graph_launches;
	print_label(c, out, launching ? "Launching thread" : "Busiest thread");
	fprintf(out, "%s (TID %" PRId64 "): ",
		text_printable(r->thread ? r->thread : "no name", name, sizeof(name), 24), r->tid);
	if (r->dispatch_share == NA)
		fputs("no durations are known, so no shares of its time\n", out);
	else
		fprintf(out,
			"%.1f %% of its wall time dispatching, %.1f %% waiting in syncs, "
			"%.1f %% elsewhere\n",
			(double)r->dispatch_share / 1000, (double)r->waiting_share / 1000,
			(double)r->elsewhere_share / 1000);
}

static void print_tops(const struct report_ctx *c, const struct row *r, FILE *out)
{
	char name[512], n[32];

	if (r->top_api) {
		print_label(c, out, "Top function");
		fprintf(out, "%s, %.1f %% of the self time of all CUDA calls\n",
			text_printable(r->top_api, name, sizeof(name), 60),
			(double)(r->top_api_share == NA ? 0 : r->top_api_share) / 1000);
	}
	if (r->top_kernel) {
		print_label(c, out, "Top kernel");
		fprintf(out, "%s, %s launches\n",
			text_printable(r->top_kernel, name, sizeof(name), room(c, 48)),
			count_text(r->top_kernel_launches, n, sizeof(n)));
	}
}

static void print_open(const struct report_ctx *c, const struct row *r, FILE *out)
{
	char n[32];

	if (!r->open_calls)
		return;
	print_label(c, out, "Still open");
	fprintf(out, "%s had not returned when the trace ended\n",
		count_text(r->open_calls, n, sizeof(n)));
}

static void print_gpu(const struct report_ctx *c, FILE *out)
{
	print_label(c, out, "GPU");
	fputs("n/a: this is the CPU's side; kernel times and GPU idle time were not measured\n",
	      out);
}

static const char *next_view(const struct row *r)
{
	if (r->open_calls)
		return "open_sum";
	if (r->dispatch_share == NA)
		return "api_sum";
	if (r->waiting_share > r->dispatch_share && r->waiting_share > 20000)
		return "sync_sum";
	return r->launches && r->dispatch_share > 10000 ? "launch_sum" : "api_sum";
}

static void print_next(const struct report_ctx *c, const struct row *r, FILE *out)
{
	char file[512];

	print_label(c, out, "Next");
	if (!r->calls) {
		fputs("no CUDA call was seen; sudo gbpf doctor -p PID says what is hooked\n", out);
		return;
	}
	fputs("gbpf report", out);
	if (c->o->file)
		fprintf(out, " %s", text_printable(c->o->file, file, sizeof(file), 0));
	fprintf(out, " --view %s\n", next_view(r));
}

static void print_summary(const struct report_ctx *c, FILE *out)
{
	for (size_t i = 0; i < c->rows.count; i++) {
		const struct row *r = &c->rows.items[i];

		print_traced(c, r, out);
		if (r->calls) {
			print_launches(c, r, out);
			print_thread(c, r, out);
			if (!c->o->brief)
				print_tops(c, r, out);
			print_open(c, r, out);
			if (!c->o->brief)
				print_gpu(c, out);
		}
		print_next(c, r, out);
	}
}

const struct view view_summary = {
	.about = { "summary", NULL, "the lines that matter, and what to look at next" },
	.columns = columns_summary,
	.sort = "-calls",
	.build = build_summary,
	.print = print_summary,
};
