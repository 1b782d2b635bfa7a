// SPDX-License-Identifier: BSD-2-Clause
#include "model/merge.h"

#include <errno.h>
#include <stdlib.h>

static bool earlier(const struct merge *m, size_t a, size_t b)
{
	const struct work *x = &m->s->works[m->heap[a].next], *y = &m->s->works[m->heap[b].next];

	if (x->begin != y->begin)
		return x->begin < y->begin;
	return x < y;
}

static void sift(struct merge *m, size_t at)
{
	for (;;) {
		size_t child = 2 * at + 1;
		struct merge_stream moved;

		if (child >= m->count)
			return;
		if (child + 1 < m->count && earlier(m, child + 1, child))
			child++;
		if (!earlier(m, child, at))
			return;
		moved = m->heap[at];
		m->heap[at] = m->heap[child];
		m->heap[child] = moved;
		at = child;
	}
}

int merge_begin(struct merge *m, const struct session *s, uint32_t physical)
{
	*m = (struct merge){ .s = s };
	m->heap = calloc(s->streams_count + 1, sizeof(*m->heap));
	if (!m->heap)
		return -ENOMEM;
	for (size_t i = 0; i < s->streams_count; i++) {
		const struct session_stream *st = &s->streams[i];

		if (st->works && s->devices[st->device].physical == physical)
			m->heap[m->count++] = (struct merge_stream){
				st->first_work, st->first_work + st->works };
	}
	for (size_t i = m->count / 2; i-- > 0;)
		sift(m, i);
	return 0;
}

uint32_t merge_next(struct merge *m)
{
	uint32_t work;

	if (!m->count)
		return WORK_NONE;
	work = m->heap[0].next++;
	if (m->heap[0].next == m->heap[0].end)
		m->heap[0] = m->heap[--m->count];
	sift(m, 0);
	return work;
}

void merge_end(struct merge *m)
{
	free(m->heap);
	m->heap = NULL;
	m->count = 0;
}
