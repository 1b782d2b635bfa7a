// SPDX-License-Identifier: BSD-2-Clause
#include "export/trace_ids.h"

#include <errno.h>
#include <stdlib.h>

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

/* Keeps one of each that is there more than once. */
static size_t keep_doubles(uint64_t *ids, size_t count)
{
	size_t kept = 0;

	for (size_t i = 1; i < count; i++)
		if (ids[i] == ids[i - 1] && (!kept || ids[kept - 1] != ids[i]))
			ids[kept++] = ids[i];
	return kept;
}

static uint64_t key_of(const struct session *s, uint32_t call, uint32_t correlation)
{
	return (uint64_t)s->threads[s->calls[call].thread].process << 32 | correlation;
}

static void collect_one(const struct session *s, uint32_t call, uint64_t *ids, size_t *count)
{
	uint32_t linked = export_linked(s, call);

	if (source_of(s, linked) == call)
		ids[(*count)++] = key_of(s, linked, recorded_itself(s, call));
}

/* Calls with works or a record of CUPTI's; both lists are sorted by call. */
static size_t collect(const struct session *s, uint64_t *ids)
{
	size_t count = 0, i = 0;
	uint32_t last = CALL_NONE;

	for (size_t w = 0; w < s->call_works_count; w++) {
		uint32_t call = s->works[s->call_works[w]].call;

		for (; i < s->work_calls_count && s->work_calls[i].call < call; i++)
			collect_one(s, s->work_calls[i].call, ids, &count);
		if (call == last)
			continue;
		last = call;
		i += i < s->work_calls_count && s->work_calls[i].call == call;
		collect_one(s, call, ids, &count);
	}
	for (; i < s->work_calls_count; i++)
		collect_one(s, s->work_calls[i].call, ids, &count);
	return count;
}

int export_ids_new(struct export_ids *ids, const struct session *s)
{
	size_t room = s->call_works_count + s->work_calls_count, count;
	uint64_t *all, *fewer;

	*ids = (struct export_ids){.s = s};
	if (!room)
		return 0;
	all = malloc(room * sizeof(*all));
	if (!all)
		return -ENOMEM;
	count = collect(s, all);
	qsort(all, count, sizeof(*all), order);
	ids->count = keep_doubles(all, count);
	fewer = realloc(all, (ids->count + 1) * sizeof(*all));
	ids->twice = fewer ? fewer : all;
	return 0;
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
