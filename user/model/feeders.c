// SPDX-License-Identifier: BSD-2-Clause
/* The threads of a process that give work to its GPUs, as one sequence of calls. */
#include <errno.h>
#include <stdlib.h>

#include "model/steps.h"

static bool outermost(const struct call *c)
{
	return c->parent == CALL_NONE;
}

static bool thread_launches(const struct session *s, const struct session_thread *t)
{
	for (uint32_t i = 0; i < t->calls; i++) {
		const struct call *c = &s->calls[t->first_call + i];

		if (s->apis[c->api].sorts & API_IS_LAUNCH)
			return true;
	}
	return false;
}

/* Is it one that is asked for, and has it calls? */
static bool is_feeder(const struct session *s, const struct session_thread *t, uint32_t process,
		      bool launching)
{
	if (t->process != process || !t->calls)
		return false;
	return !launching || thread_launches(s, t);
}

struct key {
	int64_t begin;
	uint32_t call;
};

static int key_order(const void *pa, const void *pb)
{
	const struct key *a = pa, *b = pb;

	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	return a->call < b->call ? -1 : a->call > b->call;
}

/* The calls of each thread are in order already: only several need sorting. */
static int sort_calls(const struct session *s, struct feeders *f)
{
	struct key *keys;

	if (f->threads_count < 2 || !f->count)
		return 0;
	keys = malloc(f->count * sizeof(*keys));
	if (!keys)
		return -ENOMEM;
	for (size_t i = 0; i < f->count; i++)
		keys[i] = (struct key){ s->calls[f->calls[i]].begin, f->calls[i] };
	qsort(keys, f->count, sizeof(*keys), key_order);
	for (size_t i = 0; i < f->count; i++)
		f->calls[i] = keys[i].call;
	free(keys);
	return 0;
}

static void collect(const struct session *s, uint32_t process, bool launching, struct feeders *f)
{
	for (size_t i = 0; i < s->threads_count; i++) {
		const struct session_thread *t = &s->threads[i];

		if (!is_feeder(s, t, process, launching))
			continue;
		f->thread[f->threads_count++] = (uint32_t)i;
		for (uint32_t k = t->first_call; k < t->first_call + t->calls; k++)
			if (outermost(&s->calls[k]))
				f->calls[f->count++] = k;
	}
}

int feeders_find(const struct session *s, uint32_t process, struct feeders *out)
{
	size_t calls = 0, threads = 0;
	int err;

	*out = (struct feeders){ 0 };
	for (size_t i = 0; i < s->threads_count; i++) {
		if (s->threads[i].process != process)
			continue;
		calls += s->threads[i].calls;
		threads++;
	}
	out->calls = malloc((calls + !calls) * sizeof(*out->calls));
	out->thread = malloc((threads + !threads) * sizeof(*out->thread));
	if (!out->calls || !out->thread) {
		feeders_free(out);
		return -ENOMEM;
	}
	collect(s, process, true, out);
	if (!out->threads_count)
		collect(s, process, false, out);
	err = sort_calls(s, out);
	if (err)
		feeders_free(out);
	return err;
}

void feeders_free(struct feeders *f)
{
	free(f->calls);
	free(f->thread);
	*f = (struct feeders){ 0 };
}
