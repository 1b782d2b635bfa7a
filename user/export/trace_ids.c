// SPDX-License-Identifier: BSD-2-Clause
#include "export/trace_ids.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/grow.h"
#include "model/map.h"
#include "probe/catalogue.h"

#define OWN_IDS ((uint64_t)UINT32_MAX + 1)

uint32_t export_linked(const struct session *s, uint32_t call)
{
	uint32_t linked = call;

	for (uint32_t at = s->calls[call].parent; at != CALL_NONE; at = s->calls[at].parent)
		if (s->apis[s->calls[at].api].library == API_RUNTIME)
			linked = at;
	return linked;
}

/* Calls of a thread are sorted by begin: what is inside of one follows it. */
uint32_t export_inside_end(const struct session *s, uint32_t call)
{
	const struct session_thread *t = &s->threads[s->calls[call].thread];
	uint32_t end = call + 1, last = t->first_call + t->calls;

	while (end < last && s->calls[end].parent != CALL_NONE && s->calls[end].parent >= call)
		end++;
	return end;
}

/* 0: CUPTI has none. */
static uint32_t recorded_itself(const struct session *s, uint32_t call)
{
	const struct work_call *known = work_call_of(s, call);
	const uint32_t *works;
	size_t count;

	if (known)
		return known->correlation;
	works = works_of(s, call, &count);
	return works ? s->works[works[0]].correlation : 0;
}

/* The call that has the id of this one: itself, or the first inside of it; CALL_NONE: none. */
static uint32_t source_of(const struct session *s, uint32_t call)
{
	uint32_t end = call + 1;

	if (export_linked(s, call) != call)
		return CALL_NONE;
	if (s->apis[s->calls[call].api].library == API_RUNTIME)
		end = export_inside_end(s, call);
	for (uint32_t i = call; i < end; i++)
		if (recorded_itself(s, i))
			return i;
	return CALL_NONE;
}

static int order(const void *pa, const void *pb)
{
	uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;

	return a < b ? -1 : a > b;
}

static uint64_t key_of(const struct session *s, uint32_t call, uint32_t correlation)
{
	return (uint64_t)s->threads[s->calls[call].thread].process << 32 | correlation;
}

/* Which numbers of a process were seen: they are dense, so a bit each is little. */
#define PAGE_BITS 4096

struct seen {
	struct map page_of; /* (process, number over PAGE_BITS) to pages */
	uint64_t (*pages)[PAGE_BITS / 64];
	size_t count, cap;
	size_t twice_cap;
};

static int page_for(struct seen *v, uint32_t process, uint32_t number, uint32_t *page)
{
	int err;

	*page = map_get(&v->page_of, process, number / PAGE_BITS);
	if (v->pages && *page < v->count)
		return 0;
	*page = (uint32_t)v->count;
	err = GROW(v->pages, v->cap, v->count + 1);
	if (!err)
		err = map_put(&v->page_of, process, number / PAGE_BITS, *page);
	if (!err)
		memset(v->pages[v->count++], 0, sizeof(v->pages[0]));
	return err;
}

/* Takes down the number of a call that stands for itself; again: it belongs to several. */
static int note(struct export_ids *ids, struct seen *v, uint32_t call)
{
	uint32_t linked = export_linked(ids->s, call), number, page;
	uint64_t bit, *word;
	int err;

	if (source_of(ids->s, linked) != call)
		return 0;
	number = recorded_itself(ids->s, call);
	err = page_for(v, ids->s->threads[ids->s->calls[call].thread].process, number, &page);
	if (err)
		return err;
	word = &v->pages[page][number % PAGE_BITS / 64];
	bit = UINT64_C(1) << number % 64;
	if (*word & bit) {
		err = GROW(ids->twice, v->twice_cap, ids->count + 1);
		if (!err)
			ids->twice[ids->count++] = key_of(ids->s, linked, number);
	}
	*word |= bit;
	return err;
}

/* Calls with works or a record of CUPTI's; both lists are sorted by call. */
static int note_all(struct export_ids *ids, struct seen *v)
{
	const struct session *s = ids->s;
	uint32_t last = CALL_NONE;
	size_t i = 0;
	int err = 0;

	for (size_t w = 0; w < s->call_works_count && !err; w++) {
		uint32_t call = s->works[s->call_works[w]].call;

		for (; i < s->work_calls_count && s->work_calls[i].call < call && !err; i++)
			err = note(ids, v, s->work_calls[i].call);
		if (call == last || err)
			continue;
		last = call;
		i += i < s->work_calls_count && s->work_calls[i].call == call;
		err = note(ids, v, call);
	}
	for (; i < s->work_calls_count && !err; i++)
		err = note(ids, v, s->work_calls[i].call);
	return err;
}

int export_ids_new(struct export_ids *ids, const struct session *s)
{
	struct seen v = {.count = 0};
	int err;

	*ids = (struct export_ids){.s = s};
	err = note_all(ids, &v);
	map_free(&v.page_of);
	free(v.pages);
	if (err)
		export_ids_free(ids);
	else if (ids->count)
		qsort(ids->twice, ids->count, sizeof(*ids->twice), order);
	return err;
}

void export_ids_free(struct export_ids *ids)
{
	free(ids->twice);
	ids->twice = NULL;
	ids->count = 0;
}

uint64_t export_call_id(const struct export_ids *ids, uint32_t call)
{
	uint32_t source = source_of(ids->s, call);
	uint32_t id = source != CALL_NONE ? recorded_itself(ids->s, source) : 0;
	uint64_t key = key_of(ids->s, call, id);

	if (!id || (ids->count &&
		    bsearch(&key, ids->twice, ids->count, sizeof(key), order)))
		return OWN_IDS + call;
	return id;
}

uint64_t export_work_id(const struct export_ids *ids, uint32_t work)
{
	uint32_t call = ids->s->works[work].call;

	if (call != CALL_NONE)
		return export_call_id(ids, export_linked(ids->s, call));
	return OWN_IDS + ids->s->calls_count + work;
}
