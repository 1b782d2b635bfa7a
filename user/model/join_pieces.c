// SPDX-License-Identifier: BSD-2-Clause
/* Works of one part of the time, in pieces: what one call has caused. */
#include "model/join_chain.h"

struct ids {
	const struct work *works;
	uint32_t lowest;
};

/* Ids wrap: half of them are taken to come before that of the first work, half after it. */
static bool comes_after(const uint32_t *pa, const uint32_t *pb, const void *ctx)
{
	const struct ids *ids = ctx;
	const struct work *a = &ids->works[*pa], *b = &ids->works[*pb];

	if (a->correlation != b->correlation)
		return a->correlation - ids->lowest > b->correlation - ids->lowest;
	if (a->graph != b->graph)
		return a->graph > b->graph;
	if (a->begin != b->begin)
		return a->begin > b->begin;
	return a > b;
}

#define RUNS_SORT sort_by_id
#define RUNS_TYPE uint32_t
#define RUNS_AFTER comes_after
#include "util/runs.h"

static int find_works(struct chain *c)
{
	const struct session *s = c->j->s;

	c->works_count = 0;
	for (size_t i = 0; i < s->streams_count; i++) {
		const struct session_stream *st = &s->streams[i];

		if (st->process != c->process)
			continue;
		for (uint32_t w = st->first_work; w < st->first_work + st->works; w++) {
			if (s->works[w].begin < c->from || s->works[w].begin >= c->to ||
			    join_ids_are_wrong(c->j, c->process, &s->works[w]))
				continue;
			if (GROW(c->works, c->works_cap, c->works_count + 1))
				return -ENOMEM;
			c->works[c->works_count++] = w;
		}
	}
	if (c->works_count) {
		struct ids ids = { s->works, s->works[c->works[0]].correlation - (1u << 31) };

		return sort_by_id(c->works, c->works_count, &ids);
	}
	return 0;
}

/* Each node of one graph, once. 0 or -ENOMEM. */
static int one_launch(struct chain *c, size_t from, size_t to, bool *one)
{
	const struct session *s = c->j->s;
	uint32_t graph = s->works[c->works[from]].graph;
	int err = 0;

	c->serial++;
	*one = true;
	for (size_t i = from; i < to && *one && !err; i++) {
		const struct work *w = &s->works[c->works[i]];

		*one = w->graph == graph && (!w->graph_node ||
			map_get(&c->nodes, w->graph_node, graph) != c->serial);
		if (w->graph_node)
			err = map_put(&c->nodes, w->graph_node, graph, c->serial);
	}
	return err;
}

/* Works of one id that one call can have caused, or that CUPTI says it did. 0 or -ENOMEM. */
static int one_call(struct chain *c, size_t from, size_t to, bool *one)
{
	const struct session *s = c->j->s;
	const struct work *first = &s->works[c->works[from]];

	*one = true;
	if (first->call != CALL_NONE || to - from == 1)
		return 0;
	if (first->graph)
		return one_launch(c, from, to, one);
	for (size_t i = from; i < to; i++) {
		const struct work *w = &s->works[c->works[i]];

		if (w->graph || w->kind == RECORD_WORK_KERNEL || w->kind != first->kind ||
		    w->direction != first->direction)
			*one = false;
	}
	return 0;
}

static int begin_piece(struct chain *c, size_t at)
{
	const struct work *w = &c->j->s->works[c->works[at]];
	int err = GROW(c->pieces, c->pieces_cap, c->pieces_count + 1);

	c->serial++;
	if (!err)
		c->pieces[c->pieces_count++] = (struct piece){
			.begin = w->begin, .first = (uint32_t)at,
			.stream = w->stream, .call = w->call, .link = LINK_NONE };
	return err;
}

static int stream_order(const void *pa, const void *pb, void *ctx)
{
	const struct work *works = ctx;
	const struct work *a = &works[*(const uint32_t *)pa], *b = &works[*(const uint32_t *)pb];

	if (a->graph != b->graph)
		return a->graph < b->graph ? -1 : 1;
	if (a->stream != b->stream)
		return a->stream < b->stream ? -1 : 1;
	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	return a < b ? -1 : a > b;
}

/*
 * A node of a graph that the last piece has already is of the next launch. Which of several
 * streams' nodes belong together is not known: each stream's are a piece.
 */
static bool goes_on(const struct chain *c, const struct work *w, const struct work *before)
{
	return w->graph && w->graph == before->graph && w->stream == before->stream &&
	       (!w->graph_node ||
		map_get(&c->nodes, w->graph_node, w->graph) != c->serial);
}

/* A piece of a graph that lacks nodes is a part of a launch: of which one, is not known. */
static void leave_parts(struct chain *c, size_t first)
{
	for (size_t i = first, to; i < c->pieces_count; i = to) {
		uint32_t graph = chain_first_work(c, &c->pieces[i])->graph, most = 0;

		for (to = i; to < c->pieces_count &&
			     chain_first_work(c, &c->pieces[to])->graph == graph; to++)
			most = c->pieces[to].count > most ? c->pieces[to].count : most;
		for (size_t k = i; k < to && graph; k++)
			if (c->pieces[k].count < most)
				c->pieces[k].link = LINK_OUTSIDE;
	}
}

/*
 * A thread that was within a call when CUPTI ceased to record calls keeps the id of that
 * call: whatever it launches bears it, until calls are recorded again (13.0, seen on an H200).
 */
static int split(struct chain *c, size_t from, size_t to)
{
	const struct session *s = c->j->s;
	size_t first = c->pieces_count;
	int err = 0;

	qsort_r(c->works + from, to - from, sizeof(*c->works), stream_order, s->works);
	for (size_t i = from; i < to && !err; i++) {
		const struct work *w = &s->works[c->works[i]];

		if (i == from || !goes_on(c, w, &s->works[c->works[i - 1]]))
			err = begin_piece(c, i);
		if (!err)
			c->pieces[c->pieces_count - 1].count++;
		if (!err && w->graph_node)
			err = map_put(&c->nodes, w->graph_node, w->graph, c->serial);
	}
	for (size_t i = first; i < c->pieces_count; i++)
		c->pieces[i].still = c->pieces_count - first > 1;
	leave_parts(c, first);
	return err;
}

static int find_pieces(struct chain *c)
{
	const struct session *s = c->j->s;
	bool one;
	size_t to;
	int err = 0;

	c->pieces_count = 0;
	c->serial = 0;
	map_free(&c->nodes);
	for (size_t i = 0; i < c->works_count && !err; i = to) {
		for (to = i + 1; to < c->works_count &&
				 s->works[c->works[to]].correlation ==
					 s->works[c->works[i]].correlation;)
			to++;
		err = one_call(c, i, to, &one);
		if (!err && !one)
			err = split(c, i, to);
		if (err || !one)
			continue;
		err = begin_piece(c, i);
		if (!err)
			c->pieces[c->pieces_count - 1].count = (to - i) & INT32_MAX;
	}
	return err;
}

int chain_pieces(void *chain)
{
	struct chain *c = chain;
	int err = find_works(c);

	return err ? err : find_pieces(c);
}
