/* SPDX-License-Identifier: BSD-2-Clause */
/* What is said above the tables: of the machine, of gbpf, of one process. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "top/internal.h"
#include "top/spark.h"
#include "util/text.h"

#define VALUE 64
#define NO_LIMIT 40 /* columns: as much as it takes */

struct estimate sum_estimates(const struct snapshot *s, size_t offset, size_t *unknown)
{
	struct estimate sum = {0};
	double below = 0, above = 0;

	*unknown = 0;
	for (size_t i = 0; i < s->processes_count; i++) {
		const struct estimate *e =
			(const void *)((const char *)&s->processes[i] + offset);

		if (!cell_estimate(CELL_RATE, e).known) {
			++*unknown;
			continue;
		}
		sum.known = true;
		sum.value += e->value;
		below += (e->value - e->low) * (e->value - e->low);
		above += (e->high - e->value) * (e->high - e->value);
	}
	sum.known |= s->processes_count == 0;
	sum.low = sum.value - sqrt(below);
	sum.high = sum.value + sqrt(above);
	return sum;
}

static const char *format(const struct top *t, struct cell c, char *buf)
{
	return cell_format(&c, NO_LIMIT, screen_utf8(t->screen), buf, VALUE);
}

/* "214k ±2 % launches/s", of all processes but *unknown. */
static void add_sum(struct top *t, struct line *l, size_t offset, enum cell_kind kind,
		    const char *what, size_t expected)
{
	size_t unknown;
	struct estimate sum = sum_estimates(t->s, offset, &unknown);
	char value[VALUE], text[VALUE + 64];
	bool bad = offset == offsetof(struct snapshot_process, errors_per_s) && sum.known &&
		   sum.value > 0;

	format(t, cell_estimate(kind, &sum), value);
	if (unknown != expected && sum.known)
		snprintf(text, sizeof(text), "%s %s (%zu n/a)", value, what, unknown);
	else
		snprintf(text, sizeof(text), "%s %s", value, what);
	line_add(l, "", bad ? STYLE_BAD : STYLE_PLAIN, text);
}

static void add_clock(struct top *t, struct line *l)
{
	char text[80] = "", clock[16] = "";
	time_t seconds;
	struct tm tm;

	if (t->s) {
		seconds = (time_t)(t->s->time_ns / 1000000000);
		if (localtime_r(&seconds, &tm))
			strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	}
	snprintf(text, sizeof(text), "%s%s", t->paused ? "PAUSED at " : "", clock);
	line_right(l, t->paused ? STYLE_BAD : STYLE_PLAIN, text);
	if (*t->host && screen_columns(t->screen) >= 100) {
		char host[VALUE];

		line_right(l, STYLE_DIM, text_printable(t->host, host, sizeof(host), 40));
	}
}

/* "3 processes (1 n/a)": of how many launches are not known. */
static void add_count(struct top *t, struct line *l, size_t unknown)
{
	char text[FILTER_SIZE * 4 + 64], filter[FILTER_SIZE * 4];
	size_t count = t->s->processes_count;

	if (*t->filter)
		snprintf(text, sizeof(text), "%zu of %zu processes match \"%s\"",
			 t->matching_count, count,
			 text_printable(t->filter, filter, sizeof(filter), 24));
	else if (unknown)
		snprintf(text, sizeof(text), "%zu process%s (%zu n/a)", count,
			 count == 1 ? "" : "es", unknown);
	else
		snprintf(text, sizeof(text), "%zu process%s", count, count == 1 ? "" : "es");
	line_add(l, "", *t->filter ? STYLE_WARN : STYLE_PLAIN, text);
}

static void draw_machine(struct top *t, int row)
{
	struct line l = line_begin(t, row, 1);
	size_t unknown;

	add_clock(t, &l);
	line_add(&l, "", STYLE_BOLD, "gbpf top");
	if (!t->s)
		return;
	sum_estimates(t->s, offsetof(struct snapshot_process, launches_per_s), &unknown);
	add_count(t, &l, unknown);
	add_sum(t, &l, offsetof(struct snapshot_process, launches_per_s), CELL_RATE, "launches/s",
		unknown);
	add_sum(t, &l, offsetof(struct snapshot_process, errors_per_s), CELL_RATE, "errors/s",
		unknown);
	add_sum(t, &l, offsetof(struct snapshot_process, copies_per_s), CELL_RATE, "copies/s",
		unknown);
	add_sum(t, &l, offsetof(struct snapshot_process, copy_bytes_per_s), CELL_BYTE_RATE,
		"copied/s", unknown);
}

static void draw_self(struct top *t, int row)
{
	const struct snapshot_self *self = &t->s->self;
	struct line l = line_begin(t, row, 1);
	char text[128], number[32];

	snprintf(text, sizeof(text), "%.2f %% (budget %g %%)", self->overhead_pct,
		 self->budget_pct);
	line_add(&l, "gbpf costs", self->overhead_pct > self->budget_pct ? STYLE_BAD : STYLE_GOOD,
		 text);
	snprintf(text, sizeof(text), "%.1f %%", 100 * self->coverage);
	line_add(&l, "coverage", STYLE_PLAIN, text);
	snprintf(text, sizeof(text), "%s", text_count(self->lost, number, sizeof(number)));
	line_add(&l, "lost", self->lost ? STYLE_BAD : STYLE_PLAIN, text);
	snprintf(text, sizeof(text), "%.1f %%", self->cpu_pct);
	line_add(&l, "own CPU", STYLE_PLAIN, text);
	format_bytes((double)self->rss_bytes + (double)self->maps_bytes, text, sizeof(text));
	line_add(&l, "memory", STYLE_PLAIN, text);
	snprintf(text, sizeof(text), "%u", self->windows);
	line_add(&l, "windows", STYLE_PLAIN, text);
	line_add(&l, "unmatched", self->unmatched ? STYLE_WARN : STYLE_PLAIN,
		 text_count(self->unmatched, number, sizeof(number)));
	if (self->worst_pid) {
		snprintf(text, sizeof(text), "pid %u tid %u", self->worst_pid, self->worst_tid);
		line_add(&l, "most of it", STYLE_PLAIN, text);
	}
}

int draw_header(struct top *t)
{
	char text[FIELD_BYTES];
	int row = 0;

	draw_machine(t, row++);
	if (!t->s)
		return row;
	draw_self(t, row++);
	if (t->s->self.limit) {
		text_printable(t->s->self.limit, text, sizeof(text),
			       (size_t)screen_columns(t->screen) - 2);
		screen_text(t->screen, row++, 1, screen_columns(t->screen), STYLE_WARN, text);
	}
	return row;
}

/* ---- one process ---- */

#define BELOW 7 /* rows: tabs, a table of three, the last two of the screen */

/* To the line, or where that is full to the next one, as long as the table has room. */
static void flow(struct top *t, struct line *l, const char *label, enum style style,
		 const char *value)
{
	if (line_add(l, label, style, value))
		return;
	if (l->row + 1 >= screen_rows(t->screen) - BELOW)
		return;
	*l = line_begin(t, l->row + 1, 1);
	line_add(l, label, style, value);
}

static void add_cell(struct top *t, struct line *l, const char *label, const char *column,
		     const char *unit)
{
	struct cell c = process_cell(t, t->process, column);
	char value[VALUE], text[VALUE + 16];

	format(t, c, value);
	snprintf(text, sizeof(text), "%s%s", value, c.known ? unit : "");
	flow(t, l, label, c.known ? c.style : STYLE_DIM, text);
}

static void add_label(struct line *l, const char *label, const char *value)
{
	char text[600];

	if (*value)
		line_add(l, label, STYLE_PLAIN, text_printable(value, text, sizeof(text), 60));
}

static void draw_title(struct top *t, int row)
{
	const struct snapshot_process *p = t->process;
	struct line l = line_begin(t, row, 1);
	char text[128], comm[80], gpu[96];

	add_clock(t, &l);
	line_add(&l, "", STYLE_BOLD, "gbpf top");
	snprintf(gpu, sizeof(gpu), "%.*s", (int)sizeof(t->comm), t->comm);
	snprintf(text, sizeof(text), "%u %s", t->pid, text_printable(gpu, comm, sizeof(comm), 0));
	line_add(&l, "", STYLE_BOLD, text);
	if (!p)
		return;
	process_gpu(t, p, gpu, sizeof(gpu));
	gpu[strcspn(gpu, "*")] = '\0';
	add_label(&l, "GPU", gpu);
	if (p->gpu_shared)
		line_add(&l, "", STYLE_WARN, "shared with others");
	add_label(&l, "rank", p->labels.rank);
	add_label(&l, "job", p->labels.slurm_job);
	add_label(&l, "pod", p->labels.pod);
	add_label(&l, "namespace", p->labels.namespace);
	add_label(&l, "container", p->labels.container);
}

/* "▁▂▃ 180k to 220k in the last 5 min", as far as there is room. */
static void add_history(struct top *t, struct line *l)
{
	float values[HISTORY_SAMPLES];
	uint64_t first = 0;
	size_t count = history_get(t->history, t->pid, t->start, HISTORY_LAUNCHES,
				   t->history_until, values, &first);
	int64_t seconds = history_span(t->history, t->history_until, count) / 1000000000;
	double low = 0, high = 0;
	char text[VALUE + 64], a[VALUE], b[VALUE], spark[4 * HISTORY_SAMPLES + 1];
	int room;

	if (!spark_range(values, count, &low, &high))
		return;
	snprintf(text, sizeof(text), seconds < 120 ? "%s to %s in %d s" : "%s to %s in %d min",
		 format_short(low, a, sizeof(a)), format_short(high, b, sizeof(b)),
		 (int)(seconds < 120 ? seconds : seconds / 60));
	room = l->end - l->column - (int)strlen(text) - 2;
	room = room > 60 ? 60 : room;
	if (room >= 8)
		line_add(l, "", STYLE_PLAIN,
			 spark_draw(values, count, first, (size_t)room, screen_utf8(t->screen),
				    spark, sizeof(spark)));
	line_add(l, "", STYLE_PLAIN, text);
}

static void add_sibling(struct top *t, struct line *l)
{
	const struct snapshot_process *p = t->process;
	char text[160], comm[80], name[sizeof(p->sibling_comm) + 1];

	if (!p->sibling_tid)
		return;
	snprintf(name, sizeof(name), "%.*s", (int)sizeof(p->sibling_comm), p->sibling_comm);
	snprintf(text, sizeof(text), "thread %u (%s) ran in %.0f %% of it", p->sibling_tid,
		 text_printable(name, comm, sizeof(comm), 0), 100 * p->sibling_share);
	flow(t, l, "while waiting for a lock", STYLE_WARN, text);
}

static int draw_numbers(struct top *t, int row)
{
	struct line l = line_begin(t, row, 1);

	add_cell(t, &l, "launches/s", "launches", "");
	add_history(t, &l);
	l = line_begin(t, row + 1, 1);
	add_cell(t, &l, "dispatch", "dispatch", " %");
	add_cell(t, &l, "sync", "sync", " %");
	add_cell(t, &l, "elsewhere", "elsewhere", " %");
	add_cell(t, &l, "p50", "p50", "");
	add_cell(t, &l, "p99", "p99", "");
	add_cell(t, &l, "back-pressured/s", "pressed", "");
	add_cell(t, &l, "errors/s", "errors", "");
	add_cell(t, &l, "copies/s", "copies", "");
	add_cell(t, &l, "copied/s", "copied", "");
	add_cell(t, &l, "live", "live", "");
	add_cell(t, &l, "allocations", "allocations", "");
	add_cell(t, &l, "cold starts", "cold", "");
	add_cell(t, &l, "CPU with children", "cpu", " %");
	add_cell(t, &l, "I/O", "io", "/s");
	add_cell(t, &l, "throttled", "throttled", " %");
	add_cell(t, &l, "coverage", "covered", " %");
	add_cell(t, &l, "gbpf costs", "cost", " %");
	add_sibling(t, &l);
	return l.row + 1;
}

static int draw_tabs(struct top *t, int row)
{
	static const char *const names[] = {"1 APIs", "2 Kernels", "3 Threads", "4 Histogram"};
	char text[32];
	int column = 1;

	for (int i = 0; i < 4; i++) {
		bool here = t->view == (enum view)(VIEW_APIS + i);

		snprintf(text, sizeof(text), here ? "[%s]" : " %s ", names[i]);
		column += 1 + screen_text(t->screen, row, column, 20,
					  here ? STYLE_BOLD : STYLE_DIM, text);
	}
	return row + 1;
}

int draw_process(struct top *t)
{
	char text[FIELD_BYTES];
	int row = 0;

	draw_title(t, row++);
	if (!t->process)
		return row;
	text_printable(t->process->command ? t->process->command : "", text, sizeof(text),
		       (size_t)screen_columns(t->screen) - 2);
	screen_text(t->screen, row++, 1, screen_columns(t->screen), STYLE_DIM, text);
	row = draw_numbers(t, row);
	return draw_tabs(t, row);
}
