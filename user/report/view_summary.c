// SPDX-License-Identifier: BSD-2-Clause
/* The lines that matter, and the command to run next. */
#include <inttypes.h>
#include <stdlib.h>

#include "model/gpu.h"
#include "record/trigger_text.h"
#include "report/row.h"
#include "util/term.h"
#include "util/text.h"

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
	COLUMN("gpu_busy_pct", "GPU busy, % of watched time", INT, PERCENT, gpu_busy_share),
	COLUMN("gpu_watched_ns", "GPU watched", INT, NS, gpu_watched),
	COLUMN("top_gap", "Largest class of gaps", TEXT, NONE, gap),
	COLUMN("top_gap_pct", "Largest class of gaps, % of watched time", INT, PERCENT, gap_share),
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
	if (r->errors == NA) {
		fputs("; their returns were not recorded, so neither were errors\n", out);
		return;
	}
	fprintf(out, ", %s returned an error",
		r->errors ? count_text(r->errors, calls, sizeof(calls)) : "none");
	if (r->entered)
		fprintf(out, " (returns of %s were not recorded)",
			count_text((int64_t)r->entered, calls, sizeof(calls)));
	fputc('\n', out);
}

/* Of a flight recorder's file. */
static void print_triggers(const struct report_ctx *c, FILE *out)
{
	const struct session *s = c->s;
	char text[512], shown[512], before[32];

	for (size_t i = 0; i < s->triggers_count; i++) {
		const struct record_trigger *t = &s->triggers[i];

		print_label(c, out, "Written because");
		trigger_text(t, text, sizeof(text));
		fputs(text_printable(text, shown, sizeof(shown), 0), out);
		if (t->cause == RECORD_TRIGGER_FIRED && t->ts >= s->begin)
			fprintf(out, ", %s after the begin",
				text_duration(t->ts - s->begin, before, sizeof(before)));
		fputc('\n', out);
	}
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
	const char *reason = session_no_work(c->s, UINT32_MAX);
	char text[512];

	if (!reason) {
		gpu_summary_print(c, out, term_style(c->o->colour, TERM_BOLD),
				  term_style(c->o->colour, TERM_PLAIN));
		return;
	}
	print_label(c, out, "GPU");
	if (c->s->sidecars_count)
		fprintf(out, "n/a: %s\n", text_printable(reason, text, sizeof(text), 0));
	else
		fputs("n/a: this is the CPU's side; kernel times and GPU idle time were not "
		      "measured\n",
		      out);
}

/* What NVML said of one GPU, as far as it did, in a line. */
static void print_device(const struct report_ctx *c, const struct row *r, FILE *out)
{
	const struct row_gpu *g = &r->gpu;
	char label[32], name[128], n[32];

	if (g->index == NA)
		snprintf(label, sizeof(label), "GPU");
	else
		snprintf(label, sizeof(label), "GPU %" PRId64, g->index);
	print_label(c, out, label);
	fputs(text_printable(r->name ? r->name : "no name", name, sizeof(name), 40), out);
	if (g->sm_p50 != NA)
		fprintf(out, ", SM clock %" PRId64 " MHz (%" PRId64 " to %" PRId64 ")", g->sm_p50,
			g->sm_min, g->sm_max);
	if (g->power_avg != NA)
		fprintf(out, ", %.0f W", (double)g->power_avg / 1000);
	if (g->temperature_max != NA)
		fprintf(out, ", at most %" PRId64 " °C", g->temperature_max);
	if (g->memory_used != NA)
		fprintf(out, ", %s used", text_bytes((uint64_t)g->memory_used, n, sizeof(n)));
	if (g->throttled != NA && g->throttled > 0)
		fprintf(out, "; held back in %.1f %% of samples: %s", (double)g->throttled / 1000,
			text_printable(g->throttled_by, name, sizeof(name), 80));
	if (g->xids != NA && g->xids > 0)
		fprintf(out, "; %s XID errors", count_text(g->xids, n, sizeof(n)));
	fputc('\n', out);
}

static void print_devices(const struct report_ctx *c, FILE *out)
{
	struct rows rows = { 0 };

	if (!gpu_rows(c->s, &rows))
		for (size_t i = 0; i < rows.count; i++)
			print_device(c, &rows.items[i], out);
	free(rows.items);
}

static const char *next_view(const struct row *r)
{
	if (r->open_calls)
		return "open_sum";
	if (r->gpu_busy_share != NA)
		return r->gpu_busy_share < 85000 ? "gap_sum" : "kern_sum";
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
		print_triggers(c, out);
		if (r->calls) {
			print_launches(c, r, out);
			print_thread(c, r, out);
			if (!c->o->brief)
				print_tops(c, r, out);
			print_open(c, r, out);
			if (!c->o->brief) {
				print_gpu(c, out);
				print_devices(c, out);
			}
		}
		print_next(c, r, out);
	}
}

const struct view view_summary = {
	.about = { "summary", NULL, "the lines that matter, and what to look at next" },
	.columns = columns_summary,
	.sort = "-calls",
	.build = summary_build,
	.print = print_summary,
};
