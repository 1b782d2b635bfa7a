// SPDX-License-Identifier: BSD-2-Clause
/* Calls and works in the order of time, and the arrows between them. */
#include <errno.h>
#include <stdlib.h>

#include "export/cbid.h"
#include "export/kineto.h"
#include "model/grow.h"
#include "probe/catalogue.h"

#define PROGRESS_EVERY 8192

static const char *api_name(struct kineto *k, const struct call *c)
{
	char **name = &k->api_names[c->api];

	if (!*name) {
		*name = kineto_escape(k->s->apis[c->api].display);
		k->api_cbids[c->api] = cbid_of(k->s->apis[c->api].name);
	}
	if (!*name)
		k->err = -ENOMEM;
	return *name ? *name : "\"\"";
}

static const char *category(const struct session_api *a)
{
	static const char *const words[] = {
		[API_DRIVER] = "cuda_driver", [API_RUNTIME] = "cuda_runtime",
		[API_NCCL] = "user_annotation", /* where PyTorch has what it says of NCCL */
	};

	return a->library && a->library <= API_NCCL ? words[a->library] : "cuda_driver";
}

/* The number that CUPTI recorded, if that is of this very function and not of one inside. */
static uint32_t cbid(const struct kineto *k, uint32_t call)
{
	const struct call *c = &k->s->calls[call];
	const struct work_call *known = work_call_of(k->s, call);

	if (known && known->domain == k->s->apis[c->api].library)
		return known->cbid;
	return k->api_cbids[c->api];
}

/* What a launch says of itself, where no work on the GPU says it. */
static void put_launch(struct kineto *k, const struct call *c)
{
	const struct launch_args *l = &k->s->launches[c->args];

	if (c->kernel != UINT32_MAX) {
		put(k, ",\"kernel\":");
		put_string(k, k->s->kernels[c->kernel].short_name);
	}
	put(k, ",\"grid\":[");
	for (int i = 0; i < 3; i++) {
		put(k, i ? "," : "");
		put_uint(k, l->grid[i]);
	}
	put(k, "],\"block\":[");
	for (int i = 0; i < 3; i++) {
		put(k, i ? "," : "");
		put_uint(k, l->block[i]);
	}
	put(k, "],\"dynamic shared memory\":");
	put_uint(k, l->smem);
}

static void put_result(struct kineto *k, const struct call *c)
{
	const char *name = api_error_name(k->s->apis[c->api].library, c->ret);

	put(k, ",\"result\":");
	put_int(k, c->ret);
	if (name) {
		put(k, ",\"error\":");
		put_string(k, name);
	}
}

static void put_poll(struct kineto *k, const struct poll_args *p)
{
	put(k, ",\"queries\":");
	put_uint(k, p->count);
	put(k, ",\"inside queries (us)\":");
	put_us(k, p->inside);
}

static void put_end_state(struct kineto *k, enum export_end how)
{
	if (how == EXPORT_END_OPEN)
		put(k, ",\"finished\":\"false\"");
	put(k, ",\"end\":\"");
	put(k, export_end_word(how));
	put(k, "\"");
}

/* Begin of the first work that is there with an arrow; INT64_MAX: there is none. */
static int64_t first_work(const struct kineto *k, uint32_t call)
{
	size_t count;
	const uint32_t *works = works_of(k->s, call, &count);

	for (size_t i = 0; i < count; i++)
		if (export_cause(k->s, k->o, works[i]) == call)
			return k->s->works[works[i]].begin;
	return INT64_MAX;
}

static bool linked(const struct kineto *k, uint32_t call, int64_t *earliest)
{
	const struct call *c = &k->s->calls[call];
	uint32_t end = call + 1;

	if (export_linked(k->s, call) != call)
		return false;
	if (k->s->apis[c->api].library == API_RUNTIME)
		end = export_inside_end(k->s, call);
	*earliest = INT64_MAX;
	for (uint32_t i = call; i < end; i++) {
		int64_t begin = first_work(k, i);

		*earliest = begin < *earliest ? begin : *earliest;
	}
	return *earliest != INT64_MAX;
}

static void put_args(struct kineto *k, const struct export_item *item, uint64_t id)
{
	const struct call *c = &k->s->calls[item->index];
	uint32_t number = cbid(k, item->index);
	size_t works;

	put(k, ",\"args\":{");
	if (number) {
		put(k, "\"cbid\":");
		put_uint(k, number);
		put(k, ",");
	}
	put(k, "\"correlation\":");
	put_uint(k, id);
	if (c->flags & CALL_ARGS_LAUNCH && !works_of(k->s, item->index, &works))
		put_launch(k, c);
	if (c->flags & CALL_POLL)
		put_poll(k, &k->s->polls[c->args]);
	if (c->flags & CALL_ERROR)
		put_result(k, c);
	if (item->how != EXPORT_END_KNOWN)
		put_end_state(k, item->how);
	put(k, "}}");
}

/*
 * Inside of its call, so that no neighbour is taken for it, and not after the work that it
 * leads to. It waits here until what begins before it has been written.
 */
static void arrow_begin(struct kineto *k, const struct export_item *item, uint64_t id, uint64_t tid,
			int64_t earliest)
{
	int64_t ts = item->end - item->begin > 1 ? item->begin + 1 : item->begin;

	if (GROW(k->arrows, k->arrows_cap, k->arrows_count + 1)) {
		k->err = -ENOMEM;
		return;
	}
	k->arrows[k->arrows_count++] =
		(struct kineto_arrow){ts < earliest ? ts : earliest, id, tid};
	for (size_t i = k->arrows_count - 1;
	     i > k->arrows_at && k->arrows[i].ts < k->arrows[i - 1].ts; i--) {
		struct kineto_arrow moved = k->arrows[i];

		k->arrows[i] = k->arrows[i - 1];
		k->arrows[i - 1] = moved;
	}
}

static void put_arrow(struct kineto *k, const struct kineto_arrow *a)
{
	put_event(k);
	put(k, "{\"ph\":\"s\",\"id\":");
	put_uint(k, a->id);
	put(k, ",\"pid\":");
	put_uint(k, k->pid);
	put(k, ",\"tid\":");
	put_uint(k, a->tid);
	put(k, ",\"ts\":");
	put_ts(k, a->ts);
	put(k, ",\"cat\":\"ac2g\",\"name\":\"ac2g\"}");
	k->started++;
}

/* Those that begin before what comes next; at the same time calls come first, then these. */
static void put_arrows(struct kineto *k, int64_t next, bool is_call)
{
	while (k->arrows_at < k->arrows_count &&
	       (k->arrows[k->arrows_at].ts < next ||
		(!is_call && k->arrows[k->arrows_at].ts == next)))
		put_arrow(k, &k->arrows[k->arrows_at++]);
	if (k->arrows_at == k->arrows_count)
		k->arrows_at = k->arrows_count = 0;
}

static void put_call(struct kineto *k, const struct export_item *item)
{
	const struct call *c = &k->s->calls[item->index];
	uint64_t id = export_call_id(&k->ids, item->index), tid;
	struct kineto_row *row = kineto_row_of_call(k, c);
	int64_t earliest;

	tid = kineto_place(k, row, item->begin, item->end);
	put_event(k);
	put(k, "{\"ph\":\"X\",\"cat\":\"");
	put(k, category(&k->s->apis[c->api]));
	put(k, "\",\"name\":");
	put(k, api_name(k, c));
	put(k, ",\"pid\":");
	put_uint(k, k->pid);
	put(k, ",\"tid\":");
	put_uint(k, tid);
	put(k, ",\"ts\":");
	put_ts(k, item->begin);
	put(k, ",\"dur\":");
	put_us(k, item->end - item->begin);
	put_args(k, item, id);
	k->calls++;
	if (linked(k, item->index, &earliest))
		arrow_begin(k, item, id, tid, earliest);
}

int kineto_events(struct kineto *k, struct export_walk *walk, struct export_item *item, bool any)
{
	uint64_t all = k->s->calls_count + k->s->works_count, done = 0;
	int64_t last = k->first;
	int err = 0;

	for (; any && !k->err && !err; any = export_walk_next(walk, item)) {
		put_arrows(k, item->begin, !item->is_work);
		kineto_put_marks(k, item->begin);
		if (item->is_work)
			kineto_work(k, item->index);
		else
			put_call(k, item);
		last = item->begin;
		if (++done % PROGRESS_EVERY == 0)
			err = export_progress(k->o, done, all);
	}
	put_arrows(k, INT64_MAX, true);
	kineto_put_marks(k, INT64_MAX);
	kineto_put_end(k, last);
	return err ? err : k->err;
}
