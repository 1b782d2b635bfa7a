/* SPDX-License-Identifier: BSD-2-Clause */
/* Records and the buffers that clients lend for them. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cupti.h"

#define CHANNEL_COMPUTE 1
#define CHANNEL_COPY 2

union record {
	struct cupti_kernel kernel;
	struct cupti_copy copy;
	struct cupti_set set;
	struct cupti_peer peer;
};

size_t cupti_record_size(uint32_t kind)
{
	switch (kind) {
	case CUPTI_KERNEL:
	case CUPTI_CONCURRENT_KERNEL: return cupti.set.kernel_size;
	case CUPTI_MEMCPY: return cupti.set.copy_size;
	case CUPTI_MEMSET: return sizeof(struct cupti_set);
	case CUPTI_DRIVER:
	case CUPTI_RUNTIME: return sizeof(struct cupti_api);
	case CUPTI_MEMCPY_PEER: return sizeof(struct cupti_peer);
	case CUPTI_OVERHEAD: return cupti.set.overhead_size;
	default: return 0;
	}
}

void cupti_pending_add(struct cupti_list *l, struct cupti_pending *p)
{
	p->next = NULL;
	if (!l->first)
		l->last = &l->first;
	*l->last = p;
	l->last = &p->next;
}

/* A client's buffer, or NULL. No lock but drain may be held. */
static struct cupti_buffer *buffer_new(void)
{
	cupti_request_fn request = cupti_pair().request;
	struct cupti_buffer *b = request ? calloc(1, sizeof(*b)) : NULL;

	if (!b)
		return NULL;
	request(&b->at, &b->size, &b->max_records);
	if (b->at && b->size)
		return b;
	free(b);
	return NULL;
}

static bool has_room(const struct cupti_buffer *b, size_t size)
{
	return b && b->size - b->used >= size && (!b->max_records || b->records < b->max_records);
}

static void append(struct cupti_buffer *b, const void *record, size_t size)
{
	memcpy(b->at + b->used, record, size);
	b->used += size;
	b->records++;
}

/* lock is held. */
static void retire(struct cupti_buffer **b)
{
	if (!*b)
		return;
	(*b)->next = cupti.full;
	cupti.full = *b;
	*b = NULL;
	pthread_cond_signal(&cupti.wake);
}

/* One is there, or one is being filled and that will do. */
static void reserve(bool will_do)
{
	struct cupti_buffer *fresh;
	bool there;

	pthread_mutex_lock(&cupti.lock);
	there = cupti.reserved || (will_do && cupti.device);
	pthread_mutex_unlock(&cupti.lock);
	fresh = there ? NULL : buffer_new();
	pthread_mutex_lock(&cupti.lock);
	if (!cupti.reserved) {
		cupti.reserved = fresh;
		fresh = NULL;
	}
	retire(&fresh);
	pthread_mutex_unlock(&cupti.lock);
}

/* Its first record is written later; until then there is its kind. */
void cupti_reserve(uint32_t kind)
{
	reserve(true);
	pthread_mutex_lock(&cupti.lock);
	if (!cupti.device && has_room(cupti.reserved, sizeof(kind)))
		memcpy(cupti.reserved->at, &kind, sizeof(kind));
	pthread_mutex_unlock(&cupti.lock);
}

/* The one that is full is to be delivered. drain is held. */
static void next_device(void)
{
	struct cupti_buffer *fresh;

	pthread_mutex_lock(&cupti.lock);
	retire(&cupti.device);
	cupti.device = cupti.reserved;
	cupti.reserved = NULL;
	pthread_mutex_unlock(&cupti.lock);
	if (cupti.device)
		return;
	fresh = buffer_new();
	pthread_mutex_lock(&cupti.lock);
	cupti.device = fresh;
	pthread_mutex_unlock(&cupti.lock);
}

static uint32_t this_thread(void)
{
	bool system = cupti.thread_type == CUPTI_THREAD_SYSTEM;

	return system ? (uint32_t)gettid() : (uint32_t)pthread_self();
}

/* What asking for a buffer took, is the first record in it. */
static struct cupti_buffer *buffer_timed(void)
{
	struct cupti_overhead r = {
		.kind = CUPTI_OVERHEAD,
		.overhead = CUPTI_OVERHEAD_REQUEST,
		.object = CUPTI_OBJECT_THREAD,
		.process = (uint32_t)getpid(),
		.thread = this_thread(),
		.start = cupti_clock_now(),
	};
	struct cupti_buffer *b = buffer_new();

	r.end = cupti_clock_now();
	if (atomic_load(&cupti.on[CUPTI_OVERHEAD]) && has_room(b, cupti.set.overhead_size))
		append(b, &r, cupti.set.overhead_size);
	return b;
}

/* The thread that called makes the record, and asks for the buffer when there is no room. */
void cupti_call_record(const struct sim_call *c, uint64_t end, int ret)
{
	struct cupti_api r = {
		.kind = c->runtime ? CUPTI_RUNTIME : CUPTI_DRIVER,
		.cbid = c->cbid,
		.start = (uint64_t)c->begin,
		.end = end,
		.process = (uint32_t)getpid(),
		.thread = this_thread(),
		.correlation = c->correlation,
		.ret = ret,
	};
	struct cupti_buffer *fresh;

	pthread_mutex_lock(&cupti.lock);
	if (!has_room(cupti.calls, sizeof(r))) {
		pthread_mutex_unlock(&cupti.lock);
		fresh = buffer_timed();
		pthread_mutex_lock(&cupti.lock);
		if (fresh) {
			retire(&cupti.calls);
			cupti.calls = fresh;
		}
	}
	if (has_room(cupti.calls, sizeof(r)))
		append(cupti.calls, &r, sizeof(r));
	else
		cupti.dropped++;
	pthread_mutex_unlock(&cupti.lock);
}

static void make_kernel(struct cupti_kernel *r, const struct cupti_pending *p)
{
	const struct truth_work *w = &p->work.is;

	*r = (struct cupti_kernel){
		.kind = p->kind,
		.registers = (uint16_t)w->registers,
		.device = w->device,
		.context = w->context,
		.stream = w->stream,
		.dynamic_shared = (int32_t)w->smem,
		.shared_executed = w->smem,
		.correlation = p->correlation,
		.grid_id = (int64_t)cupti.device_records,
		.name = p->work.name,
		.graph_node = w->node,
		.graph = w->graph,
		.channel = w->stream,
		.channel_type = CHANNEL_COMPUTE,
	};
	for (int i = 0; i < 3; i++) {
		r->grid[i] = (int32_t)w->grid[i];
		r->block[i] = (int32_t)w->block[i];
	}
}

static void make_copy(struct cupti_copy *r, const struct cupti_pending *p)
{
	const struct truth_work *w = &p->work.is;

	*r = (struct cupti_copy){
		.kind = p->kind,
		.copy = w->copy,
		.from = w->from,
		.to = w->to,
		.flags = w->async ? CUPTI_FLAG_ASYNC : 0,
		.bytes = w->bytes,
		.device = w->device,
		.context = w->context,
		.stream = w->stream,
		.correlation = p->correlation,
		.graph_node = w->node,
		.graph = w->graph,
		.channel = w->stream,
		.channel_type = CHANNEL_COPY,
		.count = 1,
	};
}

static void make_peer(struct cupti_peer *r, const struct cupti_pending *p)
{
	const struct truth_work *w = &p->work.is;

	*r = (struct cupti_peer){
		.kind = p->kind,
		.copy = w->copy,
		.from = w->from,
		.to = w->to,
		.flags = w->async ? CUPTI_FLAG_ASYNC : 0,
		.bytes = w->bytes,
		.device = w->device,
		.context = w->context,
		.stream = w->stream,
		.from_device = w->from_device,
		.from_context = p->work.from_context,
		.to_device = w->to_device,
		.to_context = p->work.to_context,
		.correlation = p->correlation,
		.channel = w->stream,
		.channel_type = CHANNEL_COPY,
	};
}

static void make_set(struct cupti_set *r, const struct cupti_pending *p)
{
	const struct truth_work *w = &p->work.is;

	*r = (struct cupti_set){
		.kind = p->kind,
		.value = w->value,
		.bytes = w->bytes,
		.device = w->device,
		.context = w->context,
		.stream = w->stream,
		.correlation = p->correlation,
		.flags = w->async ? CUPTI_FLAG_ASYNC : 0,
		.memory = w->to,
		.graph_node = w->node,
		.graph = w->graph,
		.channel = w->stream,
		.channel_type = CHANNEL_COMPUTE,
	};
}

static bool every(unsigned n)
{
	return n && cupti.device_records % n == 0;
}

/* Not ended, where the flush was forced: end is 0. */
static void times(uint64_t *start, uint64_t *end, const struct truth_work *w, int64_t now)
{
	*start = w->begin <= now ? cupti_clock(w->begin) : 0;
	*end = w->end <= now ? cupti_clock(w->end) : 0;
	if (every(cupti.set.negative))
		*end = *start - 1000;
	if (every(cupti.set.start0))
		*start = 0;
	if (every(cupti.set.end0))
		*end = 0;
}

static size_t make_record(union record *r, const struct cupti_pending *p, int64_t now)
{
	uint64_t start, end;

	times(&start, &end, &p->work.is, now);
	switch (p->kind) {
	case CUPTI_MEMCPY:
		make_copy(&r->copy, p);
		r->copy.start = start;
		r->copy.end = end;
		break;
	case CUPTI_MEMCPY_PEER:
		make_peer(&r->peer, p);
		r->peer.start = start;
		r->peer.end = end;
		break;
	case CUPTI_MEMSET:
		make_set(&r->set, p);
		r->set.start = start;
		r->set.end = end;
		break;
	default:
		make_kernel(&r->kernel, p);
		r->kernel.start = start;
		r->kernel.end = r->kernel.completed = end;
	}
	return cupti_record_size(p->kind);
}

static void count_dropped(void)
{
	pthread_mutex_lock(&cupti.lock);
	cupti.dropped++;
	pthread_mutex_unlock(&cupti.lock);
}

static void put(const struct cupti_pending *p, int64_t now)
{
	union record r;
	size_t size;

	cupti.device_records++;
	size = make_record(&r, p, now);
	if (!every(cupti.set.drop) && !has_room(cupti.device, size))
		next_device();
	if (every(cupti.set.drop) || !has_room(cupti.device, size))
		count_dropped();
	else
		append(cupti.device, &r, size);
}

/* Takes what has ended out of the list: first that of streams with odd ids, then the others. */
static struct cupti_list take(int64_t now, bool forced)
{
	struct cupti_list parts[2] = { 0 }, left = { 0 };
	struct cupti_pending *p, *next;

	pthread_mutex_lock(&cupti.lock);
	for (p = cupti.pending.first; p; p = next) {
		next = p->next;
		if (p->work.is.end <= now || forced)
			cupti_pending_add(&parts[p->work.is.stream % 2 == 0], p);
		else
			cupti_pending_add(&left, p);
	}
	cupti.pending = left;
	if (left.first == NULL)
		cupti.pending.last = NULL;
	pthread_mutex_unlock(&cupti.lock);
	if (!parts[0].first)
		return parts[1];
	*parts[0].last = parts[1].first;
	return parts[0];
}

/* All: those not full, too, but for one of which work has not ended. */
static struct cupti_buffer *take_full(bool all, bool forced)
{
	struct cupti_buffer *newest, *oldest = NULL, *next;

	pthread_mutex_lock(&cupti.lock);
	if (all && (forced || !cupti.pending.first)) {
		retire(&cupti.device);
		if (forced || !cupti.set.spare)
			retire(&cupti.reserved);
	}
	if (all)
		retire(&cupti.calls);
	newest = cupti.full;
	cupti.full = NULL;
	pthread_mutex_unlock(&cupti.lock);
	for (; newest; newest = next) {
		next = newest->next;
		newest->next = oldest;
		oldest = newest;
	}
	return oldest;
}

/* Nothing that is not delivered points to them. drain is held. */
static void free_names(void)
{
	struct cupti_name *n = NULL, *next;

	pthread_mutex_lock(&cupti.lock);
	if (!cupti.pending.first && !cupti.device && !cupti.full) {
		n = cupti.names;
		cupti.names = NULL;
	}
	pthread_mutex_unlock(&cupti.lock);
	for (; n; n = next) {
		next = n->next;
		memset(n->text, '!', strlen(n->text));
		free(n->text);
		free(n);
	}
}

void cupti_deliver(bool all, bool forced)
{
	struct cupti_pending *p, *next_pending;
	cupti_complete_fn complete;
	struct cupti_buffer *b, *next;
	int64_t now;

	pthread_mutex_lock(&cupti.drain);
	now = truth_now();
	for (p = take(now, forced).first; p; p = next_pending) {
		next_pending = p->next;
		put(p, now);
		free(p);
	}
	for (b = take_full(all, forced); b; b = next) {
		next = b->next;
		complete = cupti_pair().complete;
		if (complete)
			complete(NULL, 0, b->at, b->size, b->used);
		free(b);
	}
	free_names();
	if (cupti.set.spare && !forced)
		reserve(false);
	pthread_mutex_unlock(&cupti.drain);
}

static void free_buffer(struct cupti_buffer **b)
{
	free(*b);
	*b = NULL;
}

/* The clients' memory is theirs, and lost to them. */
void cupti_forget(void)
{
	struct cupti_pending *p, *next;
	struct cupti_buffer *b;

	pthread_mutex_lock(&cupti.drain);
	pthread_mutex_lock(&cupti.lock);
	for (p = cupti.pending.first; p; p = next) {
		next = p->next;
		free(p);
	}
	cupti.pending = (struct cupti_list){ 0 };
	while ((b = cupti.full)) {
		cupti.full = b->next;
		free(b);
	}
	free_buffer(&cupti.device);
	free_buffer(&cupti.reserved);
	free_buffer(&cupti.calls);
	pthread_mutex_unlock(&cupti.lock);
	pthread_mutex_unlock(&cupti.drain);
}
