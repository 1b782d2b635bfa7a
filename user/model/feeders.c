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

/* Which of the threads' next calls began first; end: where each one's calls end. */
static size_t earliest(const struct session *s, const struct feeders *f, const uint32_t *next,
		       const uint32_t *end)
{
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < f->threads_count; i++)
		if (next[i] < end[i] &&
		    (best == SIZE_MAX || s->calls[next[i]].begin < s->calls[next[best]].begin))
			best = i;
	return best;
}

/* The calls of each thread are in order already; few threads launch. */
static int merge_calls(const struct session *s, struct feeders *f)
{
	uint32_t *next = calloc(2 * f->threads_count, sizeof(*next)), *end;
	size_t at;

	if (!next)
		return -ENOMEM;
	end = next + f->threads_count;
	for (size_t i = 0; i < f->threads_count; i++) {
		next[i] = s->threads[f->thread[i]].first_call;
		end[i] = next[i] + s->threads[f->thread[i]].calls;
	}
	while ((at = earliest(s, f, next, end)) != SIZE_MAX) {
		if (outermost(&s->calls[next[at]]))
			f->calls[f->count++] = next[at];
		next[at]++;
	}
	free(next);
	return 0;
}

static void collect(const struct session *s, uint32_t process, bool launching, struct feeders *f)
{
	for (size_t i = 0; i < s->threads_count; i++) {
		const struct session_thread *t = &s->threads[i];

		if (is_feeder(s, t, process, launching))
			f->thread[f->threads_count++] = (uint32_t)i;
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
	out->thread = calloc(threads + !threads, sizeof(*out->thread));
	if (!out->calls || !out->thread) {
		feeders_free(out);
		return -ENOMEM;
	}
	collect(s, process, true, out);
	if (!out->threads_count)
		collect(s, process, false, out);
	err = out->threads_count ? merge_calls(s, out) : 0;
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
