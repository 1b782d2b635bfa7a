// SPDX-License-Identifier: BSD-2-Clause
#include "buffers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "anchors.h"

#define PAGE 4096

/*
 * From the process's own allocator: if another profiler takes CUPTI over, buffers of ours
 * can end in its hands, and some free() them.
 */
int pool_fill(struct pool *p)
{
	unsigned have = 0;

	pthread_mutex_lock(&p->lock);
	for (unsigned i = 0; i < POOL_BUFFERS; i++) {
		void *at = NULL;

		if ((p->state[i] == BUFFER_NONE || p->state[i] == BUFFER_LOST) &&
		    !posix_memalign(&at, PAGE, POOL_BYTES)) {
			p->at[i] = at;
			p->state[i] = BUFFER_FREE;
		}
		have += p->state[i] == BUFFER_FREE;
	}
	pthread_mutex_unlock(&p->lock);
	return have ? 0 : -ENOMEM;
}

/* Never free()d: should CUPTI still write to one, it harms nobody. */
void pool_rest(struct pool *p)
{
	pthread_mutex_lock(&p->lock);
	for (unsigned i = 0; i < POOL_BUFFERS; i++)
		if (p->state[i] == BUFFER_FREE)
			(void)madvise(p->at[i], POOL_BYTES, MADV_DONTNEED);
	pthread_mutex_unlock(&p->lock);
}

unsigned pool_lose(struct pool *p)
{
	unsigned lost = 0;

	pthread_mutex_lock(&p->lock);
	for (unsigned i = 0; i < POOL_BUFFERS; i++) {
		if (p->state[i] != BUFFER_OUT)
			continue;
		p->state[i] = BUFFER_LOST;
		lost++;
	}
	pthread_mutex_unlock(&p->lock);
	return lost;
}

/* A record begins with its kind, which is never 0. CUPTI may be writing it just now. */
static uint32_t *first_kind(const struct pool *p, unsigned number)
{
	return (uint32_t *)(void *)p->at[number];
}

unsigned pool_filling(struct pool *p)
{
	unsigned count = 0;

	pthread_mutex_lock(&p->lock);
	for (unsigned i = 0; i < POOL_BUFFERS; i++)
		count += p->state[i] == BUFFER_OUT &&
			 __atomic_load_n(first_kind(p, i), __ATOMIC_RELAXED);
	pthread_mutex_unlock(&p->lock);
	return count;
}

static uint8_t *pool_take(struct pool *p)
{
	uint8_t *at = NULL;

	pthread_mutex_lock(&p->lock);
	for (unsigned i = 0; !at && i < POOL_BUFFERS; i++) {
		if (p->state[i] != BUFFER_FREE)
			continue;
		__atomic_store_n(first_kind(p, i), 0, __ATOMIC_RELAXED);
		p->state[i] = BUFFER_OUT;
		at = p->at[i];
	}
	pthread_mutex_unlock(&p->lock);
	return at;
}

/* The number of a buffer that CUPTI has; -1: it is none. */
static int pool_find(struct pool *p, const uint8_t *buffer)
{
	int found = -1;

	pthread_mutex_lock(&p->lock);
	for (unsigned i = 0; i < POOL_BUFFERS; i++)
		if (p->at[i] == buffer && p->state[i] == BUFFER_OUT)
			found = (int)i;
	pthread_mutex_unlock(&p->lock);
	return found;
}

static void pool_return(struct pool *p, int number)
{
	pthread_mutex_lock(&p->lock);
	if (p->state[number] == BUFFER_OUT)
		p->state[number] = BUFFER_FREE;
	pthread_mutex_unlock(&p->lock);
}

/* A name's address is CUPTI's own; what is there belongs to the module of the kernel. */
static uint32_t shape_of(struct session *s, const struct decoded *d)
{
	const char *name = (const char *)(uintptr_t)d->name;
	bool cut;
	uint32_t id = shapes_id(&s->shapes, &s->ring, &d->shape, d->name, name ? name : "", &cut);

	if (!name || cut)
		ring_bad(&s->ring, WIRE_BAD_NAME);
	return id;
}

static void take_work(struct session *s, struct decoded *d)
{
	if (d->work.kind == WIRE_KERNEL) {
		d->work.shape = shape_of(s, d);
		if (!d->work.shape)
			return; /* no room for it: the ring has counted that */
	}
	(void)ring_put(&s->ring, &d->work, sizeof(d->work), NULL, 0);
}

static bool launches(const struct wire_call *c)
{
	return c->domain == CUPTI_DOMAIN_DRIVER ? layout_launches(c->cbid) :
						  layout_runtime_launches(c->cbid);
}

/* CUPTI records all calls; those that launch nothing tell nothing of works. */
static bool take_call(struct session *s, const struct wire_call *c)
{
	if (launches(c))
		anchors_saw(s, c->begin);
	else if (!(s->window.flags & WIRE_ALL_API))
		return false;
	return true;
}

void buffers_record(struct session *s, const void *record, size_t size)
{
	struct decoded d;

	layout_decode(s->layout, record, size, &d);
	if (d.what == DECODED_CALL && !take_call(s, &d.call))
		return;
	pthread_mutex_lock(&s->lock);
	if (s->taking && d.what == DECODED_WORK)
		take_work(s, &d);
	else if (s->taking && d.what == DECODED_CALL)
		(void)ring_put(&s->ring, &d.call, sizeof(d.call), NULL, 0);
	else if (s->taking && d.what == DECODED_OVERHEAD)
		(void)ring_put(&s->ring, &d.overhead, sizeof(d.overhead), NULL, 0);
	else if (s->taking && d.what == DECODED_BAD && d.endless && atomic_load(&s->forced))
		ring_running(&s->ring);
	else if (s->taking && d.what == DECODED_BAD)
		ring_bad(&s->ring, d.bad);
	pthread_mutex_unlock(&s->lock);
}

void buffers_take(struct session *s, uint8_t *buffer, size_t valid)
{
	uint8_t *last = NULL;
	void *record = NULL;

	while (!s->cupti.next_record(buffer, valid, &record)) {
		uint8_t *at = record;

		if (at < buffer || at >= buffer + valid || (last && at <= last))
			break;
		buffers_record(s, at, (size_t)(buffer + valid - at));
		last = at;
	}
}

/* None: CUPTI drops the record, counts it, and asks again. */
void buffers_request(uint8_t **buffer, size_t *size, size_t *max_records)
{
	*buffer = session_here() ? pool_take(&session.pool) : NULL;
	*size = *buffer ? POOL_BYTES : 0;
	*max_records = 0;
}

static void count_dropped(struct session *s, void *context, uint32_t stream)
{
	size_t dropped = 0;

	if (s->cupti.dropped(context, stream, &dropped) || !dropped)
		return;
	pthread_mutex_lock(&s->lock);
	s->dropped += dropped;
	pthread_mutex_unlock(&s->lock);
}

static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t valid)
{
	int number = pool_find(&session.pool, buffer);

	if (number < 0) {
		atomic_store(&session.strange, true);
		return;
	}
	buffers_take(&session, buffer, valid <= POOL_BYTES ? valid : POOL_BYTES);
	pool_return(&session.pool, number);
	count_dropped(&session, context, stream);
}

void buffers_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	if (!session_here() || !buffer)
		return;
	atomic_fetch_add(&session.completing, 1);
	complete(context, stream, buffer, valid);
	atomic_fetch_sub(&session.completing, 1);
}
