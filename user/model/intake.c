// SPDX-License-Identifier: BSD-2-Clause
/* Events on their way in: by thread, arguments aside, 24 bytes each. */
#include "model/internal.h"

static int queue_find(struct session_builder *b, const struct event *e, struct queue **out)
{
	uint32_t *recent = &b->recent[e->tid % RECENT_QUEUES], i = *recent;
	struct queue *q;
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
		*q = (struct queue){ .pid = e->pid, .tid = e->tid };
	}
	*recent = i;
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
	uint64_t words[sizeof(e->launch) / sizeof(uint64_t)];
	uint32_t *slot;
	int err;

	_Static_assert(sizeof(e->launch) == sizeof(struct launch_args), "the same fields");
	memcpy(words, &e->launch, sizeof(words));
	slot = &b->launch_cache[map_hash_words(words, sizeof(words) / sizeof(*words)) % ARGS_CACHE];
	if (*slot < s->launches_count &&
	    !memcmp(&s->launches[*slot], &e->launch, sizeof(e->launch))) {
		*arg = *slot;
		return 0;
	}
	err = GROW(s->launches, b->launches_cap, s->launches_count + 1);
	if (err)
		return err;
	memcpy(&s->launches[s->launches_count], &e->launch, sizeof(e->launch));
	*arg = *slot = (uint32_t)s->launches_count++;
	return 0;
}

static int transfer_keep(struct session_builder *b, const struct event *e, uint32_t *arg)
{
	struct session *s = b->s;
	uint64_t words[sizeof(e->call) / sizeof(uint64_t)];
	uint32_t *slot;
	int err;

	_Static_assert(sizeof(e->call) == offsetof(struct call_args, out), "the same fields");
	memcpy(words, &e->call, sizeof(words));
	slot = &b->transfer_cache[map_hash_words(words, sizeof(words) / sizeof(*words)) %
				  ARGS_CACHE];
	if (*slot < s->transfers_count &&
	    !memcmp(&s->transfers[*slot], &e->call, sizeof(e->call))) {
		*arg = *slot;
		return 0;
	}
	err = GROW(s->transfers, b->transfers_cap, s->transfers_count + 1);
	if (err)
		return err;
	s->transfers[s->transfers_count] = (struct call_args){ .has_out = false };
	memcpy(&s->transfers[s->transfers_count], &e->call, sizeof(e->call));
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

/* Fills in what depends on the kind of event. */
static int pending_fill(struct session_builder *b, const struct event *e, struct pending *p)
{
	p->arg = NO_INDEX;
	switch (e->kind) {
	case EVENT_BEGIN:
		p->ret = e->args;
		if (e->args == EVENT_ARGS_LAUNCH)
			return launch_keep(b, e, &p->arg);
		return e->args == EVENT_ARGS_CALL ? transfer_keep(b, e, &p->arg) : 0;
	case EVENT_END:
		p->ret = (int32_t)e->end.ret;
		return e->has_out ? out_keep(b, e->end.out, &p->arg) : 0;
	default:
		p->ret = e->poll.ret;
		return poll_keep(b, e, &p->arg);
	}
}

/* The kinds of struct pending are those of struct event. */
static int event_keep(struct session_builder *b, const struct event *e)
{
	struct queue *q = NULL;
	struct pending *p;
	int err;

	if (e->kind < EVENT_BEGIN || e->kind > EVENT_POLL) {
		b->s->quality.losses[RECORD_LOSS_MALFORMED]++;
		return 0;
	}
	err = queue_find(b, e, &q);
	if (!err)
		err = GROW(q->events, q->cap, q->count + 1);
	if (err)
		return err;
	p = &q->events[q->count]; /* in place: a copy would wait for the single fields */
	p->ts = clamp_ts(e->ts);
	p->sp = e->sp;
	p->image = e->image;
	p->what = (uint16_t)((e->api < GBPF_MAX_API ? e->api : 0) | e->kind << 12);
	err = pending_fill(b, e, p);
	if (err)
		return err;
	if (p->ts < b->first_event)
		b->first_event = p->ts;
	if (p->ts > b->last_event)
		b->last_event = p->ts;
	q->count++;
	if (q->count > 1 && p->ts < p[-1].ts)
		queue_settle(q);
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
