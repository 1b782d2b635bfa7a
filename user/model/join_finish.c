// SPDX-License-Identifier: BSD-2-Clause
/* After the join: works by call, what they say of streams and kernels, and the counts. */
#include "model/join.h"

/* ---- works by call ---- */

static int index_order(const void *pa, const void *pb, void *ctx)
{
	const struct work *works = ctx;
	const struct work *a = &works[*(const uint32_t *)pa], *b = &works[*(const uint32_t *)pb];

	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	return a < b ? -1 : a > b;
}

/* Streams take turns, and so calls are here and there: those of works soon to come. */
static void list_fetch(const struct session *s, const uint32_t *at, size_t work)
{
	if (work + 16 < s->works_count && s->works[work + 16].call != CALL_NONE)
		__builtin_prefetch(&at[s->works[work + 16].call + 2], 1);
}

/* at[c] becomes the first work of call c, at[c + 1] the one after its last. */
static int list_works(struct session *s, uint32_t **at_out)
{
	uint32_t *at = calloc(s->calls_count + 2, sizeof(*at)), sum = 0;

	if (!at)
		return -ENOMEM;
	for (size_t i = 0; i < s->works_count; i++) {
		list_fetch(s, at, i);
		if (s->works[i].call != CALL_NONE)
			at[s->works[i].call + 2]++;
	}
	for (size_t i = 0; i <= s->calls_count; i++) {
		sum += at[i + 1];
		at[i + 1] = sum;
	}
	free(s->call_works);
	s->call_works = malloc((sum + 1) * sizeof(*s->call_works));
	s->call_works_count = s->call_works ? sum : 0;
	if (!s->call_works) {
		free(at);
		return -ENOMEM;
	}
	for (size_t i = 0; i < s->works_count; i++) {
		list_fetch(s, at, i);
		if (s->works[i].call != CALL_NONE)
			s->call_works[at[s->works[i].call + 1]++] = (uint32_t)i;
	}
	for (size_t c = 0; c < s->calls_count; c++)
		if (at[c + 1] - at[c] > 1)
			qsort_r(s->call_works + at[c], at[c + 1] - at[c], sizeof(uint32_t),
				index_order, s->works);
	*at_out = at;
	return 0;
}

int join_list(struct session *s)
{
	uint32_t *at = NULL;
	int err = list_works(s, &at);

	free(at);
	return err;
}

/* ---- graphs whose ids lie ---- */

static int node_order(const void *pa, const void *pb)
{
	uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;

	return a < b ? -1 : a > b;
}

/* A launch runs each node of its graph once, before there were conditional nodes. */
static bool runs_a_node_twice(const struct session *s, const uint32_t *works, size_t count,
			      uint64_t *nodes)
{
	size_t known = 0;

	for (size_t i = 0; i < count; i++)
		if (s->works[works[i]].graph_node)
			nodes[known++] = s->works[works[i]].graph_node;
	qsort(nodes, known, sizeof(*nodes), node_order);
	for (size_t i = 1; i < known; i++)
		if (nodes[i] == nodes[i - 1])
			return true;
	return false;
}

/* Sets what cannot be right apart again. *changed: at is not true any more. */
static int check_graphs(struct join *j, const uint32_t *at, bool *changed)
{
	struct session *s = j->s;
	uint64_t *nodes = NULL;

	for (size_t c = 0; c < s->calls_count; c++) {
		size_t count = at[c + 1] - at[c];
		const uint32_t *works = s->call_works + at[c];

		if (count < 2 || !s->works[works[0]].graph ||
		    j->of[call_process(s, &s->calls[c])].cupti >= CUPTI_GRAPH_IDS)
			continue;
		free(nodes);
		nodes = malloc(count * sizeof(*nodes));
		if (!nodes)
			return -ENOMEM;
		if (!runs_a_node_twice(s, works, count, nodes))
			continue;
		for (size_t i = 0; i < count; i++)
			s->works[works[i]].call = CALL_NONE;
		s->join.contradicted += count;
		*changed = true;
	}
	free(nodes);
	return 0;
}

/* ---- what matches teach ---- */

uint64_t join_stream(const struct session *s, const struct call *c)
{
	if (c->flags & CALL_ARGS_LAUNCH)
		return s->launches[c->args].stream;
	return c->flags & CALL_ARGS_CALL ? s->transfers[c->args].stream : 0;
}

/* Nodes of a graph run on streams of the graph's own choice. */
static void learn_handles(struct session *s)
{
	for (size_t i = 0; i < s->streams_count; i++) {
		struct session_stream *st = &s->streams[i];

		for (uint32_t w = 0; w < st->works && !st->handle; w++) {
			const struct work *work = &s->works[st->first_work + w];

			if (work->call != CALL_NONE && !work->graph)
				st->handle = join_stream(s, &s->calls[work->call]);
		}
	}
}

static bool all_named(const struct session *s)
{
	for (size_t i = 0; i < s->kernels_count; i++)
		if (!s->kernels[i].named)
			return false;
	return true;
}

/*
 * CUPTI names the kernel of a launch whose handle could not be read. A handle may come to
 * mean another kernel: only where all launches of it agree the others get the name too.
 */
static int learn_names(struct session *s)
{
	uint32_t *name;

	if (all_named(s))
		return 0;
	name = malloc((s->kernels_count + 1) * sizeof(*name));
	if (!name)
		return -ENOMEM;
	memset(name, 0xff, (s->kernels_count + 1) * sizeof(*name));
	for (size_t i = 0; i < s->works_count; i++) {
		const struct work *w = &s->works[i];
		uint32_t handle = w->call == CALL_NONE ? NO_INDEX : s->calls[w->call].kernel;

		if (handle == NO_INDEX || w->graph || w->kernel == NO_INDEX ||
		    s->kernels[handle].named || !s->kernels[w->kernel].named)
			continue;
		if (name[handle] == NO_INDEX)
			name[handle] = w->kernel;
		else if (name[handle] != w->kernel)
			name[handle] = handle;
	}
	for (size_t i = 0; i < s->calls_count; i++) {
		uint32_t *kernel = &s->calls[i].kernel;

		if (*kernel != NO_INDEX && name[*kernel] != NO_INDEX)
			*kernel = name[*kernel];
	}
	free(name);
	return 0;
}

/* ---- counts ---- */

enum capture { CAPTURE_NONE, CAPTURE_BEGIN, CAPTURE_END };

static enum capture capture_of(const char *name)
{
	if (strstr(name, "StreamBeginCapture"))
		return CAPTURE_BEGIN;
	return strstr(name, "StreamEndCapture") ? CAPTURE_END : CAPTURE_NONE;
}

static bool is_launch(const struct session *s, const struct call *c)
{
	return s->apis[c->api].sorts & (API_IS_KERNEL_LAUNCH | API_IS_GRAPH_LAUNCH);
}

/* Wholly inside of a window that is whole. */
static bool in_whole_cover(const struct session *s, uint32_t process, const struct call *c)
{
	size_t cover = join_cover(s, process, c->begin, c->end);

	return cover < s->covers_count && s->covers[cover].whole;
}

/* Launches outside of other launches, not captured into a graph, that must have run. */
static void count_thread(const struct join *j, const struct session_thread *t, const bool *worked,
			 const uint8_t *captures)
{
	struct session *s = j->s;
	unsigned capturing = 0;

	for (uint32_t i = t->first_call; i < t->first_call + t->calls; i++) {
		const struct call *c = &s->calls[i];
		bool inner = c->parent != CALL_NONE && is_launch(s, &s->calls[c->parent]);

		if (captures[c->api] && (c->parent == CALL_NONE ||
					 captures[s->calls[c->parent].api] != captures[c->api]))
			capturing = captures[c->api] == CAPTURE_BEGIN ? 1 : 0;
		if (!is_launch(s, c) || inner || (capturing && !worked[i]) ||
		    c->flags & CALL_ERROR || call_duration(c) < 0 ||
		    !in_whole_cover(s, t->process, c) || !builder_active(j->b, c->begin))
			continue;
		s->join.launches++;
		s->join.launches_without += !worked[i];
	}
}

static int count(const struct join *j, const uint32_t *at)
{
	struct session *s = j->s;
	bool *worked = calloc(s->calls_count + 1, sizeof(*worked));
	uint8_t *captures = calloc(s->apis_count + 1, sizeof(*captures));
	int err = worked && captures ? 0 : -ENOMEM;

	for (size_t i = 0; i < s->apis_count && !err; i++)
		captures[i] = (uint8_t)capture_of(s->apis[i].name);
	for (size_t i = s->calls_count; i-- > 0 && !err;) {
		worked[i] = worked[i] || at[i + 1] > at[i];
		if (worked[i] && s->calls[i].parent < i)
			worked[s->calls[i].parent] = true;
	}
	for (size_t i = 0; i < s->threads_count && !err; i++)
		count_thread(j, &s->threads[i], worked, captures);
	/* What still ran at the end has a launch and no work. */
	s->join.launches_without -= s->join.running < s->join.launches_without ?
					    s->join.running : s->join.launches_without;
	s->join.works = s->works_count;
	s->join.matched = s->call_works_count;
	free(worked);
	free(captures);
	return err;
}

static int work_call_order(const void *pa, const void *pb)
{
	const struct work_call *a = pa, *b = pb;

	if (a->call != b->call)
		return a->call < b->call ? -1 : 1;
	return a->domain < b->domain ? -1 : a->domain > b->domain;
}

static void sort_work_calls(struct session *s)
{
	for (size_t i = 1; i < s->work_calls_count; i++)
		if (work_call_order(&s->work_calls[i - 1], &s->work_calls[i]) > 0) {
			qsort(s->work_calls, s->work_calls_count, sizeof(*s->work_calls),
			      work_call_order);
			return;
		}
}

int join_finish(struct join *j)
{
	struct session *s = j->s;
	uint32_t *at = NULL;
	bool changed = false;
	int err = list_works(s, &at);

	if (!err)
		err = check_graphs(j, at, &changed);
	if (!err && changed) {
		free(at);
		at = NULL;
		err = list_works(s, &at);
	}
	if (!err) {
		sort_work_calls(s);
		learn_handles(s);
		err = learn_names(s);
	}
	if (!err)
		err = count(j, at);
	free(at);
	return err;
}
