// SPDX-License-Identifier: BSD-2-Clause
/*
 * Works that no anchor leads to: of streams that were used between two of them only, of
 * short programs; and of graphs, whose ids are wrong from the second session on before 13.1
 * update 1.
 *
 * In a window of which all records are in, each call wholly inside has caused its works
 * there. So if there are exactly as many groups of works of one id as calls, group and call
 * belong together in the order of ids and of time; name, grid, bytes and time must agree.
 * Where threads called at the same time, and a swap would fit as well, nothing is matched.
 */
#include "model/join_order.h"

#define MOST_COVERS 4096 /* that are looked at: each costs a look at all threads and streams */
#define LONGEST_RUN 64	 /* calls that overlap one another */
#define NEAR 4		 /* calls that may be around the begin of a window */

enum sort join_sort(const struct session *s, const struct call *c)
{
	uint8_t sorts = s->apis[c->api].sorts;

	if (c->flags & (CALL_ERROR | CALL_POLL))
		return SORT_NONE;
	if (sorts & API_IS_KERNEL_LAUNCH)
		return SORT_KERNEL;
	if (sorts & API_IS_GRAPH_LAUNCH)
		return SORT_GRAPH;
	return sorts & API_IS_COPY ? SORT_COPY : SORT_NONE;
}

enum sort join_work_sort(const struct work *w)
{
	if (w->graph)
		return SORT_GRAPH;
	return w->kind == RECORD_WORK_KERNEL ? SORT_KERNEL : SORT_COPY;
}

bool *join_outer(const struct session *s)
{
	bool *outer = calloc(s->calls_count + 1, sizeof(*outer));

	for (size_t i = s->calls_count; outer && i-- > 0;)
		if ((outer[i] || join_sort(s, &s->calls[i]) != SORT_NONE) &&
		    s->calls[i].parent < i)
			outer[s->calls[i].parent] = true;
	return outer;
}

static int caller_order(const void *pa, const void *pb)
{
	const struct caller *a = pa, *b = pb;

	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	return a->call < b->call ? -1 : a->call > b->call;
}

uint32_t join_first(const struct session *s, const struct session_thread *t, int64_t when)
{
	uint32_t low = t->first_call, high = t->first_call + t->calls;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (s->calls[middle].begin < when)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint32_t join_first_work(const struct session *s, const struct session_stream *st, int64_t when)
{
	uint32_t low = st->first_work, high = st->first_work + st->works;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (s->works[middle].begin < when)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int thread_callers(struct ordering *o, const struct session_thread *t, enum sort sort,
			  bool edges)
{
	const struct session *s = o->j->s;
	const struct session_cover *v = o->cover;
	uint32_t i = join_first(s, t, v->begin);

	/* some may be around the begin of the window */
	i = i - t->first_call > NEAR ? i - NEAR : t->first_call;
	for (; i < t->first_call + t->calls && s->calls[i].begin < v->end; i++) {
		const struct call *c = &s->calls[i];
		bool inside = c->begin >= v->begin && c->end <= v->end;

		if (o->outer[i] || o->used[i] || join_sort(s, c) != sort || c->end <= v->begin ||
		    call_duration(c) < 0)
			continue;
		o->edges += !inside;
		if (!inside && !edges)
			continue;
		if (GROW(o->callers, o->callers_cap, o->callers_count + 1))
			return -ENOMEM;
		o->callers[o->callers_count++] = (struct caller){
			.begin = c->begin, .end = c->end, .call = i };
	}
	return 0;
}

int order_callers(struct ordering *o, enum sort sort, bool edges)
{
	const struct session *s = o->j->s;
	int err = 0;

	o->callers_count = o->edges = 0;
	for (size_t t = 0; t < s->threads_count && !err; t++)
		if (s->threads[t].process == o->cover->process)
			err = thread_callers(o, &s->threads[t], sort, edges);
	if (!err && o->callers_count)
		qsort(o->callers, o->callers_count, sizeof(*o->callers), caller_order);
	return err;
}

static int by_id(const void *pa, const void *pb, void *ctx)
{
	const struct work *works = ctx;
	const struct work *a = &works[*(const uint32_t *)pa], *b = &works[*(const uint32_t *)pb];

	if (a->correlation != b->correlation)
		return a->correlation < b->correlation ? -1 : 1;
	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	return a < b ? -1 : a > b;
}

static int stream_works(struct ordering *o, const struct session_stream *st, enum sort sort)
{
	const struct session *s = o->j->s;
	uint32_t w = join_first_work(s, st, o->cover->begin), end = st->first_work + st->works;

	for (; w < end && s->works[w].begin < o->cover->end; w++) {
		if (join_work_sort(&s->works[w]) != sort || s->works[w].call != CALL_NONE)
			continue;
		if (GROW(o->works, o->works_cap, o->works_count + 1))
			return -ENOMEM;
		o->works[o->works_count++] = w;
	}
	return 0;
}

int order_works(struct ordering *o, enum sort sort)
{
	const struct session *s = o->j->s;
	int err = 0;

	o->works_count = 0;
	for (size_t i = 0; i < s->streams_count && !err; i++)
		if (s->streams[i].process == o->cover->process)
			err = stream_works(o, &s->streams[i], sort);
	if (!err && o->works_count)
		qsort_r(o->works, o->works_count, sizeof(*o->works), by_id, s->works);
	return err;
}

static int bunch_works(struct ordering *o)
{
	const struct session *s = o->j->s;
	int err = 0;

	o->bunches_count = 0;
	for (size_t i = 0; i < o->works_count && !err; i++) {
		const struct work *w = &s->works[o->works[i]];
		struct bunch *last = o->bunches_count ? &o->bunches[o->bunches_count - 1] : NULL;

		if (last && last->key == w->correlation) {
			last->count++;
			continue;
		}
		err = GROW(o->bunches, o->bunches_cap, o->bunches_count + 1);
		if (!err)
			o->bunches[o->bunches_count++] = (struct bunch){
				w->correlation, (uint32_t)i, 1, w->begin };
	}
	return err;
}

static bool same_kernel(const struct session *s, const struct call *c, const struct work *w)
{
	if (c->kernel == NO_INDEX || w->kernel == NO_INDEX || c->kernel == w->kernel)
		return true;
	return !s->kernels[c->kernel].named || !s->kernels[w->kernel].named;
}

bool join_fits_all(const struct join *j, const struct call *c, const uint32_t *works,
		   uint32_t count)
{
	const struct session *s = j->s;

	for (uint32_t i = 0; i < count; i++) {
		const struct work *w = &s->works[works[i]];

		if (!join_fits(j, c, w) || (!w->graph && !same_kernel(s, c, w)))
			return false;
		if (w->kind != RECORD_WORK_KERNEL && c->flags & CALL_ARGS_CALL && !w->graph &&
		    s->transfers[c->args].bytes && s->transfers[c->args].bytes != w->bytes)
			return false;
	}
	return true;
}

static bool fits(const struct ordering *o, const struct caller *a, const struct bunch *b)
{
	return b->begin >= a->begin - o->j->slack &&
	       join_fits_all(o->j, &o->j->s->calls[a->call], o->works + b->work, b->count);
}

static void take(const struct ordering *o, const struct caller *a, const struct bunch *b)
{
	for (uint32_t i = 0; i < b->count; i++)
		o->j->s->works[o->works[b->work + i]].call = a->call;
}

/* Calls [from, to) overlap one another: only one order may fit. */
static bool run_is_clear(const struct ordering *o, size_t from, size_t to)
{
	if (to - from > LONGEST_RUN)
		return false;
	for (size_t i = from; i < to; i++)
		for (size_t k = from; k < to; k++)
			if (fits(o, &o->callers[i], &o->bunches[k]) != (i == k))
				return false;
	return true;
}

size_t order_run_end(const struct ordering *o, size_t from)
{
	int64_t end = o->callers[from].end;
	size_t to = from + 1;

	for (; to < o->callers_count && o->callers[to].begin < end; to++)
		if (o->callers[to].end > end)
			end = o->callers[to].end;
	return to;
}

/* Matches in order if all calls that were alone agree; false: nothing was done. */
static bool match_in_order(const struct ordering *o)
{
	size_t end;

	if (o->callers_count != o->bunches_count)
		return false;
	for (size_t i = 0; i < o->callers_count; i = end) {
		end = order_run_end(o, i);
		if (end == i + 1 && !fits(o, &o->callers[i], &o->bunches[i]))
			return false;
	}
	for (size_t i = 0; i < o->callers_count; i = end) {
		end = order_run_end(o, i);
		for (size_t k = i; k < end && (end == i + 1 || run_is_clear(o, i, end)); k++)
			take(o, &o->callers[k], &o->bunches[k]);
	}
	return true;
}

/* Calls across the edges of the window were recorded all or not at all, or it stays open. */
static int match_sort(struct ordering *o, enum sort sort)
{
	int err = order_works(o, sort);

	if (!err)
		err = bunch_works(o);
	for (int edges = 0; edges < 2 && !err; edges++) {
		err = order_callers(o, sort, edges);
		if (err || !o->bunches_count || match_in_order(o))
			break;
		if (!o->edges)
			break;
	}
	return err;
}

static int order_cover(struct ordering *o)
{
	const struct joining *of = &o->j->of[o->cover->process];
	bool wrong = o->cover->begin >= of->graphs_wrong;
	int err = 0;

	if (wrong)
		err = order_nodes(o);
	for (unsigned sort = 0; sort < SORTS && !err; sort++)
		if (sort != SORT_GRAPH || !wrong)
			err = match_sort(o, (enum sort)sort);
	return err;
}

static bool all_have_calls(const struct session *s)
{
	for (size_t i = 0; i < s->works_count; i++)
		if (s->works[i].call == CALL_NONE)
			return false;
	return true;
}

/* Calls that have works already, and processes with works that have no call. */
static int look_at_works(const struct session *s, bool **used, bool **left)
{
	*used = calloc(s->calls_count + 1, sizeof(**used));
	*left = calloc(s->processes_count + 1, sizeof(**left));
	if (!*used || !*left)
		return -ENOMEM;
	for (size_t i = 0; i < s->works_count; i++) {
		if (s->works[i].call != CALL_NONE)
			(*used)[s->works[i].call] = true;
		else
			(*left)[s->streams[s->works[i].stream].process] = true;
	}
	return 0;
}

static int order_covers(struct ordering *o, const bool *left)
{
	const struct session *s = o->j->s;
	size_t ordered = 0;
	int err = 0;

	for (size_t i = 0; i < s->covers_count && !err && ordered < MOST_COVERS; i++) {
		o->cover = &s->covers[i];
		if (!o->cover->whole || !left[o->cover->process])
			continue;
		ordered++;
		err = order_cover(o);
	}
	return err;
}

int join_order(struct join *j)
{
	const struct session *s = j->s;
	struct ordering o = { .j = j };
	bool *outer, *used = NULL, *left = NULL;
	int err;

	if (all_have_calls(s))
		return 0;
	outer = join_outer(s);
	err = look_at_works(s, &used, &left);
	o.outer = outer;
	o.used = used;
	if (!outer)
		err = -ENOMEM;
	if (!err)
		err = order_covers(&o, left);
	free(outer);
	free(used);
	free(left);
	free(o.callers);
	free(o.works);
	free(o.bunches);
	return err;
}
