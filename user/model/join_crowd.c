// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls of several threads that overlap, of works that are numbered (join_numbers.c): in which
 * order the driver took them is not known, only between which others: after all that had ended
 * before, before all that began later, and those of one thread in their order. What fits only
 * one belongs to it, and says whose stream that is: a stream has one handle as long as it
 * lives, though a handle may be of several streams, one after the other. For launches of graphs
 * the same is so of graphs and their handles. What has one handle, or is of one stream or
 * graph, is a lane here.
 */
#include "model/join_numbers.h"
#include "util/beside.h"

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

/* Through the entries of one lane, [first, end) of its list. */
struct walk {
	uint32_t first, at, end;
	bool clear; /* they are in order, as many as the works, and fit */
};

struct crowd {
	struct numbers *n;
	const struct stretch *st;
	struct place *places;
	int64_t *ends;
	struct lanes l;
	uint32_t *owner;   /* of lanes of pieces: one of entries, LINK_NONE, OWNER_ */
	uint32_t *thread;  /* of threads: the last entry so far */
	struct walk *walks; /* of lanes of entries, all 0 but while a run is looked at */
	uint32_t *used, used_count; /* which are not */
	uint32_t wide[MOST_WIDE], wide_count;
};

static const struct call *call_of(const struct crowd *w, size_t entry)
{
	return &w->n->c->j->s->calls[numbers_link(w->n, entry)->call];
}

/* ---- where entries can be ---- */

#define RUNS_SORT sort_ends
#define RUNS_TYPE int64_t
#define RUNS_AFTER(a, b, ctx) (*(a) > *(b))
#include "util/runs.h"

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

static int find_places(void *crowd)
{
	struct crowd *w = crowd;
	const struct numbers *n = w->n;
	size_t count = n->entries_count, ended = 0, next = 0;
	int err;

	w->places = calloc(count + 1, sizeof(*w->places));
	w->ends = calloc(count + 1, sizeof(*w->ends));
	w->thread = calloc(n->c->j->s->threads_count + 1, sizeof(*w->thread));
	if (!w->places || !w->ends || !w->thread)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		w->ends[i] = numbers_link(n, i)->end;
	err = sort_ends(w->ends, count, NULL);
	if (err)
		return err;
	for (size_t i = 0; i < n->c->j->s->threads_count; i++)
		w->thread[i] = LINK_NONE;
	for (size_t i = 0; i < count; i++) {
		const struct entry *e = &n->entries[i];
		uint32_t *last = &w->thread[call_of(w, i)->thread];

		/* those that had ended come before it, those that began after its end behind it */
		ended = near_find(w->ends, sizeof(*w->ends), count, e->begin + 1, ended);
		next = numbers_at(n, numbers_link(n, i)->end, next);
		next = next > i ? next - 1 : i;
		w->places[i] = (struct place){
			.lowest = ended > e->first ? (uint32_t)ended : e->first,
			.highest = next < e->past ? (uint32_t)next : e->past - 1,
			.before = *last, .after = LINK_NONE };
		if (*last != LINK_NONE)
			w->places[*last].after = (uint32_t)i;
		*last = (uint32_t)i;
	}
	order_threads(w);
	return 0;
}

/* Those never become wider. False: there are too many. */
static bool find_wide(struct crowd *w)
{
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

	w->n->checks += to - from + w->wide_count;
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
	w->n->checks += (uint64_t)(to - from + 1);
	for (int64_t k = from; k <= to; k++) {
		if (!free_piece(w, (size_t)k) || !fits(w, entry, (size_t)k))
			continue;
		if (found != SIZE_MAX)
			return SIZE_MAX;
		found = (size_t)k;
	}
	return found;
}

/* ---- lanes in step ---- */

/* The lanes of a run's entries, each with its own. */
static void begin_lanes(struct crowd *w, const struct entry *run)
{
	w->used_count = 0;
	for (size_t i = run->first; i < run->past; i++) {
		uint32_t lane = w->l.entry_lane[i];
		struct walk *u = &w->walks[lane];

		if (!u->end) {
			w->used[w->used_count++] = lane;
			u->at = u->first = w->l.entry_place[i];
			u->clear = w->l.one_by_one[lane];
		}
		u->end = w->l.entry_place[i] + 1;
	}
}

/* The next entry of the lane that owns the piece's; LINK_NONE: of none, or there are too few. */
static uint32_t next_of(struct crowd *w, size_t piece)
{
	uint32_t lane = w->owner[w->l.piece_lane[piece]];
	struct walk *u = lane < OWNER_HIDDEN ? &w->walks[lane] : NULL;

	if (!u || !u->clear)
		return LINK_NONE;
	if (u->at < u->end)
		return w->l.entries[u->at++];
	u->clear = false;
	return LINK_NONE;
}

/* Of lanes that have as many calls as works in the run, each of which fits, these are in order. */
static bool run_in_step(struct crowd *w, const struct entry *run, size_t piece)
{
	size_t past = piece + run->past - run->first;
	bool more = false;
	uint32_t i;

	begin_lanes(w, run);
	for (size_t k = piece; k < past; k++)
		if ((i = next_of(w, k)) != LINK_NONE &&
		    !chain_fits(w->n->c, numbers_link(w->n, i), &w->n->c->pieces[k]))
			w->walks[w->l.entry_lane[i]].clear = false;
	for (uint32_t u = 0; u < w->used_count; u++) {
		struct walk *of = &w->walks[w->used[u]];

		of->clear = of->clear && of->at == of->end;
		of->at = of->first;
	}
	for (size_t k = piece; k < past; k++)
		if ((i = next_of(w, k)) != LINK_NONE && free_piece(w, k) && !w->places[i].taken) {
			take(w, i, k);
			more = true;
		}
	for (uint32_t u = 0; u < w->used_count; u++)
		w->walks[w->used[u]] = (struct walk){ 0 };
	return more;
}

static bool any_free(const struct crowd *w, size_t piece, size_t past)
{
	while (piece < past && !free_piece(w, piece))
		piece++;
	return piece < past;
}

static bool in_runs(struct crowd *w)
{
	const struct stretch *st = w->st;
	bool more = false;

	for (size_t k = st->from; k < st->to;) {
		size_t at = (size_t)((int64_t)k + st->offset);
		const struct entry *e = &w->n->entries[at];
		size_t past = k + e->past - at;

		/* all of a run, or it is not known which of its works are there */
		if (e->first == at && past <= st->to && any_free(w, k, past))
			more |= run_in_step(w, e, k);
		k = past;
	}
	return more;
}

/* ---- whose a stream is ---- */

/* Pieces of a lane from piece on, and entries of one from at on, in step: do all fit? */
static bool in_step(const struct crowd *w, size_t piece, uint32_t lane, uint32_t at)
{
	uint32_t i = w->l.piece_place[piece], end = w->l.pieces_at[w->l.piece_lane[piece] + 1];

	for (; i < end && w->l.pieces[i] < w->st->to; i++, w->n->checks++)
		if (at == w->l.entries_at[lane + 1] || !free_piece(w, w->l.pieces[i]) ||
		    !fits(w, w->l.entries[at++], w->l.pieces[i]))
			return false;
	return true;
}

static void take_in_step(struct crowd *w, size_t piece, uint32_t at)
{
	uint32_t i = w->l.piece_place[piece], end = w->l.pieces_at[w->l.piece_lane[piece] + 1];

	for (; i < end && w->l.pieces[i] < w->st->to; i++)
		take(w, w->l.entries[at++], w->l.pieces[i]);
}

/* Of a lane of which nothing is known yet: the handle whose calls fit all of its works. */
static bool find_owner(struct crowd *w, size_t piece)
{
	struct scan s = scan_of(w, piece);
	uint32_t found = LINK_NONE, first = 0, entry;

	while ((entry = scan_next(w, &s, piece)) != LINK_NONE) {
		uint32_t lane = w->l.entry_lane[entry], at = w->l.entry_place[entry];

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

static bool spent(const struct crowd *w)
{
	return w->n->checks > NUMBERS_CHECKS;
}

static bool turn(struct crowd *w)
{
	const struct stretch *st = w->st;
	bool more = false;

	for (size_t k = st->from; k < st->to && !spent(w); k++) {
		uint32_t entry = free_piece(w, k) ? only_entry(w, k) : LINK_NONE;

		if (entry == LINK_NONE)
			continue;
		take(w, entry, k);
		more = true;
	}
	for (size_t k = st->from; k < st->to && !spent(w); k++) {
		size_t i = (size_t)((int64_t)k + st->offset), piece = only_piece(w, i);

		if (piece == SIZE_MAX)
			continue;
		take(w, i, piece);
		more = true;
	}
	return more;
}

static bool owners(struct crowd *w)
{
	bool more = false;

	for (size_t k = w->st->from; k < w->st->to; k++) {
		uint32_t *owner = &w->owner[w->l.piece_lane[k]];

		if (!free_piece(w, k) || *owner != LINK_NONE || spent(w))
			continue;
		if (find_owner(w, k))
			more = true;
		else if (*owner == LINK_NONE)
			*owner = OWNER_HIDDEN;
	}
	for (size_t k = w->st->from; k < w->st->to; k++)
		if (w->owner[w->l.piece_lane[k]] == OWNER_HIDDEN)
			w->owner[w->l.piece_lane[k]] = LINK_NONE;
	return more;
}

/* What calls that were alone have says whose streams are. */
static bool begin_stretch(struct crowd *w)
{
	bool open = false;

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

static int lanes_run(void *crowd)
{
	struct crowd *w = crowd;

	return numbers_lanes(w->n, &w->l);
}

static int make_room(struct crowd *w)
{
	w->owner = calloc(w->l.piece_lanes + 1, sizeof(*w->owner));
	w->walks = calloc(w->l.entry_lanes + 1, sizeof(*w->walks));
	w->used = calloc(w->l.entry_lanes + 1, sizeof(*w->used));
	if (!w->owner || !w->walks || !w->used)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->l.piece_lanes; i++)
		w->owner[i] = LINK_NONE;
	return 0;
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
	bool go_on;
	int err;

	if (!any_crowd(n))
		return 0;
	n->checks = 0;
	err = beside_both(find_places, &w, lanes_run, &w, n->c->many);
	if (!err)
		err = make_room(&w);
	go_on = !err && find_wide(&w);
	for (size_t i = 0; i < n->stretches_count && go_on; i++) {
		w.st = &n->stretches[i];
		if (!w.st->known || !begin_stretch(&w))
			continue;
		for (int t = 0; t < TURNS && (in_runs(&w) || turn(&w) || owners(&w)); t++)
			;
	}
	numbers_lanes_free(&w.l);
	free(w.places);
	free(w.ends);
	free(w.owner);
	free(w.thread);
	free(w.walks);
	free(w.used);
	return err;
}
