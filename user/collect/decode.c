/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/decode.h"

#include <string.h>

#include "bpf/gbpf.h"
#include "probe/catalogue.h"

static void decode_header(const struct gbpf_hdr *h, struct event *e)
{
	memset(e, 0, sizeof(*e));
	e->ts = (int64_t)h->ts;
	e->pid = h->pid;
	e->tid = h->tid;
	e->sp = h->sp;
	e->api = GBPF_TAG_API(h->tag);
	e->image = (uint16_t)GBPF_TAG_IMAGE(h->tag);
	e->kind = EVENT_BEGIN;
}

/* Bytes of one element of ncclDataType_t (nccl.h): int8 … bfloat16, float8. */
static uint64_t nccl_element(uint64_t type)
{
	static const uint8_t size[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

	return type < sizeof(size) ? size[type] : 0;
}

static uint64_t call_bytes(const struct api *api, const struct gbpf_begin_call *r)
{
	uint64_t bytes = r->arg[GBPF_ARG_BYTES];

	if (!api)
		return bytes;
	if (api->arg[GBPF_ARG_BYTES2] || (api->shape >= GBPF_SHAPE_COPY2D &&
					  api->shape <= GBPF_SHAPE_RT_COPY3D))
		bytes *= r->arg[GBPF_ARG_BYTES2];
	if (api->kind == API_COLLECTIVE)
		return bytes * nccl_element((uint32_t)r->arg[GBPF_ARG_KIND]);
	return api->element > 1 ? bytes * api->element : bytes;
}

/* CUmemorytype of both ends → cudaMemcpyKind; arrays are on the device. */
static uint64_t kind_of_types(uint64_t types)
{
	enum { HOST = 1, UNIFIED = 4, DEFAULT_KIND = 4 };
	uint32_t from = (uint32_t)types, to = (uint32_t)(types >> 32);

	if (!from || !to || from >= UNIFIED || to >= UNIFIED)
		return DEFAULT_KIND; /* the addresses say, not the call */
	return (from == HOST ? 0 : 2) + (to == HOST ? 0 : 1);
}

static uint64_t call_kind(const struct api *api, const struct gbpf_begin_call *r)
{
	uint64_t kind = r->arg[GBPF_ARG_KIND];

	if (api && (api->shape == GBPF_SHAPE_COPY2D || api->shape == GBPF_SHAPE_COPY3D))
		return kind_of_types(kind);
	return (uint32_t)kind; /* an enum: the upper half of its register is not its own */
}

static void decode_object(const struct gbpf_begin_object *r, struct event *e)
{
	const struct api *api = catalogue_get(e->api);

	e->args = EVENT_ARGS_CALL;
	/* what the call is about may be a stream */
	if (api && api->arg[GBPF_ARG_STREAM] == api->arg[GBPF_ARG_OBJECT])
		e->call.stream = r->object;
	e->call.object = r->object;
}

static void decode_call(const struct gbpf_begin_call *r, struct event *e)
{
	const struct api *api = catalogue_get(e->api);

	e->args = EVENT_ARGS_CALL;
	e->call.object = r->arg[GBPF_ARG_OBJECT];
	e->call.stream = r->arg[GBPF_ARG_STREAM];
	e->call.source = r->arg[GBPF_ARG_SOURCE];
	e->call.kind = call_kind(api, r);
	e->call.bytes = call_bytes(api, r);
}

static void decode_launch(const struct gbpf_begin_launch *r, struct event *e)
{
	e->args = EVENT_ARGS_LAUNCH;
	e->launch.func = r->func;
	memcpy(e->launch.grid, r->grid, sizeof(r->grid));
	e->launch.block[0] = r->block_x;
	e->launch.block[1] = r->block_y;
	/* unsigned int arguments: the upper half of a stack slot is not theirs */
	e->launch.block[2] = (uint32_t)r->block_z;
	e->launch.smem = (uint32_t)r->smem;
	e->launch.stream = r->stream;
}

static void decode_config(const struct gbpf_begin_config *r, struct event *e)
{
	e->args = EVENT_ARGS_LAUNCH;
	e->launch.func = r->func;
	memcpy(e->launch.grid, r->grid, sizeof(r->grid));
	memcpy(e->launch.block, r->block, sizeof(r->block));
	e->launch.smem = (uint32_t)r->smem; /* no launch has 4 GiB; the driver's field is 32 bits */
	e->launch.stream = r->stream;
}

static void decode_rt_launch(const struct gbpf_begin_rt_launch *r, struct event *e)
{
	e->args = EVENT_ARGS_LAUNCH;
	e->launch.func = r->func;
	e->launch.grid[0] = (uint32_t)r->grid_xy;
	e->launch.grid[1] = (uint32_t)(r->grid_xy >> 32);
	e->launch.grid[2] = (uint32_t)r->grid_z;
	e->launch.block[0] = (uint32_t)r->block_xy;
	e->launch.block[1] = (uint32_t)(r->block_xy >> 32);
	e->launch.block[2] = (uint32_t)r->block_z;
	e->launch.smem = r->smem;
	e->launch.stream = r->stream;
}

static void decode_end(const struct gbpf_end_out *r, bool has_out, struct event *e)
{
	e->kind = EVENT_END;
	e->end.ret = r->ret;
	e->has_out = has_out;
	if (has_out)
		e->end.out = r->out;
}

static void decode_poll(const struct gbpf_poll *r, struct event *e)
{
	e->kind = EVENT_POLL;
	e->poll.object = r->object;
	e->poll.last_end = (int64_t)r->last_end;
	e->poll.inside = (int64_t)r->inside;
	e->poll.min = r->min;
	e->poll.max = r->max;
	e->poll.count = r->count;
	e->poll.ret = r->ret;
}

void decode_open_poll(const struct gbpf_poll_state *s, struct event *e)
{
	struct gbpf_poll r = {
		.hdr = {.ts = s->first, .pid = s->pid, .tid = s->tid, .sp = s->sp, .tag = s->tag},
		.object = s->object,
		.last_end = s->last_end,
		.inside = s->inside,
		.min = s->min,
		.max = s->max,
		.count = s->count,
		.ret = s->ret,
	};

	if (!s->count) { /* one query, and it has not returned */
		r.hdr.ts = s->entered;
		r.object = s->entered_object;
		r.last_end = 0;
		r.inside = r.min = r.max = 0;
		r.count = 1;
	}
	decode_header(&r.hdr, e);
	decode_poll(&r, e);
}

static bool name_valid(const struct gbpf_name *n, size_t size)
{
	size_t room = size - sizeof(*n);

	if (n->len <= 0)
		return n->source == GBPF_NAME_FAULT || n->source == GBPF_NAME_STUB;
	return (size_t)n->len <= room && !n->name[n->len - 1];
}

static size_t record_size(unsigned type)
{
	switch (type) {
	case GBPF_REC_BEGIN_BARE:
		return sizeof(struct gbpf_hdr);
	case GBPF_REC_BEGIN_OBJECT:
		return sizeof(struct gbpf_begin_object);
	case GBPF_REC_BEGIN_CALL:
		return sizeof(struct gbpf_begin_call);
	case GBPF_REC_BEGIN_LAUNCH:
		return sizeof(struct gbpf_begin_launch);
	case GBPF_REC_BEGIN_CONFIG:
		return sizeof(struct gbpf_begin_config);
	case GBPF_REC_BEGIN_RT_LAUNCH:
		return sizeof(struct gbpf_begin_rt_launch);
	case GBPF_REC_END:
		return sizeof(struct gbpf_end);
	case GBPF_REC_END_OUT:
		return sizeof(struct gbpf_end_out);
	case GBPF_REC_POLL:
		return sizeof(struct gbpf_poll);
	case GBPF_REC_NAME:
		return sizeof(struct gbpf_name);
	case GBPF_REC_PROCESS:
		return sizeof(struct gbpf_process);
	default:
		return SIZE_MAX;
	}
}

static enum decoded decode_body(unsigned type, const void *data, size_t size, struct event *e)
{
	switch (type) {
	case GBPF_REC_BEGIN_BARE:
		break;
	case GBPF_REC_BEGIN_OBJECT:
		decode_object(data, e);
		break;
	case GBPF_REC_BEGIN_CALL:
		decode_call(data, e);
		break;
	case GBPF_REC_BEGIN_LAUNCH:
		decode_launch(data, e);
		break;
	case GBPF_REC_BEGIN_CONFIG:
		decode_config(data, e);
		break;
	case GBPF_REC_BEGIN_RT_LAUNCH:
		decode_rt_launch(data, e);
		break;
	case GBPF_REC_END:
	case GBPF_REC_END_OUT:
		decode_end(data, type == GBPF_REC_END_OUT, e);
		break;
	case GBPF_REC_POLL:
		decode_poll(data, e);
		break;
	case GBPF_REC_NAME:
		return name_valid(data, size) ? DECODED_NAME : DECODED_MALFORMED;
	default:
		return DECODED_PROCESS;
	}
	return DECODED_EVENT;
}

enum decoded decode(const void *data, size_t size, struct event *out)
{
	const struct gbpf_hdr *h = data;
	unsigned type;

	if (size < sizeof(*h))
		return DECODED_MALFORMED;
	type = GBPF_TAG_TYPE(h->tag);
	if (size < record_size(type))
		return DECODED_MALFORMED;
	if (GBPF_TAG_IMAGE(h->tag) == GBPF_IMAGE_CALIBRATION && type != GBPF_REC_PROCESS)
		return DECODED_NOTHING;
	decode_header(h, out);
	return decode_body(type, data, size, out);
}
