// SPDX-License-Identifier: BSD-2-Clause
/*
 * Works of windows in which CUPTI recorded no calls. It numbers works all the same, from call
 * to call that causes any (13.0, seen on an H200: with each launch, copy and set of the process
 * by one, and with each launch of a graph), so in the order of their numbers works are calls in
 * the order of time. All there is to be found is which call is the first one's: the offset of
 * one side against the other. Each offset that may be is held against all pairs that it makes;
 * what remains is the one, if it is the only one. Where a record is missing, or a call caused
 * no work, it changes, and around that place what may be either way stays open.
 */
#include "model/join_numbers.h"
#include "util/beside.h"

#define MOST_OFFSETS 4096  /* as many launches as wait for a GPU, several times over */
#define AROUND 64	   /* at a change */
#define FEW 64		   /* offsets that are looked at more closely */
#define LEAST 8		   /* pairs that tell an offset, where the window has more */
#define MOST_RANGE 256	   /* of all the offsets of a window */
#define NEAR 2		   /* beyond those that were found */
#define LOOKED_AT 65536   /* pieces, when looked at more closely */
#define UNKNOWN_NS 100000000 /* how long switching on may have taken, where it is not said */
#define NOT_SAID INT64_MIN

/* ---- both sides ---- */

static bool graphs_are_wrong(const struct numbers *n)
{
	return n->cover->begin >= n->c->j->of[n->c->process].graphs_wrong;
}

static int find_entries(struct numbers *n)
{
	const struct chain *c = n->c;
	bool graphs = !graphs_are_wrong(n);
	int64_t end = INT64_MIN;

	n->entries_count = 0;
	if (GROW(n->entries, n->entries_cap, c->links_count + 1))
		return -ENOMEM;
	for (size_t i = 0; i < c->links_count; i++) {
		const struct link *l = &c->links[i];
		struct entry *e = &n->entries[n->entries_count];

		if (!graphs && join_sort(c->j->s, &c->j->s->calls[l->call]) == SORT_GRAPH)
			continue;
		*e = (struct entry){ .begin = l->begin, .until = l->until, .link = (uint32_t)i,
				     .first = (uint32_t)n->entries_count };
		if (n->entries_count && l->begin < end) {
			e->first = e[-1].first;
			e->until = l->until > e[-1].until ? l->until : e[-1].until;
		}
		n->entries_count++;
		end = l->end > end ? l->end : end;
	}
	for (size_t i = n->entries_count; i-- > 0;) {
		bool last = i + 1 == n->entries_count || n->entries[i + 1].first == i + 1;

		n->entries[i].past = last ? (uint32_t)i + 1 : n->entries[i + 1].past;
		if (!last)
			n->entries[i].until = n->entries[i + 1].until;
	}
	return 0;
}

/* Ids that calls share are not numbers; and where there are parts, all would be off. */
static bool are_numbers(const struct numbers *n)
{
	const struct chain *c = n->c;

	for (size_t i = 0; i < c->pieces_count; i++)
		if (c->pieces[i].still || c->pieces[i].link != LINK_NONE ||
		    c->pieces[i].call != CALL_NONE)
			return false;
	return c->pieces_count && n->entries_count;
}

bool numbers_fit(const struct numbers *n, size_t piece, int64_t entry)
{
	const struct piece *p = &n->c->pieces[piece];
	int64_t slack = n->c->j->slack;
	const struct entry *e;

	if (entry < 0 || entry >= (int64_t)n->entries_count)
		return false;
	e = &n->entries[entry];
	if (numbers_alone(e))
		return chain_fits(n->c, numbers_link(n, (size_t)entry), p);
	return p->begin >= n->entries[e->first].begin - slack &&
	       p->begin <= e->until + slack;
}

/* ---- which offsets may be ---- */

static int set_offsets(struct numbers *n, int64_t from, int64_t to)
{
	n->offsets_count = 0;
	if (to - from >= MOST_OFFSETS)
		from = to - MOST_OFFSETS + 1;
	if (from > to)
		return 0;
	if (GROW(n->offsets, n->offsets_cap, (size_t)(to - from + 1)))
		return -ENOMEM;
	for (int64_t o = from; o <= to; o++)
		n->offsets[n->offsets_count++] = o;
	return 0;
}

/* Surely, and its record is there: a copy of nothing causes none. */
static bool causes_work(const struct numbers *n, size_t entry)
{
	const struct session *s = n->c->j->s;

	return !n->c->lossy && entry < n->entries_count &&
	       join_sort(s, &s->calls[numbers_link(n, entry)->call]) == SORT_KERNEL;
}

/*
 * The first number is that of a call that was not over when works began to be recorded, and
 * began no later than its work; and of the first of those after it was on, unless that one
 * caused none. If no call was under way meanwhile it is just that one.
 */
static int begin_offsets(struct numbers *n)
{
	const struct chain *c = n->c;
	int64_t took = n->cover->switching > 0 ? n->cover->switching : UNKNOWN_NS;
	size_t after = numbers_at(n, n->cover->begin, 0), from = after;
	size_t to = numbers_at(n, c->pieces[0].begin + c->j->slack + 1, after);

	while (from && n->entries[n->entries[from - 1].first].begin >
			       n->cover->begin - took - UNKNOWN_NS)
		from--;
	while (from < after && numbers_link(n, from)->end <= n->cover->begin - took)
		from++;
	if (to && to <= n->entries_count)
		to = n->entries[to - 1].past;
	n->exact = n->cover->switching > 0 && from == after && causes_work(n, after) ?
			   (int64_t)after : NOT_SAID;
	if (to > after + AROUND)
		to = after + AROUND;
	return set_offsets(n, (int64_t)from, (int64_t)to - 1);
}

static void offsets_range(const struct numbers *n, int64_t *lowest, int64_t *highest)
{
	*lowest = *highest = n->offsets[0];
	for (size_t o = 1; o < n->offsets_count; o++) {
		*lowest = n->offsets[o] < *lowest ? n->offsets[o] : *lowest;
		*highest = n->offsets[o] > *highest ? n->offsets[o] : *highest;
	}
}

static int change_offsets(struct numbers *n)
{
	int64_t lowest, highest;

	offsets_range(n, &lowest, &highest);
	return set_offsets(n, lowest - AROUND, highest + AROUND);
}

/* Pieces [from, to) by one offset: at becomes the first that does not fit, or to. */
struct check {
	const struct numbers *n;
	size_t from, to, at;
	int64_t offset;
};

static int check_run(void *check)
{
	struct check *c = check;

	for (c->at = c->from; c->at < c->to; c->at++)
		if (!numbers_fit(c->n, c->at, (int64_t)c->at + c->offset))
			break;
	return 0;
}

/* The first piece from there on that does not fit the only offset; block by block. */
static size_t check_all(struct numbers *n, size_t from)
{
	size_t count = n->c->pieces_count, block = 64;

	for (; from < count; block *= 2) {
		size_t to = count - from > block ? from + block : count;
		size_t half = from + (to - from) / 2;
		struct check first = { n, from, half, half, n->offsets[0] };
		struct check second = { n, half, to, to, n->offsets[0] };

		n->checks += to - from;
		(void)beside_both(check_run, &first, check_run, &second, to - from > BESIDE_WORKS);
		if (first.at < half || second.at < to)
			return first.at < half ? first.at : second.at;
		from = to;
	}
	return count;
}

/* Leaves those that fit all of [from, to) and returns to: the first piece that none fits. */
static size_t narrow(struct numbers *n, size_t from)
{
	for (size_t i = from; i < n->c->pieces_count; i++) {
		size_t kept = 0;

		n->checks += n->offsets_count;
		if (n->checks > NUMBERS_CHECKS)
			break;
		for (size_t o = 0; o < n->offsets_count; o++) {
			int64_t offset = n->offsets[o];

			if (!numbers_fit(n, i, (int64_t)i + offset))
				continue;
			/* those that did not fit stay behind it, should none do */
			n->offsets[o] = n->offsets[kept];
			n->offsets[kept++] = offset;
		}
		if (!kept)
			return i;
		n->offsets_count = kept;
		if (kept == 1 && i + 1 < n->c->pieces_count)
			return check_all(n, i + 1);
	}
	return n->c->pieces_count;
}

/* ---- which of several it is ---- */

/* One kernel is one function's, and works of one handle are of one stream. */
static int agrees(struct numbers *n, struct map *m, uint64_t one, uint32_t other, bool *ok)
{
	uint32_t known = map_get(m, one, 0);

	if (known != MAP_NONE) {
		*ok = known == other;
		return 0;
	}
	*ok = true;
	return map_put(m, one, 0, other);
}

static int consistent(struct numbers *n, size_t from, size_t to, int64_t offset, bool *ok)
{
	const struct chain *c = n->c;
	const struct session *s = c->j->s;
	int err = 0;

	map_free(&n->kernels);
	map_free(&n->streams);
	*ok = true;
	for (size_t i = from; i < to && *ok && !err; i++) {
		size_t at = (size_t)((int64_t)i + offset);
		const struct work *w = chain_first_work(c, &c->pieces[i]);
		const struct link *l = numbers_link(n, at);
		const struct call *call = &s->calls[l->call];

		if (!numbers_alone(&n->entries[at]) || w->graph)
			continue;
		err = agrees(n, &n->streams, l->key, w->stream, ok);
		if (!err && *ok && call->kernel != NO_INDEX && w->kernel != NO_INDEX)
			err = agrees(n, &n->kernels, call->kernel, w->kernel, ok);
	}
	return err;
}

/* Leaves those offsets with which names and streams come out the same wherever they are. */
static int look_closely(struct numbers *n, size_t from, size_t to)
{
	size_t kept = 0;
	int err = 0;

	if (to - from > LOOKED_AT)
		to = from + LOOKED_AT;
	for (size_t o = 0; o < n->offsets_count && !err; o++) {
		bool ok;

		err = consistent(n, from, to, n->offsets[o], &ok);
		if (!err && ok)
			n->offsets[kept++] = n->offsets[o];
	}
	if (kept)
		n->offsets_count = kept;
	return err;
}

/* Enough pairs of calls that were alone: of others only the time says something. */
static bool is_shown(const struct numbers *n, const struct stretch *st)
{
	size_t count = 0;

	for (size_t k = st->from; k < st->to && count < LEAST; k++)
		count += numbers_alone(&n->entries[(int64_t)k + st->offset]);
	return count >= LEAST;
}

static bool any_inside(const struct numbers *n, int64_t from, int64_t to)
{
	for (int64_t i = from < 0 ? 0 : from; i < to; i++)
		if (n->entries[i].begin >= n->cover->begin &&
		    numbers_link(n, (size_t)i)->end <= n->cover->end)
			return true;
	return false;
}

/* It goes to the end, and every call wholly in the window has its own: nothing is missing there. */
static bool complete(const struct numbers *n, const struct stretch *st)
{
	int64_t first = (int64_t)st->from + st->offset, past = (int64_t)st->to + st->offset;

	return st->to == n->c->pieces_count && !n->c->lossy && n->cover->whole &&
	       !any_inside(n, 0, first) && !any_inside(n, past, (int64_t)n->entries_count);
}

static int resolve(struct numbers *n, struct stretch *st)
{
	int err = 0;

	if (n->offsets_count > 1 && n->offsets_count <= FEW)
		err = look_closely(n, st->from, st->to);
	for (size_t o = 0; o < n->offsets_count && !st->from; o++)
		if (n->offsets[o] == n->exact) {
			n->offsets[0] = n->exact;
			n->offsets_count = 1;
		}
	st->offset = n->offsets[0];
	st->known = n->offsets_count == 1 && st->from < st->to &&
		    (is_shown(n, st) || complete(n, st));
	offsets_range(n, &st->lowest, &st->highest);
	return err;
}

/* ---- from change to change ---- */

/* The only offset of [lowest, highest] that the piece fits; NOT_SAID: several, or none. */
static int64_t only_offset(const struct numbers *n, size_t piece, int64_t lowest, int64_t highest)
{
	int64_t found = NOT_SAID;

	for (int64_t o = lowest; o <= highest; o++) {
		if (!numbers_fit(n, piece, (int64_t)piece + o))
			continue;
		if (found != NOT_SAID)
			return NOT_SAID;
		found = o;
	}
	return found;
}

/*
 * Where something is missing, pieces that fit one offset only say where which one holds:
 * between two such that agree. One that does not agree with its neighbours on either side may
 * be wrong itself. Of pieces [0, past).
 */
static int trust(struct numbers *n, size_t past)
{
	int64_t lowest = INT64_MAX, highest = INT64_MIN;
	size_t count = n->stretches_count, agreed = 0;
	struct stretch *run = NULL;

	for (size_t i = 0; i < count; i++) {
		const struct stretch *st = &n->stretches[i];

		lowest = st->lowest < lowest ? st->lowest : lowest;
		highest = st->highest > highest ? st->highest : highest;
	}
	n->stretches_count = 0;
	if (!past || highest - lowest > MOST_RANGE ||
	    (size_t)(highest - lowest + 1 + 2 * NEAR) > NUMBERS_CHECKS / past)
		return 0;
	for (size_t k = 0; k < past; k++) {
		int64_t o = only_offset(n, k, lowest - NEAR, highest + NEAR);

		if (o == NOT_SAID)
			continue;
		if (run && run->offset == o) {
			run->to = k + 1;
			run->known = ++agreed > 1;
			continue;
		}
		if (GROW(n->stretches, n->stretches_cap, n->stretches_count + 1))
			return -ENOMEM;
		run = &n->stretches[n->stretches_count++];
		*run = (struct stretch){ .from = k, .to = k + 1, .offset = o };
		agreed = 1;
	}
	return 0;
}

/* From its first call in the window on, if all pieces from there on fit: nothing changes there. */
static bool begin_inside(const struct numbers *n, struct stretch *st)
{
	int64_t from = (int64_t)numbers_at(n, n->cover->begin, 0) - st->offset;

	from = from < 0 ? 0 : from;
	for (int64_t k = from; k < (int64_t)st->from; k++)
		if (!numbers_fit(n, (size_t)k, k + st->offset))
			return false;
	st->from = (size_t)from < st->to ? (size_t)from : st->to;
	return true;
}

/*
 * While kinds of records are switched on one after the other works are missing, before the
 * window. Then its last stretch is all of it.
 */
static int trust_all(struct numbers *n)
{
	struct stretch last = n->stretches[n->stretches_count - 1];
	int err;

	if (n->stretches_count == 1 && last.known && complete(n, &last))
		return 0;
	if (!last.known || !begin_inside(n, &last) || !complete(n, &last))
		return trust(n, n->c->pieces_count);
	err = trust(n, last.from);
	if (!err)
		err = GROW(n->stretches, n->stretches_cap, n->stretches_count + 1);
	if (!err)
		n->stretches[n->stretches_count++] = last;
	return err;
}

static int find_stretches(struct numbers *n)
{
	size_t count = n->c->pieces_count, from = 0;
	int err = begin_offsets(n);

	n->stretches_count = n->checks = 0;
	while (from < count && n->offsets_count && !err) {
		size_t to = narrow(n, from);
		struct stretch *st;

		err = GROW(n->stretches, n->stretches_cap, n->stretches_count + 1);
		if (err || n->checks > NUMBERS_CHECKS)
			break;
		st = &n->stretches[n->stretches_count++];
		*st = (struct stretch){ .from = from, .to = to, .checked = true };
		err = resolve(n, st);
		if (err)
			break;
		/* The one that does not fit may be wrong itself, and what follows as it was. */
		if (to > from && to + 1 < count)
			err = change_offsets(n);
		from = to + 1;
	}
	return err || !n->stretches_count ? err : trust_all(n);
}

static void take(const struct numbers *n)
{
	struct chain *c = n->c;

	for (size_t i = 0; i < n->stretches_count; i++) {
		const struct stretch *st = &n->stretches[i];

		for (size_t k = st->from; k < st->to && st->known; k++) {
			size_t at = (size_t)((int64_t)k + st->offset);

			if (numbers_alone(&n->entries[at]) &&
			    (st->checked || numbers_fit(n, k, (int64_t)at)))
				chain_take(c, &c->pieces[k], numbers_link(n, at));
		}
	}
}

int chain_numbers(struct chain *c, const struct session_cover *cover)
{
	struct numbers n = { .c = c, .cover = cover };
	int err = find_entries(&n);

	if (!err && are_numbers(&n)) {
		err = find_stretches(&n);
		if (!err)
			take(&n);
		if (!err)
			err = numbers_crowds(&n);
	}
	map_free(&n.kernels);
	map_free(&n.streams);
	free(n.entries);
	free(n.offsets);
	free(n.stretches);
	return err;
}
