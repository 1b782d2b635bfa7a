/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events like those of a training job, the same for the same seed: steps of 80
 * launches, copies and a wait, on several threads, with jittered times, in the
 * order in which rings of several CPUs are emptied.
 */
#ifndef TESTS_RECORD_DATA_H
#define TESTS_RECORD_DATA_H

#include <stdbool.h>
#include <string.h>

#include "collect/event.h"

#define DATA_KERNELS 80
#define DATA_THREADS_MAX 64

struct data_thread {
	int64_t now;
	uint32_t pid, tid;
	unsigned int at; /* in the step */
	bool inside;
	struct event begin;
};

struct data {
	uint64_t random;
	unsigned int threads, current, left; /* events until the next thread's turn */
	bool shuffled;			     /* kernels in random order, not step by step */
	struct data_thread thread[DATA_THREADS_MAX];
	struct event kernel[DATA_KERNELS];
};

static inline uint64_t data_random(struct data *d)
{
	d->random ^= d->random << 13;
	d->random ^= d->random >> 7;
	d->random ^= d->random << 17;
	return d->random;
}

static inline uint64_t data_below(struct data *d, uint64_t limit)
{
	return data_random(d) % limit;
}

/* Sum of uniform parts with a rare long one: about as uneven as real durations. */
static inline int64_t data_duration(struct data *d, uint64_t typical)
{
	uint64_t ns = typical / 2 + data_below(d, typical / 2) + data_below(d, typical / 2);

	return (int64_t)(data_below(d, 50) ? ns : ns * 8);
}

static inline void data_begin(struct data *d, uint64_t seed, unsigned int threads, bool shuffled)
{
	memset(d, 0, sizeof(*d));
	d->random = seed * 2654435761u + 88172645463325252u;
	d->threads = threads;
	d->shuffled = shuffled;
	for (unsigned int t = 0; t < threads; t++) {
		d->thread[t].pid = 41000 + t / 4 * 130;
		d->thread[t].tid = d->thread[t].pid + t % 4 * 7;
		d->thread[t].now = 86400000000000 + (int64_t)data_below(d, 1000000);
	}
	for (unsigned int k = 0; k < DATA_KERNELS; k++) {
		struct event *e = &d->kernel[k];

		e->launch.func = 0x55d0c4a00000 + data_below(d, 1 << 20) * 16;
		e->launch.smem = data_below(d, 3) ? 0 : data_below(d, 96) * 1024;
		e->launch.grid[0] = (uint32_t)(1 + data_below(d, 2000));
		e->launch.grid[1] = (uint32_t)(data_below(d, 4) ? 1 : 1 + data_below(d, 64));
		e->launch.grid[2] = 1;
		e->launch.block[0] = 32u << data_below(d, 6);
		e->launch.block[1] = e->launch.block[2] = 1;
		e->api = (uint16_t)(data_below(d, 3) ? 3 : 4);
		e->sp = (uint32_t)(0x7ffe1000 - data_below(d, 40) * 16);
	}
}

/* A launch mostly; a copy now and then; at the end of a step a wait. */
static inline void data_call(struct data *d, struct data_thread *t, struct event *e)
{
	unsigned int k = d->shuffled ? (unsigned int)data_below(d, DATA_KERNELS) : t->at;

	t->at = (t->at + 1) % (DATA_KERNELS + 1);
	memset(e, 0, sizeof(*e));
	e->kind = EVENT_BEGIN;
	e->image = 2;
	if (t->at == 0) {
		e->api = 31;
		e->sp = 0x7ffe1f00;
		e->args = EVENT_ARGS_CALL;
		e->call.object = e->call.stream = 0x55d0b1234560;
	} else if (k % 20 == 7) {
		e->api = 17;
		e->sp = 0x7ffe1e80;
		e->args = EVENT_ARGS_CALL;
		e->call.object = 0x7f3200000000 + data_below(d, 64) * 0x200000;
		e->call.source = 0x7f1a40000000 + data_below(d, 512) * 0x1000;
		e->call.bytes = 4u << (10 + k % 12);
	} else {
		*e = d->kernel[k % DATA_KERNELS];
		e->kind = EVENT_BEGIN;
		e->image = 2;
		e->args = EVENT_ARGS_LAUNCH;
		e->launch.stream = 0x55d0b1234560;
	}
}

static inline void data_next(struct data *d, struct event *out)
{
	struct data_thread *t;

	if (!d->left--) {
		d->current = (unsigned int)data_below(d, d->threads);
		d->left = (unsigned int)data_below(d, 200);
	}
	t = &d->thread[d->current];
	if (t->inside) {
		bool wait = t->begin.api == 31;

		t->now += data_duration(d, wait ? 400000 : 3600);
		*out = t->begin;
		memset(&out->end, 0, sizeof(out->launch));
		out->kind = EVENT_END;
		out->args = EVENT_ARGS_NONE;
	} else {
		t->now += data_duration(d, 9000);
		data_call(d, t, &t->begin);
		*out = t->begin;
	}
	out->ts = t->now;
	out->pid = t->pid;
	out->tid = t->tid;
	t->inside = !t->inside;
}

#endif
