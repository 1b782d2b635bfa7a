/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions made by hand: records go straight into the builder, no file in between. */
#ifndef GBPF_TESTS_FEED_H
#define GBPF_TESTS_FEED_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bpf/gbpf.h"
#include "model/builder.h"
#include "probe/catalogue.h"

#define SP 0x7000u /* a stack pointer; what is called from there has less */

/* File ids of the functions that the tests call; deliberately not the catalogue's. */
enum {
	F_LAUNCH = 7, /* cuLaunchKernel */
	F_RT_LAUNCH,
	F_SYNC,
	F_RT_SYNC,
	F_COPY, /* cuMemcpyHtoD_v2: blocking */
	F_RT_COPY,
	F_ASYNC, /* cuMemcpyDtoHAsync_v2 */
	F_QUERY,
	F_RT_QUERY,
	F_ALLOC,
	F_LOAD,
	F_INIT,
	F_GRAPH,
	F_SET,
	F_CTX_SYNC,
	F_READ, /* cuMemcpyDtoH_v2: blocking */
	F_END,
};

struct feed {
	struct session_builder *b;
	struct session *s;
	uint32_t pid, tid; /* of the events that follow */
};

static inline void feed_add(struct feed *f, const struct record *r)
{
	assert_int_equal(session_builder_add(f->b, r), 0);
}

static inline void feed_event(struct feed *f, const struct event *e)
{
	struct record r = { .kind = RECORD_EVENTS, .events = { e, 1 } };

	feed_add(f, &r);
}

static inline void feed_begin_with(struct feed *f, int64_t ts, uint16_t api, uint32_t sp,
				   const struct event *args)
{
	struct event e = args ? *args : (struct event){ 0 };

	e.ts = ts;
	e.pid = f->pid;
	e.tid = f->tid;
	e.sp = sp;
	e.api = api;
	e.image = 1;
	e.kind = EVENT_BEGIN;
	feed_event(f, &e);
}

static inline void feed_begin(struct feed *f, int64_t ts, uint16_t api, uint32_t sp)
{
	feed_begin_with(f, ts, api, sp, NULL);
}

static inline void feed_end(struct feed *f, int64_t ts, uint16_t api, uint32_t sp, int64_t ret)
{
	struct event e = { .ts = ts, .pid = f->pid, .tid = f->tid, .sp = sp, .api = api,
			   .image = 1, .kind = EVENT_END, .end = { .ret = ret } };

	feed_event(f, &e);
}

/* A whole call, with nothing inside. */
static inline void feed_call(struct feed *f, int64_t begin, int64_t end, uint16_t api, uint32_t sp)
{
	feed_begin(f, begin, api, sp);
	feed_end(f, end, api, sp, 0);
}

static inline void feed_launch(struct feed *f, int64_t begin, int64_t end, uint16_t api,
			       uint32_t sp, uint64_t func, uint32_t grid, uint32_t block)
{
	struct event e = { .args = EVENT_ARGS_LAUNCH,
			   .launch = { .func = func, .stream = 0x77, .smem = 0,
				       .grid = { grid, 1, 1 }, .block = { block, 1, 1 } } };

	feed_begin_with(f, begin, api, sp, &e);
	feed_end(f, end, api, sp, 0);
}

static inline void feed_copy(struct feed *f, int64_t begin, int64_t end, uint16_t api, uint32_t sp,
			     uint64_t bytes, uint64_t kind)
{
	struct event e = { .args = EVENT_ARGS_CALL, .call = { .object = 0xd000, .source = 0xa000,
							       .bytes = bytes, .kind = kind } };

	feed_begin_with(f, begin, api, sp, &e);
	feed_end(f, end, api, sp, 0);
}

static inline void feed_poll(struct feed *f, int64_t begin, int64_t end, uint16_t api, uint32_t sp,
			     uint32_t count, int64_t inside)
{
	struct event e = { .ts = begin, .pid = f->pid, .tid = f->tid, .sp = sp, .api = api,
			   .image = 1, .kind = EVENT_POLL,
			   .poll = { .object = 0xe000, .last_end = end, .inside = inside,
				     .min = 5, .max = 50, .count = count } };

	feed_event(f, &e);
}

static inline void feed_name(struct feed *f, int64_t ts, uint64_t handle, uint32_t source,
			     const char *name)
{
	struct record r = { .kind = RECORD_NAME,
			    .name = { .ts = ts, .pid = f->pid, .source = source, .handle = handle,
				      .name = name, .len = strlen(name) } };

	feed_add(f, &r);
}

static inline void feed_process(struct feed *f, int64_t ts, uint32_t event, uint32_t pid,
				int64_t start, const char *comm)
{
	struct record r = { .kind = RECORD_PROCESS,
			    .process = { .ts = ts, .event = event, .pid = pid, .ppid = 1,
					 .uid = 1000, .start = start, .comm = comm, .cmdline = "",
					 .exe = "", .container = "" } };

	feed_add(f, &r);
}

static inline void feed_thread(struct feed *f, uint32_t tid, const char *comm)
{
	struct record r = { .kind = RECORD_THREAD,
			    .thread = { .pid = f->pid, .tid = tid, .comm = comm } };

	feed_add(f, &r);
}

static inline void feed_window(struct feed *f, int64_t begin, int64_t end)
{
	struct record r = { .kind = RECORD_WINDOW, .window = { begin, end } };

	feed_add(f, &r);
}

/* What the clocks showed at that moment of CLOCK_MONOTONIC. */
static inline void feed_clock(struct feed *f, int64_t monotonic, int64_t realtime, int64_t boottime)
{
	struct record r = { .kind = RECORD_CLOCK,
			    .clock = { monotonic, realtime, boottime, .error = 50 } };

	feed_add(f, &r);
}

static inline void feed_info(struct feed *f, const char *key, const char *value)
{
	struct record r = { .kind = RECORD_INFO, .info = { key, value } };

	feed_add(f, &r);
}

static inline void feed_gpu(struct feed *f, uint32_t id, uint32_t index, const char *uuid,
			    const char *name, const char *parent)
{
	struct record r = { .kind = RECORD_GPU,
			    .gpu = { id, index, uuid, name, "00000000:65:00.0", parent } };

	feed_add(f, &r);
}

static inline void feed_gpu_sample(struct feed *f, const struct record_gpu_sample *s)
{
	struct record r = { .kind = RECORD_GPU_SAMPLE, .gpu_sample = *s };

	feed_add(f, &r);
}

static inline void feed_loss(struct feed *f, uint32_t cause, uint64_t count)
{
	struct record r = { .kind = RECORD_LOSS, .loss = { .ts = 1, .cause = cause,
							    .count = count } };

	feed_add(f, &r);
}

static inline void feed_apis(struct feed *f)
{
	static const char *const names[F_END] = {
		[F_READ] = "cuMemcpyDtoH_v2",
		[F_LAUNCH] = "cuLaunchKernel",	   [F_RT_LAUNCH] = "cudaLaunchKernel",
		[F_SYNC] = "cuStreamSynchronize",  [F_RT_SYNC] = "cudaStreamSynchronize",
		[F_COPY] = "cuMemcpyHtoD_v2",	   [F_RT_COPY] = "cudaMemcpy",
		[F_ASYNC] = "cuMemcpyDtoHAsync_v2", [F_QUERY] = "cuEventQuery",
		[F_RT_QUERY] = "cudaEventQuery",   [F_ALLOC] = "cuMemAlloc_v2",
		[F_LOAD] = "cuModuleLoadData",	   [F_INIT] = "cuInit",
		[F_GRAPH] = "cuGraphLaunch",	   [F_SET] = "cuMemsetD8Async",
		[F_CTX_SYNC] = "cuCtxSynchronize",
	};

	for (uint32_t id = F_LAUNCH; id < F_END; id++) {
		const struct api *api = catalogue_get(catalogue_find(names[id]));
		struct record r = { .kind = RECORD_API, .api = { .id = id, .name = names[id] } };

		assert_non_null(api);
		r.api.library = api_library_name(api->library);
		r.api.kind = api_kind_name(api->kind);
		feed_add(f, &r);
	}
}

static inline void feed_start(struct feed *f)
{
	*f = (struct feed){ .pid = 100, .tid = 100 };
	assert_int_equal(session_builder_new(&f->b), 0);
	feed_apis(f);
}

static inline struct session *feed_finish(struct feed *f)
{
	assert_int_equal(session_builder_finish(f->b, READER_END_WHOLE, 0, &f->s), 0);
	return f->s;
}

static inline const struct call *nth(const struct session *s, size_t i)
{
	assert_true(i < s->calls_count);
	return &s->calls[i];
}

static inline void feed_stop(struct feed *f)
{
	session_free(f->s);
	session_builder_free(f->b);
}

#endif
