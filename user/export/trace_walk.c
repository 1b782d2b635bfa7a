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
	unsigned kinds;
	struct source *heap;
	size_t count;
};

/* Moves on to the next that is wanted, from next.index on. false: there is none left. */
static bool settle(const struct export_walk *w, struct source *src)
{
	struct export_item *i = &src->next;
	bool kind = true;

	for (;; i->index++, src->left--) {
		if (i->is_work) {
			const struct work *work = &w->s->works[i->index];

			i->begin = work->begin;
			i->end = work->end;
		} else {
			const struct call *c = &w->s->calls[i->index];

			kind = w->kinds >> (w->s->apis[c->api].kind & 31) & 1;
			i->begin = c->begin;
			if (kind)
				i->how = export_call_end(w->s, c, &i->end);
		}
		if (kind && export_wants(w->o, i->begin, i->end))
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

int export_walk_some(struct export_walk **out, const struct session *s,
		     const struct export_options *o, unsigned kinds, uint32_t physical)
{
	struct export_walk *w = calloc(1, sizeof(*w));
	uint32_t order = 0;

	if (!w)
		return -ENOMEM;
	w->s = s;
	w->o = o;
	w->kinds = kinds;
	w->heap = calloc(s->threads_count + s->streams_count + 1, sizeof(*w->heap));
	if (!w->heap) {
		free(w);
		return -ENOMEM;
	}
	for (size_t i = 0; i < s->threads_count; i++, order++)
		if (kinds && export_wants_process(o, s->threads[i].process))
			add(w, false, s->threads[i].first_call, s->threads[i].calls, order);
	for (size_t i = 0; i < s->streams_count; i++, order++)
		if (export_wants_process(o, s->streams[i].process) &&
		    (physical == EXPORT_EVERY_DEVICE ||
		     physical == s->devices[s->streams[i].device].physical))
			add(w, true, s->streams[i].first_work, s->streams[i].works, order);
	for (size_t i = w->count / 2; i-- > 0;)
		sift_down(w, i);
	*out = w;
	return 0;
}

int export_walk_new(struct export_walk **out, const struct session *s,
		    const struct export_options *o)
{
	return export_walk_some(out, s, o, UINT32_MAX, EXPORT_EVERY_DEVICE);
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
