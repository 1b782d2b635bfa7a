/* SPDX-License-Identifier: BSD-2-Clause */
/* What tests of the join ask: which call a work has, and how many are right. */
#ifndef GBPF_TESTS_GPU_JOINED_H
#define GBPF_TESTS_GPU_JOINED_H

#include "gpu_session.h"

#include "model/gpu.h"

static inline const struct work *work_at(const struct session *s, int64_t begin)
{
	for (size_t i = 0; i < s->works_count; i++)
		if (s->works[i].begin == begin)
			return &s->works[i];
	fail_msg("no work begins at %lld", (long long)begin);
	return NULL;
}

/* Entry of the call of the work that begins then; -1: unmatched. */
static inline int64_t entry_of(const struct session *s, int64_t begin)
{
	uint32_t call = work_at(s, begin)->call;

	return call == CALL_NONE ? -1 : s->calls[call].begin;
}

struct found {
	size_t right, wrong, unmatched;
};

static inline int truth_order(const void *pa, const void *pb)
{
	const struct gpu_truth *a = pa, *b = pb;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->context != b->context)
		return a->context < b->context ? -1 : 1;
	if (a->stream != b->stream)
		return a->stream < b->stream ? -1 : 1;
	return a->begin < b->begin ? -1 : a->begin > b->begin;
}

static inline struct found compare(const struct session *s, struct gpu_truth *truth, size_t count)
{
	struct found found = { 0 };

	assert_non_null(truth);
	qsort(truth, count, sizeof(*truth), truth_order);
	for (size_t i = 0; i < s->works_count; i++) {
		const struct work *w = &s->works[i];
		const struct session_stream *st = &s->streams[w->stream];
		struct gpu_truth key = { .pid = s->processes[st->process].pid, .stream = st->id,
					 .context = st->context, .begin = w->begin };
		const struct gpu_truth *t =
			bsearch(&key, truth, count, sizeof(*truth), truth_order);

		assert_non_null(t);
		if (w->call == CALL_NONE) {
			found.unmatched++;
			continue;
		}
		if (s->calls[w->call].begin == t->entry &&
		    s->threads[s->calls[w->call].thread].tid == t->tid)
			found.right++;
		else
			found.wrong++;
	}
	return found;
}

#endif
