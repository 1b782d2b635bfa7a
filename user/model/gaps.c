// SPDX-License-Identifier: BSD-2-Clause
/* When a device had nothing to do, and why: judged by the work that ended the gap. */
#include "model/gpu.h"
#include "model/grow.h"
#include "model/merge.h"
#include "util/near.h"

#define MAX_DEPTH 256

const char *const gap_class_words[GAP_CLASSES] = {
	[GAP_HOST_WAIT] = "host-wait", [GAP_SYNC_DRAIN] = "sync-drain",
	[GAP_KERNEL_WAIT] = "kernel-wait", [GAP_OTHER] = "other",
	[GAP_ARTEFACT] = "artefact",
};

struct gaps {
	const struct session *s;
	uint32_t physical;
	struct spans covered, overheads;
	size_t at; /* of covered: the first that may still have a gap */
	struct gap *items;
	size_t count, cap;
};

/* Was the thread of this call in a blocking wait across ts? Calls of a thread nest. */
static bool waited_across(const struct session *s, uint32_t near, int64_t ts)
{
	const struct session_thread *t = &s->threads[s->calls[near].thread];
	size_t at = near_find(&s->calls[t->first_call].begin, sizeof(struct call), t->calls, ts,
			      near - t->first_call);
	uint32_t call = t->first_call + (uint32_t)at - 1;

	if (!at)
		return false;
	for (int i = 0; call != CALL_NONE && i < MAX_DEPTH; i++, call = s->calls[call].parent) {
		const struct call *c = &s->calls[call];
		bool waits = c->flags & CALL_POLL || s->apis[c->api].sorts & API_IS_WAIT;

		if (waits && (c->flags & CALL_OPEN || (call_duration(c) >= 0 && c->end >= ts)))
			return true;
	}
	return false;
}

static enum gap_class host_class(const struct session *s, uint32_t call, int64_t begin)
{
	return call != CALL_NONE && waited_across(s, call, begin)
		       ? GAP_SYNC_DRAIN
		       : GAP_HOST_WAIT;
}

/* begin: when the last work ended, or the window began. */
static enum gap_class classify(const struct gaps *g, int64_t begin, int64_t end, uint32_t before,
			       uint32_t after)
{
	const struct session *s = g->s;
	uint32_t call;

	if (spans_within(&g->overheads, begin, end) >= end - begin - (end - begin) / 2)
		return GAP_ARTEFACT;
	if (after == WORK_NONE) /* nothing was asked for any more */
		return host_class(s, before == WORK_NONE ? CALL_NONE : s->works[before].call,
				  begin);
	call = s->works[after].call;
	if (call == CALL_NONE)
		return GAP_OTHER;
	if (s->calls[call].begin > begin)
		return host_class(s, call, begin);
	if (end - begin < GAP_KERNEL_WAIT_NS)
		return GAP_KERNEL_WAIT;
	/* Entered in time, and not done when the work began: the host took that long. */
	return call_duration(&s->calls[call]) >= 0 && s->calls[call].end >= end
		       ? host_class(s, call, begin)
		       : GAP_OTHER;
}

/* Nothing ran in [begin, end); before and after are around it. */
static int take_gap(struct gaps *g, int64_t begin, int64_t end, uint32_t before, uint32_t after)
{
	while (g->at < g->covered.count && g->covered.items[g->at].end <= begin)
		g->at++;
	for (size_t i = g->at; i < g->covered.count && g->covered.items[i].begin < end; i++) {
		const struct span *v = &g->covered.items[i];
		int64_t from = v->begin > begin ? v->begin : begin;
		int64_t to = v->end < end ? v->end : end;

		if (to <= from)
			continue;
		if (GROW(g->items, g->cap, g->count + 1))
			return -ENOMEM;
		g->items[g->count++] = (struct gap){
			.begin = from, .end = to, .physical = g->physical,
			.before = from == begin ? before : WORK_NONE,
			.after = to == end ? after : WORK_NONE,
			.class = classify(g, from, to, before, after) };
	}
	return 0;
}

static int find_gaps(struct gaps *g)
{
	const struct session *s = g->s;
	uint32_t w, before = WORK_NONE;
	int64_t free_from = INT64_MIN;
	struct merge m;
	int err = merge_begin(&m, s, g->physical);

	while (!err && (w = merge_next(&m)) != WORK_NONE) {
		work_fetch_call(s, w);
		if (s->works[w].begin > free_from)
			err = take_gap(g, free_from, s->works[w].begin, before, w);
		if (s->works[w].end > free_from) {
			free_from = s->works[w].end;
			before = w;
		}
	}
	merge_end(&m);
	return err ? err : take_gap(g, free_from, INT64_MAX, before, WORK_NONE);
}

int device_gaps(const struct session *s, uint32_t physical, struct gap **gaps, size_t *count)
{
	struct gaps g = { .s = s, .physical = physical };
	int err = device_covered(s, physical, &g.covered);

	if (!err)
		err = device_overheads(s, physical, &g.overheads);
	if (!err)
		err = find_gaps(&g);
	spans_free(&g.covered);
	spans_free(&g.overheads);
	if (err) {
		free(g.items);
		g.items = NULL;
		g.count = 0;
	}
	*gaps = g.items;
	*count = g.count;
	return err;
}
