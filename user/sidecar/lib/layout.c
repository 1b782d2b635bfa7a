// SPDX-License-Identifier: BSD-2-Clause
#include "layout.h"

#include <string.h>

#include "cupti_abi.h"

/*
 * From sizeof of the structs in each version's cupti_activity.h. 12.0 and 12.1 write
 * CUpti_ActivityKernel9 and call themselves 18 as 11.8 does, which writes the shorter 8.
 */
static const struct layout layouts[] = {
	{ CUPTI_11_8, 200, 88, 96, 88, 40, 40, true, false, false },
	{ CUPTI_12_4, 208, 88, 96, 88, 40, 56, true, false, false },
	{ CUPTI_12_8, 208, 96, 96, 88, 40, 56, true, false, false },
	{ CUPTI_13_0, 216, 96, 96, 88, 40, 56, true, false, true },
	{ CUPTI_13_1, 224, 96, 96, 88, 40, 56, true, true, true },
	{ CUPTI_13_3, 232, 96, 96, 88, 40, 56, true, true, true },
	/* What has kept its place since CUDA 9 is taken, and nothing else. */
	{ CUPTI_13_4, KERNEL_LEADING, WORK_LEADING, PEER_LEADING, WORK_LEADING, 40, 40, false,
	  false, true },
};

const struct layout *layout_of(uint32_t version)
{
	const struct layout *found = NULL;

	if (version >= CUPTI_14_0)
		return NULL;
	for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++)
		if (version >= layouts[i].since)
			found = &layouts[i];
	return found;
}

static uint8_t u8(const void *record, size_t at)
{
	return ((const uint8_t *)record)[at];
}

static uint16_t u16(const void *record, size_t at)
{
	uint16_t v;

	memcpy(&v, (const uint8_t *)record + at, sizeof(v));
	return v;
}

static uint32_t u32(const void *record, size_t at)
{
	uint32_t v;

	memcpy(&v, (const uint8_t *)record + at, sizeof(v));
	return v;
}

static uint64_t u64(const void *record, size_t at)
{
	uint64_t v;

	memcpy(&v, (const uint8_t *)record + at, sizeof(v));
	return v;
}

static void bad(struct decoded *d, enum wire_bad how)
{
	d->what = DECODED_BAD;
	d->bad = how;
}

/* Are these the times of something that happened? */
static bool timed(struct decoded *d, uint64_t start, uint64_t end)
{
	if (!start || !end)
		bad(d, WIRE_BAD_ZERO);
	else if (end < start)
		bad(d, WIRE_BAD_NEGATIVE);
	else if (end > INT64_MAX)
		bad(d, WIRE_BAD_FORM);
	else
		return true;
	return false;
}

static bool work_timed(struct decoded *d, uint64_t start, uint64_t end)
{
	d->endless = !end;
	return timed(d, start, end);
}

static struct wire_record header(enum wire_record_type type, size_t size)
{
	return (struct wire_record){ .size = (uint32_t)size, .type = type };
}

static void decode_kernel(const struct layout *l, const void *r, struct decoded *d)
{
	struct wire_work *w = &d->work;
	struct wire_shape *s = &d->shape;

	if (!work_timed(d, u64(r, KERNEL_START), u64(r, KERNEL_END)))
		return;
	d->what = DECODED_WORK;
	*w = (struct wire_work){
		.r = header(WIRE_WORK, sizeof(*w)),
		.begin = (int64_t)u64(r, KERNEL_START),
		.end = (int64_t)u64(r, KERNEL_END),
		.kind = WIRE_KERNEL,
		.device = u32(r, KERNEL_DEVICE),
		.context = u32(r, KERNEL_CONTEXT),
		.stream = u32(r, KERNEL_STREAM),
		.correlation = u32(r, KERNEL_CORRELATION),
		.peer = UINT32_MAX,
	};
	if (l->later) {
		w->graph_node = u64(r, KERNEL_GRAPH_NODE);
		w->graph = u32(r, KERNEL_GRAPH);
		w->channel = u32(r, KERNEL_CHANNEL);
		w->channel_type = u32(r, KERNEL_CHANNEL_TYPE);
	}
	if (l->priority)
		w->priority = (int32_t)u32(r, KERNEL_PRIORITY);
	memset(s, 0, sizeof(*s));
	s->registers = u16(r, KERNEL_REGISTERS);
	memcpy(s->grid, (const uint8_t *)r + KERNEL_GRID, sizeof(s->grid));
	memcpy(s->block, (const uint8_t *)r + KERNEL_BLOCK, sizeof(s->block));
	s->smem_static = u32(r, KERNEL_SMEM_STATIC);
	s->smem_dynamic = u32(r, KERNEL_SMEM_DYNAMIC);
	s->local = u32(r, KERNEL_LOCAL);
	d->name = u64(r, KERNEL_NAME);
}

static bool decode_moved(const void *r, struct decoded *d, uint32_t kind)
{
	if (!work_timed(d, u64(r, WORK_START), u64(r, WORK_END)))
		return false;
	d->what = DECODED_WORK;
	d->work = (struct wire_work){
		.r = header(WIRE_WORK, sizeof(d->work)),
		.begin = (int64_t)u64(r, WORK_START),
		.end = (int64_t)u64(r, WORK_END),
		.kind = kind,
		.device = u32(r, WORK_DEVICE),
		.context = u32(r, WORK_CONTEXT),
		.stream = u32(r, WORK_STREAM),
		.correlation = u32(r, WORK_CORRELATION),
		.bytes = u64(r, WORK_BYTES),
		.peer = UINT32_MAX,
	};
	return true;
}

static void decode_later(const void *r, struct wire_work *w)
{
	w->graph_node = u64(r, WORK_GRAPH_NODE);
	w->graph = u32(r, WORK_GRAPH);
	w->channel = u32(r, WORK_CHANNEL);
	w->channel_type = u32(r, WORK_CHANNEL_TYPE);
}

static void decode_copy(const struct layout *l, const void *r, struct decoded *d)
{
	if (!decode_moved(r, d, WIRE_COPY))
		return;
	d->work.direction = u8(r, COPY_DIRECTION);
	d->work.source = u8(r, COPY_SOURCE);
	d->work.target = u8(r, COPY_TARGET);
	if (l->later)
		decode_later(r, &d->work);
}

static void decode_set(const struct layout *l, const void *r, struct decoded *d)
{
	if (!decode_moved(r, d, WIRE_SET))
		return;
	if (l->later) {
		d->work.target = u16(r, SET_MEMORY);
		decode_later(r, &d->work);
	}
}

static void decode_peer(const struct layout *l, const void *r, struct decoded *d)
{
	struct wire_work *w = &d->work;
	uint32_t source, target;

	if (!decode_moved(r, d, WIRE_COPY))
		return;
	source = u32(r, PEER_SOURCE_DEVICE);
	target = u32(r, PEER_TARGET_DEVICE);
	w->direction = u8(r, COPY_DIRECTION);
	w->source = u8(r, COPY_SOURCE);
	w->target = u8(r, COPY_TARGET);
	w->correlation = u32(r, PEER_CORRELATION);
	w->peer = w->device == source ? target : source;
	if (l->later) {
		w->graph_node = u64(r, PEER_GRAPH_NODE);
		w->graph = u32(r, PEER_GRAPH);
		w->channel = u32(r, PEER_CHANNEL);
		w->channel_type = u32(r, PEER_CHANNEL_TYPE);
	}
}

static void decode_call(const void *r, struct decoded *d, uint32_t kind)
{
	if (!timed(d, u64(r, API_START), u64(r, API_END)))
		return;
	d->what = DECODED_CALL;
	d->call = (struct wire_call){
		.r = header(WIRE_CALL, sizeof(d->call)),
		.begin = (int64_t)u64(r, API_START),
		.end = (int64_t)u64(r, API_END),
		.tid = u32(r, API_THREAD),
		.domain = kind == CUPTI_DRIVER ? CUPTI_DOMAIN_DRIVER : CUPTI_DOMAIN_RUNTIME,
		.cbid = u32(r, API_CBID),
		.correlation = u32(r, API_CORRELATION),
		.ret = (int32_t)u32(r, API_RETURN),
	};
}

static void decode_overhead(const void *r, struct decoded *d)
{
	if (!timed(d, u64(r, OVERHEAD_START), u64(r, OVERHEAD_END)))
		return;
	d->what = DECODED_OVERHEAD;
	d->overhead = (struct wire_overhead){
		.r = header(WIRE_OVERHEAD_RECORD, sizeof(d->overhead)),
		.begin = (int64_t)u64(r, OVERHEAD_START),
		.end = (int64_t)u64(r, OVERHEAD_END),
		.kind = u32(r, OVERHEAD_KIND),
	};
	if (u32(r, OVERHEAD_OBJECT) == CUPTI_OBJECT_THREAD)
		d->overhead.tid = u32(r, OVERHEAD_THREAD);
}

static size_t size_of(const struct layout *l, uint32_t kind)
{
	switch (kind) {
	case CUPTI_KERNEL:
	case CUPTI_CONCURRENT_KERNEL:
		return l->kernel;
	case CUPTI_MEMCPY:
		return l->copy;
	case CUPTI_MEMCPY_PEER:
		return l->peer;
	case CUPTI_MEMSET:
		return l->set;
	case CUPTI_DRIVER:
	case CUPTI_RUNTIME:
		return l->api;
	case CUPTI_OVERHEAD:
		return l->overhead;
	default:
		return 0;
	}
}

void layout_decode(const struct layout *l, const void *record, size_t size, struct decoded *d)
{
	uint32_t kind;
	size_t need;

	d->what = DECODED_NOTHING;
	d->endless = false;
	if (size < sizeof(kind)) {
		bad(d, WIRE_BAD_FORM);
		return;
	}
	kind = u32(record, 0);
	need = size_of(l, kind);
	if (!need)
		return;
	if (size < need)
		bad(d, WIRE_BAD_FORM);
	else if (kind == CUPTI_KERNEL || kind == CUPTI_CONCURRENT_KERNEL)
		decode_kernel(l, record, d);
	else if (kind == CUPTI_MEMCPY)
		decode_copy(l, record, d);
	else if (kind == CUPTI_MEMCPY_PEER)
		decode_peer(l, record, d);
	else if (kind == CUPTI_MEMSET)
		decode_set(l, record, d);
	else if (kind == CUPTI_OVERHEAD)
		decode_overhead(record, d);
	else
		decode_call(record, d, kind);
}

/*
 * CUPTI_DRIVER_TRACE_CBID_*, whose numbers never change: launches of kernels and graphs,
 * copies and sets, with their _v2, _ptds and _ptsz; not the 32-bit ones of before CUDA 3.2.
 */
struct launch_run {
	uint16_t from, to;
};

static const struct launch_run launch_runs[] = {
	{ 115, 117 }, { 216, 216 }, { 218, 218 }, { 220, 220 }, { 222, 222 },
	{ 224, 224 }, { 226, 226 }, { 248, 254 }, { 276, 293 }, { 305, 307 },
	{ 318, 321 }, { 397, 416 }, { 418, 433 }, { 442, 442 }, { 477, 478 },
	{ 480, 480 }, { 514, 515 }, { 652, 653 },
	{ 776, 779 }, { 796, 799 }, { 837, 840 },
};
#define LAUNCH_RUNS (sizeof(launch_runs) / sizeof(*launch_runs))

#define RUNTIME_KNOWN 566u /* none above is known */

/*
 * CUPTI_RUNTIME_TRACE_CBID_*, likewise, from the cupti_runtime_cbid.h of CUDA 11.8 to 13.5:
 * cudaLaunch*, cudaMemcpy*, cudaMemset* and cudaGraphLaunch*; not cudaLaunchHostFunc*, and
 * not what only makes nodes of graphs.
 */
static const struct launch_run runtime_runs[] = {
	{ 13, 13 }, { 31, 52 }, { 142, 145 }, { 160, 163 }, { 211, 211 },
	{ 213, 236 }, { 243, 246 }, { 249, 250 }, { 269, 270 }, { 272, 272 },
	{ 311, 312 }, { 430, 431 }, { 482, 485 }, { 505, 506 }, { 509, 512 },
	{ 554, 557 },
};

static bool among(const struct launch_run *runs, size_t count, uint32_t cbid)
{
	for (size_t i = 0; i < count; i++)
		if (cbid >= runs[i].from && cbid <= runs[i].to)
			return true;
	return false;
}

bool layout_launches(uint32_t cbid)
{
	return among(launch_runs, LAUNCH_RUNS, cbid);
}

bool layout_runtime_launches(uint32_t cbid)
{
	return cbid > RUNTIME_KNOWN ||
	       among(runtime_runs, sizeof(runtime_runs) / sizeof(*runtime_runs), cbid);
}
