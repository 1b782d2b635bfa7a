/* SPDX-License-Identifier: BSD-2-Clause */
/* What keys do. */
#include <stdio.h>
#include <string.h>

#include "top/internal.h"

#define CONTROL(c) ((c) & 0x1f)

static bool in_process(const struct top *t)
{
	return t->view >= VIEW_APIS;
}

static void show(struct top *t, enum view view)
{
	if (view == VIEW_HISTOGRAM) /* of the API that is chosen, however they come to be sorted */
		t->tables[VIEW_APIS].follows = true;
	t->view = view;
	top_arrange(t);
}

static void back(struct top *t)
{
	show(t, t->view == VIEW_HISTOGRAM ? VIEW_APIS : VIEW_PROCESSES);
}

/* What is under the cursor: a process, or the calls of an API. */
static void enter(struct top *t)
{
	const struct table_view *v = top_table_view(t);

	if (t->view == VIEW_PROCESSES && v->count) {
		const struct snapshot_process *p = top_process(t, v->order[v->list.cursor]);

		if (p->pid != t->pid || p->start != t->start) {
			for (enum view i = VIEW_APIS; i < VIEW_TABLES; i++)
				t->tables[i].follows = false;
			for (enum view i = VIEW_APIS; i < VIEW_TABLES; i++)
				t->tables[i].list = (struct list){0};
		}
		t->pid = p->pid;
		t->start = p->start;
		memcpy(t->comm, p->comm, sizeof(t->comm));
		t->tables[VIEW_PROCESSES].follows = true;
		show(t, VIEW_APIS);
	} else if (t->view == VIEW_APIS && v->count) {
		show(t, VIEW_HISTOGRAM);
	}
}

/* ---- sorting ---- */

static void sort_by(struct top *t, size_t column)
{
	struct table table = top_table(t, t->view);
	struct table_view *v = top_table_view(t);

	v->sort.column = (uint8_t)column;
	v->sort.ascending = table.columns[column].ascending;
	top_arrange(t);
}

/* To the next column that is on the screen, in the direction of step. */
static void sort_next(struct top *t, int step)
{
	struct table table = top_table(t, t->view);
	struct table_view *v = top_table_view(t);
	struct layout l;
	size_t at = 0;

	table_layout(&table, v->set, (size_t)screen_columns(t->screen) - 1, &l);
	if (!l.count)
		return;
	while (at < l.count && l.column[at] != v->sort.column)
		at++;
	if (at == l.count)
		at = step > 0 ? 0 : l.count - 1;
	else
		at = (at + l.count + (size_t)step) % l.count;
	sort_by(t, l.column[at]);
}

static void next_set(struct top *t, int step)
{
	struct table table = top_table(t, t->view);
	struct table_view *v = top_table_view(t);

	if (t->view == VIEW_HISTOGRAM)
		t->ever = !t->ever;
	else
		v->set = (v->set + table.sets_count + (size_t)step) % table.sets_count;
}

static void open_menu(struct top *t)
{
	t->overlay = OVERLAY_SORT;
	t->menu = (struct list){.cursor = top_table_view(t)->sort.column};
}

static void menu_key(struct top *t, uint32_t key)
{
	struct table table = top_table(t, t->view);

	if (list_key(&t->menu, key, table.columns_count, 0))
		return;
	if (key == SCREEN_ENTER)
		sort_by(t, t->menu.cursor);
	t->overlay = OVERLAY_NONE;
}

/* ---- the filter ---- */

static void begin_filter(struct top *t)
{
	if (t->view != VIEW_PROCESSES)
		show(t, VIEW_PROCESSES);
	memcpy(t->filter_before, t->filter, sizeof(t->filter));
	t->filtering = true;
}

static size_t encode(uint32_t c, char *out)
{
	static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	if (n == 1) {
		out[0] = (char)c;
		return 1;
	}
	for (size_t i = n - 1; i > 0; i--, c >>= 6)
		out[i] = (char)(0x80 | (c & 0x3f));
	out[0] = (char)(first[n] | c);
	return n;
}

static void filter_key(struct top *t, uint32_t key)
{
	size_t len = strlen(t->filter);
	char bytes[4];
	size_t n;

	if (key == SCREEN_ESCAPE)
		memcpy(t->filter, t->filter_before, sizeof(t->filter));
	if (key == SCREEN_ESCAPE || key == SCREEN_ENTER) {
		t->filtering = false;
	} else if (key == SCREEN_BACKSPACE) {
		while (len && (t->filter[len - 1] & 0xc0) == 0x80)
			len--;
		t->filter[len ? len - 1 : 0] = '\0';
	} else if (key == CONTROL('u')) {
		t->filter[0] = '\0';
	} else if (key >= ' ' && key < SCREEN_UP) {
		n = encode(key, bytes);
		if (len + n < sizeof(t->filter)) {
			memcpy(t->filter + len, bytes, n);
			t->filter[len + n] = '\0';
		}
	}
	top_arrange(t);
}

/* ---- all others ---- */

static void help_key(struct top *t, uint32_t key)
{
	t->help.cursor = t->help.top;
	if (key == SCREEN_DOWN || key == 'j' || key == SCREEN_PAGE_DOWN || key == ' ')
		t->help.top += key == SCREEN_DOWN || key == 'j' ? 1 : t->help_visible;
	else if (key == SCREEN_UP || key == 'k')
		t->help.top -= t->help.top > 0;
	else if (key == SCREEN_PAGE_UP)
		t->help.top -= t->help.top < t->help_visible ? t->help.top : t->help_visible;
	else
		t->overlay = OVERLAY_NONE;
}

static bool move_key(struct top *t, uint32_t key)
{
	struct table_view *v = top_table_view(t);

	if (t->view == VIEW_HISTOGRAM) {
		if (key == SCREEN_LEFT)
			key = SCREEN_UP;
		if (key == SCREEN_RIGHT)
			key = SCREEN_DOWN;
	}
	if (!list_key(&v->list, key, v->count, v->visible))
		return false;
	/* At the top it is the first that is looked at, whichever that is. */
	v->follows = key != SCREEN_HOME;
	if (v->count) {
		struct table table = top_table(t, t->view);

		v->chosen = table.identity(table.rows, v->order[v->list.cursor]);
	}
	return true;
}

static bool process_key(struct top *t, uint32_t key)
{
	enum view next = t->view == VIEW_HISTOGRAM ? VIEW_APIS : t->view + 1;
	enum view before = t->view == VIEW_APIS ? VIEW_HISTOGRAM : t->view - 1;

	if (!in_process(t))
		return false;
	if (key >= '1' && key <= '4')
		show(t, VIEW_APIS + (key - '1'));
	else if (key == SCREEN_TAB)
		show(t, next);
	else if (key == SCREEN_BACK_TAB)
		show(t, before);
	else if (key == 'l' && t->view == VIEW_HISTOGRAM)
		t->log_counts = !t->log_counts;
	else if (key == SCREEN_ESCAPE || key == SCREEN_BACKSPACE || key == 'q')
		back(t);
	else
		return false;
	return true;
}

static void reverse(struct top *t)
{
	struct table_view *v = top_table_view(t);

	v->sort.ascending = !v->sort.ascending;
	top_arrange(t);
}

/* Esc in the list undoes what narrows it; it does not end anything. */
static void escape(struct top *t)
{
	if (t->view == VIEW_GPUS)
		show(t, VIEW_PROCESSES);
	else
		t->filter[0] = '\0';
	top_arrange(t);
}

static void plain_key(struct top *t, uint32_t key)
{
	bool sorts = t->view != VIEW_HISTOGRAM;

	if (key == 'h' || key == '?' || key == SCREEN_F1) {
		t->overlay = OVERLAY_HELP;
		t->help = (struct list){0};
	} else if (key == '/' || key == SCREEN_F1 + 3) {
		begin_filter(t);
	} else if (sorts && (key == 's' || key == SCREEN_F1 + 5)) {
		open_menu(t);
	} else if (sorts && (key == '<' || key == '>')) {
		sort_next(t, key == '>' ? 1 : -1);
	} else if (sorts && (key == 'r' || key == 'I')) {
		reverse(t);
	} else if (key == '+' || key == '=' || key == '-') {
		next_set(t, key == '-' ? -1 : 1);
	} else if (key == 'p' || key == SCREEN_F1 + 4) {
		t->paused = !t->paused; /* the next interval shows again */
	} else if (key == 'g') {
		show(t, t->view == VIEW_GPUS ? VIEW_PROCESSES : VIEW_GPUS);
	} else if (key == SCREEN_ENTER) {
		enter(t);
	} else if (key == SCREEN_ESCAPE) {
		escape(t);
	} else if (key == 'q' && t->view == VIEW_GPUS) {
		show(t, VIEW_PROCESSES);
	} else if (key == 'q') {
		t->quit = true;
	} else if (key == CONTROL('z')) {
		snprintf(t->message, sizeof(t->message),
			 "gbpf top does not stop: its probes would stay; q quits");
	} else {
		snprintf(t->message, sizeof(t->message), "h shows which keys there are");
	}
}

void top_key(struct top *t, uint32_t key)
{
	t->dirty = true;
	t->message[0] = '\0';
	if (key == CONTROL('l'))
		screen_repaint(t->screen);
	else if (key == SCREEN_F1 + 9 || key == 'Q')
		t->quit = !t->filtering || key != 'Q';
	else if (t->overlay == OVERLAY_HELP)
		help_key(t, key);
	else if (t->overlay == OVERLAY_SORT)
		menu_key(t, key);
	else if (t->filtering)
		filter_key(t, key);
	else if (!process_key(t, key) && !move_key(t, key))
		plain_key(t, key);
	if (t->filtering && key == 'Q')
		filter_key(t, key);
}
