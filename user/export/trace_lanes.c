// SPDX-License-Identifier: BSD-2-Clause
/* Rows for slices that would overlap on one. */
#include <errno.h>
#include <stdlib.h>

#include "export/trace.h"
#include "model/grow.h"

struct entry {
	int64_t end;
	uint32_t what;
};

/* What has not ended on a row, the innermost last; without nesting one at most. */
struct row {
	struct entry *open;
	size_t depth, cap;
};

struct export_lanes {
	bool nest;
	size_t used; /* rows: those after are empty */
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
	while (r->depth && r->open[r->depth - 1].end <= begin)
		r->depth--;
	return !r->depth || (l->nest && end <= r->open[r->depth - 1].end);
}

int export_lanes_add(struct export_lanes *l, int64_t begin, int64_t end, uint32_t what)
{
	struct row *r = l->rows;
	size_t i = 0;
	int err;

	while (i < l->used && !fits(l, &r[i], begin, end))
		i++;
	if (i == EXPORT_LANES)
		return EXPORT_LANES;
	err = GROW(r[i].open, r[i].cap, r[i].depth + 1);
	if (err)
		return err;
	if (i == l->used)
		l->used++;
	r[i].open[r[i].depth++] = (struct entry){end, what};
	return (int)i;
}

int export_lanes_place(struct export_lanes *l, int64_t begin, int64_t end)
{
	return export_lanes_add(l, begin, end, 0);
}

bool export_lanes_close(struct export_lanes *l, int64_t upto, struct export_slice *out)
{
	const struct entry *first = NULL;

	for (size_t i = 0; i < l->used; i++) {
		const struct row *r = &l->rows[i];

		if (r->depth && (!first || r->open[r->depth - 1].end < first->end)) {
			first = &r->open[r->depth - 1];
			out->row = (int)i;
		}
	}
	if (!first || first->end > upto)
		return false;
	out->end = first->end;
	out->what = first->what;
	l->rows[out->row].depth--;
	while (l->used && !l->rows[l->used - 1].depth)
		l->used--;
	return true;
}

void export_lanes_free(struct export_lanes *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < EXPORT_LANES; i++)
		free(l->rows[i].open);
	free(l);
}
