// SPDX-License-Identifier: BSD-2-Clause
/* Calls by the handles that they name, and works by the streams they ran on: see join_crowd.c. */
#include "model/join_numbers.h"

static int number_lane(struct map *m, uint64_t graph, uint32_t *count, uint32_t *out)
{
	*out = map_get(m, graph, 0);
	if (*out != MAP_NONE)
		return 0;
	*out = *count;
	return map_put(m, graph, 0, (*count)++);
}

static int find_lanes(const struct numbers *n, struct lanes *l)
{
	const struct chain *c = n->c;
	const struct session *s = c->j->s;
	struct map graphs = { 0 };
	int err = 0;

	l->entry_lanes = c->keys_count;
	for (size_t i = 0; i < n->entries_count && !err; i++) {
		const struct call *call = &c->j->s->calls[numbers_link(n, i)->call];

		l->entry_lane[i] = numbers_link(n, i)->key;
		if (join_sort(s, call) == SORT_GRAPH && call->flags & CALL_ARGS_CALL)
			err = number_lane(&graphs, s->transfers[call->args].object,
					  &l->entry_lanes, &l->entry_lane[i]);
	}
	map_free(&graphs);
	l->piece_lanes = (uint32_t)s->streams_count;
	for (size_t i = 0; i < c->pieces_count && !err; i++) {
		const struct work *work = chain_first_work(c, &c->pieces[i]);

		l->piece_lane[i] = work->stream;
		if (work->graph)
			err = number_lane(&graphs, work->graph, &l->piece_lanes,
					  &l->piece_lane[i]);
	}
	map_free(&graphs);
	return err;
}

/*
 * list becomes the indices of lane, those of one together, at[l] where those of l begin, and
 * place where in list each is.
 */
static void list_lanes(const uint32_t *lane, size_t count, uint32_t lanes, uint32_t *list,
		       uint32_t *at, uint32_t *place)
{
	for (size_t i = 0; i < count; i++)
		at[lane[i] + 2]++;
	for (uint32_t l = 0; l < lanes; l++)
		at[l + 2] += at[l + 1];
	for (size_t i = 0; i < count; i++) {
		place[i] = at[lane[i] + 1]++;
		list[place[i]] = (uint32_t)i;
	}
}

static void find_one_by_one(const struct numbers *n, struct lanes *l)
{
	for (uint32_t k = 0; k < l->entry_lanes; k++) {
		l->one_by_one[k] = true;
		for (uint32_t i = l->entries_at[k] + 1; i < l->entries_at[k + 1]; i++)
			if (numbers_link(n, l->entries[i])->begin <
			    numbers_link(n, l->entries[i - 1])->end)
				l->one_by_one[k] = false;
	}
}

static bool make_room(const struct numbers *n, struct lanes *l)
{
	l->entry_lane = calloc(n->entries_count + 1, sizeof(*l->entry_lane));
	l->piece_lane = calloc(n->c->pieces_count + 1, sizeof(*l->piece_lane));
	l->entries = calloc(n->entries_count + 1, sizeof(*l->entries));
	l->pieces = calloc(n->c->pieces_count + 1, sizeof(*l->pieces));
	l->entry_place = calloc(n->entries_count + 1, sizeof(*l->entry_place));
	l->piece_place = calloc(n->c->pieces_count + 1, sizeof(*l->piece_place));
	return l->entry_lane && l->piece_lane && l->entries && l->pieces && l->entry_place &&
	       l->piece_place;
}

int numbers_lanes(struct numbers *n, struct lanes *l)
{
	int err = make_room(n, l) ? find_lanes(n, l) : -ENOMEM;

	if (err)
		return err;
	l->entries_at = calloc(l->entry_lanes + 2, sizeof(*l->entries_at));
	l->pieces_at = calloc(l->piece_lanes + 2, sizeof(*l->pieces_at));
	l->one_by_one = calloc(l->entry_lanes + 1, sizeof(*l->one_by_one));
	if (!l->entries_at || !l->pieces_at || !l->one_by_one)
		return -ENOMEM;
	list_lanes(l->entry_lane, n->entries_count, l->entry_lanes, l->entries, l->entries_at,
		   l->entry_place);
	list_lanes(l->piece_lane, n->c->pieces_count, l->piece_lanes, l->pieces, l->pieces_at,
		   l->piece_place);
	find_one_by_one(n, l);
	return 0;
}

void numbers_lanes_free(struct lanes *l)
{
	free(l->entry_lane);
	free(l->piece_lane);
	free(l->entries);
	free(l->pieces);
	free(l->entry_place);
	free(l->piece_place);
	free(l->entries_at);
	free(l->pieces_at);
	free(l->one_by_one);
}
