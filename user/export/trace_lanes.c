// SPDX-License-Identifier: BSD-2-Clause
/* Rows for slices that would overlap on one. */
#include <errno.h>
#include <stdlib.h>

#include "export/trace.h"
#include "model/grow.h"

/* What has not ended on a row, the innermost last; without nesting one at most. */
struct row {
	int64_t *ends;
	size_t depth, cap;
};

struct export_lanes {
	bool nest;
	size_t used;
	struct row rows[EXPORT_LANES];
};

int export_lanes_new(struct export_lanes **out, bool nest)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->nest = nest;
	return 0;
}

static bool fits(const struct export_lanes *l, struct row *r, int64_t begin, int64_t end)
{
	while (r->depth && r->ends[r->depth - 1] <= begin)
		r->depth--;
	return !r->depth || (l->nest && end <= r->ends[r->depth - 1]);
}

int export_lanes_place(struct export_lanes *l, int64_t begin, int64_t end)
{
	struct row *r = l->rows;
	size_t i = 0;
	int err;

	while (i < l->used && !fits(l, &r[i], begin, end))
		i++;
	if (i == EXPORT_LANES)
		return EXPORT_LANES;
	err = GROW(r[i].ends, r[i].cap, r[i].depth + 1);
	if (err)
		return err;
	if (i == l->used)
		l->used++;
	r[i].ends[r[i].depth++] = end;
	return (int)i;
}

void export_lanes_reset(struct export_lanes *l)
{
	for (size_t i = 0; i < l->used; i++)
		l->rows[i].depth = 0;
	l->used = 0;
}

void export_lanes_free(struct export_lanes *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < EXPORT_LANES; i++)
		free(l->rows[i].ends);
	free(l);
}
