/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GPU work for sessions made by hand (feed.h): one call a record. Times are ns; the pid
 * and tid are the feed's. gpu_session.h makes whole sessions out of it.
 */
#ifndef GBPF_TESTS_GPU_FEED_H
#define GBPF_TESTS_GPU_FEED_H

#include "feed.h"

#define GPU_CONTEXT 1 /* of all works */

/* An H200 as its driver describes it. */
static inline void feed_device(struct feed *f, uint32_t ordinal, const char *uuid)
{
	struct record r = {
		.kind = RECORD_DEVICE,
		.device = { .pid = f->pid, .ordinal = ordinal, .uuid = uuid, .name = "NVIDIA H200",
			    .memory = INT64_C(150109880320), .major = 9, .minor = 0, .sms = 132,
			    .warp = 32, .block_threads = 1024, .sm_threads = 2048, .sm_blocks = 32,
			    .block_registers = 65536, .sm_registers = 65536, .block_smem = 49152,
			    .block_smem_optin = 232448, .sm_smem = 233472, .reserved_smem = 1024 },
	};

	feed_add(f, &r);
}

static inline void feed_shape(struct feed *f, uint32_t id, const char *kernel, uint32_t grid,
			      uint32_t block)
{
	struct record r = { .kind = RECORD_SHAPE,
			    .shape = { .pid = f->pid, .id = id, .kernel = kernel,
				       .grid = { grid, 1, 1 }, .block = { block, 1, 1 },
				       .registers = 32, .smem_static = 1024 } };

	feed_add(f, &r);
}

static inline void feed_work(struct feed *f, const struct record_work *w)
{
	struct record r = { .kind = RECORD_WORK, .work = *w };

	r.work.pid = f->pid;
	if (!r.work.context)
		r.work.context = GPU_CONTEXT;
	feed_add(f, &r);
}

/* On device 0. */
static inline void feed_kernel(struct feed *f, int64_t begin, int64_t end, uint32_t stream,
			       uint32_t correlation, uint32_t shape)
{
	feed_work(f, &(struct record_work){ .begin = begin, .duration = (uint64_t)(end - begin),
					    .kind = RECORD_WORK_KERNEL, .stream = stream,
					    .correlation = correlation, .shape = shape,
					    .peer = UINT32_MAX });
}

/* Host to device, from pageable memory. */
static inline void feed_copied(struct feed *f, int64_t begin, int64_t end, uint32_t stream,
			       uint32_t correlation, uint64_t bytes)
{
	feed_work(f, &(struct record_work){
			     .begin = begin, .duration = (uint64_t)(end - begin),
			     .kind = RECORD_WORK_COPY, .stream = stream,
			     .correlation = correlation, .bytes = bytes,
			     .direction = RECORD_COPY_HTOD, .source = RECORD_MEMORY_PAGEABLE,
			     .target = RECORD_MEMORY_DEVICE, .peer = UINT32_MAX });
}

static inline void feed_work_call(struct feed *f, int64_t begin, int64_t end, uint32_t correlation)
{
	struct record r = { .kind = RECORD_WORK_CALL,
			    .work_call = { .begin = begin, .duration = (uint64_t)(end - begin),
					   .pid = f->pid, .tid = f->tid, .domain = 1,
					   .cbid = 307, .correlation = correlation } };

	feed_add(f, &r);
}

static inline void feed_overhead(struct feed *f, int64_t begin, int64_t end)
{
	struct record r = { .kind = RECORD_OVERHEAD,
			    .overhead = { .begin = begin, .duration = (uint64_t)(end - begin),
					  .pid = f->pid, .tid = f->tid, .kind = 2 } };

	feed_add(f, &r);
}

/* event: enum record_sidecar_event. */
static inline void feed_sidecar(struct feed *f, int64_t ts, uint32_t event, uint64_t count,
				const char *text)
{
	struct record r = { .kind = RECORD_SIDECAR,
			    .sidecar = { .ts = ts, .pid = f->pid, .event = event, .count = count,
					 .cupti = 130101, .text = text } };

	feed_add(f, &r);
}

/* The sidecar recorded from begin to end, and all of it is in. */
static inline void feed_cover(struct feed *f, int64_t begin, int64_t end)
{
	feed_sidecar(f, begin - 1, RECORD_SIDECAR_ATTACHED, 300000, "");
	feed_sidecar(f, begin, RECORD_SIDECAR_BEGAN, 0, "");
	feed_sidecar(f, end - 1, RECORD_SIDECAR_CLOCK, 150, "");
	feed_sidecar(f, end, RECORD_SIDECAR_ENDED, 0, "");
}

/* A launch of kernel func that CUPTI saw too: begin and end are the probes' times. Without a
   correlation (0) CUPTI wrote no record of it. */
static inline void feed_launched(struct feed *f, int64_t begin, int64_t end, uint64_t func,
				 uint64_t stream, uint32_t grid, uint32_t block,
				 uint32_t correlation)
{
	struct event e = { .args = EVENT_ARGS_LAUNCH,
			   .launch = { .func = func, .stream = stream, .grid = { grid, 1, 1 },
				       .block = { block, 1, 1 } } };

	feed_begin_with(f, begin, F_LAUNCH, SP, &e);
	if (correlation)
		feed_work_call(f, begin + (end - begin) / 8, end - (end - begin) / 8,
			       correlation);
	feed_end(f, end, F_LAUNCH, SP, 0);
}

/* A call on a stream (a graph's launch, a copy, a set) that CUPTI saw too. */
static inline void feed_called(struct feed *f, int64_t begin, int64_t end, uint16_t api,
			       uint64_t object, uint64_t stream, uint64_t bytes,
			       uint32_t correlation)
{
	struct event e = { .args = EVENT_ARGS_CALL,
			   .call = { .object = object, .stream = stream, .bytes = bytes } };

	feed_begin_with(f, begin, api, SP, &e);
	if (correlation)
		feed_work_call(f, begin + (end - begin) / 8, end - (end - begin) / 8,
			       correlation);
	feed_end(f, end, api, SP, 0);
}

#endif
