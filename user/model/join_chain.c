// SPDX-License-Identifier: BSD-2-Clause
/*
 * CUPTI's records of calls cost more than all others, so the sidecar takes them for moments
 * only. They are anchors: from each, works and calls of the same streams go on in step, since
 * a stream runs what it was given in that order, and ids rise from call to call. Every pair
 * must fit (kernel, grid, bytes, time), and a sync bounds when work may begin. Between two
 * anchors both ways must agree; where something is missing they do not, and that stays
 * unmatched.
 */
#include "model/join_chain.h"
#include "util/beside.h"

#define OF_THREAD (1ull << 63) /* no address of the process's is that high */

enum mark {
	MARK_PER_THREAD = 1, MARK_WAIT_ALL = 2, MARK_WAIT_STREAM = 4, MARK_CAPTURE = 8,
	MARK_CAPTURED = 16, MARK_READ_BACK = 32,
};

static uint8_t mark_of(const char *name)
{
	uint8_t mark = 0;

	if (strstr(name, "_ptsz") || strstr(name, "_ptds"))
		mark |= MARK_PER_THREAD;
	if (strstr(name, "CtxSynchronize") || strstr(name, "DeviceSynchronize"))
		mark |= MARK_WAIT_ALL;
	if (strstr(name, "StreamSynchronize"))
		mark |= MARK_WAIT_STREAM;
	if (strstr(name, "StreamBeginCapture"))
		mark |= MARK_CAPTURE;
	if (strstr(name, "StreamEndCapture"))
		mark |= MARK_CAPTURED;
	if (strstr(name, "MemcpyDtoH") && !strstr(name, "Async"))
		mark |= MARK_READ_BACK;
	return mark;
}

/* ---- calls ---- */

/* 0 and 1 are one stream, 2 is one of each thread, and 0 means 2 to some functions. */
uint64_t chain_stream(const struct chain *c, const struct call *call, uint64_t handle)
{
	if (handle == 2 || (!handle && c->marks[call->api] & MARK_PER_THREAD))
		return OF_THREAD | call->thread;
	return handle == 1 ? 0 : handle;
}

static int key_of(struct chain *c, const struct call *call, uint32_t *out)
{
	uint64_t stream = chain_stream(c, call, join_stream(c->j->s, call));

	*out = map_get(&c->keys, stream, 0);
	if (*out != MAP_NONE)
		return 0;
	*out = c->keys_count;
	return map_put(&c->keys, stream, 0, c->keys_count++);
}

static int note_wait(struct chain *c, const struct call *call)
{
	uint8_t mark = c->marks[call->api];
	uint64_t stream = WAIT_ALL;

	if (!(mark & (MARK_WAIT_ALL | MARK_WAIT_STREAM)) || call_duration(call) < 0 ||
	    call->flags & CALL_ERROR)
		return 0;
	if (mark & MARK_WAIT_ALL && !c->one_context)
		return 0;
	if (mark & MARK_WAIT_STREAM) {
		if (!(call->flags & CALL_ARGS_CALL))
			return 0;
		stream = chain_stream(c, call, c->j->s->transfers[call->args].object);
	}
	return chain_wait_add(c, stream, call);
}

static int add_link(struct chain *c, uint32_t i)
{
	const struct call *call = &c->j->s->calls[i];
	struct link *l;
	uint32_t key;
	int err = GROW(c->links, c->links_cap, c->links_count + 1);

	if (!err)
		err = key_of(c, call, &key);
	if (err)
		return err;
	l = &c->links[c->links_count++];
	*l = (struct link){ .begin = call->begin, .end = call->begin, .until = TS_LIMIT, .call = i,
			    .key = key };
	if (call_duration(call) < 0)
		return 0;
	l->end = call->end;
	if (c->marks[call->api] & MARK_READ_BACK) /* it returns when it is there */
		l->until = call->end;
	return 0;
}

/* Links [from, count) come as they were found, from the last one back. */
static void turn_round(struct chain *c, size_t from)
{
	for (size_t to = c->links_count; to > from + 1; from++) {
		struct link moved = c->links[from];

		c->links[from] = c->links[--to];
		c->links[to] = moved;
	}
}

/* What is captured into a graph does not run; seen from behind, its end comes first. */
static int thread_links(struct chain *c, const struct session_thread *t)
{
	const struct session *s = c->j->s;
	size_t had = c->links_count;
	uint32_t first = join_first(s, t, c->from);
	bool captured = false;
	int err = 0;

	for (uint32_t i = join_first(s, t, c->to); i-- > first && !err;) {
		const struct call *call = &s->calls[i];
		uint8_t mark = c->marks[call->api];

		if (mark & (MARK_CAPTURE | MARK_CAPTURED))
			captured = mark & MARK_CAPTURED;
		if (call->flags & CALL_NO_BEGIN)
			continue;
		err = note_wait(c, call);
		if (!err && !captured && !c->outer[i] && join_sort(s, call) != SORT_NONE)
			err = add_link(c, i);
	}
	turn_round(c, had);
	return err;
}

static bool link_after(const struct link *a, const struct link *b)
{
	if (a->group != b->group)
		return a->group > b->group;
	return a->begin != b->begin ? a->begin > b->begin : a->call > b->call;
}

#define RUNS_SORT sort_links
#define RUNS_TYPE struct link
#define RUNS_AFTER(a, b, ctx) link_after(a, b)
#include "util/runs.h"

static int order_links(void *chain)
{
	struct chain *c = chain;

	return sort_links(c->links, c->links_count, NULL);
}

/* What is outer is found only here: beside it goes what needs it not. */
static int find_links(void *chain)
{
	struct chain *c = chain;
	const struct session *s = c->j->s;
	int err;

	if (!c->outer)
		c->outer = join_outer(s);
	err = c->outer ? 0 : -ENOMEM;
	c->links_count = 0;
	c->waits_count = 0;
	c->keys_count = 0;
	map_free(&c->keys);
	for (size_t t = 0; t < s->threads_count && !err; t++)
		if (s->threads[t].process == c->process)
			err = thread_links(c, &s->threads[t]);
	return err ? err : chain_waits(c);
}

bool chain_fits(const struct chain *c, const struct link *l, const struct piece *p)
{
	const struct session *s = c->j->s;

	return join_sort(s, &s->calls[l->call]) ==
		       join_work_sort(&s->works[c->works[p->first]]) &&
	       p->begin >= l->begin - c->j->slack && p->begin <= l->until + c->j->slack &&
	       join_fits_all(c->j, &s->calls[l->call], c->works + p->first, p->count);
}

void chain_take(struct chain *c, struct piece *p, const struct link *l)
{
	p->call = l->call;
	for (uint32_t i = 0; i < p->count; i++)
		c->j->s->works[c->works[p->first + i]].call = l->call;
}

/* ---- streams and their handles, as the anchors show them ---- */

static uint32_t root(struct chain *c, uint32_t i)
{
	while (c->parent[i] != i) {
		c->parent[i] = c->parent[c->parent[i]];
		i = c->parent[i];
	}
	return i;
}

static uint32_t stream_node(const struct chain *c, const struct piece *p)
{
	return c->keys_count + p->stream;
}

/* Nodes of a graph run on streams of its own choice: whoever launches graphs is one group. */
static void unite_graphs(struct chain *c)
{
	const struct session *s = c->j->s;
	uint32_t graphs = LINK_NONE;

	for (size_t i = 0; i < c->links_count; i++) {
		if (join_sort(s, &s->calls[c->links[i].call]) != SORT_GRAPH)
			continue;
		if (graphs == LINK_NONE)
			graphs = root(c, c->links[i].key);
		c->parent[root(c, c->links[i].key)] = root(c, graphs);
	}
	for (size_t i = 0; i < c->works_count && graphs != LINK_NONE; i++)
		if (s->works[c->works[i]].graph)
			c->parent[root(c, c->keys_count + s->works[c->works[i]].stream)] =
				root(c, graphs);
}

static bool ids_stand_still(const struct chain *c)
{
	for (size_t i = 0; i < c->pieces_count; i++)
		if (c->pieces[i].still)
			return true;
	return false;
}

/* Without ids only the order within one stream is known: what is one, anchors must show. */
static void unite(struct chain *c)
{
	if (!ids_stand_still(c))
		unite_graphs(c);
	for (size_t i = 0; i < c->links_count; i++)
		c->link_of[c->links[i].call] = (uint32_t)i + 1;
	for (size_t i = 0; i < c->pieces_count; i++) {
		uint32_t call = c->pieces[i].call, link;

		link = call == CALL_NONE ? 0 : c->link_of[call];
		if (link)
			c->parent[root(c, c->links[link - 1].key)] =
				root(c, stream_node(c, &c->pieces[i]));
	}
	for (size_t i = 0; i < c->links_count; i++) {
		c->links[i].group = root(c, c->links[i].key);
		c->link_of[c->links[i].call] = 0;
	}
	for (size_t i = 0; i < c->pieces_count; i++)
		c->pieces[i].group = root(c, stream_node(c, &c->pieces[i]));
}

static int find_groups(struct chain *c)
{
	size_t nodes = c->keys_count + c->j->s->streams_count;

	if (GROW(c->parent, c->parents_cap, nodes + 1))
		return -ENOMEM;
	for (size_t i = 0; i < nodes; i++)
		c->parent[i] = (uint32_t)i;
	unite(c);
	return 0;
}

/* Of one group: by their ids, as they come, or where these stood still by time. */
static bool piece_after(const struct chain *c, uint32_t a, uint32_t b)
{
	const struct piece *pa = &c->pieces[a], *pb = &c->pieces[b];

	if (pa->group != pb->group)
		return pa->group > pb->group;
	if (c->groups[pa->group].still && pa->begin != pb->begin)
		return pa->begin > pb->begin;
	return a > b;
}

#define RUNS_SORT sort_pieces
#define RUNS_TYPE uint32_t
#define RUNS_AFTER(a, b, ctx) piece_after(ctx, *(a), *(b))
#include "util/runs.h"

/*
 * Of a stream that was used between two anchors only nobody knows the handle: its group has
 * works and no key. Its calls may be among any group's, which then has more of them than works.
 */
static int look_at_groups(struct chain *c)
{
	size_t nodes = c->keys_count + c->j->s->streams_count;

	if (GROW(c->groups, c->groups_cap, nodes + 1))
		return -ENOMEM;
	memset(c->groups, 0, (nodes + 1) * sizeof(*c->groups));
	for (uint32_t key = 0; key < c->keys_count; key++)
		c->groups[root(c, key)].keys++;
	c->unknown = false;
	for (size_t i = 0; i < c->pieces_count; i++) {
		struct group *g = &c->groups[c->pieces[i].group];

		g->still = g->still || c->pieces[i].still;
		c->unknown |= !g->keys;
	}
	return 0;
}

static int order_pieces(void *chain)
{
	struct chain *c = chain;
	size_t nodes = c->keys_count + c->j->s->streams_count, sum = 0;
	int err = look_at_groups(c);

	if (!err)
		err = GROW(c->by_group, c->by_group_cap, c->pieces_count + 1);
	if (err)
		return err;
	for (size_t i = 0; i < c->pieces_count; i++)
		c->groups[c->pieces[i].group].at++;
	for (size_t i = 0; i < nodes; i++) {
		size_t count = c->groups[i].at;

		c->groups[i].at = sum;
		sum += count;
	}
	for (size_t i = 0; i < c->pieces_count; i++)
		c->by_group[c->groups[c->pieces[i].group].at++] = (uint32_t)i;
	return sort_pieces(c->by_group, c->pieces_count, c);
}

static void know_anchors(struct chain *c)
{
	for (size_t i = 0; i < c->links_count; i++)
		c->link_of[c->links[i].call] = (uint32_t)i + 1;
	for (size_t i = 0; i < c->pieces_count; i++) {
		struct piece *p = &c->pieces[i];
		uint32_t link = p->call == CALL_NONE ? 0 : c->link_of[p->call];

		if (link)
			c->links[link - 1].taken = true;
		if (p->call != CALL_NONE)
			p->link = link ? link - 1 : LINK_OUTSIDE;
	}
	for (size_t i = 0; i < c->links_count; i++)
		c->link_of[c->links[i].call] = 0;
}

/* Both sides for themselves: works by their ids, and calls by thread. */
static int find_both(struct chain *c)
{
	return beside_both(find_links, c, chain_pieces, c, c->many);
}

static int order_both(struct chain *c)
{
	return beside_both(order_links, c, order_pieces, c, c->many);
}

/* One window of the sidecar, or a part of the time that has it in the middle. */
static int chain_part(struct chain *c, const struct session_cover *cover)
{
	int err = find_both(c);

	if (err || !c->pieces_count || !c->links_count)
		return err;
	if (!c->j->of[c->process].notes) {
		err = order_links(c);
		return err ? err : chain_numbers(c, cover);
	}
	err = find_groups(c);
	if (!err)
		err = order_both(c);
	if (err)
		return err;
	know_anchors(c);
	return chain_walk(c);
}

bool join_one_context(const struct session *s, uint32_t process)
{
	const struct session_stream *first = NULL;

	for (size_t i = 0; i < s->streams_count; i++) {
		const struct session_stream *st = &s->streams[i];

		if (st->process != process)
			continue;
		if (first && (first->context != st->context || first->device != st->device))
			return false;
		first = st;
	}
	return true;
}

static int chain_covers(struct chain *c)
{
	const struct session *s = c->j->s;
	int err = 0;

	for (size_t i = 0; i < s->covers_count && !err; i++) {
		const struct session_cover *v = &s->covers[i];
		bool first = !i || v[-1].process != v->process;
		bool last = i + 1 == s->covers_count || v[1].process != v->process;

		if (first)
			c->one_context = join_one_context(s, v->process);
		c->process = v->process;
		c->from = first ? INT64_MIN : v[-1].end + (v->begin - v[-1].end) / 2;
		c->to = last ? INT64_MAX : v->end + (v[1].begin - v->end) / 2;
		err = chain_part(c, v);
	}
	return err;
}

int join_chain(struct join *j)
{
	struct session *s = j->s;
	struct chain c = { .j = j };
	int err;

	c.lossy = s->join.dropped || s->join.bad;
	c.many = s->works_count / (s->covers_count + 1) > BESIDE_WORKS;
	c.marks = calloc(s->apis_count + 1, sizeof(*c.marks));
	c.link_of = calloc(s->calls_count + 1, sizeof(*c.link_of));
	err = c.marks && c.link_of ? 0 : -ENOMEM;
	for (size_t i = 0; i < s->apis_count && !err; i++)
		c.marks[i] = mark_of(s->apis[i].name);
	if (!err)
		err = chain_covers(&c);
	map_free(&c.keys);
	map_free(&c.nodes);
	free(c.groups);
	free((void *)c.outer);
	free(c.marks);
	free(c.link_of);
	free(c.links);
	free(c.pieces);
	free(c.waits);
	free(c.works);
	free(c.parent);
	free(c.by_group);
	return err;
}
