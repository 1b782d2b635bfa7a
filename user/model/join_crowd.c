// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls of several threads that overlap, of works that are numbered (join_numbers.c): in which
 * order the driver took them is not known, only between which others: after all that had ended
 * before, before all that began later, and those of one thread in their order. What fits only
 * one belongs to it, and says whose stream that is: a stream has one handle as long as it
 * lives, though a handle may be of several streams, one after the other. For launches of graphs
 * the same is so of graphs and their handles. Both are lanes here.
 */
#include "model/join_numbers.h"

#define TURNS 16 /* each looks at everything once; mostly two are enough */
#define WIDEST 256 /* places; of entries that have more, as waits have beside launches, */
#define MOST_WIDE 64 /* there are few */

/* More than one handle's, or looked for in vain. */
#define OWNER_MIXED LINK_OUTSIDE
#define OWNER_HIDDEN (LINK_OUTSIDE - 1)

/* Where among the numbers an entry can be. */
struct place {
	uint32_t lowest, highest;
	uint32_t before, after; /* entries of the same thread, LINK_NONE */
	bool taken;
};

struct crowd {
	struct numbers *n;
	const struct stretch *st;
	struct place *places;
	int64_t *ends;
	struct lanes l;
	uint32_t *owner;   /* of lanes of pieces: one of entries, LINK_NONE, OWNER_ */
	uint32_t *thread;  /* of threads: the last entry so far */
	uint32_t wide[MOST_WIDE], wide_count;
};

static const struct call *call_of(const struct crowd *w, size_t entry)
{
	return &w->n->c->j->s->calls[numbers_link(w->n, entry)->call];
}

/* ---- where entries can be ---- */

static int end_order(const void *pa, const void *pb)
{
	const int64_t *a = pa, *b = pb;

	return *a < *b ? -1 : *a > *b;
}

static uint32_t ended_by(const struct crowd *w, int64_t when)
{
	size_t low = 0, high = w->n->entries_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (w->ends[middle] <= when)
			low = middle + 1;
		else
			high = middle;
	}
	return (uint32_t)low;
}

/* Those of one thread are in order. */
static void order_threads(struct crowd *w)
{
	size_t count = w->n->entries_count;

	for (size_t i = 0; i < count; i++) {
		struct place *p = &w->places[i];

		if (p->before != LINK_NONE && p->lowest <= w->places[p->before].lowest)
			p->lowest = w->places[p->before].lowest + 1;
	}
	for (size_t i = count; i-- > 0;) {
		struct place *p = &w->places[i];

		if (p->after != LINK_NONE && p->highest >= w->places[p->after].highest)
			p->highest = w->places[p->after].highest - 1;
	}
}

static void find_places(struct crowd *w)
{
	const struct numbers *n = w->n;
	size_t count = n->entries_count, next = 0;

	for (size_t i = 0; i < count; i++)
		w->ends[i] = numbers_link(n, i)->end;
	qsort(w->ends, count, sizeof(*w->ends), end_order);
	for (size_t i = 0; i < n->c->j->s->threads_count; i++)
		w->thread[i] = LINK_NONE;
	for (size_t i = 0; i < count; i++) {
		const struct entry *e = &n->entries[i];
		const struct link *l = numbers_link(n, i);
		struct place *p = &w->places[i];
		uint32_t *last = &w->thread[call_of(w, i)->thread];

		*p = (struct place){ .lowest = ended_by(w, l->begin), .highest = e->past - 1,
				     .before = *last, .after = LINK_NONE };
		if (p->lowest < e->first)
			p->lowest = e->first;
		for (next = i; next + 1 < e->past && numbers_link(n, next + 1)->begin < l->end;)
			next++;
		p->highest = (uint32_t)next;
		if (*last != LINK_NONE)
			w->places[*last].after = (uint32_t)i;
		*last = (uint32_t)i;
	}
	order_threads(w);
}

/* False: there are too many. */
static bool find_wide(struct crowd *w)
{
	w->wide_count = 0;
	for (size_t i = 0; i < w->n->entries_count; i++) {
		const struct place *p = &w->places[i];

		if (p->highest < p->lowest || p->highest - p->lowest <= WIDEST)
			continue;
		if (w->wide_count == MOST_WIDE)
			return false;
		w->wide[w->wide_count++] = (uint32_t)i;
	}
	return true;
}

/* ---- what fits what ---- */

static bool fits(const struct crowd *w, size_t entry, size_t piece)
{
	const struct place *p = &w->places[entry];
	int64_t rank = (int64_t)piece + w->st->offset;
	uint32_t owner = w->owner[w->l.piece_lane[piece]];

	if (p->taken || rank < p->lowest || rank > p->highest)
		return false;
	if (owner < OWNER_HIDDEN && owner != w->l.entry_lane[entry])
		return false;
	return chain_fits(w->n->c, numbers_link(w->n, entry), &w->n->c->pieces[piece]);
}

static void own(struct crowd *w, size_t entry, size_t piece)
{
	uint32_t *owner = &w->owner[w->l.piece_lane[piece]], lane = w->l.entry_lane[entry];

	*owner = *owner == LINK_NONE || *owner == OWNER_HIDDEN || *owner == lane ? lane :
										   OWNER_MIXED;
}

static void take(struct crowd *w, size_t entry, size_t piece)
{
	struct place *p = &w->places[entry];
	uint32_t rank = (uint32_t)((int64_t)piece + w->st->offset);

	chain_take(w->n->c, &w->n->c->pieces[piece], numbers_link(w->n, entry));
	p->lowest = p->highest = rank;
	p->taken = true;
	own(w, entry, piece);
	for (uint32_t i = p->before; i != LINK_NONE && rank && w->places[i].highest >= rank;
	     i = w->places[i].before)
		w->places[i].highest = --rank;
	rank = p->lowest;
	for (uint32_t i = p->after; i != LINK_NONE && w->places[i].lowest <= rank;
	     i = w->places[i].after)
		w->places[i].lowest = ++rank;
}

/* Entries that a piece may be of: from i on, then the wide ones. */
struct scan {
	size_t from, to, next;
	uint32_t wide;
};

static struct scan scan_of(const struct crowd *w, size_t piece)
{
	size_t rank = (size_t)((int64_t)piece + w->st->offset);
	const struct entry *e = &w->n->entries[rank];
	size_t from = rank - e->first > WIDEST ? rank - WIDEST : e->first;
	size_t to = e->past - rank > WIDEST ? rank + WIDEST + 1 : e->past;

	return (struct scan){ .from = from, .to = to, .next = from };
}

/* The next entry that fits, LINK_NONE: there is none. */
static uint32_t scan_next(const struct crowd *w, struct scan *s, size_t piece)
{
	while (s->next < s->to)
		if (fits(w, s->next++, piece))
			return (uint32_t)s->next - 1;
	while (s->wide < w->wide_count) {
		uint32_t i = w->wide[s->wide++];

		if ((i < s->from || i >= s->to) && fits(w, i, piece))
			return i;
	}
	return LINK_NONE;
}

/* The only entry that fits the piece, LINK_NONE: there are several, or none. */
static uint32_t only_entry(const struct crowd *w, size_t piece)
{
	struct scan s = scan_of(w, piece);
	uint32_t found = scan_next(w, &s, piece);

	return found == LINK_NONE || scan_next(w, &s, piece) == LINK_NONE ? found : LINK_NONE;
}

static bool free_piece(const struct crowd *w, size_t piece)
{
	return w->n->c->pieces[piece].call == CALL_NONE;
}

/* The only piece that fits the entry; SIZE_MAX: several, none, or such as are not there. */
static size_t only_piece(const struct crowd *w, size_t entry)
{
	const struct place *p = &w->places[entry];
	int64_t from = p->lowest - w->st->offset, to = p->highest - w->st->offset;
	size_t found = SIZE_MAX;

	if (p->taken || from < (int64_t)w->st->from || to >= (int64_t)w->st->to ||
	    to - from > WIDEST)
		return SIZE_MAX;
	for (int64_t k = from; k <= to; k++) {
		if (!free_piece(w, (size_t)k) || !fits(w, entry, (size_t)k))
			continue;
		if (found != SIZE_MAX)
			return SIZE_MAX;
		found = (size_t)k;
	}
	return found;
}

/* ---- whose a stream is ---- */

/* Pieces of a lane from piece on, and entries of one from at on, in step: do all fit? */
static bool in_step(const struct crowd *w, size_t piece, uint32_t lane, uint32_t at)
{
	uint32_t own = w->l.piece_lane[piece], end = w->l.pieces_at[own + 1];
	uint32_t i = lanes_place(w->l.pieces, w->l.pieces_at[own], end, (uint32_t)piece);

	for (; i < end && w->l.pieces[i] < w->st->to; i++)
		if (at == w->l.entries_at[lane + 1] || !free_piece(w, w->l.pieces[i]) ||
		    !fits(w, w->l.entries[at++], w->l.pieces[i]))
			return false;
	return true;
}

static void take_in_step(struct crowd *w, size_t piece, uint32_t at)
{
	uint32_t own = w->l.piece_lane[piece], end = w->l.pieces_at[own + 1];
	uint32_t i = lanes_place(w->l.pieces, w->l.pieces_at[own], end, (uint32_t)piece);

	for (; i < end && w->l.pieces[i] < w->st->to; i++)
		take(w, w->l.entries[at++], w->l.pieces[i]);
}

/* Of a lane of which nothing is known yet: the handle whose calls fit all of its works. */
static bool find_owner(struct crowd *w, size_t piece)
{
	struct scan s = scan_of(w, piece);
	uint32_t found = LINK_NONE, first = 0, entry;

	while ((entry = scan_next(w, &s, piece)) != LINK_NONE) {
		uint32_t lane = w->l.entry_lane[entry];
		uint32_t at = lanes_place(w->l.entries, w->l.entries_at[lane],
					  w->l.entries_at[lane + 1], entry);

		if (w->l.one_by_one[lane] && !in_step(w, piece, lane, at))
			continue;
		if (found != LINK_NONE)
			return false;
		found = lane;
		first = at;
	}
	if (found == LINK_NONE || !w->l.one_by_one[found])
		return false;
	take_in_step(w, piece, first);
	return true;
}

/* ---- all of it ---- */

static bool turn(struct crowd *w)
{
	const struct stretch *st = w->st;
	bool more = false;

	for (size_t k = st->from; k < st->to; k++) {
		uint32_t entry = free_piece(w, k) ? only_entry(w, k) : LINK_NONE;

		if (entry == LINK_NONE)
			continue;
		take(w, entry, k);
		more = true;
	}
	for (int64_t i = (int64_t)st->from + st->offset; i < (int64_t)st->to + st->offset; i++) {
		size_t piece = only_piece(w, (size_t)i);

		if (piece == SIZE_MAX)
			continue;
		take(w, (size_t)i, piece);
		more = true;
	}
	return more;
}

static bool owners(struct crowd *w)
{
	bool more = false;

	for (size_t k = w->st->from; k < w->st->to; k++) {
		uint32_t *owner = &w->owner[w->l.piece_lane[k]];

		if (!free_piece(w, k) || *owner != LINK_NONE)
			continue;
		if (find_owner(w, k))
			more = true;
		else if (*owner == LINK_NONE)
			*owner = OWNER_HIDDEN;
	}
	for (uint32_t i = 0; i < w->l.piece_lanes; i++)
		if (w->owner[i] == OWNER_HIDDEN)
			w->owner[i] = LINK_NONE;
	return more;
}

/* What calls that were alone have says whose streams are. */
static bool begin_stretch(struct crowd *w)
{
	bool open = false;

	for (uint32_t i = 0; i < w->l.piece_lanes; i++)
		w->owner[i] = LINK_NONE;
	for (size_t k = w->st->from; k < w->st->to; k++) {
		size_t at = (size_t)((int64_t)k + w->st->offset);

		if (free_piece(w, k)) {
			open = true;
			continue;
		}
		w->places[at].taken = true;
		own(w, at, k);
	}
	return open;
}

static int make_room(struct crowd *w)
{
	const struct numbers *n = w->n;

	w->places = calloc(n->entries_count + 1, sizeof(*w->places));
	w->ends = calloc(n->entries_count + 1, sizeof(*w->ends));
	w->owner = calloc(w->l.piece_lanes + 1, sizeof(*w->owner));
	w->thread = calloc(n->c->j->s->threads_count + 1, sizeof(*w->thread));
	return w->places && w->ends && w->owner && w->thread ? 0 : -ENOMEM;
}

static bool any_crowd(const struct numbers *n)
{
	for (size_t i = 0; i < n->entries_count; i++)
		if (!numbers_alone(&n->entries[i]))
			return true;
	return false;
}

int numbers_crowds(struct numbers *n)
{
	struct crowd w = { .n = n };
	int err;

	if (!any_crowd(n))
		return 0;
	err = numbers_lanes(n, &w.l);
	if (!err)
		err = make_room(&w);
	if (!err) {
		find_places(&w);
		for (size_t i = 0; i < n->stretches_count && find_wide(&w); i++) {
			w.st = &n->stretches[i];
			if (!w.st->known || !begin_stretch(&w))
				continue;
			for (int t = 0; t < TURNS && (turn(&w) || owners(&w)); t++)
				;
		}
	}
	numbers_lanes_free(&w.l);
	free(w.places);
	free(w.ends);
	free(w.owner);
	free(w.thread);
	return err;
}
