// SPDX-License-Identifier: BSD-2-Clause
/*
 * Begins and ends become calls, thread by thread. The stack grows down, so a
 * stack pointer says which open calls can still be there: those whose frames
 * lie above.
 */
#include "model/internal.h"
#include "probe/catalogue.h"

/* Functions that jump to one another share a stack pointer; longer chains are lost ends. */
#define MAX_TAIL 4

struct frame {
	uint32_t call, sp;
	uint16_t api;
};

struct pairing {
	struct session_builder *b;
	struct frame *frames; /* sp never grows from one to the next */
	size_t depth, cap;
	uint32_t thread;
	uint32_t poll; /* the last poll, CALL_NONE */
	uint32_t poll_sp;
	size_t segment; /* first call of this epoch */
	bool entry_only; /* the thread's process */
	bool fresh; /* no call began since the window did, and another was before it */
};

static void pop_lost(struct pairing *p)
{
	struct session *s = p->b->s;

	s->calls[p->frames[--p->depth].call].flags |= CALL_NO_END;
	s->quality.unpaired_begin++;
}

static struct frame *top_frame(struct pairing *p)
{
	return p->depth ? &p->frames[p->depth - 1] : NULL;
}

static void set_parent(struct call *c, const struct frame *f)
{
	/* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): depth counts what is set */
	c->parent = f ? f->call : CALL_NONE;
	c->flags = (uint16_t)((c->flags & ~CALL_NESTED) | (f ? CALL_NESTED : 0));
}

static inline int call_add(struct pairing *p, const struct pending *e, struct call **out)
{
	struct session *s = p->b->s;
	uint32_t api = builder_api_fast(p->b, PENDING_API(e));
	int err = api == NO_INDEX ? -ENOMEM : GROW(s->calls, p->b->calls_cap, s->calls_count + 1);
	struct call *c;

	if (err)
		return err;
	c = &s->calls[s->calls_count++];
	c->begin = c->end = e->ts; /* field by field: a copy would wait for them */
	c->children = 0;
	c->thread = p->thread;
	c->parent = CALL_NONE;
	c->kernel = NO_INDEX;
	c->args = e->arg;
	c->ret = 0;
	c->api = (uint16_t)api;
	c->flags = 0;
	*out = c;
	return 0;
}

static inline void call_return(struct session *s, struct call *c, int32_t ret)
{
	uint16_t id = s->apis[c->api].catalogue;

	c->ret = ret;
	if (ret && id && api_is_error(catalogue_get(id), ret))
		c->flags |= CALL_ERROR;
}

/* A begin at sp proves frames below it gone, and one of the same API at it as well. */
static void pop_replaced(struct pairing *p, uint32_t sp, uint16_t api)
{
	size_t tail = 0;
	bool again = false;

	while (p->depth && top_frame(p)->sp < sp)
		pop_lost(p);
	for (; tail < p->depth && p->frames[p->depth - 1 - tail].sp == sp; tail++)
		again |= p->frames[p->depth - 1 - tail].api == api;
	for (; tail && (again || tail >= MAX_TAIL); tail--)
		pop_lost(p);
}

static int on_begin(struct pairing *p, const struct pending *e)
{
	struct session_builder *b = p->b;
	uint16_t api = PENDING_API(e);
	struct call *c;
	int err;

	p->fresh = false;
	pop_replaced(p, e->sp, api);
	err = GROW(p->frames, p->cap, p->depth + 1);
	if (!err)
		err = call_add(p, e, &c);
	if (err)
		return err;
	set_parent(c, top_frame(p));
	if (e->ret == EVENT_ARGS_LAUNCH)
		c->flags |= CALL_ARGS_LAUNCH;
	else if (e->ret == EVENT_ARGS_CALL)
		c->flags |= CALL_ARGS_CALL;
	if (p->entry_only || (b->entry_only_sites.count &&
			      map_get(&b->entry_only_sites, e->image, c->api) != MAP_NONE)) {
		c->flags |= CALL_ENTRY_ONLY;
		return 0;
	}
	p->frames[p->depth++] = (struct frame){ (uint32_t)(c - b->s->calls), e->sp, api };
	return 0;
}

/*
 * Frames that share the sp of the call that just returned: either they jumped
 * to it, and then their ends are next, or their own ends were lost before.
 */
static void settle_tail(struct pairing *p, struct call *c, uint32_t sp, const struct pending *next)
{
	bool jumped = false;
	size_t tail = 0;

	for (; tail < p->depth && p->frames[p->depth - 1 - tail].sp == sp; tail++)
		jumped |= next && PENDING_KIND(next) == PENDING_END && next->sp == sp &&
			  PENDING_API(next) == p->frames[p->depth - 1 - tail].api;
	if (!tail || jumped)
		return;
	for (; tail; tail--)
		pop_lost(p);
	set_parent(c, top_frame(p));
}

/* What a call stored through a pointer is its own, even if its arguments are shared. */
static int keep_out(struct pairing *p, struct call *c, const struct pending *e)
{
	struct session *s = p->b->s;
	struct call_args a = { 0 };
	int err;

	if (e->arg == NO_INDEX || c->flags & CALL_ARGS_LAUNCH)
		return 0;
	if (c->flags & CALL_ARGS_CALL)
		a = s->transfers[c->args];
	a.out = p->b->outs[e->arg];
	a.has_out = true;
	err = GROW(s->transfers, p->b->transfers_cap, s->transfers_count + 1);
	if (err)
		return err;
	c->args = (uint32_t)s->transfers_count;
	c->flags |= CALL_ARGS_CALL;
	s->transfers[s->transfers_count++] = a;
	return 0;
}

static int end_without_begin(struct pairing *p, const struct pending *e)
{
	struct session *s = p->b->s;
	struct pending bare = *e;
	struct call *c;
	int err;

	bare.arg = NO_INDEX;
	err = call_add(p, &bare, &c);
	if (err)
		return err;
	c->flags |= CALL_NO_BEGIN | (p->fresh ? CALL_CUT : 0);
	set_parent(c, top_frame(p));
	call_return(s, c, e->ret);
	s->quality.unpaired_end += !p->fresh;
	return keep_out(p, c, e);
}

static int on_end(struct pairing *p, const struct pending *e, const struct pending *next)
{
	struct session *s = p->b->s;
	struct call *c;
	size_t i;

	while (p->depth && top_frame(p)->sp < e->sp)
		pop_lost(p);
	for (i = p->depth; i > 0 && p->frames[i - 1].sp == e->sp; i--)
		if (p->frames[i - 1].api == PENDING_API(e))
			break;
	if (!i || p->frames[i - 1].sp != e->sp)
		return end_without_begin(p, e);
	while (p->depth > i)
		pop_lost(p);
	c = &s->calls[p->frames[--p->depth].call];
	c->end = e->ts;
	call_return(s, c, e->ret);
	settle_tail(p, c, e->sp, next);
	if (c->parent != CALL_NONE)
		s->calls[c->parent].children =
			add_ns(s->calls[c->parent].children, c->end - c->begin);
	return keep_out(p, c, e);
}

static int on_poll(struct pairing *p, const struct pending *e)
{
	struct session *s = p->b->s;
	const struct poll_args *a = &s->polls[e->arg];
	struct call *c, *outer;
	int err = call_add(p, e, &c);

	if (err)
		return err;
	p->fresh = false;
	while (p->depth && top_frame(p)->sp < e->sp)
		pop_lost(p);
	c->flags |= CALL_POLL;
	c->end = a->end ? a->end : e->ts;
	if (!a->end)
		c->flags |= CALL_OPEN;
	call_return(s, c, e->ret);
	if (p->depth && top_frame(p)->sp > e->sp)
		set_parent(c, top_frame(p));
	/* The runtime's query calls the driver's: one wait, seen twice. */
	outer = p->poll != CALL_NONE ? &s->calls[p->poll] : NULL;
	if (outer && outer->end >= c->end && p->poll_sp > e->sp && !(outer->flags & CALL_OPEN)) {
		c->parent = p->poll;
		c->flags |= CALL_NESTED;
		outer->children = add_ns(outer->children, a->inside);
		return 0;
	}
	if (c->parent != CALL_NONE && a->end)
		s->calls[c->parent].children =
			add_ns(s->calls[c->parent].children, c->end - c->begin);
	p->poll = (uint32_t)(c - s->calls);
	p->poll_sp = e->sp;
	return 0;
}

/* Calls that nothing closed: still running, unless their process is gone. */
static void close_open(struct pairing *p, bool process_lives)
{
	struct session *s = p->b->s;

	while (process_lives && p->depth)
		s->calls[p->frames[--p->depth].call].flags |= CALL_OPEN;
}

/* The thread goes on in another epoch, or after a time without probes. */
static int cut(struct pairing *p, uint32_t epoch)
{
	int err;

	while (p->depth)
		pop_lost(p);
	p->poll = CALL_NONE;
	err = names_apply(p->b, epoch, p->segment, p->b->s->calls_count);
	p->segment = p->b->s->calls_count;
	return err;
}

static int thread_begin(struct pairing *p, const struct queue *q, uint32_t process)
{
	struct session_builder *b = p->b;
	struct session *s = b->s;
	struct session_thread *t;
	int err = GROW(s->threads, b->threads_cap, s->threads_count + 1);

	if (err)
		return err;
	t = &s->threads[s->threads_count];
	*t = (struct session_thread){ .pid = q->pid, .tid = q->tid, .process = process,
				      .first_call = (uint32_t)s->calls_count };
	for (size_t i = b->named_count; i-- > 0;) {
		if (b->named[i].pid != q->pid || b->named[i].tid != q->tid)
			continue;
		t->ns_tid = b->named[i].ns_tid;
		t->comm = strdup(b->named[i].comm);
		break;
	}
	if (!t->comm)
		t->comm = strdup("");
	if (!t->comm)
		return -ENOMEM;
	p->thread = (uint32_t)s->threads_count++;
	p->segment = s->calls_count;
	p->entry_only = s->processes[process].flags & RECORD_PROCESS_ENTRY_ONLY;
	return 0;
}

static void thread_end(struct pairing *p)
{
	struct session_thread *t = &p->b->s->threads[p->thread];

	t->calls = (uint32_t)(p->b->s->calls_count - t->first_call);
}

/* Crosses all borders up to ts: *epoch and *window follow. */
static int cross(struct pairing *p, const struct queue *q, int64_t ts, size_t *epoch,
		 size_t last_epoch, size_t *window)
{
	const struct session_builder *b = p->b;
	const struct session *s = b->s;
	size_t old = *epoch;
	bool gap = false;
	int err;

	while (*epoch < last_epoch && b->epochs[*epoch + 1].from <= ts)
		(*epoch)++;
	for (; *window + 1 < s->windows_count && s->windows[*window + 1].begin <= ts; (*window)++)
		gap = true;
	if (*epoch == old && !gap)
		return 0;
	close_open(p, gap && *epoch == old); /* builder_cut() says what became of them */
	p->fresh = gap;
	err = cut(p, (uint32_t)old);
	if (err || b->epochs[*epoch].process == b->epochs[old].process)
		return err;
	thread_end(p);
	return thread_begin(p, q, b->epochs[*epoch].process);
}

static int64_t next_border(const struct session_builder *b, size_t epoch, size_t last_epoch,
			   size_t window)
{
	int64_t border = INT64_MAX;

	if (epoch < last_epoch)
		border = b->epochs[epoch + 1].from;
	if (window + 1 < b->s->windows_count && b->s->windows[window + 1].begin < border)
		border = b->s->windows[window + 1].begin;
	return border;
}

static int pair_event(struct pairing *p, const struct queue *q, size_t i)
{
	const struct pending *e = &q->events[i];

	if (PENDING_KIND(e) == PENDING_BEGIN)
		return on_begin(p, e);
	if (PENDING_KIND(e) == PENDING_END)
		return on_end(p, e, i + 1 < q->count ? e + 1 : NULL);
	return on_poll(p, e);
}

static int pair_queue(struct pairing *p, struct queue *q)
{
	struct session_builder *b = p->b;
	size_t count, window = 0;
	size_t epoch = epochs_of(b, q->pid, &count);
	size_t last_epoch = epoch + count - 1;
	const struct session_process *process;
	int64_t border;
	int err = queue_sort(q);

	while (!err && epoch < last_epoch && b->epochs[epoch + 1].from <= q->events[0].ts)
		epoch++;
	if (!err)
		err = thread_begin(p, q, b->epochs[epoch].process);
	p->depth = 0;
	p->poll = CALL_NONE;
	p->fresh = false;
	border = next_border(b, epoch, last_epoch, window);
	for (size_t i = 0; i < q->count && !err; i++) {
		if (q->events[i].ts >= border) {
			err = cross(p, q, q->events[i].ts, &epoch, last_epoch, &window);
			border = next_border(b, epoch, last_epoch, window);
		}
		if (!err)
			err = pair_event(p, q, i);
	}
	if (err)
		return err;
	process = &b->s->processes[b->epochs[epoch].process];
	close_open(p, epoch == last_epoch && !process->exited);
	err = cut(p, (uint32_t)epoch);
	thread_end(p);
	free(q->events);
	q->events = NULL;
	return err;
}

static int queue_order(const void *pa, const void *pb)
{
	const struct queue *a = pa, *b = pb;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return a->tid < b->tid ? -1 : a->tid > b->tid;
}

static int find_entry_only(struct session_builder *b)
{
	const struct session *s = b->s;
	int err = 0;

	for (size_t i = 0; i < s->sites_count; i++)
		for (size_t j = 0; j < s->apis_count && !err; j++)
			if (s->sites[i].state == RECORD_SITE_ENTRY_ONLY &&
			    !strcmp(s->sites[i].api, s->apis[j].name))
				err = map_put(&b->entry_only_sites, s->sites[i].image, j, 1);
	return err;
}

int builder_pair(struct session_builder *b)
{
	struct pairing p = { .b = b };
	int err = find_entry_only(b);

	if (b->queues_count)
		qsort(b->queues, b->queues_count, sizeof(*b->queues), queue_order);
	for (size_t i = 0; i < b->queues_count && !err; i++)
		err = pair_queue(&p, &b->queues[i]);
	free(p.frames);
	return err;
}
