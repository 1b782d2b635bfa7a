// SPDX-License-Identifier: BSD-2-Clause
/*
 * CUPTI's record of a call lies inside of the call that the probes saw: same thread, and
 * time contained as far as the clocks agree. The innermost such call is meant.
 */
#include "model/join.h"

#define NEAR 4	     /* calls back from the last that began: clocks may differ by a call */
#define MAX_DEPTH 256
#define MAX_INSIDE 64

/* Notes of one thread, and the calls of that thread. */
struct side {
	struct work_call_note *notes;
	size_t count;
	uint32_t pid, tid;
	uint32_t first, end; /* calls */
	uint32_t *after;     /* of each of them: the first that is not inside of it */
};

/* What is inside of a call follows it. */
static bool inside_of(const struct side *side, uint32_t call, uint32_t outer)
{
	return call != CALL_NONE && call > outer && call < side->after[outer - side->first];
}

static void find_after(const struct session *s, struct side *side)
{
	for (uint32_t i = side->end; i-- > side->first;) {
		uint32_t next = i + 1;

		while (next < side->end && s->calls[next].parent == i)
			next = side->after[next - side->first];
		side->after[i - side->first] = next;
	}
}

static bool has_end(const struct call *c)
{
	return !(c->flags & (CALL_OPEN | CALL_NO_END | CALL_ENTRY_ONLY));
}

/* A call whose return was not seen was over when its thread made its next one. */
static int64_t call_until(const struct session *s, const struct side *side, uint32_t call)
{
	const struct call *c = &s->calls[call];
	uint32_t next = side->after[call - side->first];

	if (has_end(c))
		return c->end;
	return next < side->end ? s->calls[next].begin : TS_LIMIT;
}

/* Is the note inside the call, give or take the clock's error? */
static bool contains(const struct join *j, const struct side *side, uint32_t call,
		     const struct work_call_note *n, int64_t *overlap)
{
	const struct call *c = &j->s->calls[call];
	int64_t until, begin, end;

	if (c->flags & (CALL_NO_BEGIN | CALL_POLL) || c->begin - j->slack > n->begin)
		return false;
	until = call_until(j->s, side, call);
	if (until + j->slack < n->end)
		return false;
	begin = c->begin > n->begin ? c->begin : n->begin;
	end = until < n->end ? until : n->end;
	*overlap = end > begin ? end - begin : 0;
	return *overlap >= (n->end - n->begin) / 2;
}

/* last: the last call that began before the note. */
static uint32_t innermost(const struct join *j, const struct side *side, uint32_t last,
			  const struct work_call_note *n)
{
	uint32_t best = CALL_NONE;
	int64_t best_overlap = 0, overlap = 0;

	for (uint32_t i = 0; i < NEAR && last - i >= side->first && last >= i; i++) {
		uint32_t call = last - i;

		for (int depth = 0; call != CALL_NONE; depth++) {
			if (contains(j, side, call, n, &overlap))
				break;
			call = depth < MAX_DEPTH ? j->s->calls[call].parent : CALL_NONE;
		}
		if (call == CALL_NONE || inside_of(side, best, call))
			continue;
		if (best == CALL_NONE || inside_of(side, call, best) || overlap > best_overlap) {
			best = call;
			best_overlap = overlap;
		}
	}
	return best;
}

static bool causes_work(const struct session *s, const struct call *c)
{
	return s->apis[c->api].sorts & (API_IS_LAUNCH | API_IS_COPY) &&
	       !(c->flags & (CALL_POLL | CALL_NO_BEGIN));
}

/* Of a runtime's record: the one call inside of it that can have caused work. */
static uint32_t only_inside(const struct join *j, const struct side *side, uint32_t last,
			    const struct work_call_note *n, uint32_t around)
{
	const struct session *s = j->s;
	uint32_t from = last, found = CALL_NONE;

	while (from > side->first && last - from < MAX_INSIDE &&
	       s->calls[from - 1].begin >= n->begin - j->slack)
		from--;
	for (uint32_t i = from; i < side->end && i - from < 2 * MAX_INSIDE; i++) {
		const struct call *c = &s->calls[i];

		if (c->begin > n->end)
			break;
		if (c->begin < n->begin - j->slack || i == around || !causes_work(s, c) ||
		    call_until(s, side, i) > n->end + j->slack)
			continue;
		if (found != CALL_NONE && c->parent != found)
			return CALL_NONE;
		found = i;
	}
	return found;
}

static int keep(struct join *j, uint32_t call, const struct work_call_note *n)
{
	struct session *s = j->s;
	const struct call *c = &s->calls[call];
	uint32_t process = call_process(s, c);
	int err = GROW(j->causes, j->causes_cap, j->causes_count + 1);

	if (!err)
		err = GROW(s->work_calls, j->work_calls_cap, s->work_calls_count + 1);
	if (err)
		return err;
	j->causes[j->causes_count++] =
		(struct cause){ process, n->correlation, c->begin, call };
	s->work_calls[s->work_calls_count++] = (struct work_call){
		call, n->correlation, n->cbid, (uint8_t)(n->domain < 256 ? n->domain : 0) };
	j->of[process].notes++;
	return 0;
}

static int join_side(struct join *j, const struct side *side)
{
	const struct session *s = j->s;
	uint32_t next = side->first, taken = CALL_NONE;
	int err = 0;

	for (size_t i = 0; i < side->count && !err; i++) {
		const struct work_call_note *n = &side->notes[i];
		uint32_t call, only;

		while (next < side->end && s->calls[next].begin <= n->begin + j->slack)
			next++;
		if (next == side->first)
			continue;
		call = innermost(j, side, next - 1, n);
		only = n->domain == 2 ? only_inside(j, side, next - 1, n, call) : CALL_NONE;
		if (only != CALL_NONE)
			call = only;
		/* Of a call without an end the first note is its own, and later ones are not. */
		if (call == CALL_NONE || (call == taken && !has_end(&s->calls[call])))
			continue;
		taken = call;
		err = keep(j, call, n);
	}
	return err;
}

static int note_order(const void *pa, const void *pb)
{
	const struct work_call_note *a = pa, *b = pb;

	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	return a->end > b->end ? -1 : a->end < b->end; /* outer ones first */
}

static void sort_notes(struct work_call_note *n, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (note_order(&n[i - 1], &n[i]) > 0) {
			qsort(n, count, sizeof(*n), note_order);
			return;
		}
}

/* Threads of one (pid, tid) are neighbours, in the order of time. */
static void find_calls(const struct session *s, struct side *side)
{
	size_t low = 0, high = s->threads_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct session_thread *t = &s->threads[middle];

		if (t->pid < side->pid || (t->pid == side->pid && t->tid < side->tid))
			low = middle + 1;
		else
			high = middle;
	}
	side->first = side->end = 0;
	for (size_t i = low; i < s->threads_count && s->threads[i].pid == side->pid &&
			     s->threads[i].tid == side->tid; i++) {
		if (i == low)
			side->first = s->threads[i].first_call;
		side->end = s->threads[i].first_call + s->threads[i].calls;
	}
}

static int side_find(struct map *known, struct side **sides, size_t *count, size_t *cap,
		     const struct work_call_note *n, uint32_t *out)
{
	int err;

	*out = map_get(known, n->pid, n->tid);
	if (*out != MAP_NONE)
		return 0;
	err = GROW(*sides, *cap, *count + 1);
	if (!err)
		err = map_put(known, n->pid, n->tid, (uint32_t)*count);
	if (err)
		return err;
	*out = (uint32_t)*count;
	(*sides)[(*count)++] = (struct side){ .pid = n->pid, .tid = n->tid };
	return 0;
}

/* Puts the notes of each thread together; *sides is the caller's to free in any case. */
static int split(struct works_builder *w, struct side **sides, size_t *count, uint32_t *side_of)
{
	struct work_call_note *sorted = calloc(w->calls_count, sizeof(*sorted));
	struct map known = { 0 };
	size_t cap = 0, at = 0;
	int err = sorted ? 0 : -ENOMEM;

	for (size_t i = 0; i < w->calls_count && !err; i++) {
		err = side_find(&known, sides, count, &cap, &w->calls[i], &side_of[i]);
		if (!err)
			/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): it was found */
			(*sides)[side_of[i]].count++;
	}
	map_free(&known);
	if (err) {
		free(sorted);
		return err;
	}
	for (size_t i = 0; i < *count; i++) {
		(*sides)[i].notes = sorted + at;
		at += (*sides)[i].count;
		(*sides)[i].count = 0;
	}
	for (size_t i = 0; i < w->calls_count; i++) {
		struct side *side = &(*sides)[side_of[i]];

		side->notes[side->count++] = w->calls[i];
	}
	free(w->calls);
	w->calls = sorted;
	return 0;
}

int join_notes(struct join *j)
{
	struct works_builder *w = &j->b->works;
	uint32_t *side_of, *after = NULL;
	struct side *sides = NULL;
	size_t count = 0, after_cap = 0;
	int err;

	if (!w->calls_count)
		return 0;
	side_of = malloc(w->calls_count * sizeof(*side_of));
	err = side_of ? split(w, &sides, &count, side_of) : -ENOMEM;
	free(side_of);
	for (size_t i = 0; i < count && !err; i++) {
		sort_notes(sides[i].notes, sides[i].count);
		find_calls(j->s, &sides[i]);
		if (sides[i].end == sides[i].first)
			continue;
		err = GROW(after, after_cap, sides[i].end - sides[i].first);
		if (err)
			break;
		sides[i].after = after;
		find_after(j->s, &sides[i]);
		err = join_side(j, &sides[i]);
	}
	free(after);
	free(sides);
	return err;
}
