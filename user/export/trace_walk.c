// SPDX-License-Identifier: BSD-2-Clause
/* Calls and works in the order of their begins: threads and streams, each sorted, merged. */
#include <errno.h>
#include <stdlib.h>

#include "export/trace.h"

/* A thread or a stream; next is what it gives next. */
struct source {
	struct export_item next;
	uint32_t left; /* of it after next */
	uint32_t order;
};

struct export_walk {
	const struct session *s;
	const struct export_options *o;
	struct source *heap;
	size_t count;
};

/* Moves on to the next that is wanted, from next.index on. false: there is none left. */
static bool settle(const struct export_walk *w, struct source *src)
{
	struct export_item *i = &src->next;

	for (;; i->index++, src->left--) {
		if (i->is_work) {
			const struct work *work = &w->s->works[i->index];

			i->begin = work->begin;
			i->end = work->end;
		} else {
			const struct call *c = &w->s->calls[i->index];

			i->begin = c->begin;
			i->how = export_call_end(w->s, c, &i->end);
		}
		if (export_wants(w->o, i->begin, i->end))
			return true;
		if (!src->left)
			return false;
	}
}

static bool before(const struct source *a, const struct source *b)
{
	if (a->next.begin != b->next.begin)
		return a->next.begin < b->next.begin;
	return a->order < b->order;
}

static void sift_down(struct export_walk *w, size_t at)
{
	struct source moved = w->heap[at];

	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= w->count)
			break;
		if (child + 1 < w->count && before(&w->heap[child + 1], &w->heap[child]))
			child++;
		if (!before(&w->heap[child], &moved))
			break;
		w->heap[at] = w->heap[child];
		at = child;
	}
	w->heap[at] = moved;
}

static void add(struct export_walk *w, bool is_work, uint32_t first, uint32_t count, uint32_t order)
{
	struct source src = {
		.next = {.is_work = is_work, .index = first}, .left = count - 1, .order = order};

	if (count && settle(w, &src))
		w->heap[w->count++] = src;
}

static void heap_make(struct export_walk *w)
{
	const struct session *s = w->s;
	uint32_t order = 0;

	for (size_t i = 0; i < s->threads_count; i++, order++)
		if (export_wants_process(w->o, s->threads[i].process))
			add(w, false, s->threads[i].first_call, s->threads[i].calls, order);
	for (size_t i = 0; i < s->streams_count; i++, order++)
		if (export_wants_process(w->o, s->streams[i].process))
			add(w, true, s->streams[i].first_work, s->streams[i].works, order);
	for (size_t i = w->count / 2; i-- > 0;)
		sift_down(w, i);
}

int export_walk_new(struct export_walk **out, const struct session *s,
		    const struct export_options *o)
{
	struct export_walk *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->s = s;
	w->o = o;
	w->heap = calloc(s->threads_count + s->streams_count + 1, sizeof(*w->heap));
	if (!w->heap) {
		free(w);
		return -ENOMEM;
	}
	heap_make(w);
	*out = w;
	return 0;
}

bool export_walk_next(struct export_walk *w, struct export_item *item)
{
	struct source *first = &w->heap[0];

	if (!w->count)
		return false;
	*item = first->next;
	if (first->left) {
		first->left--;
		first->next.index++;
		if (!settle(w, first))
			*first = w->heap[--w->count];
	} else {
		*first = w->heap[--w->count];
	}
	if (w->count)
		sift_down(w, 0);
	return true;
}

void export_walk_free(struct export_walk *w)
{
	if (!w)
		return;
	free(w->heap);
	free(w);
}
