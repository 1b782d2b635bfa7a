// SPDX-License-Identifier: BSD-2-Clause
#include "sidecar/intake.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DELIVER_MOST 65536u /* at a time: others have a turn, too */
#define COUNT_MOST (1ULL << 48) /* sums of what a sidecar claims do not overflow */

struct intake_waiting {
	int64_t seen; /* it had happened by then, CLOCK_MONOTONIC ns */
	union {
		struct wire_record r;
		struct wire_work work;
		struct wire_call call;
		struct wire_overhead overhead;
	};
};

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int intake_init(struct intake *in, uint32_t pid,
		int (*sink)(void *ctx, const struct record *r), void *ctx)
{
	memset(in, 0, sizeof(*in));
	in->pid = pid;
	in->sink = sink;
	in->ctx = ctx;
	in->drain.fd = -1;
	tids_init(&in->tids, pid);
	return drain_new(&in->drain);
}

void intake_free(struct intake *in)
{
	drain_free(&in->drain);
	tids_free(&in->tids);
	free(in->waiting);
	in->waiting = NULL;
	in->room = in->count = in->head = 0;
}

static int grow(struct intake *in)
{
	size_t room = in->room ? 2 * in->room : 1024, i;
	struct intake_waiting *grown = malloc(room * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	for (i = 0; i < in->count; i++)
		grown[i] = in->waiting[(in->head + i) & (in->room - 1)];
	free(in->waiting);
	in->waiting = grown;
	in->room = room;
	in->head = 0;
	return 0;
}

static int wait_in_line(struct intake *in, const union drain_record *from)
{
	struct intake_waiting *w;
	int err = in->count == in->room ? grow(in) : 0;

	if (err)
		return err;
	w = &in->waiting[(in->head + in->count++) & (in->room - 1)];
	w->seen = 0; /* set when all of this round are here */
	memcpy(&w->r, from, from->r.size);
	return 0;
}

/* NVML's way to write it: of a MIG instance, CUDA's name says which it is. */
static void uuid_text(const struct wire_device *d, char text[48])
{
	size_t used, i;

	used = (size_t)snprintf(text, 48, "%s-", strstr(d->name, " MIG ") ? "MIG" : "GPU");
	for (i = 0; i < sizeof(d->uuid); i++)
		used += (size_t)snprintf(text + used, 48 - used, "%s%02x",
					 i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
					 d->uuid[i]);
}

static int deliver_device(struct intake *in, const struct wire_device *d)
{
	struct record r = {.kind = RECORD_DEVICE};
	char uuid[48];

	uuid_text(d, uuid);
	r.device = (struct record_device){
		.pid = in->pid, .ordinal = d->ordinal, .uuid = uuid, .name = d->name,
		.memory = d->memory, .major = d->major, .minor = d->minor, .sms = d->sms,
		.warp = d->warp, .block_threads = d->block_threads,
		.sm_threads = d->sm_threads, .sm_blocks = d->sm_blocks,
		.block_registers = d->block_registers, .sm_registers = d->sm_registers,
		.block_smem = d->block_smem, .block_smem_optin = d->block_smem_optin,
		.sm_smem = d->sm_smem, .reserved_smem = d->reserved_smem,
	};
	return in->sink(in->ctx, &r);
}

static int deliver_shape(struct intake *in, const struct wire_shape *s)
{
	struct record r = {.kind = RECORD_SHAPE};

	r.shape = (struct record_shape){
		.pid = in->pid, .id = s->id, .kernel = s->name, .registers = s->registers,
		.smem_static = s->smem_static, .smem_dynamic = s->smem_dynamic,
		.local = s->local,
	};
	memcpy(r.shape.grid, s->grid, sizeof(r.shape.grid));
	memcpy(r.shape.block, s->block, sizeof(r.shape.block));
	return in->sink(in->ctx, &r);
}

static int take(struct intake *in, const union drain_record *one)
{
	if (one->r.type == WIRE_DEVICE)
		return deliver_device(in, &one->device);
	if (one->r.type == WIRE_SHAPE)
		return deliver_shape(in, &one->shape);
	return wait_in_line(in, one);
}

int intake_drain(struct intake *in)
{
	size_t before = in->count, i;
	union drain_record one;
	int err = 0;
	int64_t seen;

	while (!err && in->count < INTAKE_WAITING_MOST && drain_next(&in->drain, &one))
		err = take(in, &one);
	drain_release(&in->drain);
	seen = now_ns();
	for (i = before; i < in->count; i++)
		in->waiting[(in->head + i) & (in->room - 1)].seen = seen;
	return err;
}

/*
 * Begin and duration on our clock. The duration is CUPTI's own, unless the clock was set
 * in between. False: counted as bad.
 */
static bool times(struct intake *in, int64_t begin, int64_t end, int64_t *at, uint64_t *duration)
{
	struct clock_time first = {0}, last = {0};
	int64_t took;

	if (begin <= 0 || end <= 0) {
		in->bad[INTAKE_BAD_ZERO]++;
		return false;
	}
	if (end < begin) {
		in->bad[INTAKE_BAD_NEGATIVE]++;
		return false;
	}
	if (cupti_clock_convert(&in->clock, begin, &first) ||
	    cupti_clock_convert(&in->clock, end, &last)) {
		in->bad[INTAKE_BAD_TIME]++;
		return false;
	}
	took = last.ns - first.ns;
	if (llabs(took - (end - begin)) <= first.error + last.error)
		took = end - begin;
	*at = first.ns;
	*duration = took > 0 ? (uint64_t)took : 0;
	if (first.error > in->error_worst)
		in->error_worst = first.error;
	if (last.error > in->error_worst)
		in->error_worst = last.error;
	return true;
}

static bool work_possible(const struct wire_work *w)
{
	return w->kind >= RECORD_WORK_KERNEL && w->kind <= RECORD_WORK_SET &&
	       w->direction <= RECORD_COPY_PTOP && w->source <= RECORD_MEMORY_MANAGED_STATIC &&
	       w->target <= RECORD_MEMORY_MANAGED_STATIC;
}

static int deliver_work(struct intake *in, const struct wire_work *w)
{
	struct record r = {.kind = RECORD_WORK};

	if (!work_possible(w)) {
		in->bad[INTAKE_BAD_FORM]++;
		return 0;
	}
	r.work = (struct record_work){
		.pid = in->pid, .kind = w->kind, .device = w->device, .context = w->context,
		.stream = w->stream, .correlation = w->correlation, .shape = w->shape,
		.graph = w->graph, .graph_node = w->graph_node, .bytes = w->bytes,
		.direction = w->direction, .source = w->source, .target = w->target,
		.channel = w->channel, .channel_type = w->channel_type,
		.priority = w->priority, .peer = w->peer,
	};
	if (!times(in, w->begin, w->end, &r.work.begin, &r.work.duration))
		return 0;
	in->works++;
	return in->sink(in->ctx, &r);
}

static int deliver_call(struct intake *in, const struct wire_call *c, int64_t now)
{
	struct record r = {.kind = RECORD_WORK_CALL};

	if (c->domain < 1 || c->domain > 2) {
		in->bad[INTAKE_BAD_FORM]++;
		return 0;
	}
	r.work_call = (struct record_work_call){
		.pid = in->pid, .tid = tids_outer(&in->tids, c->tid, now),
		.domain = c->domain, .cbid = c->cbid, .correlation = c->correlation,
		.ret = c->ret,
	};
	if (!times(in, c->begin, c->end, &r.work_call.begin, &r.work_call.duration))
		return 0;
	in->calls++;
	return in->sink(in->ctx, &r);
}

static int deliver_overhead(struct intake *in, const struct wire_overhead *o, int64_t now)
{
	struct record r = {.kind = RECORD_OVERHEAD};

	r.overhead = (struct record_overhead){
		.pid = in->pid, .tid = tids_outer(&in->tids, o->tid, now), .kind = o->kind,
	};
	if (!times(in, o->begin, o->end, &r.overhead.begin, &r.overhead.duration))
		return 0;
	in->overheads++;
	return in->sink(in->ctx, &r);
}

int intake_deliver(struct intake *in, bool all)
{
	size_t most = all ? SIZE_MAX : DELIVER_MOST;
	int err = 0;

	while (!err && in->count && most--) {
		const struct intake_waiting *w = &in->waiting[in->head];

		if (!all && !cupti_clock_after(&in->clock, w->seen))
			return 0;
		if (w->r.type == WIRE_WORK)
			err = deliver_work(in, &w->work);
		else if (w->r.type == WIRE_CALL)
			err = deliver_call(in, &w->call, w->seen);
		else
			err = deliver_overhead(in, &w->overhead, w->seen);
		in->head = (in->head + 1) & (in->room - 1);
		in->count--;
	}
	return err;
}

/* The sidecar's counters lie where the target can write: they may say anything. */
static uint64_t counted_since(const uint64_t *at, uint64_t *before)
{
	uint64_t now = __atomic_load_n(at, __ATOMIC_RELAXED), more;

	if (now <= *before || now > COUNT_MOST)
		return 0;
	more = now - *before;
	*before = now;
	return more;
}

uint64_t intake_take_dropped(struct intake *in)
{
	return in->drain.shared ? counted_since(&in->drain.shared->dropped, &in->dropped) : 0;
}

uint64_t intake_take_running(struct intake *in)
{
	return in->drain.shared ? counted_since(&in->drain.shared->running, &in->running) : 0;
}

uint64_t intake_take_bad(struct intake *in, enum intake_bad kind)
{
	uint64_t n = in->bad[kind];

	in->bad[kind] = 0;
	if (kind < INTAKE_BAD_TIME && in->drain.shared)
		n += counted_since(&in->drain.shared->bad[kind], &in->told[kind]);
	if (kind == INTAKE_BAD_FORM) {
		n += in->drain.malformed;
		in->drain.malformed = 0;
	}
	return n;
}

const char *intake_bad_name(enum intake_bad kind)
{
	static const char *const names[INTAKE_BADS] = {
		[INTAKE_BAD_ZERO] = "a time was zero",
		[INTAKE_BAD_NEGATIVE] = "the end came before the beginning",
		[INTAKE_BAD_FORM] = "the form was not known",
		[INTAKE_BAD_NAME] = "the kernel's name could not be kept",
		[INTAKE_BAD_TIME] = "the time could not be told, because the clock was set",
	};

	return names[kind];
}
