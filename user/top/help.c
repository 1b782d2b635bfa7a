/* SPDX-License-Identifier: BSD-2-Clause */
/* Help, and the menu of columns to sort by. */
#include <stdio.h>
#include <string.h>

#include "top/internal.h"

static const char *const keys[] = {
	"Up Down PgUp PgDn Home End   choose a row; k and j too",
	"Enter       look into a process, into the latencies of an API",
	"Esc q       back; in the list, Esc clears the filter and q quits",
	"F10 Q       quit",
	"s F6        choose the column to sort by",
	"< >         sort by the one to the left, to the right",
	"r I         sort the other way round",
	"/ F4        show processes with these words in their pid, name, command",
	"            line, GPU, container, pod, namespace, job or rank",
	"+ -         other columns; in the histogram: recent calls, all calls",
	"Tab 1 2 3 4 APIs, kernels, threads, histogram of a process",
	"l           in the histogram: length of bars by the logarithm of counts",
	"g           all GPUs, and back",
	"p F5        hold the screen, and go on",
	"^L          draw the screen anew",
	NULL,
};

static const char *const reading[] = {
	"12.3k ±3 %  estimated from short windows in which calls were probed: the",
	"            true value is within 3 % of it, 95 times of 100. Without ± it",
	"            was counted.",
	"61 ±3       the same for a share: between 58 and 64 percent.",
	"10–80 ≤80   where few were seen: it lies between these, it is at most this.",
	"n/a         not known, which is not 0.",
	"gbpf costs  what the probes take of the worst thread's time, estimated, and",
	"            what they may take.",
	"coverage    share of the time in which launches were probed.",
	"HISTORY     from 0 to the largest value; the newest is at the right.",
	NULL,
};

/* Puts lines on the screen from the one that help.top says. */
struct page {
	struct top *t;
	int line, rows;
};

/* The signs of estimates as they are drawn in ASCII. */
static const char *in_ascii(const char *text, char *buf, size_t size)
{
	static const struct {
		const char *sign, *ascii;
	} signs[] = {{"±", "+-"}, {"≤", "<="}, {"–", "-"}};
	size_t at = 0;

	while (*text && at + 3 < size) {
		size_t n = 1, i = 0;

		while (i < 3 && strncmp(text, signs[i].sign, strlen(signs[i].sign)) != 0)
			i++;
		if (i < 3)
			n = strlen(signs[i].sign);
		at += (size_t)snprintf(buf + at, size - at, "%.*s", i < 3 ? 2 : 1,
				       i < 3 ? signs[i].ascii : text);
		text += n;
	}
	buf[at] = '\0';
	return buf;
}

static void put(struct page *p, enum style style, const char *text)
{
	int row = p->line++ - (int)p->t->help.top;
	char ascii[200];

	if (row < 0 || row >= p->rows)
		return;
	if (!screen_utf8(p->t->screen))
		text = in_ascii(text, ascii, sizeof(ascii));
	screen_text(p->t->screen, row, 1, screen_columns(p->t->screen) - 2, style, text);
}

static void put_all(struct page *p, const char *title, const char *const *lines)
{
	put(p, STYLE_BOLD, title);
	for (; *lines; lines++)
		put(p, STYLE_PLAIN, *lines);
	put(p, STYLE_PLAIN, "");
}

static void put_columns(struct page *p, const struct table *table)
{
	char text[200];

	put(p, STYLE_BOLD, "Columns of this table");
	for (size_t i = 0; i < table->columns_count; i++) {
		const struct column *c = &table->columns[i];

		snprintf(text, sizeof(text), "%-14s %s", c->head, c->meaning);
		put(p, STYLE_PLAIN, text);
	}
	put(p, STYLE_PLAIN, "");
}

/* "overview: PID, COMM, LAUNCHES/S, …": what is dropped first comes last. */
static void put_set(struct page *p, const struct table *table, const struct column_set *set)
{
	int width = screen_columns(p->t->screen) - 2;
	char text[TABLE_WIDTH];
	int at = snprintf(text, sizeof(text), "%s:", set->name);

	width = width < (int)sizeof(text) ? width : (int)sizeof(text);
	for (size_t i = 0; i < set->count; i++) {
		const char *head = table->columns[set->columns[i]].head;

		if (at + (int)strlen(head) + 3 >= width) {
			put(p, STYLE_PLAIN, text);
			at = snprintf(text, sizeof(text), "   ");
		}
		at += snprintf(text + at, sizeof(text) - (size_t)at, " %s%s", head,
			       i + 1 < set->count ? "," : "");
	}
	put(p, STYLE_PLAIN, text);
}

static void put_sets(struct page *p, const struct table *table)
{
	put(p, STYLE_BOLD, "Which are shown together (+ -): a narrow screen drops the last ones");
	for (size_t i = 0; i < table->sets_count; i++)
		put_set(p, table, &table->sets[i]);
}

static void put_everything(struct page *p)
{
	struct table table = top_table(p->t, p->t->view);
	char text[80];

	snprintf(text, sizeof(text), "gbpf top %s", p->t->version);
	put(p, STYLE_BOLD, text);
	put(p, STYLE_PLAIN, "");
	put_all(p, "Keys", keys);
	put_all(p, "How to read it", reading);
	put_columns(p, &table);
	put_sets(p, &table);
}

void draw_help(struct top *t)
{
	struct page p = {.t = t, .rows = screen_rows(t->screen) - 2};
	size_t last;

	t->help_visible = (size_t)p.rows;
	/* Once beyond the edge, to count the lines. */
	p.rows = 0;
	put_everything(&p);
	last = p.line > (int)t->help_visible ? (size_t)p.line - t->help_visible : 0;
	if (t->help.top > last)
		t->help.top = last;
	p = (struct page){.t = t, .rows = (int)t->help_visible};
	put_everything(&p);
}

void draw_sort_menu(struct top *t, int row, int rows)
{
	struct table table = top_table(t, t->view);
	const struct table_view *v = top_table_view(t);
	char text[200];

	if (rows < 2)
		return;
	screen_text(t->screen, row, 1, 30, STYLE_PLAIN, "Sort by");
	screen_paint(t->screen, row, 0, -1, STYLE_BAR);
	list_fit(&t->menu, table.columns_count, (size_t)rows - 1);
	for (size_t i = 0; i < (size_t)rows - 1 && t->menu.top + i < table.columns_count; i++) {
		size_t at = t->menu.top + i;
		const struct column *c = &table.columns[at];

		snprintf(text, sizeof(text), "%s%s %-14s %s", at == t->menu.cursor ? ">" : " ",
			 at == v->sort.column ? "*" : " ", c->head, c->meaning);
		screen_text(t->screen, row + 1 + (int)i, 0, screen_columns(t->screen), STYLE_PLAIN,
			    text);
		if (at == t->menu.cursor)
			screen_paint(t->screen, row + 1 + (int)i, 0, -1, STYLE_SELECTED);
	}
}
