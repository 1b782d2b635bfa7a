// SPDX-License-Identifier: BSD-2-Clause
/* When a device worked, and when it was watched: unions of intervals, never sums. */
#include <string.h>

#include "model/gpu.h"
#include "model/grow.h"
#include "model/merge.h"

#define RUNS_SORT sort_spans
#define RUNS_TYPE struct span
#define RUNS_AFTER(a, b, ctx) ((a)->begin > (b)->begin)
#include "util/runs.h"

void spans_free(struct spans *v)
{
	free(v->items);
	*v = (struct spans){ 0 };
}

int spans_unite(struct spans *v)
{
	size_t kept = 0;
	int err = sort_spans(v->items, v->count, NULL);

	for (size_t i = 0; i < v->count && !err; i++) {
		if (kept && v->items[i].begin <= v->items[kept - 1].end) {
			if (v->items[i].end > v->items[kept - 1].end)
				v->items[kept - 1].end = v->items[i].end;
		} else {
			v->items[kept++] = v->items[i];
		}
	}
	v->count = err ? v->count : kept;
	return err;
}

/* The first span that ends after ts. */
static size_t span_after(const struct spans *v, int64_t ts)
{
	size_t low = 0, high = v->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (v->items[middle].end <= ts)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int64_t spans_within(const struct spans *v, int64_t from, int64_t to)
{
	int64_t sum = 0;

	for (size_t i = span_after(v, from); i < v->count && v->items[i].begin < to; i++) {
		int64_t begin = v->items[i].begin > from ? v->items[i].begin : from;
		int64_t end = v->items[i].end < to ? v->items[i].end : to;

		sum += end > begin ? end - begin : 0;
	}
	return sum;
}

int spans_append(struct spans *v, size_t *cap, int64_t begin, int64_t end)
{
	struct span *last = v->count ? &v->items[v->count - 1] : NULL;

	if (end <= begin)
		return 0;
	if (last && begin <= last->end) {
		last->end = end > last->end ? end : last->end;
		return 0;
	}
	if (GROW(v->items, *cap, v->count + 1))
		return -ENOMEM;
	v->items[v->count++] = (struct span){ begin, end };
	return 0;
}

int device_busy(const struct session *s, uint32_t physical, unsigned classes, struct spans *out)
{
	struct merge m;
	size_t cap = 0;
	uint32_t w;
	int err = merge_begin(&m, s, physical);

	*out = (struct spans){ 0 };
	while (!err && (w = merge_next(&m)) != WORK_NONE)
		if (work_class(s, &s->works[w]) & classes)
			err = spans_append(out, &cap, s->works[w].begin, s->works[w].end);
	merge_end(&m);
	if (err)
		spans_free(out);
	return err;
}

/* ---- when it was watched ---- */

struct watch {
	const struct session *s;
	struct spans seen, unseen; /* as they come: neither sorted nor disjoint */
	size_t seen_cap, unseen_cap;
};

static int push(struct spans *v, size_t *cap, int64_t begin, int64_t end)
{
	if (end <= begin)
		return 0;
	if (GROW(v->items, *cap, v->count + 1))
		return -ENOMEM;
	v->items[v->count++] = (struct span){ begin, end };
	return 0;
}

/* From when on processes may have used their devices: first launch, copy or work of each. */
static int64_t *first_uses(const struct session *s)
{
	int64_t *first = malloc((s->processes_count + 1) * sizeof(*first));

	for (size_t i = 0; first && i < s->processes_count; i++)
		first[i] = INT64_MAX;
	for (size_t i = 0; first && i < s->streams_count; i++) {
		const struct session_stream *st = &s->streams[i];

		if (st->works && s->works[st->first_work].begin < first[st->process])
			first[st->process] = s->works[st->first_work].begin;
	}
	for (size_t i = 0; first && i < s->threads_count; i++) {
		const struct session_thread *t = &s->threads[i];

		for (uint32_t c = t->first_call; c < t->first_call + t->calls; c++) {
			if (s->calls[c].begin >= first[t->process])
				break;
			if (s->apis[s->calls[c].api].sorts & (API_IS_LAUNCH | API_IS_COPY))
				first[t->process] = s->calls[c].begin;
		}
	}
	return first;
}

/* What a process did unwatched the others' windows do not show. Covers are by process. */
static int watch(struct watch *w, const bool *users, int64_t *first)
{
	const struct session *s = w->s;
	int err = 0;

	for (size_t i = 0; i < s->covers_count && !err; i++) {
		const struct session_cover *c = &s->covers[i];

		if (!users[c->process])
			continue;
		err = push(&w->seen, &w->seen_cap, c->begin, c->end);
		if (!err)
			err = push(&w->unseen, &w->unseen_cap, first[c->process], c->begin);
		if (c->end > first[c->process])
			first[c->process] = c->end;
	}
	for (size_t i = 0; i < s->processes_count && !err; i++)
		if (users[i])
			err = push(&w->unseen, &w->unseen_cap, first[i], s->processes[i].last);
	return err;
}

/* Marks the processes that use it: with works there, or if there are none, that know it. */
static void find_users(const struct session *s, uint32_t physical, bool *users)
{
	bool any = false;

	for (size_t i = 0; i < s->streams_count; i++)
		if (s->streams[i].works && s->devices[s->streams[i].device].physical == physical)
			any = users[s->streams[i].process] = true;
	for (size_t i = 0; i < s->devices_count && !any; i++)
		if (s->devices[i].physical == physical)
			users[s->devices[i].process] = true;
}

static int subtract(const struct spans *from, const struct spans *what, struct spans *out)
{
	size_t cap = 0, k = 0;
	int err = 0;

	for (size_t i = 0; i < from->count && !err; i++) {
		int64_t at = from->items[i].begin, end = from->items[i].end;

		while (k < what->count && what->items[k].end <= at)
			k++;
		for (size_t n = k; n < what->count && what->items[n].begin < end && !err; n++) {
			err = spans_append(out, &cap, at, what->items[n].begin);
			at = what->items[n].end > at ? what->items[n].end : at;
		}
		if (!err)
			err = spans_append(out, &cap, at, end);
	}
	return err;
}

int device_covered(const struct session *s, uint32_t physical, struct spans *out)
{
	struct watch w = { .s = s };
	bool *users = calloc(s->processes_count + 1, sizeof(*users));
	int64_t *first = first_uses(s);
	int err = users && first ? 0 : -ENOMEM;

	*out = (struct spans){ 0 };
	if (!err) {
		find_users(s, physical, users);
		err = watch(&w, users, first);
	}
	if (!err)
		err = spans_unite(&w.seen);
	if (!err)
		err = spans_unite(&w.unseen);
	if (!err)
		err = subtract(&w.seen, &w.unseen, out);
	free(users);
	free(first);
	spans_free(&w.seen);
	spans_free(&w.unseen);
	if (err)
		spans_free(out);
	return err;
}

/* Time that CUPTI took in the processes that use the device. */
int device_overheads(const struct session *s, uint32_t physical, struct spans *out)
{
	bool *users = calloc(s->processes_count + 1, sizeof(*users));
	size_t cap = 0;
	int err = users ? 0 : -ENOMEM;

	*out = (struct spans){ 0 };
	if (!err)
		find_users(s, physical, users);
	for (size_t i = 0; i < s->overheads_count && !err; i++)
		if (users[s->overheads[i].process])
			err = spans_append(out, &cap, s->overheads[i].begin, s->overheads[i].end);
	free(users);
	if (err)
		spans_free(out);
	return err;
}
