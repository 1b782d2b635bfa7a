// SPDX-License-Identifier: BSD-2-Clause
/*
 * Correlations: what readers join calls and GPU work by. CUPTI's own where it has one,
 * and where no other call of the file has the same (they wrap, and start anew with each
 * session of CUPTI); otherwise a number above all of CUPTI's, which have 32 bits.
 */
#include <errno.h>
#include <stdlib.h>

#include "export/kineto.h"

#define OWN_IDS ((uint64_t)UINT32_MAX + 1)

/* 0: CUPTI has none. */
static uint32_t recorded(const struct session *s, uint32_t call)
{
	const struct work_call *known = work_call_of(s, call);
	const uint32_t *works;
	size_t count;

	if (known)
		return known->correlation;
	works = works_of(s, call, &count);
	return works ? s->works[works[0]].correlation : 0;
}

static int order(const void *pa, const void *pb)
{
	uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;

	return a < b ? -1 : a > b;
}

/* Keeps one of each that is there more than once. */
static size_t keep_doubles(uint32_t *ids, size_t count)
{
	size_t kept = 0;

	for (size_t i = 1; i < count; i++)
		if (ids[i] == ids[i - 1] && (!kept || ids[kept - 1] != ids[i]))
			ids[kept++] = ids[i];
	return kept;
}

static bool of_process(const struct kineto *k, uint32_t call)
{
	return k->s->threads[k->s->calls[call].thread].process == k->process;
}

/* Calls with works or a record of CUPTI's; both lists are sorted by call. */
static size_t collect(const struct kineto *k, uint32_t *ids)
{
	const struct session *s = k->s;
	size_t count = 0, i = 0;
	uint32_t last = CALL_NONE;

	for (size_t w = 0; w < s->call_works_count; w++) {
		const struct work *work = &s->works[s->call_works[w]];

		for (; i < s->work_calls_count && s->work_calls[i].call < work->call; i++)
			if (of_process(k, s->work_calls[i].call))
				ids[count++] = s->work_calls[i].correlation;
		if (work->call == last || !of_process(k, work->call))
			continue;
		last = work->call;
		if (i < s->work_calls_count && s->work_calls[i].call == last)
			ids[count++] = s->work_calls[i++].correlation;
		else
			ids[count++] = work->correlation;
	}
	for (; i < s->work_calls_count; i++)
		if (of_process(k, s->work_calls[i].call))
			ids[count++] = s->work_calls[i].correlation;
	return count;
}

int kineto_ids(struct kineto *k)
{
	size_t room = k->s->call_works_count + k->s->work_calls_count;
	uint32_t *ids, *fewer;
	size_t count;

	if (!room)
		return 0;
	ids = malloc(room * sizeof(*ids));
	if (!ids)
		return -ENOMEM;
	count = collect(k, ids);
	qsort(ids, count, sizeof(*ids), order);
	k->twice_count = keep_doubles(ids, count);
	fewer = realloc(ids, (k->twice_count + 1) * sizeof(*ids));
	k->twice = fewer ? fewer : ids;
	return 0;
}

uint64_t kineto_call_id(const struct kineto *k, uint32_t call)
{
	uint32_t id = recorded(k->s, call);

	if (!id || (k->twice_count &&
		    bsearch(&id, k->twice, k->twice_count, sizeof(id), order)))
		return OWN_IDS + call;
	return id;
}

uint64_t kineto_work_id(const struct kineto *k, uint32_t work)
{
	uint32_t call = k->s->works[work].call;

	if (call != CALL_NONE)
		return kineto_call_id(k, call);
	return OWN_IDS + k->s->calls_count + work;
}
