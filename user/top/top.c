/* SPDX-License-Identifier: BSD-2-Clause */
#include "top/top.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "top/internal.h"

#define SLICE_NS 100000000LL /* how often the terminal's size is looked at */
#define KEYS_AT_ONCE 64	     /* of a paste: the rest waits for the next turn */

const char *top_sort_names(char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < processes_table.columns_count && used < size; i++)
		used += (size_t)snprintf(buf + used, size - used, "%s%s", i ? ", " : "",
					 processes_table.columns[i].name);
	return buf;
}

/* The column of this name, or -EINVAL with why. */
static int find_sort(const char *name, char *why, size_t size)
{
	int column = table_column(&processes_table, name ? name : "launches");
	char names[512];

	if (column >= 0)
		return column;
	snprintf(why, size, "no column \"%.40s\": there are %s", name,
		 top_sort_names(names, sizeof(names)));
	return -EINVAL;
}

int top_check(const struct top_options *options, char *why, size_t size)
{
	int column = find_sort(options->sort, why, size);

	return column < 0 ? column : screen_check(why, size);
}

static int set_sort(struct top *t, const char *name, char *why, size_t size)
{
	int column = find_sort(name, why, size);

	if (column < 0)
		return column;
	t->tables[VIEW_PROCESSES].sort.column = (uint8_t)column;
	t->tables[VIEW_PROCESSES].sort.ascending = processes_table.columns[column].ascending;
	return 0;
}

/* What each table is sorted by at first. */
static void set_sorts(struct top *t)
{
	t->tables[VIEW_GPUS].sort.ascending = true;
	t->tables[VIEW_APIS].sort.column = (uint8_t)table_column(&apis_table, "time");
	t->tables[VIEW_KERNELS].sort.column = (uint8_t)table_column(&kernels_table, "launches");
	t->tables[VIEW_THREADS].sort.column = (uint8_t)table_column(&threads_table, "dispatch");
}

static int fill(struct top *t, const struct top_options *o, char *why, size_t size)
{
	int err = set_sort(t, o->sort, why, size);

	if (err)
		return err;
	set_sorts(t);
	t->interval_ns = o->interval_ns;
	snprintf(t->version, sizeof(t->version), "%s", o->version ? o->version : "");
	snprintf(t->host, sizeof(t->host), "%s", o->host ? o->host : "");
	snprintf(t->filter, sizeof(t->filter), "%s", o->filter ? o->filter : "");
	t->copy = copy_new();
	t->history = history_new();
	t->names = names_new();
	return t->copy && t->history && t->names ? screen_open(&t->screen, why, size) : -ENOMEM;
}

int top_new(struct top **out, const struct top_options *options, char *why, size_t size)
{
	struct top *t = calloc(1, sizeof(*t));
	int err;

	*out = NULL;
	snprintf(why, size, "out of memory");
	if (!t)
		return -ENOMEM;
	err = fill(t, options, why, size);
	if (err) {
		top_free(t);
		return err;
	}
	top_arrange(t);
	*out = t;
	return 0;
}

void top_update(struct top *t, const struct snapshot *s)
{
	if (!s)
		return;
	history_add(t->history, s);
	if (t->paused)
		return;
	t->history_until = history_next(t->history);
	if (copy_take(t->copy, s) < 0)
		snprintf(t->message, sizeof(t->message),
			 "not enough memory: some details are left out");
	t->s = copy_snapshot(t->copy);
	top_arrange(t);
}

static void draw_if_needed(struct top *t)
{
	if (!t->dirty || !screen_ready(t->screen))
		return;
	draw(t);
	screen_show(t->screen);
	t->dirty = false;
}

static void handle_keys(struct top *t)
{
	uint32_t key;

	for (int i = 0; i < KEYS_AT_ONCE && !t->quit; i++) {
		key = screen_key(t->screen);
		if (key == SCREEN_NONE)
			return;
		/* A page is what the screen has room for, also for keys typed ahead. */
		if (t->dirty)
			draw(t);
		top_key(t, key);
	}
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

bool top_step(struct top *t, int64_t max_ns)
{
	int64_t until = now_ns() + max_ns, left = max_ns;
	int err;

	for (;;) {
		if (screen_resize(t->screen))
			t->dirty = true;
		handle_keys(t);
		if (t->quit)
			return false;
		draw_if_needed(t);
		err = screen_wait(t->screen, left < SLICE_NS ? (left > 0 ? left : 0) : SLICE_NS);
		if (err == -EIO)
			return false;
		left = until - now_ns();
		if (left <= 0 || err == -EINTR)
			break;
	}
	/* A key that came while waiting is answered now, not after the caller's work. */
	handle_keys(t);
	if (!t->quit)
		draw_if_needed(t);
	return !t->quit;
}

int top_fd(const struct top *t)
{
	return screen_fd(t->screen);
}

void top_close(struct top *t)
{
	if (!t)
		return;
	t->quit = true;
	screen_close(t->screen);
}

void top_free(struct top *t)
{
	if (!t)
		return;
	screen_free(t->screen);
	for (size_t i = 0; i < VIEW_TABLES; i++)
		free(t->tables[i].order);
	free(t->matching);
	names_free(t->names);
	history_free(t->history);
	copy_free(t->copy);
	free(t);
}
