// SPDX-License-Identifier: BSD-2-Clause
/*
 * A thread's events come in the order of time except where it changed CPUs,
 * so runs are long: natural merge sort, stable.
 */
#include "model/internal.h"

#define MIN_RUN 32

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

static void merge(const struct pending *a, size_t na, const struct pending *b, size_t nb,
		  struct pending *out)
{
	size_t i = 0, j = 0;

	while (i < na && j < nb)
		*out++ = b[j].ts < a[i].ts ? b[j++] : a[i++];
	memcpy(out, a + i, (na - i) * sizeof(*a));
	memcpy(out + (na - i), b + j, (nb - j) * sizeof(*b));
}

/* Merges neighbouring runs from v into out; ends[] shrinks by half. */
static size_t merge_pass(const struct pending *v, struct pending *out, size_t *ends, size_t runs)
{
	size_t kept = 0, from = 0;

	for (size_t r = 0; r < runs; r += 2) {
		size_t middle = ends[r];
		size_t end = r + 1 < runs ? ends[r + 1] : middle;

		merge(v + from, middle - from, v + middle, end - middle, out + from);
		ends[kept++] = end;
		from = end;
	}
	return kept;
}

int queue_sort(struct queue *q)
{
	size_t *ends = NULL, runs = 0, cap = 0;
	struct pending *other, *swap;
	int err = 0;

	if (!q->unsorted)
		return 0;
	for (size_t at = 0; at < q->count && !err;) {
		at = run_end(q->events, at, q->count);
		err = GROW(ends, cap, runs + 1);
		if (!err)
			ends[runs++] = at;
	}
	other = err ? NULL : malloc(q->count * sizeof(*other));
	if (!other) {
		free(ends);
		return -ENOMEM;
	}
	q->cap = q->count;
	while (runs > 1) {
		runs = merge_pass(q->events, other, ends, runs);
		swap = q->events;
		q->events = other;
		other = swap;
	}
	free(other);
	free(ends);
	q->unsorted = false;
	return 0;
}
