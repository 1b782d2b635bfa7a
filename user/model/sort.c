// SPDX-License-Identifier: BSD-2-Clause
/*
 * A thread's events come nearly in the order of time: intake puts a late one a
 * few places back, and where the thread changed CPUs runs are long. Natural
 * merge sort, stable.
 */
#include "model/internal.h"

#define MIN_RUN 32
#define MAX_LATE 32 /* places that an event is moved back on its way in */

/*
 * A poll is written when it is over, and so a few places late: such an event
 * goes where it belongs at once, behind those of its time.
 */
void queue_settle(struct queue *q)
{
	size_t last = q->count - 1;
	struct pending late = q->events[last];
	size_t least = last > MAX_LATE ? last - MAX_LATE : 0;
	size_t i = last;

	while (i > least && q->events[i - 1].ts > late.ts)
		i--;
	if (i && q->events[i - 1].ts > late.ts) {
		q->unsorted = true; /* further: queue_sort()'s */
		return;
	}
	memmove(q->events + i + 1, q->events + i, (last - i) * sizeof(late));
	q->events[i] = late;
}

/* End of the ascending run at from; short ones are made longer by insertion. */
static size_t run_end(struct pending *v, size_t from, size_t count)
{
	size_t end = from + 1;

	while (end < count && v[end].ts >= v[end - 1].ts)
		end++;
	for (; end < count && end - from < MIN_RUN; end++) {
		struct pending moved = v[end];
		size_t i = end;

		for (; i > from && v[i - 1].ts > moved.ts; i--)
			v[i] = v[i - 1];
		v[i] = moved;
	}
	return end;
}

/* Where an event of ts belongs in v[from, to): behind what is not later. */
static size_t upper_bound(const struct pending *v, size_t from, size_t to, int64_t ts)
{
	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (v[middle].ts <= ts)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/*
 * Merges v[from, middle) and v[middle, end) in place. Only what overlaps moves,
 * so that runs which nearly follow one another cost nearly nothing.
 */
static void merge(struct pending *v, size_t from, size_t middle, size_t end, struct pending *spare)
{
	size_t i = 0, j = middle, count;

	from = upper_bound(v, from, middle, v[middle].ts);
	count = middle - from;
	if (!count)
		return;
	memcpy(spare, v + from, count * sizeof(*v));
	while (i < count && j < end)
		v[from++] = v[j].ts < spare[i].ts ? v[j++] : spare[i++];
	memcpy(v + from, spare + i, (count - i) * sizeof(*v));
}

/* Merges neighbouring runs; ends[] shrinks by half. */
static size_t merge_pass(struct pending *v, struct pending *spare, size_t *ends, size_t runs)
{
	size_t kept = 0, from = 0;

	for (size_t r = 0; r < runs; r += 2) {
		size_t end = ends[r];

		if (r + 1 < runs) {
			merge(v, from, ends[r], ends[r + 1], spare);
			end = ends[r + 1];
		}
		ends[kept++] = end;
		from = end;
	}
	return kept;
}

int queue_sort(struct queue *q)
{
	size_t *ends = NULL, runs = 0, cap = 0;
	struct pending *spare;
	int err = 0;

	if (!q->unsorted)
		return 0;
	for (size_t at = 0; at < q->count && !err;) {
		at = run_end(q->events, at, q->count);
		err = GROW(ends, cap, runs + 1);
		if (!err)
			ends[runs++] = at;
	}
	spare = err ? NULL : malloc(q->count * sizeof(*spare));
	if (!spare) {
		free(ends);
		return -ENOMEM;
	}
	while (runs > 1)
		runs = merge_pass(q->events, spare, ends, runs);
	free(spare);
	free(ends);
	q->unsorted = false;
	return 0;
}
