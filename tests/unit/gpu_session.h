/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sessions with GPU work for tests of what reads them: a small one whose every number can be
 * worked out by hand, and random ones, the same for the same seed, with the truth of which
 * call caused what. Include it, gpu_small() or gpu_random(), then feed_stop().
 */
#ifndef GBPF_TESTS_GPU_SESSION_H
#define GBPF_TESTS_GPU_SESSION_H

#include <stdio.h>

#include "gpu_feed.h"
#include "model/grow.h"

#define SMALL_GEMM "_ZN2nn4gemmIfEEvPT_i"
#define SMALL_NCCL "_Z36ncclDevKernel_AllReduce_Sum_f32_RING24ncclDevKernelArgsStorageILm4096EE"

/* The small session: what process 100 does, in us. Streams 7 (0x77) and 13 (0x78). */
static inline void gpu_small_calls(struct feed *f)
{
	feed_launched(f, 100000, 104000, 0xabc, 0x77, 8, 128, 1);
	feed_kernel(f, 106000, 126000, 7, 1, 1); /* uncontended: 6 us after its launch */
	feed_launched(f, 105000, 108000, 0xabc, 0x77, 8, 128, 2);
	feed_kernel(f, 127000, 147000, 7, 2, 1); /* kernel-wait of 1 us */
	feed_launched(f, 110000, 113000, 0xdef, 0x78, 2, 512, 3);
	feed_kernel(f, 120000, 140000, 13, 3, 2); /* overlaps both */
	feed_call(f, 115000, 160000, F_SYNC, SP);
	feed_launched(f, 170000, 174000, 0xabc, 0x77, 8, 128, 4);
	feed_kernel(f, 177000, 179000, 7, 4, 1); /* sync-drain of 30 us; short: 2 < 4 us */
	feed_called(f, 200000, 205000, F_ASYNC, 0xd000, 0x77, 4096, 5);
	feed_copied(f, 210000, 214000, 7, 5, 4096); /* host-wait of 31 us */
	feed_called(f, 220000, 226000, F_GRAPH, 0x9999, 0x77, 0, 6);
	for (uint32_t i = 0; i < 3; i++) /* one launch, three works, on two streams */
		feed_work(f, &(struct record_work){
				     .begin = 230000 + i * 10000, .duration = 9000,
				     .kind = i == 2 ? RECORD_WORK_SET : RECORD_WORK_KERNEL,
				     .stream = i == 1 ? 13 : 7, .correlation = 6,
				     .shape = i == 2 ? 0 : 1, .bytes = i == 2 ? 512 : 0,
				     .target = i == 2 ? RECORD_MEMORY_DEVICE : 0, .graph = 77,
				     .graph_node = 1000 + i, .peer = UINT32_MAX });
}

/*
 * 1 ms traced, 0.9 of it with the sidecar. The device works 106..147, 177..179, 210..214,
 * 230..239, 240..249, 250..259 us: 74 us in all, and in 300..310 us for process 200 alone.
 */
static inline struct session *gpu_small(struct feed *f)
{
	feed_start(f);
	feed_window(f, 1000, 1001000);
	feed_gpu(f, 5, 0, "GPU-1111", "NVIDIA H200", "");
	feed_process(f, 500, RECORD_PROCESS_SEEN, 100, 5000000000, "train");
	feed_process(f, 500, RECORD_PROCESS_SEEN, 200, 6000000000, "worker");
	feed_thread(f, 100, "main");
	feed_name(f, 900, 0xabc, GBPF_NAME_LAYOUT, SMALL_GEMM);
	feed_name(f, 900, 0xdef, GBPF_NAME_LAYOUT, SMALL_NCCL);
	feed_cover(f, 50000, 950000);
	feed_device(f, 0, "GPU-1111");
	feed_shape(f, 1, SMALL_GEMM, 8, 128);
	feed_shape(f, 2, SMALL_NCCL, 2, 512);
	gpu_small_calls(f);
	f->pid = f->tid = 200;
	feed_cover(f, 50000, 950000);
	feed_device(f, 0, "GPU-1111"); /* the same device, another process */
	feed_shape(f, 1, SMALL_GEMM, 4, 64);
	feed_launched(f, 290000, 295000, 0xaaa, 0, 4, 64, 1);
	feed_kernel(f, 300000, 310000, 7, 1, 1);
	return feed_finish(f);
}

/* ---- random ones ---- */

struct gpu_random_options {
	uint64_t seed;
	unsigned processes, threads, streams, devices; /* threads and streams: a process' */
	unsigned calls;				       /* a thread's, at most */
	bool hostile; /* names, times, sizes at the edges of what records can hold */
	bool no_work_calls; /* as where nobody records calls; one thread a process then */
	int64_t every, moment; /* calls are recorded for so long, every so often; 0: always */
	bool own_streams;      /* each thread has its own */
	bool alike;	       /* one kernel is launched, nothing else */
	bool still; /* who is in a call as a moment ends keeps its id until the next one */
	unsigned lost;	       /* works of 1000 */
	unsigned cut;	       /* of 1000: where the window ends, amid work; 0: after it */
};

/* What really caused a work. */
struct gpu_truth {
	uint32_t pid, tid, stream, context, device;
	int64_t begin; /* of the work */
	int64_t entry; /* of its call */
};

struct gpu_random {
	const struct gpu_random_options *o;
	struct feed *f;
	uint64_t state;
	int64_t free_at[256]; /* streams of the process */
	uint32_t correlation;
	uint32_t ids[64]; /* threads': that of all their works, 0: each has its own */
	struct record_work *works; /* to be shuffled */
	struct gpu_truth *truth;   /* the caller frees it */
	size_t count, works_cap, truth_cap;
	size_t first; /* of this process */
};

static inline uint64_t gpu_rand(struct gpu_random *g, uint64_t below)
{
	g->state ^= g->state << 13;
	g->state ^= g->state >> 7;
	g->state ^= g->state << 17;
	return (g->state >> 11) % below;
}

static const char *const gpu_hostile_names[] = {
	"_Z1fv", "", "a\"b\\c\n\t</script>{}\x01\x7f", "\xff\xfe\xc3", "_Z", "%s%n$0`id`",
	"\xe2\x80\xae" "evil", "void f<(a)>(b, c)", "=cmd|' /C calc'!A0", "_ZN1aIN1bEEE",
};
#define GPU_SHAPES 10

static inline void gpu_random_shapes(struct gpu_random *g)
{
	for (uint32_t i = 0; i < GPU_SHAPES; i++) {
		char name[64];

		snprintf(name, sizeof(name), "_Z%dkernel_%u%si", i == 9 ? 11 : 8, i,
			 i == 9 ? "_" "xy" : "");
		feed_shape(g->f, i, g->o->hostile ? gpu_hostile_names[i] : name,
			   g->o->hostile && i == 4 ? UINT32_MAX : i + 1, 32 * (i + 1));
		if (!g->o->hostile)
			feed_name(g->f, 900, 0x1000 + i, GBPF_NAME_LAYOUT, name);
	}
}

static inline void gpu_random_work(struct gpu_random *g, int64_t entry, uint32_t stream,
				   struct record_work w)
{
	int64_t begin = entry + 2000 + (int64_t)gpu_rand(g, 8000);

	if (begin < g->free_at[stream])
		begin = g->free_at[stream] + (int64_t)gpu_rand(g, 1500);
	w.begin = begin;
	w.duration = 500 + gpu_rand(g, 30000);
	w.device = stream % g->o->devices;
	w.context = w.device + 1;
	w.stream = 7 + stream;
	w.peer = UINT32_MAX;
	w.correlation = g->o->still && g->ids[g->f->tid - g->f->pid] ?
				g->ids[g->f->tid - g->f->pid] : g->correlation;
	g->free_at[stream] = begin + (int64_t)w.duration;
	assert_int_equal(GROW(g->works, g->works_cap, g->count + 1), 0);
	assert_int_equal(GROW(g->truth, g->truth_cap, g->count + 1), 0);
	g->works[g->count] = w;
	g->truth[g->count++] = (struct gpu_truth){ g->f->pid, g->f->tid, w.stream, w.context,
						   w.device, begin, entry };
}

static inline void gpu_random_graph(struct gpu_random *g, int64_t at, uint32_t stream)
{
	unsigned nodes = 1 + (g->o->still ? 5 * stream % 12 : (unsigned)gpu_rand(g, 12));

	for (unsigned i = 0; i < nodes; i++) {
		uint32_t on = g->o->still || gpu_rand(g, 4) ? stream
					     : (stream + g->o->devices) % g->o->streams;

		gpu_random_work(g, at, on % g->o->devices == stream % g->o->devices ? on : stream,
				(struct record_work){ .kind = RECORD_WORK_KERNEL,
						      .shape = i % GPU_SHAPES,
						      .graph = g->o->still ? 5 + stream : 5,
						      .graph_node = 100 + i });
	}
}

/* Of a call at the end of a moment CUPTI has no record, and its id stays. */
static inline void gpu_random_still(struct gpu_random *g, int64_t at, int64_t end, bool seen)
{
	uint32_t *id = &g->ids[g->f->tid - g->f->pid];

	if (g->o->still && seen)
		*id = end % g->o->every < g->o->moment ? 0 : g->correlation;
}

/* One call at *at, which moves on. */
static inline void gpu_random_call(struct gpu_random *g, int64_t *at)
{
	uint32_t stream = (uint32_t)gpu_rand(g, g->o->streams);
	uint64_t handle, what = gpu_rand(g, 16);
	uint32_t shape = (uint32_t)gpu_rand(g, GPU_SHAPES);
	int64_t end = *at + 1500 + (int64_t)gpu_rand(g, 4000);
	bool seen = !g->o->no_work_calls && (!g->o->every || *at % g->o->every < g->o->moment);
	bool whole = !g->o->every || end % g->o->every < g->o->moment || !g->o->still;
	uint32_t told = seen && whole ? g->correlation + 1 : 0;

	g->correlation++;
	gpu_random_still(g, *at, end, seen);
	if (g->o->own_streams)
		stream = (g->f->tid - g->f->pid) % g->o->streams;
	handle = 0x5500 + stream * 16;
	if (g->o->alike) {
		what = what < 14 ? 0 : 15;
		shape = 3;
	}
	if (what < 9) {
		feed_launched(g->f, *at, end, 0x1000 + shape, handle,
			      g->o->hostile && shape == 4 ? UINT32_MAX : shape + 1,
			      32 * (shape + 1), told);
		gpu_random_work(g, *at, stream, (struct record_work){
			.kind = RECORD_WORK_KERNEL, .shape = shape,
			.priority = (int32_t)(stream % 3) - 2, .channel = stream });
	} else if (what < 11) {
		feed_called(g->f, *at, end, F_GRAPH, 0x9000, handle, 0, told);
		gpu_random_graph(g, *at, stream);
	} else if (what < 13) {
		uint64_t bytes = g->o->hostile ? UINT64_MAX : 1 + gpu_rand(g, 1 << 20);

		feed_called(g->f, *at, end, F_ASYNC, 0xd000, handle, bytes, told);
		gpu_random_work(g, *at, stream, (struct record_work){
			.kind = RECORD_WORK_COPY, .bytes = bytes,
			.direction = 1 + (uint32_t)gpu_rand(g, g->o->hostile ? 255 : 2),
			.source = (uint32_t)gpu_rand(g, g->o->hostile ? 255 : 4), .target = 3 });
	} else if (what < 14) {
		feed_called(g->f, *at, end, F_SET, 0xd000, handle, 64, told);
		gpu_random_work(g, *at, stream, (struct record_work){
			.kind = RECORD_WORK_SET, .bytes = 64, .target = 3 });
	} else if (what == 14 && g->free_at[stream] > *at) {
		end = g->free_at[stream] + 1000;
		feed_call(g->f, *at, end, F_SYNC, SP);
	} else {
		feed_overhead(g->f, *at, end);
	}
	*at = end + (int64_t)gpu_rand(g, gpu_rand(g, 10) ? 3000 : 100000);
}

/* Edges: of time, of durations, of what was never announced. */
static inline void gpu_random_edges(struct gpu_random *g)
{
	static const struct record_work edges[] = {
		{ .begin = 1, .duration = 1, .kind = RECORD_WORK_KERNEL, .shape = 999 },
		{ .begin = INT64_MAX, .duration = 5, .kind = RECORD_WORK_KERNEL, .device = 77 },
		{ .begin = (INT64_C(1) << 62) - 1, .duration = 9, .kind = RECORD_WORK_SET },
		{ .begin = -5, .duration = 10, .kind = RECORD_WORK_COPY },
		{ .begin = 0, .duration = 10, .kind = RECORD_WORK_KERNEL },
		{ .begin = 100, .duration = 0, .kind = RECORD_WORK_KERNEL },
		{ .begin = 100, .duration = UINT64_MAX, .kind = RECORD_WORK_KERNEL },
		{ .begin = 100, .duration = 1, .kind = 250, .direction = UINT32_MAX },
		{ .begin = 100, .duration = 7, .kind = RECORD_WORK_COPY, .source = UINT32_MAX,
		  .stream = UINT32_MAX, .context = UINT32_MAX, .device = UINT32_MAX,
		  .peer = 3, .bytes = UINT64_MAX, .graph_node = UINT64_MAX, .graph = 1 },
	};

	for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++)
		feed_work(g->f, &edges[i]);
	feed_sidecar(g->f, INT64_MAX, 200, UINT64_MAX, "\x1b[31mno\"t\n");
	feed_sidecar(g->f, -1, RECORD_SIDECAR_BEGAN, 0, "");
}

/* Threads side by side, so that ids rise with time. Returns when the last one is done. */
static inline int64_t gpu_random_threads(struct gpu_random *g)
{
	unsigned calls[64] = { 0 };
	int64_t at[64] = { 0 };
	uint32_t pid = g->f->pid, next;

	assert_true(g->o->threads <= 64);
	for (uint32_t t = 0; t < g->o->threads; t++)
		at[t] = 1000000 + (int64_t)gpu_rand(g, 5000);
	for (;;) {
		next = 0;
		for (uint32_t t = 1; t < g->o->threads; t++)
			if (at[t] < at[next])
				next = t;
		if (calls[next]++ == g->o->calls) /* and the others are about done */
			break;
		g->f->tid = pid + next;
		gpu_random_call(g, &at[next]);
	}
	for (uint32_t t = 0; t < g->o->threads; t++)
		at[next] = at[t] > at[next] ? at[t] : at[next];
	return at[next];
}

static inline void gpu_random_process(struct gpu_random *g)
{
	int64_t last, end = 0;

	for (uint32_t d = 0; d < g->o->devices; d++) {
		char uuid[32];

		snprintf(uuid, sizeof(uuid), "GPU-%08x", d);
		feed_device(g->f, d, g->o->hostile && d == 1 ? gpu_hostile_names[2] : uuid);
	}
	memset(g->free_at, 0, sizeof(g->free_at));
	gpu_random_shapes(g);
	last = gpu_random_threads(g);
	for (unsigned i = 0; i < g->o->streams; i++)
		last = g->free_at[i] > last ? g->free_at[i] : last;
	if (g->o->cut)
		end = last / 1000 * g->o->cut;
	feed_cover(g->f, 500000, end ? end : last + 1000);
	if (g->o->lost)
		feed_sidecar(g->f, last, RECORD_SIDECAR_DROPPED, 1, "");
	for (size_t i = g->count; i-- > g->first;) { /* buffers come as they like */
		size_t j = g->first + (size_t)gpu_rand(g, i - g->first + 1);
		struct record_work w = g->works[j];

		g->works[j] = g->works[i];
		g->works[i] = w;
		if ((!end || w.begin + (int64_t)w.duration < end) &&
		    (!g->o->lost || gpu_rand(g, 1000) >= g->o->lost))
			feed_work(g->f, &w);
	}
	if (g->o->hostile)
		gpu_random_edges(g);
	g->first = g->count;
	feed_window(g->f, 1000, last + 2000);
}

/* Streams: at most 256. *truth (may be NULL) is malloc'ed: *count of them. */
static inline struct session *gpu_random(struct feed *f, const struct gpu_random_options *o,
					 struct gpu_truth **truth, size_t *count)
{
	struct gpu_random g = { .o = o, .f = f, .state = o->seed * 0x9e3779b97f4a7c15u + 1 };

	assert_true(o->streams <= 256 && o->devices && o->streams >= o->devices);
	feed_start(f);
	feed_clock(f, 1000, 1700000000000001000, 5001000);
	feed_clock(f, 1200000, 1700000000001200007, 6200000); /* somebody set it, a little */
	for (unsigned p = 0; p < o->processes; p++) {
		f->pid = f->tid = 1000 * (p + 1);
		feed_process(f, 500, RECORD_PROCESS_SEEN, f->pid, 5000000000, "train");
		g.correlation = p * 7; /* the same ids in several processes */
		gpu_random_process(&g);
	}
	free(g.works);
	if (truth)
		*truth = g.truth;
	else
		free(g.truth);
	if (count)
		*count = g.count;
	return feed_finish(f);
}

#endif
