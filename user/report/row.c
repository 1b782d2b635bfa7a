// SPDX-License-Identifier: BSD-2-Clause
#include "report/row.h"

#include <stdlib.h>
#include <string.h>

#include "model/grow.h"

void row_init(struct row *r)
{
	memset(r, 0, sizeof(*r));
	r->pid = r->tid = r->ppid = r->uid = r->ns_pid = r->ns_tid = NA;
	r->total = r->self = r->avg = r->min = r->p50 = r->p90 = r->p99 = r->max = r->stddev = NA;
	r->first = r->first_at = r->ratio = NA;
	r->listed_share = r->wall_share = r->rate = NA;
	r->bytes = r->bytes_avg = r->bytes_min = r->bytes_max = NA;
	r->grid[0] = r->block[0] = r->stream = r->object = r->smem = NA;
	r->wall = r->dispatch = r->waiting = r->elsewhere = NA;
	r->dispatch_share = r->waiting_share = r->elsewhere_share = NA;
	r->begin = r->end = r->open = r->ago = r->exit_code = NA;
	r->top_api_share = r->top_kernel_launches = NA;
	r->first_call = NA;
}

int rows_add(struct rows *rows, struct row **out)
{
	int err = GROW(rows->items, rows->cap, rows->count + 1);

	if (err)
		return err;
	*out = &rows->items[rows->count++];
	row_init(*out);
	return 0;
}

int64_t column_int(const struct column *c, const struct row *r)
{
	int64_t v;

	memcpy(&v, (const char *)r + c->offset, sizeof(v));
	return v;
}

const char *column_text(const struct column *c, const struct row *r)
{
	const char *v;

	memcpy(&v, (const char *)r + c->offset, sizeof(v));
	return v;
}

const int64_t *column_dim3(const struct column *c, const struct row *r)
{
	return (const int64_t *)(const void *)((const char *)r + c->offset);
}

bool column_known(const struct column *c, const struct row *r)
{
	return c->type == COLUMN_TEXT ? column_text(c, r) != NULL : column_int(c, r) != NA;
}

const struct column *column_find(const struct view *v, const char *key)
{
	for (const struct column *c = v->columns; c->key; c++)
		if (!strcmp(c->key, key))
			return c;
	return NULL;
}

struct sorting {
	const struct column *by;
	bool descending;
};

static int compare_dim3(const int64_t *a, const int64_t *b)
{
	for (int i = 0; i < 3; i++)
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	return 0;
}

/* n/a comes last in both directions, and equal rows keep their order. */
static int compare_rows(const void *pa, const void *pb, void *ctx)
{
	const struct row *a = *(const struct row *const *)pa, *b = *(const struct row *const *)pb;
	const struct sorting *sorting = ctx;
	const struct column *c = sorting->by;
	bool known_a = column_known(c, a), known_b = column_known(c, b);
	int64_t x = c->type == COLUMN_TEXT ? 0 : column_int(c, a);
	int64_t y = c->type == COLUMN_TEXT ? 0 : column_int(c, b);
	int order = 0;

	if (known_a != known_b)
		return known_a ? -1 : 1;
	if (known_a && c->type == COLUMN_TEXT)
		order = strcmp(column_text(c, a), column_text(c, b));
	else if (known_a && c->type == COLUMN_DIM3)
		order = compare_dim3(column_dim3(c, a), column_dim3(c, b));
	else if (known_a)
		order = (x > y) - (x < y);
	if (order)
		return sorting->descending ? -order : order;
	return a < b ? -1 : a > b;
}

void rows_sort(struct rows *rows, const struct column *by, bool descending)
{
	struct sorting sorting = { by, descending };
	struct row **order = malloc((rows->count + 1) * sizeof(*order));
	struct row *sorted = malloc((rows->count + 1) * sizeof(*sorted));

	if (order && sorted) {
		for (size_t i = 0; i < rows->count; i++)
			order[i] = &rows->items[i];
		qsort_r(order, rows->count, sizeof(*order), compare_rows, &sorting);
		for (size_t i = 0; i < rows->count; i++)
			sorted[i] = *order[i];
		free(rows->items);
		rows->items = sorted;
		rows->cap = rows->count + 1;
		sorted = NULL;
	}
	free(order);
	free(sorted);
}
