/* SPDX-License-Identifier: BSD-2-Clause */
/* Which rows there are, in which order, and where the cursor is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "top/internal.h"

static bool grow(uint32_t **array, size_t *size, size_t count)
{
	uint32_t *larger;

	if (count <= *size)
		return true;
	larger = realloc(*array, count * sizeof(**array));
	if (!larger)
		return false;
	*array = larger;
	*size = count;
	return true;
}

const struct snapshot_process *top_process(const struct top *t, size_t row)
{
	return &t->s->processes[t->matching[row]];
}

static void match(struct top *t)
{
	size_t count = t->s ? t->s->processes_count : 0;

	t->matching_count = 0;
	if (!grow(&t->matching, &t->matching_size, count))
		return;
	for (size_t i = 0; i < count; i++) {
		if (filter_matches(t->filter, &t->s->processes[i]))
			t->matching[t->matching_count++] = (uint32_t)i;
	}
}

static void find_process(struct top *t)
{
	t->process = NULL;
	for (size_t i = 0; t->s && i < t->s->processes_count; i++) {
		const struct snapshot_process *p = &t->s->processes[i];

		if (p->pid == t->pid && p->start == t->start)
			t->process = p;
	}
}

struct table top_table(const struct top *t, enum view view)
{
	static const struct table *const tables[] = {
		[VIEW_PROCESSES] = &processes_table, [VIEW_GPUS] = &gpus_table,
		[VIEW_APIS] = &apis_table,	     [VIEW_KERNELS] = &kernels_table,
		[VIEW_THREADS] = &threads_table,     [VIEW_HISTOGRAM] = &apis_table,
	};
	struct table table = *tables[view];

	table.rows = t;
	switch (view) {
	case VIEW_PROCESSES:
		table.count = t->matching_count;
		break;
	case VIEW_GPUS:
		table.count = t->s ? t->s->gpus_count : 0;
		break;
	case VIEW_KERNELS:
		table.count = t->process ? t->process->kernels_count : 0;
		break;
	case VIEW_THREADS:
		table.count = t->process ? t->process->threads_count : 0;
		break;
	default:
		table.count = t->process ? t->process->apis_count : 0;
		break;
	}
	return table;
}

struct table_view *top_table_view(struct top *t)
{
	return &t->tables[t->view == VIEW_HISTOGRAM ? VIEW_APIS : t->view];
}

static void follow(struct table_view *v, const struct table *table)
{
	for (size_t i = 0; i < v->count; i++) {
		if (table->identity(table->rows, v->order[i]) == v->chosen) {
			v->list.cursor = i;
			return;
		}
	}
	if (v->count) /* it is gone: what took its place is chosen */
		v->follows = false;
}

void top_arrange(struct top *t)
{
	struct table_view *v = top_table_view(t);
	struct table table;

	match(t);
	find_process(t);
	table = top_table(t, t->view);
	v->count = grow(&v->order, &v->order_size, table.count) ? table.count : 0;
	table.count = v->count;
	if (v->count)
		table_order(&table, v->sort, v->order);
	if (v->follows)
		follow(v, &table);
	list_fit(&v->list, v->count, v->visible);
	if (v->count)
		v->chosen = table.identity(table.rows, v->order[v->list.cursor]);
	t->dirty = true;
}
