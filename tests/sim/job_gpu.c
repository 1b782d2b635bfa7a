/* SPDX-License-Identifier: BSD-2-Clause */
/* What keeps the device busy in ways that matter to who measures its time. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "job.h"

#define CHECK(call) worker_check(w, call)
#define STREAMS 8
#define GPU_KERNELS 5
#define PAGEABLE 300000 /* bytes, more than are staged in one go */

enum { GEMM_64, ADD_64, GEMM_4096, ADD_4096, LONG };

/* As an H200 ran (a@b)+bias of 64 and of 4096; and one that takes its time. */
static const struct sim_kernel kernels[GPU_KERNELS] = {
	{ "_ZN7cutlass7Kernel2I42cutlass_80_simt_sgemm_32x128_8x5_nn_align1EEvNT_6ParamsE", 2900 },
	{ "_ZN2at6native18elementwise_kernelILi128ELi4EZNS0_15gpu_kernel_implEEEviT1_", 1500 },
	{ "_ZN7cutlass7Kernel2I44cutlass_80_simt_sgemm_256x128_8x4_nn_align1EEvNT_6ParamsE",
	  2681000 },
	{ "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEEEEviT0_T1_",
	  50000 },
	{ "_Z11long_kernelPf", 1000000 },
};

static const struct shape shapes[GPU_KERNELS] = {
	{ { 2, 1, 1 }, { 256, 1, 1 }, 16384 },	  { { 8, 1, 1 }, { 128, 1, 1 }, 0 },
	{ { 16, 32, 1 }, { 256, 1, 1 }, 49152 },  { { 32768, 1, 1 }, { 128, 1, 1 }, 0 },
	{ { 132, 1, 1 }, { 1024, 1, 1 }, 0 },
};

struct gpu {
	CUmodule module;
	CUfunction func[GPU_KERNELS];
	uint32_t name[GPU_KERNELS];
	CUstream stream[STREAMS];
	char *pageable;
};

static struct gpu *gpu_of(struct worker *w)
{
	static const struct sim_image image = { SIM_IMAGE_MAGIC, GPU_KERNELS, kernels };
	struct gpu *g = w->gpu;

	if (g)
		return g;
	g = w->gpu = calloc(1, sizeof(*g));
	if (!g || !(g->pageable = calloc(1, PAGEABLE)))
		abort();
	CHECK(D_OUT(w, cuModuleLoadData, (&g->module, &image), &g->module));
	for (unsigned i = 0; i < GPU_KERNELS; i++) {
		const char *name = kernels[i].name;

		g->name[i] = truth_name(name, (uint32_t)strlen(name));
		CHECK(D_OUT(w, cuModuleGetFunction, (&g->func[i], g->module, name), &g->func[i],
			    .source = U(g->module), .name = g->name[i]));
	}
	for (unsigned i = 0; i < STREAMS; i++)
		CHECK(D_OUT(w, cuStreamCreate, (&g->stream[i], 1), &g->stream[i]));
	return g;
}

void gpu_free(struct worker *w)
{
	struct gpu *g = w->gpu;

	if (!g)
		return;
	for (unsigned i = 0; i < STREAMS; i++)
		CHECK(D(w, cuStreamDestroy_v2, (g->stream[i]), .stream = U(g->stream[i])));
	CHECK(D(w, cuModuleUnload, (g->module), .pointer = U(g->module)));
	free(g->pageable);
	free(g);
	w->gpu = NULL;
}

static void launch_on(struct worker *w, unsigned kernel, CUstream stream)
{
	struct gpu *g = gpu_of(w);
	CUstream own = w->stream;

	w->stream = stream;
	op_launch_func(w, g->func[kernel], g->name[kernel], &shapes[kernel]);
	w->stream = own;
}

static void graph_on(struct worker *w, CUstream stream)
{
	CUstream own = w->stream;

	if (!w->graph)
		op_graph_build(w);
	w->stream = stream;
	op_graph_launch(w);
	w->stream = own;
}

/* Kernels and graphs on eight streams; one of them goes, and its handle comes again. */
void step_streams(struct worker *w)
{
	struct gpu *g = gpu_of(w);
	CUstream *gone = &g->stream[w->steps % STREAMS];

	for (unsigned i = 0; i < 4 * STREAMS; i++)
		launch_on(w, i % 2, g->stream[(i + w->steps) % STREAMS]);
	for (unsigned i = 0; i < 4; i++)
		graph_on(w, g->stream[(3 * i + w->steps) % STREAMS]);
	op_launch(w, 5);
	op_device_sync(w);
	CHECK(D(w, cuStreamDestroy_v2, (*gone), .stream = U(*gone)));
	CHECK(D_OUT(w, cuStreamCreate, (gone, 1), gone));
}

/* Two streams, each always busy. */
void step_overlap(struct worker *w)
{
	struct gpu *g = gpu_of(w);

	for (unsigned i = 0; i < 4; i++)
		launch_on(w, LONG, g->stream[i % 2]);
	op_device_sync(w);
}

/* A hundred short kernels, then a long one: in a mean neither is seen. */
void step_mix(struct worker *w)
{
	for (unsigned i = 0; i < 100; i++)
		launch_on(w, ADD_64, w->stream);
	launch_on(w, LONG, w->stream);
	op_stream_sync(w);
}

static void matmul(struct worker *w, unsigned gemm)
{
	launch_on(w, gemm, w->stream);
	op_cpu(w);
	launch_on(w, gemm + 1, w->stream);
	op_cpu(w);
	if (++w->unsynced % 10 == 0)
		op_stream_sync(w);
}

void step_matmul64(struct worker *w)
{
	matmul(w, GEMM_64);
}

void step_matmul4096(struct worker *w)
{
	matmul(w, GEMM_4096);
}

/* From and to memory that may be paged out, beside pinned memory. */
void step_pageable(struct worker *w)
{
	char *host = gpu_of(w)->pageable;
	size_t n = PAGEABLE;

	CHECK(D(w, cuMemcpyHtoDAsync_v2, (w->dev, host, n, w->stream), .pointer = w->dev,
		.source = U(host), .bytes = n, .stream = U(w->stream)));
	CHECK(D(w, cuMemcpyDtoHAsync_v2, (host, w->dev, n, w->stream), .pointer = U(host),
		.source = w->dev, .bytes = n, .stream = U(w->stream)));
	CHECK(D(w, cuMemcpyHtoD_v2, (w->dev, host, n), .pointer = w->dev, .source = U(host),
		.bytes = n));
	CHECK(D(w, cuMemcpyDtoH_v2, (host, w->dev, n), .pointer = U(host), .source = w->dev,
		.bytes = n));
	op_htod(w, n);
	op_dtoh(w, n);
	op_stream_sync(w);
}

/* From this thread's device to the next one's and back. */
void step_peer(struct worker *w)
{
	struct job *job = w->job;
	CUcontext next = job->ctx[(w->index + 1) % job->opt.devices];
	CUdeviceptr there = 0;
	size_t n = 100000;

	CHECK(D(w, cuCtxSetCurrent, (next), .pointer = U(next)));
	CHECK(D_OUT(w, cuMemAlloc_v2, (&there, n), &there, .bytes = n));
	CHECK(D(w, cuCtxSetCurrent, (w->ctx), .pointer = U(w->ctx)));
	CHECK(D(w, cuMemcpyPeerAsync, (there, next, w->dev, w->ctx, n, w->stream),
		.pointer = there, .source = w->dev, .bytes = n, .stream = U(w->stream)));
	CHECK(D(w, cuMemcpyPeer, (w->dev, w->ctx, there, next, n), .pointer = w->dev,
		.source = there, .bytes = n));
	op_stream_sync(w);
	CHECK(D(w, cuMemFree_v2, (there), .pointer = there));
}

static void run(struct job *job, const char *pattern)
{
	bool ok = true;
	uint64_t output = job_run_threads(job, job_pattern_find(pattern), &ok);

	if (!ok)
		_exit(1);
	if (!job->opt.quiet)
		printf("output %016llx\n", (unsigned long long)output);
}

struct forker {
	atomic_bool stop;
	unsigned forked;
};

/* The children do nothing but live for a while. */
static void *fork_again_and_again(void *user)
{
	struct forker *f = user;
	int status;

	while (!atomic_load(&f->stop)) {
		pid_t pid = fork();

		if (pid < 0)
			abort();
		if (!pid) {
			usleep(3000);
			_exit(0);
		}
		if (waitpid(pid, &status, 0) != pid || status)
			abort();
		f->forked++;
	}
	return NULL;
}

void whole_forks(struct job *job)
{
	struct forker f = { 0 };
	pthread_t id;

	if (pthread_create(&id, NULL, fork_again_and_again, &f))
		abort();
	run(job, "train");
	atomic_store(&f.stop, true);
	pthread_join(id, NULL);
}

/* Work is under way when the context goes; then all begins again, in another. */
void whole_reset(struct job *job)
{
	struct worker self = { .job = job, .ctx = job->ctx[0] }, *w = &self;

	for (unsigned i = 0; i < 2; i++) {
		run(job, "train");
		if (worker_begin(w))
			_exit(1);
		for (unsigned n = 0; n < 3; n++)
			launch_on(w, LONG, w->stream);
		CHECK(D(w, cuDevicePrimaryCtxReset_v2, (0), 0));
		/* Its streams went with it. */
		free(w->gpu);
		w->gpu = NULL;
		if (job_begin(job) || w->unexpected)
			_exit(1);
	}
	run(job, "train");
}

/* The process ends with work under way. */
void whole_midexit(struct job *job)
{
	struct worker self = { .job = job, .ctx = job->ctx[0] }, *w = &self;

	if (worker_begin(w))
		_exit(1);
	for (uint64_t i = 0; i < job->opt.iterations * 20 && !job_stop; i++) {
		launch_on(w, i % 20 == 19 ? LONG : ADD_64, w->stream);
		if (i % 100 == 50)
			op_stream_sync(w);
	}
	for (unsigned i = 0; i < 50; i++)
		launch_on(w, LONG, w->stream);
	if (!job->opt.quiet)
		puts("output midexit");
}
