// SPDX-License-Identifier: BSD-2-Clause
/* Events on their way in: by thread, arguments aside, 24 bytes each. */
#include "model/internal.h"

static int queue_find(struct session_builder *b, const struct event *e, struct queue **out)
{
	struct queue *q;
	uint32_t i = b->recent;
	int err;

	if (i < b->queues_count && b->queues[i].pid == e->pid && b->queues[i].tid == e->tid) {
		*out = &b->queues[i];
		return 0;
	}
	i = map_get(&b->queue_of, e->pid, e->tid);
	if (i == MAP_NONE) {
		err = GROW(b->queues, b->queues_cap, b->queues_count + 1);
		if (!err)
			err = map_put(&b->queue_of, e->pid, e->tid, (uint32_t)b->queues_count);
		if (err)
			return err;
		i = (uint32_t)b->queues_count++;
		q = &b->queues[i];
		*q = (struct queue){ .pid = e->pid, .tid = e->tid, .last = INT64_MIN };
	}
	b->recent = i;
	*out = &b->queues[i];
	return 0;
}

/*
 * Jobs repeat themselves: the same launch thousands of times a second. A small
 * direct-mapped cache finds most repetitions, and the rest is stored again.
 */
static int launch_keep(struct session_builder *b, const struct event *e, uint32_t *arg)
{
	struct session *s = b->s;
	struct launch_args a = { .func = e->launch.func, .stream = e->launch.stream,
				 .smem = e->launch.smem };
	uint64_t words[sizeof(a) / sizeof(uint64_t)];
	uint32_t *slot;
	int err;

	memcpy(a.grid, e->launch.grid, sizeof(a.grid));
	memcpy(a.block, e->launch.block, sizeof(a.block));
	memcpy(words, &a, sizeof(words));
	slot = &b->launch_cache[map_hash_words(words, sizeof(words) / sizeof(*words)) % ARGS_CACHE];
	if (*slot < s->launches_count && !memcmp(&s->launches[*slot], &a, sizeof(a))) {
		*arg = *slot;
		return 0;
	}
	err = GROW(s->launches, b->launches_cap, s->launches_count + 1);
	if (err)
		return err;
	s->launches[s->launches_count] = a;
	*arg = *slot = (uint32_t)s->launches_count++;
	return 0;
}

static bool call_args_equal(const struct call_args *a, const struct call_args *b)
{
	return a->object == b->object && a->stream == b->stream && a->source == b->source &&
	       a->bytes == b->bytes && a->kind == b->kind && !a->has_out;
}

static int transfer_keep(struct session_builder *b, const struct event *e, uint32_t *arg)
{
	struct session *s = b->s;
	struct call_args a = { .object = e->call.object, .stream = e->call.stream,
			       .source = e->call.source, .bytes = e->call.bytes,
			       .kind = e->call.kind };
	uint64_t words[5] = { a.object, a.stream, a.source, a.bytes, a.kind };
	uint32_t *slot = &b->transfer_cache[map_hash_words(words, 5) % ARGS_CACHE];
	int err;

	if (*slot < s->transfers_count && call_args_equal(&s->transfers[*slot], &a)) {
		*arg = *slot;
		return 0;
	}
	err = GROW(s->transfers, b->transfers_cap, s->transfers_count + 1);
	if (err)
		return err;
	s->transfers[s->transfers_count] = a;
	*arg = *slot = (uint32_t)s->transfers_count++;
	return 0;
}

static int poll_keep(struct session_builder *b, const struct event *e, uint32_t *arg)
{
	struct session *s = b->s;
	int64_t begin = clamp_ts(e->ts);
	int64_t end = e->poll.last_end ? clamp_ts(e->poll.last_end) : 0;
	struct poll_args a = { .inside = clamp_ts(e->poll.inside), .object = e->poll.object,
			       .min = e->poll.min, .max = e->poll.max, .count = e->poll.count };
	int err = GROW(s->polls, b->polls_cap, s->polls_count + 1);

	if (err)
		return err;
	if (end && end < begin)
		end = begin;
	if (end && a.inside > end - begin)
		a.inside = end - begin;
	a.end = end;
	s->polls[s->polls_count] = a;
	*arg = (uint32_t)s->polls_count++;
	return 0;
}

static int out_keep(struct session_builder *b, uint64_t out, uint32_t *arg)
{
	int err = GROW(b->outs, b->outs_cap, b->outs_count + 1);

	if (err)
		return err;
	b->outs[b->outs_count] = out;
	*arg = (uint32_t)b->outs_count++;
	return 0;
}

/* Fills in what depends on the kind of event. 1: not an event we know. */
static int pending_fill(struct session_builder *b, const struct event *e, struct pending *p)
{
	switch (e->kind) {
	case EVENT_BEGIN:
		p->what |= PENDING_BEGIN << 12;
		p->ret = e->args;
		if (e->args == EVENT_ARGS_LAUNCH)
			return launch_keep(b, e, &p->arg);
		return e->args == EVENT_ARGS_CALL ? transfer_keep(b, e, &p->arg) : 0;
	case EVENT_END:
		p->what |= PENDING_END << 12;
		p->ret = (int32_t)e->end.ret;
		return e->has_out ? out_keep(b, e->end.out, &p->arg) : 0;
	case EVENT_POLL:
		p->what |= PENDING_POLL << 12;
		p->ret = e->poll.ret;
		return poll_keep(b, e, &p->arg);
	}
	return 1;
}

static int event_keep(struct session_builder *b, const struct event *e)
{
	struct pending p = { .ts = clamp_ts(e->ts), .sp = e->sp, .arg = NO_INDEX,
			     .image = e->image, .what = e->api < GBPF_MAX_API ? e->api : 0 };
	struct queue *q = NULL;
	int err = pending_fill(b, e, &p);

	if (err > 0) {
		b->s->quality.losses[RECORD_LOSS_MALFORMED]++;
		return 0;
	}
	if (!err)
		err = queue_find(b, e, &q);
	if (!err)
		err = GROW(q->events, q->cap, q->count + 1);
	if (err)
		return err;
	q->unsorted |= p.ts < q->last;
	q->last = p.ts;
	q->events[q->count++] = p;
	if (p.ts < b->first_event)
		b->first_event = p.ts;
	if (p.ts > b->last_event)
		b->last_event = p.ts;
	return 0;
}

int builder_events(struct session_builder *b, const struct record_events *r)
{
	int err = 0;

	if (b->s->quality.events + r->count >= UINT32_MAX)
		return -EOVERFLOW;
	b->s->quality.events += r->count;
	for (size_t i = 0; i < r->count && !err; i++)
		err = event_keep(b, &r->events[i]);
	return err;
}
