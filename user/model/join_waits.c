// SPDX-License-Identifier: BSD-2-Clause
/* Until when a call's work must have begun: a later wait for its stream, or for all, returned. */
#include "model/join_chain.h"

int chain_wait_add(struct chain *c, uint64_t stream, const struct call *call)
{
	int err = GROW(c->waits, c->waits_cap, c->waits_count + 1);

	if (!err)
		c->waits[c->waits_count++] = (struct wait){ call->begin, call->end, stream };
	return err;
}

static bool wait_after(const struct wait *a, const struct wait *b)
{
	if (a->stream != b->stream)
		return a->stream > b->stream;
	return a->begin != b->begin ? a->begin > b->begin : a->end > b->end;
}

#define RUNS_SORT sort_waits
#define RUNS_TYPE struct wait
#define RUNS_AFTER(a, b, ctx) wait_after(a, b)
#include "util/runs.h"

/* The first to return of those for this stream that began then or later. */
static int64_t waited(const struct chain *c, uint64_t stream, int64_t when)
{
	size_t low = 0, high = c->waits_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct wait *w = &c->waits[middle];

		if (w->stream < stream || (w->stream == stream && w->begin < when))
			low = middle + 1;
		else
			high = middle;
	}
	return low < c->waits_count && c->waits[low].stream == stream ? c->waits[low].end :
									TS_LIMIT;
}

int chain_waits(struct chain *c)
{
	const struct session *s = c->j->s;
	int err = sort_waits(c->waits, c->waits_count, NULL);

	if (err)
		return err;
	for (size_t i = c->waits_count; i-- > 1;) {
		struct wait *w = &c->waits[i - 1];

		if (w->stream == w[1].stream && w[1].end < w->end)
			w->end = w[1].end;
	}
	for (size_t i = 0; i < c->links_count; i++) {
		struct link *l = &c->links[i];
		int64_t all = waited(c, WAIT_ALL, l->end);
		const struct call *call = &s->calls[l->call];
		int64_t own = waited(c, chain_stream(c, call, join_stream(s, call)), l->end);

		if (all < l->until)
			l->until = all;
		if (own < l->until)
			l->until = own;
	}
	return 0;
}
