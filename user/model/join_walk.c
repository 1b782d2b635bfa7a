// SPDX-License-Identifier: BSD-2-Clause
/* From anchor to anchor (join_chain.c): what lies between, in step. */
#include "model/join_chain.h"
#include "util/beside.h"

#define MANY 64 /* calls of several threads that overlap one another */

/* ---- between two anchors ---- */

/* Goes through whole groups, of which each is for itself. */
struct walker {
	struct chain *c;
	size_t from, to; /* pieces, as in by_group */
	uint32_t *forward, *backward, *owner;
	size_t forward_cap, backward_cap, owner_cap;
};

struct gap {
	struct chain *c;
	uint32_t *links, *pieces; /* what is not matched yet */
	uint32_t *run;		  /* of links: the first of those that overlap one another */
	size_t n, m;
};

static bool fits(const struct gap *g, size_t l, size_t p)
{
	return chain_fits(g->c, &g->c->links[g->links[l]], &g->c->pieces[g->pieces[p]]);
}

static const struct link *nth(const struct gap *g, size_t i, bool back)
{
	return &g->c->links[g->links[back ? g->n - 1 - i : i]];
}

static void find_runs(const struct gap *g)
{
	int64_t end = INT64_MIN;

	for (size_t i = 0; i < g->n; i++) {
		const struct link *l = nth(g, i, false);

		g->run[i] = i && l->begin < end ? g->run[i - 1] : (uint32_t)i;
		end = l->end > end ? l->end : end;
	}
}

/* Calls of several threads from the ith on, seen from where we come, that overlap. */
static size_t overlapping(const struct gap *g, size_t i, bool back)
{
	size_t to = i + 1;

	while (to < g->n && g->run[back ? g->n - 1 - to : to] == g->run[back ? g->n - 1 - i : i])
		to++;
	return to - i;
}

/* Only one order of them may fit. */
static bool clear(const struct gap *g, size_t i, size_t k, size_t count, bool back)
{
	if (count > MANY)
		return false;
	for (size_t a = 0; a < count; a++)
		for (size_t b = 0; b < count; b++)
			if (fits(g, back ? g->n - 1 - i - a : i + a,
				 back ? g->m - 1 - k - b : k + b) != (a == b))
				return false;
	return true;
}

/* A copy of nothing, say, causes no work. */
static bool may_skip(const struct gap *g, size_t i, size_t k, bool back)
{
	const struct session *s = g->c->j->s;

	return join_sort(s, &s->calls[nth(g, i, back)->call]) == SORT_COPY && i + 1 < g->n &&
	       fits(g, back ? g->n - 2 - i : i + 1, back ? g->m - 1 - k : k);
}

static void walk(const struct gap *g, uint32_t *to, bool back)
{
	size_t i = 0, k = 0, count;

	while (i < g->n && k < g->m) {
		count = overlapping(g, i, back);
		if (count > g->m - k) {
			break;
		} else if (count > 1) {
			for (size_t a = 0; a < count && clear(g, i, k, count, back); a++)
				to[back ? g->m - 1 - k - a : k + a] =
					(uint32_t)(back ? g->n - 1 - i - a : i + a);
			i += count;
			k += count;
		} else if (fits(g, back ? g->n - 1 - i : i, back ? g->m - 1 - k : k)) {
			to[back ? g->m - 1 - k : k] = (uint32_t)(back ? g->n - 1 - i : i);
			i++;
			k++;
		} else if (may_skip(g, i, k, back)) {
			i++;
		} else {
			break;
		}
	}
}

static void take(const struct gap *g, size_t piece, uint32_t link)
{
	struct link *l = &g->c->links[g->links[link]];

	l->taken = true;
	chain_take(g->c, &g->c->pieces[g->pieces[piece]], l);
}

static void claim(uint32_t *owner, uint32_t link, uint32_t piece)
{
	if (link != LINK_NONE)
		owner[link] = owner[link] == LINK_NONE || owner[link] == piece ? piece
									       : LINK_OUTSIDE;
}

/*
 * Where both ways say something they must say the same, and no call has two partners. Where
 * works are missing, a way is wrong from there on until something does not fit; what lies
 * before that on the other way then cannot be told from it. But if a single one is missing
 * between two anchors it is where the ways part or meet, and each is right on its side.
 */
static void agree(const struct gap *g, const uint32_t *forward, const uint32_t *backward,
		  uint32_t *owner, bool one_way)
{
	for (size_t i = 0; i < g->n; i++)
		owner[i] = LINK_NONE;
	for (size_t k = 0; k < g->m; k++) {
		claim(owner, forward[k], (uint32_t)k);
		claim(owner, backward[k], (uint32_t)k);
	}
	for (size_t k = 0; k < g->m; k++) {
		uint32_t link = forward[k] != LINK_NONE ? forward[k] : backward[k];

		if (link == LINK_NONE || owner[link] != k)
			continue;
		if (forward[k] == backward[k] ||
		    (one_way && (forward[k] == LINK_NONE || backward[k] == LINK_NONE)))
			take(g, k, link);
	}
}

/* links [l0, l1) and pieces [p0, p1) of one group, with an anchor on either side or on both. */
static int fill(struct walker *w, const size_t l[2], const size_t p[2], bool left, bool right)
{
	struct chain *c = w->c;
	struct gap g = { .c = c };
	size_t links = l[1] - l[0], pieces = p[1] - p[0];

	if (!links || !pieces || (!left && !right))
		return 0;
	if (GROW(w->forward, w->forward_cap, 2 * pieces) ||
	    GROW(w->backward, w->backward_cap, 2 * pieces) ||
	    GROW(w->owner, w->owner_cap, 3 * links))
		return -ENOMEM;
	g.links = w->owner + links;
	g.run = g.links + links;
	g.pieces = w->forward + pieces;
	for (size_t i = l[0]; i < l[1]; i++)
		if (!c->links[i].taken)
			g.links[g.n++] = (uint32_t)i;
	for (size_t i = p[0]; i < p[1]; i++)
		if (chain_piece(c, i)->link == LINK_NONE)
			g.pieces[g.m++] = c->by_group[i];
	for (size_t k = 0; k < g.m; k++)
		w->forward[k] = w->backward[k] = LINK_NONE;
	find_runs(&g);
	if (left)
		walk(&g, w->forward, false);
	if (right)
		walk(&g, w->backward, true);
	agree(&g, w->forward, w->backward, w->owner,
	      !c->unknown && (!c->lossy || (left && right && g.n == g.m + 1)));
	return 0;
}

static int fill_group(struct walker *w, const size_t l[2], const size_t p[2])
{
	const struct chain *c = w->c;
	size_t at[2] = { l[0], p[0] };
	bool left = false;
	int err = 0;

	for (size_t k = p[0]; k < p[1] && !err; k++) {
		uint32_t link = chain_piece(c, k)->link;

		if (link >= LINK_OUTSIDE || link < at[0] || link >= l[1])
			continue;
		err = fill(w, (size_t[2]){ at[0], link }, (size_t[2]){ at[1], k }, left, true);
		at[0] = link + 1;
		at[1] = k + 1;
		left = true;
	}
	if (!err)
		err = fill(w, (size_t[2]){ at[0], l[1] }, (size_t[2]){ at[1], p[1] }, left, false);
	return err;
}

static size_t group_end(const struct chain *c, size_t piece)
{
	uint32_t group = chain_piece(c, piece)->group;

	while (piece < c->pieces_count && chain_piece(c, piece)->group == group)
		piece++;
	return piece;
}

static int walk_groups(void *walker)
{
	struct walker *w = walker;
	const struct chain *c = w->c;
	size_t l[2] = { 0, 0 }, p[2];
	int err = 0;

	for (p[0] = w->from; p[0] < w->to && !err; p[0] = p[1]) {
		uint32_t group = chain_piece(c, p[0])->group;

		p[1] = group_end(c, p[0]);
		for (l[0] = l[1]; l[0] < c->links_count && c->links[l[0]].group < group;)
			l[0]++;
		for (l[1] = l[0]; l[1] < c->links_count && c->links[l[1]].group == group;)
			l[1]++;
		/* without ids there is no order of several streams */
		if (!c->groups[group].still || c->groups[group].keys < 2)
			err = fill_group(w, l, p);
	}
	return err;
}

static void walker_free(struct walker *w)
{
	free(w->forward);
	free(w->backward);
	free(w->owner);
}

int chain_walk(struct chain *c)
{
	size_t half = group_end(c, c->pieces_count / 2);
	struct walker first = { .c = c, .from = 0, .to = half };
	struct walker second = { .c = c, .from = half, .to = c->pieces_count };
	int err = beside_both(walk_groups, &first, walk_groups, &second,
			      c->many && half < c->pieces_count);

	walker_free(&first);
	walker_free(&second);
	return err;
}
