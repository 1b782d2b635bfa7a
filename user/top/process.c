/* SPDX-License-Identifier: BSD-2-Clause */
/* What is said of one process above its tables. */
#include <stdio.h>
#include <string.h>

#include "top/internal.h"
#include "top/spark.h"
#include "util/text.h"

#define BELOW 7		 /* rows: tabs, a table of three, the last two of the screen */
#define TALL 30		 /* rows of a screen with room for more pasts */
#define PAST_COLUMN 30	 /* where these begin */
#define SPARK_COLUMNS 60 /* of one, at most */

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

	top_format(t, c, value);
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

	line_clock(t, &l);
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

/* "180k to 220k in 5 min", of launches a second or of a share. */
static void range_text(enum history_of what, double low, double high, int64_t ns, char *buf,
		       size_t size)
{
	int seconds = (int)(ns / 1000000000);
	char a[VALUE], b[VALUE], span[VALUE];

	snprintf(span, sizeof(span), seconds < 120 ? "%d s" : "%d min",
		 seconds < 120 ? seconds : seconds / 60);
	if (what == HISTORY_LAUNCHES)
		snprintf(buf, size, "%s to %s in %s", format_short(low, a, sizeof(a)),
			 format_short(high, b, sizeof(b)), span);
	else
		snprintf(buf, size, "%.*f to %.*f %% in %s", low < 0.0995, 100 * low,
			 high < 0.0995, 100 * high, span);
}

/* "▁▂▃ 180k to 220k in 5 min", as far as there is room. */
static void add_history(struct top *t, struct line *l, enum history_of what)
{
	float values[HISTORY_SAMPLES];
	uint64_t first = 0;
	size_t count = history_get(t->history, t->pid, t->start, what, t->history_until, values,
				   &first);
	double low = 0, high = 0;
	char text[VALUE * 2], spark[4 * HISTORY_SAMPLES + 1];
	int room;

	if (!spark_range(values, count, &low, &high))
		return;
	range_text(what, low, high, history_span(t->history, t->history_until, count), text,
		   sizeof(text));
	room = l->end - l->column - (int)strlen(text) - 2;
	room = room > SPARK_COLUMNS ? SPARK_COLUMNS : room;
	if (room >= 8)
		line_add(l, "", STYLE_PLAIN,
			 spark_draw(values, count, first, (size_t)room, screen_utf8(t->screen),
				    spark, sizeof(spark)));
	line_add(l, "", STYLE_PLAIN, text);
}

/* "suspected overhead-bound", or why it is not known. */
static void add_verdict(struct top *t, struct line *l)
{
	const struct snapshot_verdict *v = &t->process->verdict;
	char word[48], text[192];

	snprintf(text, sizeof(text), "%s%s%s", verdict_text(v->verdict, v->basis, word,
							     sizeof(word)),
		 v->why ? ": " : "", v->why ? v->why : "");
	flow(t, l, "verdict", v->why ? STYLE_DIM : STYLE_PLAIN, text);
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

/* A number and what it was: a line each, one below the other. */
static void draw_past(struct top *t, int row, const char *label, const char *column,
		      const char *unit, enum history_of what)
{
	struct line l = line_begin(t, row, 1);

	add_cell(t, &l, label, column, unit);
	if (l.column < PAST_COLUMN && screen_rows(t->screen) >= TALL)
		l.column = PAST_COLUMN;
	add_history(t, &l, what);
}

static int draw_numbers(struct top *t, int row)
{
	bool tall = screen_rows(t->screen) >= TALL;
	struct line l;

	draw_past(t, row++, "launches/s", "launches", "", HISTORY_LAUNCHES);
	if (tall) {
		draw_past(t, row++, "dispatch", "dispatch", " %", HISTORY_DISPATCH);
		draw_past(t, row++, "sync", "sync", " %", HISTORY_SYNC);
	}
	l = line_begin(t, row, 1);
	if (!tall) {
		add_cell(t, &l, "dispatch", "dispatch", " %");
		add_cell(t, &l, "sync", "sync", " %");
	}
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
	add_verdict(t, &l);
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
