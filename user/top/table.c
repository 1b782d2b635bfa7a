/* SPDX-License-Identifier: BSD-2-Clause */
#include "top/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Which of the set fit: a bit each, by place in the table. */
static uint32_t fitting(const struct table *t, const struct column_set *set, size_t width,
			size_t *left)
{
	uint32_t chosen = 0;
	size_t used = 0;

	for (size_t i = 0; i < set->count; i++) {
		size_t need = t->columns[set->columns[i]].width + (i > 0);

		if (used + need > width)
			break;
		used += need;
		chosen |= 1u << set->columns[i];
	}
	*left = width - used;
	return chosen;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

void table_layout(const struct table *t, size_t set, size_t width, struct layout *out)
{
	const struct column_set *s = &t->sets[set];
	uint16_t widths[TABLE_COLUMNS] = {0};
	size_t left;
	uint32_t chosen = fitting(t, s, width, &left);

	for (size_t i = 0; i < s->count; i++) {
		uint8_t column = s->columns[i];
		const struct column *c = &t->columns[column];
		size_t more = c->max > c->width ? least(left, c->max - c->width) : 0;

		if (!(chosen & 1u << column))
			continue;
		widths[column] = (uint16_t)(c->width + more);
		left -= more;
	}
	out->count = 0;
	for (uint8_t column = 0; column < t->columns_count; column++) {
		if (!(chosen & 1u << column))
			continue;
		out->column[out->count] = column;
		out->width[out->count++] = widths[column];
	}
}

struct keyed {
	struct cell cell, tie;
	uint32_t row;
};

struct directions {
	bool ascending, tie_ascending;
};

/* What is not known comes last, whichever way. */
static int compare_cells(const struct cell *a, const struct cell *b, bool ascending)
{
	int order = cell_compare(a, b);

	return a->known && b->known && ascending ? order : -order;
}

static int compare(const void *a, const void *b, void *ctx)
{
	const struct keyed *x = a, *y = b;
	const struct directions *d = ctx;
	int order = compare_cells(&x->cell, &y->cell, d->ascending);

	if (!order)
		order = compare_cells(&x->tie, &y->tie, d->tie_ascending);
	return order ? order : (x->row > y->row) - (x->row < y->row);
}

int table_order(const struct table *t, struct table_sort sort, uint32_t *order)
{
	struct directions d = {sort.ascending, t->columns[t->tie].ascending};
	struct keyed *keys;

	for (size_t i = 0; i < t->count; i++)
		order[i] = (uint32_t)i;
	if (t->count < 2)
		return 0;
	keys = calloc(t->count, sizeof(*keys));
	if (!keys)
		return -ENOMEM;
	for (size_t i = 0; i < t->count; i++) {
		keys[i].row = (uint32_t)i;
		t->cell(t->rows, i, sort.column, &keys[i].cell);
		t->cell(t->rows, i, t->tie, &keys[i].tie);
	}
	qsort_r(keys, t->count, sizeof(*keys), compare, &d);
	for (size_t i = 0; i < t->count; i++)
		order[i] = keys[i].row;
	free(keys);
	return 0;
}

int table_column(const struct table *t, const char *name)
{
	for (size_t i = 0; i < t->columns_count; i++) {
		if (!strcmp(t->columns[i].name, name))
			return (int)i;
	}
	return -1;
}

void list_fit(struct list *l, size_t count, size_t visible)
{
	if (count == 0) {
		l->cursor = l->top = 0;
		return;
	}
	if (l->cursor >= count)
		l->cursor = count - 1;
	if (l->top > l->cursor)
		l->top = l->cursor;
	if (visible && l->cursor - l->top >= visible)
		l->top = l->cursor - visible + 1;
	/* No empty rows at the end while there are some above. */
	if (l->top + visible > count)
		l->top = count > visible ? count - visible : 0;
}

bool list_key(struct list *l, uint32_t key, size_t count, size_t visible)
{
	size_t last = count ? count - 1 : 0, page = visible > 1 ? visible - 1 : 1;

	switch (key) {
	case SCREEN_UP:
	case 'k':
		l->cursor -= l->cursor > 0;
		break;
	case SCREEN_DOWN:
	case 'j':
		l->cursor += l->cursor < last;
		break;
	case SCREEN_PAGE_UP:
		l->cursor -= least(page, l->cursor);
		break;
	case SCREEN_PAGE_DOWN:
		l->cursor = least(l->cursor + page, last);
		break;
	case SCREEN_HOME:
		l->cursor = 0;
		break;
	case SCREEN_END:
		l->cursor = last;
		break;
	default:
		return false;
	}
	list_fit(l, count, visible);
	return true;
}
