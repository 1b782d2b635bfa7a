// SPDX-License-Identifier: BSD-2-Clause
/*
 * Clocks of two hosts by what their ranks did together. Of a collective that needs every
 * rank's data, no rank's kernel can end before every rank's has begun. So for the same
 * collective on both hosts, and the shift that makes times of one those of the other:
 *
 *	ours.begin <= theirs.end + shift   and   theirs.begin + shift <= ours.end
 *
 * Each collective bounds the shift from both sides, and all together closer than any of
 * them: a proof, not an estimate. Which collective is which is not recorded; sequences are
 * laid on each other in every way that the names allow, and only a way that is the only
 * one left is believed.
 */
#include <errno.h>
#include <stdlib.h>

#include "merge/private.h"

#define AT_LEAST 8	 /* collectives that have to match */
#define MOST 200000	 /* collectives of a sequence that are looked at */
#define WORK 500000000	 /* comparisons, of files that want to keep us busy */

struct fit {
	int64_t low, high;
	size_t matched;
	bool any, several;
	uint64_t work;
};

static int by_line(const void *pa, const void *pb)
{
	const struct collective *a = pa, *b = pb;

	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

static struct collective *sorted(const struct merge *m, struct collective_line *lines)
{
	size_t count = m->collectives_count;
	struct collective *c = malloc((count + 1) * sizeof(*c));

	if (!c)
		return NULL;
	if (count)
		memcpy(c, m->collectives, count * sizeof(*c));
	qsort(c, count, sizeof(*c), by_line);
	for (size_t i = 0; i < m->lines_count; i++)
		lines[i] = m->lines[i];
	for (size_t i = 0; i < count; i++) {
		struct collective_line *l = &lines[c[i].line];

		if (!l->count++)
			l->first = i;
	}
	return c;
}

/* a[i] and b[i] the same collectives, n of them: how far may b be shifted? */
static bool bounds(const struct collective *a, const struct collective *b, size_t n, int64_t *low,
		   int64_t *high, uint64_t *work)
{
	*low = INT64_MIN;
	*high = INT64_MAX;
	for (size_t i = 0; i < n; i++) {
		int64_t least = a[i].begin - b[i].end, most = a[i].end - b[i].begin;

		++*work;
		if (a[i].name != b[i].name)
			return false;
		*low = least > *low ? least : *low;
		*high = most < *high ? most : *high;
		if (*low > *high)
			return false;
	}
	return true;
}

/* What two pairs of streams say must not contradict; the one with more of them is kept. */
static void take(struct fit *fit, int64_t low, int64_t high, size_t n)
{
	fit->several = fit->several || (fit->any && (low > fit->high || high < fit->low));
	if (fit->any && fit->matched >= n)
		return;
	fit->low = low;
	fit->high = high;
	fit->matched = n;
	fit->any = true;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * b[k] may be a[k + by], for every by that leaves enough of them: where nothing is known
 * of the clocks, at least half, because part of a step looks like part of another.
 */
static void lay(const struct collective *a, size_t na, const struct collective *b, size_t nb,
		int64_t near, int64_t bound, struct fit *fit)
{
	size_t enough = AT_LEAST;

	na = least(na, MOST);
	nb = least(nb, MOST);
	if (bound < 0 && least(na, nb) / 2 > enough)
		enough = least(na, nb) / 2;
	for (int64_t by = (int64_t)enough - (int64_t)nb; by <= (int64_t)(na - enough); by++) {
		size_t from = by > 0 ? (size_t)by : 0, skip = by < 0 ? (size_t)-by : 0;
		int64_t low, high;

		if (fit->work > WORK) {
			fit->several = true;
			return;
		}
		if (!bounds(a + from, b + skip, least(na - from, nb - skip), &low, &high,
			    &fit->work))
			continue;
		if (bound < 0 || (low <= near + bound && high >= near - bound))
			take(fit, low, high, least(na - from, nb - skip));
	}
}

static bool of_host(const struct merge *m, const struct collective_line *l, uint32_t host)
{
	return m->sources[l->source]->about.host_index == host && l->count >= AT_LEAST;
}

int collectives_align(const struct merge *m, uint32_t host, int64_t near, int64_t bound,
		      int64_t *low, int64_t *high, size_t *matched)
{
	struct collective_line *lines = calloc(m->lines_count + 1, sizeof(*lines));
	struct collective *c = lines ? sorted(m, lines) : NULL;
	struct fit fit = {.any = false};

	*matched = 0;
	if (!c) {
		free(lines);
		return -ENOMEM;
	}
	for (size_t i = 0; i < m->lines_count; i++)
		for (size_t k = 0; k < m->lines_count && of_host(m, &lines[i], 0); k++)
			if (of_host(m, &lines[k], host))
				lay(c + lines[i].first, lines[i].count, c + lines[k].first,
				    lines[k].count, near, bound, &fit);
	free(c);
	free(lines);
	if (!fit.any || fit.several)
		return -ENODATA;
	*low = fit.low;
	*high = fit.high;
	*matched = fit.matched;
	return 0;
}
