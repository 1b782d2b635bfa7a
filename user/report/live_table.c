/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "report/live.h"
#include "util/term.h"
#include "util/text.h"

#define WIDE 124  /* columns, for copies too */
#define WIDER 142 /* and for allocations and errors */

static const char *rate(struct estimate e, char *buf, size_t size)
{
	if (!e.known)
		snprintf(buf, size, "n/a");
	else if (!(e.value > 0) && e.high > 0) /* none seen, which is not none */
		snprintf(buf, size, e.high >= 9999.5 ? "<%.0fk" : "<%.0f",
			 e.high >= 9999.5 ? e.high / 1000 : e.high);
	else if (e.value >= 9999.5)
		snprintf(buf, size, "%.1fk", e.value / 1000);
	else
		snprintf(buf, size, e.value < 10 && e.value > 0 ? "%.1f" : "%.0f", e.value);
	return buf;
}

/* Half of the 95 % interval, in percent of the value; "" where it was counted. */
static const char *spread(struct estimate e, char *buf, size_t size)
{
	buf[0] = '\0';
	if (e.known && e.high > e.low && e.value > 0)
		snprintf(buf, size, "±%.0f%%", 50 * (e.high - e.low) / e.value);
	return buf;
}

static const char *share(struct estimate e, char *buf, size_t size)
{
	if (e.known)
		snprintf(buf, size, "%.1f", 100 * e.value);
	else
		snprintf(buf, size, "n/a");
	return buf;
}

static const char *duration(int64_t ns, char *buf, size_t size)
{
	if (ns < 0)
		snprintf(buf, size, "n/a");
	else
		text_duration(ns, buf, size);
	return buf;
}

static void clock_line(const struct snapshot *s, FILE *out)
{
	time_t seconds = (time_t)(s->time_ns / 1000000000);
	char text[32] = "";
	struct tm tm;

	if (localtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%H:%M:%S", &tm);
	fprintf(out, "%s  %zu process%s; gbpf costs the worst thread %.2f %% of %.4g %%, itself "
		"%.2f %% of a CPU; launches seen %.1f %% of the time\n", text, s->processes_count,
		s->processes_count == 1 ? "" : "es", s->self.overhead_pct, s->self.budget_pct,
		s->self.cpu_pct, 100 * s->self.coverage);
	if (s->self.limit)
		fprintf(out, "note: %s\n", s->self.limit);
	if (s->self.lost)
		fprintf(out, "note: %" PRIu64 " calls were not counted: a table was full\n",
			s->self.lost);
}

static void gpu_line(const struct gpu_sample *g, FILE *out)
{
	char name[64], used[32], total[32], reasons[256];

	text_printable(g->name, name, sizeof(name), 30);
	fprintf(out, "GPU %u %s:", g->index, name);
	if (g->has & GPU_HAS_UTILISATION)
		fprintf(out, " busy %u %%", g->utilisation_pct);
	if (g->has & GPU_HAS_CLOCK_SM)
		fprintf(out, ", SM %u MHz", g->clock_sm_mhz);
	if (g->has & GPU_HAS_POWER)
		fprintf(out, ", %.0f W", g->power_mw / 1e3);
	if (g->has & GPU_HAS_TEMPERATURE)
		fprintf(out, ", %u °C", g->temperature_c);
	if (g->has & GPU_HAS_MEMORY)
		fprintf(out, ", %s of %s", text_bytes(g->memory_used, used, sizeof(used)),
			text_bytes(g->memory_total, total, sizeof(total)));
	if (g->has & GPU_HAS_THROTTLE)
		fprintf(out, ", throttled: %s", gpu_throttle_text(g->throttle, reasons,
								  sizeof(reasons)));
	if (g->xid_count)
		fprintf(out, ", XID errors: %" PRIu64 " (last %u)", g->xid_count, g->xid_last);
	putc('\n', out);
}

/* So many columns for printf, which counts bytes: those that continue a character are extra. */
static int wide(int columns, const char *text)
{
	for (; *text; text++)
		columns += ((unsigned char)*text & 0xc0) == 0x80;
	return columns;
}

/* The columns that fit; every header names its unit. */
static void process_line(const struct snapshot_process *p, FILE *out, unsigned width)
{
	char a[32], b[32], c[32], d[32], e[32], f[32], g[32], h[32], comm[64], live[32], word[32];

	text_printable(p->comm, comm, sizeof(comm), 15);
	spread(p->launches_per_s, b, sizeof(b));
	duration(p->dispatch_p50_ns, c, sizeof(c));
	duration(p->dispatch_p99_ns, d, sizeof(d));
	fprintf(out, "%7u %-*s %8s %-*s %*s %*s %6s %6s %6s", p->pid, wide(15, comm), comm,
		rate(p->launches_per_s, a, sizeof(a)), wide(6, b), b, wide(9, c), c, wide(9, d), d,
		share(p->dispatch_share, e, sizeof(e)), share(p->sync_share, f, sizeof(f)),
		share(p->elsewhere_share, g, sizeof(g)));
	fprintf(out, " %6.2f %-*s", p->overhead_pct, width >= WIDE ? 14 : 0,
		verdict_word(p->verdict.verdict, word, sizeof(word)));
	if (width >= WIDE)
		fprintf(out, " %7s %10s", rate(p->copies_per_s, a, sizeof(a)),
			p->copy_bytes_per_s.known
				? text_bytes((uint64_t)p->copy_bytes_per_s.value, h, sizeof(h))
				: "n/a");
	if (width >= WIDER)
		fprintf(out, " %10s %7s", p->live_known && p->live_bytes >= 0
				? text_bytes((uint64_t)p->live_bytes, live, sizeof(live)) : "n/a",
			rate(p->errors_per_s, b, sizeof(b)));
	putc('\n', out);
}

void live_table(const struct snapshot *s, FILE *out, unsigned width, bool colour)
{
	size_t i;

	clock_line(s, out);
	for (i = 0; i < s->gpus_count; i++)
		gpu_line(&s->gpus[i], out);
	if (s->gpus_trouble)
		fprintf(out, "GPUs: %s\n", s->gpus_trouble);
	if (!s->processes_count) {
		fputs("no process uses CUDA\n\n", out);
		return;
	}
	fprintf(out, "%s%7s %-15s %8s %-6s %9s %9s %6s %6s %6s %6s %-*s",
		term_style(colour, TERM_BOLD),
		"PID", "COMMAND", "LAUNCH/s", "", "p50", "p99", "DISP%", "SYNC%", "ELSE%", "COST%",
		width >= WIDE ? 14 : 0, "SUSPECTED");
	if (width >= WIDE)
		fprintf(out, " %7s %10s", "COPY/s", "COPIED/s");
	if (width >= WIDER)
		fprintf(out, " %10s %7s", "LIVE", "ERR/s");
	fprintf(out, "%s\n", term_style(colour, TERM_PLAIN));
	for (i = 0; i < s->processes_count; i++)
		process_line(&s->processes[i], out, width);
	putc('\n', out);
}
