// SPDX-License-Identifier: BSD-2-Clause
#include "report/row.h"

#include <stdlib.h>
#include <string.h>

#include "model/grow.h"

static void gpu_init(struct row_gpu *g)
{
	g->index = g->samples = g->sm_min = g->sm_p50 = g->sm_max = g->memory_clock_p50 = NA;
	g->power_avg = g->power_max = g->power_limit = g->temperature_max = g->throttled = NA;
	g->utilisation = g->memory_utilisation = g->memory_used = g->memory_total = NA;
	g->gpm[0] = g->gpm[1] = g->gpm[2] = g->gpm[3] = NA;
	g->energy = g->processes = g->xids = g->xid_last = NA;
}

void row_init(struct row *r)
{
	memset(r, 0, sizeof(*r));
	gpu_init(&r->gpu);
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
	r->gpu_busy_share = r->gpu_watched = r->gap_share = NA;
}

void row_init_work(struct row *r)
{
	struct row_work *w = &r->work;
	int64_t *numbers = &w->device;
	size_t count = (sizeof(*w) - offsetof(struct row_work, device)) / sizeof(*numbers);

	row_init(r);
	memset(w, 0, sizeof(*w));
	for (size_t i = 0; i < count; i++)
		numbers[i] = NA;
	w->queued = w->uncontended = w->back_pressured = w->shorts = w->unmatched = 0;
	w->kernels = w->copies = w->sets = 0;
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

/* Puts the rows in the order of the pointers to them, which are lost. */
static void rows_permute(struct rows *rows, struct row **order)
{
	for (size_t i = 0; i < rows->count; i++) {
		size_t to = i;
		struct row first;

		if (!order[i] || order[i] == &rows->items[i])
			continue;
		first = rows->items[i];
		for (;;) { /* along the cycle that i is on */
			size_t from = (size_t)(order[to] - rows->items);

			order[to] = NULL;
			if (from == i)
				break;
			rows->items[to] = rows->items[from];
			to = from;
		}
		rows->items[to] = first;
	}
}

/* The heap's root is the row that comes last. */
static void sift_down(struct row **heap, size_t count, size_t at, struct sorting *sorting)
{
	for (;;) {
		size_t child = 2 * at + 1;
		struct row *moved = heap[at];

		if (child >= count)
			return;
		if (child + 1 < count && compare_rows(&heap[child + 1], &heap[child], sorting) > 0)
			child++;
		if (compare_rows(&heap[child], &moved, sorting) <= 0)
			return;
		heap[at] = heap[child];
		heap[child] = moved;
		at = child;
	}
}

/* Leaves the first top rows in order[0..top), in any order. */
static void select_top(struct row **order, size_t count, size_t top, struct sorting *sorting)
{
	for (size_t i = top / 2; i-- > 0;)
		sift_down(order, top, i, sorting);
	for (size_t i = top; i < count; i++) {
		if (compare_rows(&order[i], &order[0], sorting) >= 0)
			continue;
		order[0] = order[i];
		sift_down(order, top, 0, sorting);
	}
}

static int rows_take(struct rows *rows, struct row **order, size_t top)
{
	struct row *taken = malloc(top * sizeof(*taken));

	if (!taken)
		return -ENOMEM;
	for (size_t i = 0; i < top; i++)
		taken[i] = *order[i];
	free(rows->items);
	*rows = (struct rows){ taken, top, top };
	return 0;
}

int rows_sort(struct rows *rows, const struct column *by, bool descending, size_t top)
{
	struct sorting sorting = { by, descending };
	struct row **order;
	bool some = top && top < rows->count;
	int err = 0;

	if (rows->count < 2)
		return 0;
	order = malloc(rows->count * sizeof(*order));
	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < rows->count; i++)
		order[i] = &rows->items[i];
	if (some)
		select_top(order, rows->count, top, &sorting);
	qsort_r(order, some ? top : rows->count, sizeof(struct row *), compare_rows, &sorting);
	if (some)
		err = rows_take(rows, order, top);
	else
		rows_permute(rows, order);
	free(order);
	return err;
}
