// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which call caused which work. CUPTI gives both an id, the correlation: of a call through
 * its own record of it (join_notes.c), where it writes such; else only the order is left
 * (join_order.c). What cannot be decided stays unmatched.
 */
#include "model/join.h"

#define SLACK_UNKNOWN 1000 /* ns, where nobody measured how far the clocks are apart */
#define SLACK_MOST 100000  /* beyond that, containment says nothing */

static int cause_order(const void *pa, const void *pb)
{
	const struct cause *a = pa, *b = pb;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->correlation != b->correlation)
		return a->correlation < b->correlation ? -1 : 1;
	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	return a->call < b->call ? -1 : a->call > b->call;
}

static bool below(const struct cause *c, uint32_t process, uint32_t correlation)
{
	return c->process < process || (c->process == process && c->correlation < correlation);
}

/*
 * The first cause of this id or a later one. Works of a stream have rising ids, so the
 * search goes out from where the last one ended, in steps that double.
 */
static size_t cause_find(const struct join *j, size_t near, uint32_t process, uint32_t correlation)
{
	const struct cause *c = j->causes;
	size_t low = near, high = near, step = 1;

	if (near < j->causes_count && below(&c[near], process, correlation)) {
		for (low = high = near + 1;
		     high < j->causes_count && below(&c[high], process, correlation); step *= 2) {
			low = high + 1;
			high += step;
		}
		high = high < j->causes_count ? high : j->causes_count;
	} else {
		for (; low && !below(&c[low - 1], process, correlation); step *= 2) {
			high = low - 1;
			low = high > step ? high - step : 0;
		}
	}
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (below(&c[middle], process, correlation))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool known_dims(const uint32_t dims[3])
{
	return dims[0] && dims[1] && dims[2];
}

bool join_fits(const struct join *j, const struct call *c, const struct work *w)
{
	const struct session *s = j->s;
	uint8_t sorts = s->apis[c->api].sorts;
	const struct launch_args *a;
	const struct record_shape *shape;

	if (sorts & API_IS_WAIT && !(sorts & API_IS_COPY))
		return false;
	if (w->graph)
		return sorts & API_IS_GRAPH_LAUNCH;
	if (!(sorts & API_IS_KERNEL_LAUNCH))
		return true; /* some copies and sets are kernels of the driver's own */
	if (w->kind != RECORD_WORK_KERNEL)
		return false;
	if (w->shape == SHAPE_NONE || !(c->flags & CALL_ARGS_LAUNCH))
		return true;
	a = &s->launches[c->args];
	shape = &s->shapes[w->shape];
	return !known_dims(a->grid) || !known_dims(a->block) ||
	       (!memcmp(a->grid, shape->grid, sizeof(a->grid)) &&
		!memcmp(a->block, shape->block, sizeof(a->block)));
}

bool join_ids_are_wrong(const struct join *j, uint32_t process, const struct work *w)
{
	return w->graph && w->begin >= j->of[process].graphs_wrong;
}

/* Of the calls of this id the last one that began before the work; ids wrap. */
static void join_work(struct join *j, struct work *w, uint32_t process, size_t *near)
{
	struct session *s = j->s;
	size_t at = cause_find(j, *near, process, w->correlation);
	const struct cause *found = NULL;
	bool any = false;

	*near = at;
	for (; at < j->causes_count; at++) {
		const struct cause *c = &j->causes[at];

		if (c->process != process || c->correlation != w->correlation)
			break;
		any = true;
		if (c->begin > w->begin + j->slack)
			break;
		found = c;
	}
	if (!found) {
		s->join.before_entry += any;
		return;
	}
	if (join_fits(j, &s->calls[found->call], w))
		w->call = found->call;
	else
		s->join.contradicted++;
}

static void join_works(struct join *j)
{
	struct session *s = j->s;
	size_t near = 0;

	for (size_t i = 0; i < s->streams_count; i++) {
		const struct session_stream *st = &s->streams[i];

		for (uint32_t w = 0; w < st->works; w++) {
			struct work *work = &s->works[st->first_work + w];

			if (!join_ids_are_wrong(j, st->process, work))
				join_work(j, work, st->process, &near);
		}
	}
}

size_t join_cover(const struct session *s, uint32_t process, int64_t from, int64_t to)
{
	size_t low = 0, high = s->covers_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct session_cover *v = &s->covers[middle];

		if (v->process < process || (v->process == process && v->end < to))
			low = middle + 1;
		else
			high = middle;
	}
	return low < s->covers_count && s->covers[low].process == process &&
			       s->covers[low].begin <= from
		       ? low
		       : s->covers_count;
}

enum doubt { DOUBT_WORK = 1, DOUBT_LAUNCH = 2, DOUBT_BOTH = 3 };

/* Windows with works of a graph that no launch caused, and launches that caused none. */
static void find_doubts(const struct session *s, const bool *worked, uint8_t *doubts)
{
	for (size_t i = 0; i < s->works_count; i++) {
		const struct work *w = &s->works[i];

		if (w->graph && w->call == CALL_NONE)
			doubts[join_cover(s, s->streams[w->stream].process, w->begin, w->begin)] |=
				DOUBT_WORK;
	}
	for (size_t i = 0; i < s->calls_count; i++) {
		const struct call *c = &s->calls[i];

		if (s->apis[c->api].sorts & API_IS_GRAPH_LAUNCH && !worked[i] &&
		    call_duration(c) >= 0 && !(c->flags & CALL_ERROR))
			doubts[join_cover(s, call_process(s, c), c->begin, c->end)] |= DOUBT_LAUNCH;
	}
}

static bool any_graph_without_call(const struct session *s)
{
	for (size_t i = 0; i < s->works_count; i++)
		if (s->works[i].graph && s->works[i].call == CALL_NONE)
			return true;
	return false;
}

/*
 * Somebody else may have had a session before ours: then the first works carry the id of a
 * launch before the window, and those of the last launch are given to the one before.
 */
static int distrust_graphs(struct join *j)
{
	struct session *s = j->s;
	bool *worked;
	uint8_t *doubts;
	int err;

	if (!any_graph_without_call(s))
		return 0;
	worked = calloc(s->calls_count + 1, sizeof(*worked));
	doubts = calloc(s->covers_count + 1, sizeof(*doubts));
	err = worked && doubts ? 0 : -ENOMEM;
	for (size_t i = 0; i < s->works_count && !err; i++)
		for (uint32_t c = s->works[i].call; c != CALL_NONE && !worked[c];
		     c = s->calls[c].parent)
			worked[c] = true;
	if (!err)
		find_doubts(s, worked, doubts);
	for (size_t i = 0; i < s->covers_count && !err; i++) {
		struct joining *of = &j->of[s->covers[i].process];

		if (doubts[i] == DOUBT_BOTH && of->cupti < CUPTI_GRAPH_IDS &&
		    s->covers[i].begin < of->graphs_wrong)
			of->graphs_wrong = s->covers[i].begin;
	}
	for (size_t i = 0; i < s->works_count && !err; i++)
		if (join_ids_are_wrong(j, s->streams[s->works[i].stream].process, &s->works[i]))
			s->works[i].call = CALL_NONE;
	free(worked);
	free(doubts);
	return err;
}

static void read_versions(struct join *j)
{
	const struct session *s = j->s;

	for (size_t i = 0; i < s->processes_count; i++)
		j->of[i].graphs_wrong = TS_LIMIT + 1;
	for (size_t i = 0; i < s->sidecars_count; i++) {
		const struct record_sidecar *r = &s->sidecars[i];
		struct joining *of = &j->of[s->sidecar_process[i]];

		if (r->cupti)
			of->cupti = r->cupti;
		if (r->event == RECORD_SIDECAR_BEGAN && ++of->sessions == 2 &&
		    of->cupti < CUPTI_GRAPH_IDS)
			of->graphs_wrong = r->ts;
	}
}

static void sort_causes(struct join *j)
{
	for (size_t i = 1; i < j->causes_count; i++)
		if (cause_order(&j->causes[i - 1], &j->causes[i]) > 0) {
			qsort(j->causes, j->causes_count, sizeof(*j->causes), cause_order);
			return;
		}
}

int builder_join(struct session_builder *b)
{
	struct join j = { .b = b, .s = b->s };
	int err = 0;

	if (!b->s->works_count && !b->s->covers_count)
		return 0;
	j.slack = b->s->join.clock_error > 0 ? b->s->join.clock_error : SLACK_UNKNOWN;
	if (j.slack > SLACK_MOST)
		j.slack = SLACK_MOST;
	j.of = calloc(b->s->processes_count + 1, sizeof(*j.of));
	err = j.of ? 0 : -ENOMEM;
	if (!err) {
		read_versions(&j);
		err = join_notes(&j);
	}
	if (!err) {
		sort_causes(&j);
		join_works(&j);
		err = join_chain(&j);
	}
	if (!err)
		err = distrust_graphs(&j);
	if (!err)
		err = join_order(&j);
	if (!err)
		err = join_finish(&j);
	free(j.of);
	free(j.causes);
	return err;
}
