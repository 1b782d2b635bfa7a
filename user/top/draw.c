/* SPDX-License-Identifier: BSD-2-Clause */
/* The whole screen, and what its parts are made of. */
#include "top/internal.h"

#include <stdio.h>
#include <string.h>

#include "util/text.h"

/* ---- lines ---- */

struct line line_begin(struct top *t, int row, int indent)
{
	return (struct line){.screen = t->screen, .row = row, .column = indent,
			     .end = screen_columns(t->screen) - 1};
}

void line_right(struct line *l, enum style style, const char *text)
{
	int width = (int)text_width(text);

	if (width > l->end - l->column)
		return;
	screen_text(l->screen, l->row, l->end - width, width, style, text);
	l->end -= width + 2;
}

bool line_add(struct line *l, const char *label, enum style style, const char *value)
{
	int first = (int)text_width(label), second = (int)text_width(value);
	int between = first && second ? 1 : 0;

	if (l->column + first + between + second > l->end)
		return false;
	l->column += screen_text(l->screen, l->row, l->column, first, STYLE_PLAIN, label);
	l->column += between;
	l->column += screen_text(l->screen, l->row, l->column, second, style, value);
	l->column += 2;
	return true;
}

void draw_notice(struct top *t, int row, enum style style, const char *text)
{
	int width = (int)text_width(text), all = screen_columns(t->screen);

	screen_text(t->screen, row, width < all ? (all - width) / 2 : 0, all, style, text);
}

/* ---- tables ---- */

static void draw_field(struct top *t, int row, int column, int width, bool left, enum style style,
		       const char *text)
{
	int used = (int)text_width(text);

	screen_text(t->screen, row, left || used >= width ? column : column + width - used, width,
		    style, text);
}

static const char *arrow(const struct top *t, bool ascending)
{
	if (screen_utf8(t->screen))
		return ascending ? "▲" : "▼";
	return ascending ? "^" : "v";
}

static void draw_heads(struct top *t, const struct table *table, const struct layout *l, int row)
{
	const struct table_view *v = top_table_view(t);
	int column = 1;

	for (size_t i = 0; i < l->count; i++) {
		const struct column *c = &table->columns[l->column[i]];
		bool sorted = v->sort.column == l->column[i];
		char head[48];

		snprintf(head, sizeof(head), "%s%s", c->head,
			 sorted ? arrow(t, v->sort.ascending) : "");
		draw_field(t, row, column, l->width[i], c->left, STYLE_PLAIN, head);
		column += l->width[i] + 1;
	}
	screen_paint(t->screen, row, 0, -1, STYLE_BAR);
}

static void draw_row(struct top *t, const struct table *table, const struct layout *l, int row,
		     size_t index, bool selected)
{
	int column = 1;
	char text[FIELD_BYTES];

	for (size_t i = 0; i < l->count; i++) {
		struct cell c;

		table->cell(table->rows, index, l->column[i], &c);
		if (c.kind == CELL_DRAWN)
			table->drawn(table->rows, index, l->width[i], text, sizeof(text));
		else
			cell_format(&c, l->width[i], screen_utf8(t->screen), text, sizeof(text));
		draw_field(t, row, column, l->width[i], table->columns[l->column[i]].left,
			   c.known ? c.style : STYLE_DIM, text);
		column += l->width[i] + 1;
	}
	if (selected) {
		screen_text(t->screen, row, 0, 1, STYLE_PLAIN, ">");
		screen_paint(t->screen, row, 0, -1, STYLE_SELECTED);
	}
}

static const char *nothing(const struct top *t)
{
	switch (t->view) {
	case VIEW_PROCESSES:
		return *t->filter ? "no process matches the filter: Esc clears it" :
				    "no process uses CUDA now";
	case VIEW_GPUS:
		return "no GPU is known here";
	case VIEW_KERNELS:
		return "no launch of a kernel was seen yet";
	case VIEW_THREADS:
		return "no thread has called CUDA yet";
	default:
		return "no call was seen yet";
	}
}

void draw_table(struct top *t, int row, int rows)
{
	struct table table = top_table(t, t->view);
	struct table_view *v = top_table_view(t);
	struct layout l;

	if (rows < 2)
		return;
	table_layout(&table, v->set, (size_t)screen_columns(t->screen) - 1, &l);
	draw_heads(t, &table, &l, row);
	v->visible = (size_t)rows - 1;
	list_fit(&v->list, v->count, v->visible);
	if (!v->count)
		draw_notice(t, row + 2, STYLE_DIM, nothing(t));
	for (size_t i = 0; i < v->visible && v->list.top + i < v->count; i++) {
		size_t at = v->list.top + i;

		draw_row(t, &table, &l, row + 1 + (int)i, v->order[at], at == v->list.cursor);
	}
}

/* ---- the last two rows ---- */

static void draw_filter_prompt(struct top *t, int row)
{
	char text[FILTER_SIZE * 4];
	int column;

	column = screen_text(t->screen, row, 1, 20, STYLE_BOLD, "Filter: ");
	column += 1 + screen_text(t->screen, row, column + 1, screen_columns(t->screen) - 24,
				  STYLE_PLAIN, text_printable(t->filter, text, sizeof(text), 0));
	screen_cursor(t->screen, row, column);
}

static void draw_command(struct top *t, int row)
{
	const struct table_view *v = &t->tables[VIEW_PROCESSES];
	const struct snapshot_process *p;
	char text[FIELD_BYTES], label[32];
	int column;

	if (t->view != VIEW_PROCESSES || t->overlay || !v->count)
		return;
	p = top_process(t, v->order[v->list.cursor]);
	snprintf(label, sizeof(label), "%u: ", p->pid);
	column = 1 + screen_text(t->screen, row, 1, 20, STYLE_BOLD, label);
	text_printable(p->command && *p->command ? p->command : "(no command line)", text,
		       sizeof(text), (size_t)(screen_columns(t->screen) - column - 1));
	screen_text(t->screen, row, column, screen_columns(t->screen), STYLE_PLAIN, text);
}

/* Is the column that rows are sorted by on the screen? */
static bool sort_is_seen(struct top *t)
{
	struct table table = top_table(t, t->view);
	const struct table_view *v = top_table_view(t);
	struct layout l;

	table_layout(&table, v->set, (size_t)screen_columns(t->screen) - 1, &l);
	for (size_t i = 0; i < l.count; i++) {
		if (l.column[i] == v->sort.column)
			return true;
	}
	return false;
}

static void add_key(struct line *l, const char *key, const char *what)
{
	line_add(l, key, STYLE_PLAIN, what);
}

static void add_table_keys(struct top *t, struct line *l)
{
	const struct table_view *v = top_table_view(t);
	struct table table = top_table(t, t->view);
	char text[64];

	snprintf(text, sizeof(text), "Sort%s%s", sort_is_seen(t) ? "" : ": ",
		 sort_is_seen(t) ? "" : table.columns[v->sort.column].head);
	add_key(l, "s", text);
	if (table.sets_count > 1) {
		snprintf(text, sizeof(text), "Columns: %s", table.sets[v->set].name);
		add_key(l, "+ -", text);
	}
	if (t->view < VIEW_APIS)
		add_key(l, "g", t->view == VIEW_GPUS ? "Processes" : "GPUs");
	add_key(l, "p", t->paused ? "Go on" : "Pause");
}

/* What keys do here: those that matter most first. */
static void draw_keys(struct top *t, int row)
{
	struct line l = line_begin(t, row, 1);

	if (t->overlay == OVERLAY_HELP) {
		add_key(&l, "Up Down PgUp PgDn", "Scroll");
		add_key(&l, "any other key", "Back");
		return;
	}
	if (t->overlay == OVERLAY_SORT) {
		add_key(&l, "Up Down", "Choose");
		add_key(&l, "Enter", "Sort by it");
		add_key(&l, "Esc", "Back");
		return;
	}
	if (t->filtering) {
		add_key(&l, "Enter", "Keep");
		add_key(&l, "Esc", "As before");
		add_key(&l, "^U", "Clear");
		add_key(&l, "words", "all of them occur in pid, names, command line");
		return;
	}
	add_key(&l, "h", "Help");
	add_key(&l, "q", t->view == VIEW_PROCESSES ? "Quit" : "Back");
	if (t->view >= VIEW_APIS && !t->process)
		return;
	if (t->view == VIEW_PROCESSES || t->view == VIEW_APIS)
		add_key(&l, "Enter", t->view == VIEW_APIS ? "Histogram" : "Open");
	if (t->view >= VIEW_APIS)
		add_key(&l, "Tab", "Next");
	if (t->view == VIEW_PROCESSES)
		add_key(&l, "/", "Filter");
	if (t->view == VIEW_HISTOGRAM) {
		add_key(&l, "Left Right", "API");
		add_key(&l, "+ -", t->ever ? "Calls: all" : "Calls: recent");
		add_key(&l, "l", t->log_counts ? "Bars: log" : "Bars: linear");
	} else {
		add_table_keys(t, &l);
	}
}

void draw_footer(struct top *t)
{
	int row = screen_rows(t->screen) - 2;

	if (t->filtering)
		draw_filter_prompt(t, row);
	else if (*t->message)
		screen_text(t->screen, row, 1, screen_columns(t->screen), STYLE_BOLD, t->message);
	else
		draw_command(t, row);
	draw_keys(t, row + 1);
	screen_paint(t->screen, row + 1, 0, -1, STYLE_BAR);
}

/* ---- the whole ---- */

static void draw_gone(struct top *t, int row)
{
	draw_notice(t, row, STYLE_BOLD, "this process has ended, or calls CUDA no more");
	draw_notice(t, row + 2, STYLE_DIM, "q goes back to the others");
}

static void draw_body(struct top *t)
{
	int rows = screen_rows(t->screen), body = rows - 2, row;

	if (t->view >= VIEW_APIS)
		row = draw_process(t);
	else
		row = draw_header(t);
	if (t->view == VIEW_PROCESSES && t->s)
		row = draw_gpus(t, row, rows / 6);
	if (!t->s)
		draw_notice(t, row + 2, STYLE_DIM, "waiting for the first interval to end");
	else if (t->overlay == OVERLAY_SORT)
		draw_sort_menu(t, row, body - row);
	else if (t->view >= VIEW_APIS && !t->process)
		draw_gone(t, row + 1);
	else if (t->view == VIEW_HISTOGRAM)
		draw_histogram(t, row, body - row);
	else
		draw_table(t, row, body - row);
	draw_footer(t);
}

void draw(struct top *t)
{
	int rows = screen_rows(t->screen), columns = screen_columns(t->screen);
	char text[80];

	screen_clear(t->screen);
	screen_cursor(t->screen, -1, 0);
	if (rows < MIN_ROWS || columns < MIN_COLUMNS) {
		snprintf(text, sizeof(text), "too small: %dx%d", columns, rows);
		draw_notice(t, rows > 2 ? rows / 2 - 1 : 0, STYLE_BOLD, text);
		snprintf(text, sizeof(text), "gbpf top needs %dx%d", MIN_COLUMNS, MIN_ROWS);
		if (rows > 1)
			draw_notice(t, rows > 2 ? rows / 2 : 1, STYLE_PLAIN, text);
	} else if (t->overlay == OVERLAY_HELP) {
		draw_help(t);
		draw_footer(t);
	} else {
		draw_body(t);
	}
}
