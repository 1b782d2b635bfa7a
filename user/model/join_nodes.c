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

/*
 * Is each run of equal nodes as long as there are launches, after its launch, and over when
 * that was waited for?
 */
static bool nodes_fit(const struct ordering *o, const struct caller *callers, size_t launches,
		      size_t *looks)
{
	const struct session *s = o->j->s;

	if (!launches || o->works_count % launches)
		return false;
	for (size_t i = 0; i < o->works_count; i++) {
		const struct work *w = &s->works[o->works[i]];
		const struct work *first = &s->works[o->works[i - i % launches]];
		const struct caller *c = &callers[i % launches];

		if (!*looks)
			return false;
		--*looks;
		if (!w->graph_node || w->graph_node != first->graph_node ||
		    w->graph != s->works[o->works[0]].graph ||
		    w->begin < c->begin - o->j->slack || w->begin > c->waited + o->j->slack)
			return false;
	}
	for (size_t i = launches; i < o->works_count; i += launches)
		if (s->works[o->works[i]].graph_node == s->works[o->works[i - 1]].graph_node)
			return false;
	return true;
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

/* How often the first node ran. */
static size_t runs(const struct ordering *o)
{
	const struct work *works = o->j->s->works, *first = &works[o->works[0]];
	size_t n = 1;

	while (n < o->works_count && works[o->works[n]].graph_node == first->graph_node &&
	       works[o->works[n]].graph == first->graph)
		n++;
	return n;
}

/* The one call that can have been the first of so many; NULL: none, or several. */
static const struct caller *only_first(const struct ordering *o, size_t launches)
{
	const struct caller *found = NULL;
	size_t looks = LOOKS_MOST * o->works_count + o->callers_count;

	for (size_t i = 0; i + launches <= o->callers_count; i++) {
		if (!nodes_fit(o, o->callers + i, launches, &looks))
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
	const struct caller *first;
	size_t launches;
	int err = order_works(o, SORT_GRAPH);

	if (!err)
		err = order_callers(o, SORT_GRAPH, true);
	if (err || !o->works_count || !launches_are_alike(o))
		return err;
	for (size_t i = 0; i < o->callers_count; i++)
		o->callers[i].waited = waited_for(s, o->callers[i].call, one_context);
	qsort_r(o->works, o->works_count, sizeof(*o->works), by_node, s->works);
	launches = runs(o);
	first = only_first(o, launches);
	for (size_t i = 0; first && i < o->works_count; i++)
		s->works[o->works[i]].call = first[i % launches].call;
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
