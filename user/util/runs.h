/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Natural merge sort, stable, for what is mostly in order already: events of one thread, or
 * those of several streams one stream after another. n log r for r ascending runs, and no
 * memory where there is one. Included once for each kind of element, after these are defined:
 *
 *	RUNS_SORT	the name of the function: int RUNS_SORT(RUNS_TYPE *v, size_t count,
 *			const void *ctx), which gives 0 or -ENOMEM (v is then in some order)
 *	RUNS_TYPE	of the elements
 *	RUNS_AFTER(a, b, ctx)	whether *a belongs behind *b
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RUNS_PASTE(a, b) a##_##b
#define RUNS_NAMED(a, b) RUNS_PASTE(a, b)
#define RUNS_OWN(name) RUNS_NAMED(RUNS_SORT, name)
#define RUNS_LEAST 32 /* elements of a run; shorter ones are made longer by insertion */

/* End of the ascending run at from. */
static size_t RUNS_OWN(end)(RUNS_TYPE *v, size_t from, size_t count, const void *ctx)
{
	size_t end = from + 1;

	(void)ctx;
	while (end < count && !RUNS_AFTER(&v[end - 1], &v[end], ctx))
		end++;
	for (; end < count && end - from < RUNS_LEAST; end++) {
		RUNS_TYPE moved = v[end];
		size_t i = end;

		for (; i > from && RUNS_AFTER(&v[i - 1], &moved, ctx); i--)
			v[i] = v[i - 1];
		v[i] = moved;
	}
	return end;
}

/*
 * Merges v[from, middle) and v[middle, end) in place. Only what overlaps moves, so that runs
 * which nearly follow one another cost nearly nothing.
 */
static void RUNS_OWN(merge)(RUNS_TYPE *v, size_t from, size_t middle, size_t end,
			    RUNS_TYPE *spare, const void *ctx)
{
	size_t i = 0, j = middle, high = middle, count;

	(void)ctx;
	while (from < high) { /* behind what need not move */
		size_t half = from + (high - from) / 2;

		if (RUNS_AFTER(&v[half], &v[middle], ctx))
			high = half;
		else
			from = half + 1;
	}
	count = middle - from;
	if (!count)
		return;
	memcpy(spare, v + from, count * sizeof(*v));
	while (i < count && j < end)
		v[from++] = RUNS_AFTER(&spare[i], &v[j], ctx) ? v[j++] : spare[i++];
	memcpy(v + from, spare + i, (count - i) * sizeof(*v));
}

/* Merges neighbouring runs; how many are left, whose ends are in ends[]. */
static size_t RUNS_OWN(pass)(RUNS_TYPE *v, RUNS_TYPE *spare, size_t *ends, size_t runs,
			     const void *ctx)
{
	size_t kept = 0, from = 0;

	for (size_t r = 0; r < runs; r += 2) {
		size_t end = ends[r];

		if (r + 1 < runs) {
			end = ends[r + 1];
			RUNS_OWN(merge)(v, from, ends[r], end, spare, ctx);
		}
		ends[kept++] = end;
		from = end;
	}
	return kept;
}

static int RUNS_SORT(RUNS_TYPE *v, size_t count, const void *ctx)
{
	size_t first = count ? RUNS_OWN(end)(v, 0, count, ctx) : 0, runs = 0;
	RUNS_TYPE *spare;
	size_t *ends;

	if (first == count)
		return 0;
	ends = malloc((count / RUNS_LEAST + 2) * sizeof(*ends));
	spare = malloc(count * sizeof(*spare));
	if (!ends || !spare) {
		free(ends);
		free(spare);
		return -ENOMEM;
	}
	ends[runs++] = first;
	while (ends[runs - 1] < count) {
		ends[runs] = RUNS_OWN(end)(v, ends[runs - 1], count, ctx);
		runs++;
	}
	while (runs > 1)
		runs = RUNS_OWN(pass)(v, spare, ends, runs, ctx);
	free(spare);
	free(ends);
	return 0;
}

#undef RUNS_SORT
#undef RUNS_TYPE
#undef RUNS_AFTER
#undef RUNS_OWN
#undef RUNS_NAMED
#undef RUNS_PASTE
#undef RUNS_LEAST
