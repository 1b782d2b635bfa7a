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

static struct export_walk *walk_make(const struct session *s, const struct export_options *o)
{
	struct export_walk *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->s = s;
	w->o = o;
	w->heap = calloc(s->threads_count + s->streams_count + 1, sizeof(*w->heap));
	if (w->heap)
		return w;
	free(w);
	return NULL;
}

static void add_threads(struct export_walk *w)
{
	const struct session *s = w->s;

	for (uint32_t i = 0; i < s->threads_count; i++)
		if (export_wants_process(w->o, s->threads[i].process))
			add(w, false, s->threads[i].first_call, s->threads[i].calls, i);
}

static void add_streams(struct export_walk *w, uint32_t physical)
{
	const struct session *s = w->s;

	for (uint32_t i = 0; i < s->streams_count; i++) {
		const struct session_stream *st = &s->streams[i];

		if (export_wants_process(w->o, st->process) &&
		    (physical == UINT32_MAX || s->devices[st->device].physical == physical))
			add(w, true, st->first_work, st->works, (uint32_t)s->threads_count + i);
	}
}

static void heap_make(struct export_walk *w)
{
	for (size_t i = w->count / 2; i-- > 0;)
		sift_down(w, i);
}

int export_walk_new(struct export_walk **out, const struct session *s,
		    const struct export_options *o)
{
	struct export_walk *w = walk_make(s, o);

	if (!w)
		return -ENOMEM;
	add_threads(w);
	add_streams(w, UINT32_MAX);
	heap_make(w);
	*out = w;
	return 0;
}

int export_walk_device(struct export_walk **out, const struct session *s,
		       const struct export_options *o, uint32_t physical)
{
	struct export_walk *w = walk_make(s, o);

	if (!w)
		return -ENOMEM;
	add_streams(w, physical);
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
