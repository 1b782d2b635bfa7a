// SPDX-License-Identifier: BSD-2-Clause
/*
 * Graphs without ids, by how often each node ran: where only one graph was launched, its
 * n-th launch ran each node for the n-th time. Recording begins somewhat before the window
 * does, and ends after it: of all launches that may be the first one alone must fit.
 */
#include "model/join_order.h"

#define WAIT_NEAR 64 /* calls within which a launch is waited for */
#define LOOKS_MOST 16 /* at each work: one can be made so that much fits, almost */
#define EDGE_NS 100000000 /* that records were on before the window or after it, at the most */

static int by_node(const void *pa, const void *pb, void *ctx)
{
	const struct work *works = ctx;
	const struct work *a = &works[*(const uint32_t *)pa], *b = &works[*(const uint32_t *)pb];

	if (a->graph != b->graph)
		return a->graph < b->graph ? -1 : 1;
	if (a->graph_node != b->graph_node)
		return a->graph_node < b->graph_node ? -1 : 1;
	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	return a < b ? -1 : a > b;
}

/* When its thread had waited for all of the stream's work, or TS_LIMIT. */
static int64_t waited_for(const struct session *s, uint32_t launch, bool one_context)
{
	const struct call *c = &s->calls[launch];
	const struct session_thread *t = &s->threads[c->thread];
	uint32_t end = t->first_call + t->calls;

	for (uint32_t i = launch + 1; i < end && i - launch <= WAIT_NEAR; i++) {
		const struct call *w = &s->calls[i];
		const char *name = s->apis[w->api].name;

		if (call_duration(w) < 0 || w->flags & CALL_ERROR)
			continue;
		if (strstr(name, "StreamSynchronize") && w->flags & CALL_ARGS_CALL &&
		    s->transfers[w->args].object == join_stream(s, c))
			return w->end;
		if (one_context &&
		    (strstr(name, "CtxSynchronize") || strstr(name, "DeviceSynchronize")))
			return w->end;
	}
	return TS_LIMIT;
}

static const struct work *nth_work(const struct ordering *o, size_t i)
{
	return &o->j->s->works[o->works[i]];
}

/* End of the works of one node, which begin at from. */
static size_t node_end(const struct ordering *o, size_t from)
{
	const struct work *first = nth_work(o, from);
	size_t to = from + 1;

	while (to < o->works_count && nth_work(o, to)->graph_node == first->graph_node &&
	       nth_work(o, to)->graph == first->graph)
		to++;
	return to;
}

/* How often the node ran that ran most often; of these *first is where the earliest begins. */
static size_t runs(const struct ordering *o, size_t *first)
{
	size_t most = 0;

	for (size_t from = 0, to; from < o->works_count; from = to) {
		to = node_end(o, from);
		if (to - from > most || (to - from == most &&
					 nth_work(o, from)->begin < nth_work(o, *first)->begin))
			*first = from;
		most = to - from > most ? to - from : most;
	}
	return most;
}

static bool works_fit(const struct ordering *o, size_t from, size_t to, const struct caller *c)
{
	for (size_t i = from; i < to; i++, c++) {
		const struct work *w = nth_work(o, i);

		if (!w->graph_node || w->graph != nth_work(o, 0)->graph ||
		    w->begin < c->begin - o->j->slack || w->begin > c->waited + o->j->slack)
			return false;
	}
	return true;
}

/* Each between the first node's in one launch and in the next one. */
static bool between(const struct ordering *o, size_t from, size_t to, size_t first)
{
	for (size_t i = from; i < to; i++, first++)
		if (nth_work(o, i)->begin < nth_work(o, first)->begin ||
		    nth_work(o, i)->begin >= nth_work(o, first + 1)->begin)
			return false;
	return true;
}

/*
 * The call that caused a node's first work; NULL: it does not fit, or it is not known. A node
 * that ran once less was left out where recording began amid the first launch, or ended amid
 * the last one: which, only its times tell.
 */
static const struct caller *node_caller(const struct ordering *o, const struct caller *callers,
					size_t from, size_t to, size_t launches, size_t first)
{
	bool all = works_fit(o, from, to, callers), later;

	if (to - from == launches)
		return all ? callers : NULL;
	if (to - from + 1 != launches || !between(o, from, to, first))
		return NULL;
	later = works_fit(o, from, to, callers + 1);
	if (all == later)
		return NULL;
	return all ? callers : callers + 1;
}

/*
 * Did each node run as often as there are launches, after its launch, and was that over when
 * it was waited for?
 */
static bool nodes_fit(const struct ordering *o, const struct caller *callers, size_t launches,
		      size_t first, size_t *looks)
{
	for (size_t from = 0, to; from < o->works_count; from = to) {
		if (!works_fit(o, from, from + 1, callers) &&
		    (launches < 2 || !works_fit(o, from, from + 1, callers + 1)))
			return false;
		to = node_end(o, from);
		if (*looks < to - from) {
			*looks = 0;
			return false;
		}
		*looks -= to - from;
		if (!node_caller(o, callers, from, to, launches, first))
			return false;
	}
	return launches > 0;
}

/* One graph, launched by one call after another. */
static bool launches_are_alike(const struct ordering *o)
{
	const struct session *s = o->j->s;

	for (size_t i = 0; i < o->callers_count; i++) {
		const struct call *c = &s->calls[o->callers[i].call];
		const struct call *first = &s->calls[o->callers[0].call];

		if (!(c->flags & CALL_ARGS_CALL) || order_run_end(o, i) != i + 1 ||
		    s->transfers[c->args].object != s->transfers[first->args].object)
			return false;
	}
	return true;
}

/* The one call that can have been the first of so many; NULL: none, or several. */
static const struct caller *only_first(const struct ordering *o, size_t launches, size_t first)
{
	const struct caller *found = NULL;
	size_t looks = LOOKS_MOST * o->works_count + o->callers_count;

	for (size_t i = 0; i + launches <= o->callers_count; i++) {
		if (!nodes_fit(o, o->callers + i, launches, first, &looks))
			continue;
		if (found)
			return NULL;
		found = o->callers + i;
	}
	return looks ? found : NULL;
}

static struct session_cover widened(const struct session *s, const struct session_cover *v)
{
	const struct session_cover *end = s->covers + s->covers_count;
	struct session_cover wide = *v;

	wide.begin -= EDGE_NS;
	if (v > s->covers && v[-1].process == v->process && v[-1].end > wide.begin)
		wide.begin = v[-1].end;
	wide.end = v->end < INT64_MAX - EDGE_NS ? v->end + EDGE_NS : v->end;
	if (v + 1 < end && v[1].process == v->process && v[1].begin < wide.end)
		wide.end = v[1].begin;
	return wide;
}

static int match(struct ordering *o)
{
	struct session *s = o->j->s;
	bool one_context = join_one_context(s, o->cover->process);
	const struct caller *caller;
	size_t launches, first = 0;
	int err = order_works(o, SORT_GRAPH);

	if (!err)
		err = order_callers(o, SORT_GRAPH, true);
	if (err || !o->works_count || !launches_are_alike(o))
		return err;
	for (size_t i = 0; i < o->callers_count; i++)
		o->callers[i].waited = waited_for(s, o->callers[i].call, one_context);
	qsort_r(o->works, o->works_count, sizeof(*o->works), by_node, s->works);
	launches = runs(o, &first);
	caller = only_first(o, launches, first);
	for (size_t from = 0, to; caller && from < o->works_count; from = to) {
		const struct caller *c;

		to = node_end(o, from);
		c = node_caller(o, caller, from, to, launches, first);
		for (size_t i = from; i < to; i++)
			s->works[o->works[i]].call = c[i - from].call;
	}
	return 0;
}

int order_nodes(struct ordering *o)
{
	const struct session_cover *cover = o->cover;
	struct session_cover wide = widened(o->j->s, cover);
	int err;

	o->cover = &wide;
	err = match(o);
	o->cover = cover;
	return err;
}
