/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A plain CUDA program that knows what it launches: per thread and step one
 * launch of each of four kernels with shapes of the thread's own, a copy each
 * way, and a wait whose time it takes itself.
 *
 *   launches --dir DIR [--threads N] [--stream own|default]   orders as in gate.py
 *   launches --auto K  [--threads N] [--stream own|default]   K steps at once, exit status 7
 */
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <thread>
#include <vector>

#include <cuda_runtime.h>

#include "gate.h"

#define THREADS_MAX 64
#define WORDS 8192 /* more than any launch of gbpf_add has threads */
#define SPIN_CYCLES 4000000ll /* 2 ms at 2 GHz */
#define FREE_LAUNCHES 500 /* of the 1 021 that may be outstanding */
#define H2D_BYTES 4096
#define D2H_BYTES 512
#define AUTO_STATUS 7

extern "C" __global__ void gbpf_empty(void)
{
}

__global__ void gbpf_add(unsigned *words, unsigned seed)
{
	unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
	unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
	unsigned at = block * (blockDim.x * blockDim.y * blockDim.z) + thread;

	if (at < WORDS)
		words[at] = words[at] * 3 + seed + at;
}

template <typename T> __global__ void gbpf_scale(T *words, T by, int count)
{
	int at = blockIdx.x * blockDim.x + threadIdx.x;

	if (at < count)
		words[at] = words[at] * by + 1;
}

__global__ void gbpf_spin(long long cycles)
{
	long long begin = clock64();

	while (clock64() - begin < cycles)
		;
}

struct lane {
	unsigned index;
	cudaStream_t stream;
	unsigned *words;
	char *host, *scratch;
	int64_t sync_ns;
	unsigned syncs;
};

static void check(cudaError_t status, const char *what)
{
	if (status == cudaSuccess)
		return;
	fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
	exit(1);
}
#define CHECK(call) check((call), #call)

static void lane_wait(struct lane *l)
{
	int64_t begin = gate_now();

	CHECK(cudaStreamSynchronize(l->stream));
	l->sync_ns += gate_now() - begin;
	l->syncs++;
}

static void lane_step(struct lane *l)
{
	unsigned t = l->index;

	gbpf_empty<<<1 + t, 32, 0, l->stream>>>();
	gbpf_add<<<dim3(4 + t, 2, 3), dim3(32, 4, 2), 1024, l->stream>>>(l->words, 7 + t);
	gbpf_scale<int><<<7 + t, 64, 0, l->stream>>>((int *)l->words, 5, WORDS);
	gbpf_spin<<<1 + t, 1, 0, l->stream>>>(SPIN_CYCLES);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpyAsync(l->scratch, l->host, H2D_BYTES, cudaMemcpyHostToDevice, l->stream));
	CHECK(cudaMemcpyAsync(l->host, l->scratch, D2H_BYTES, cudaMemcpyDeviceToHost, l->stream));
	lane_wait(l);
}

static void lane_open(struct lane *l, unsigned index, bool own)
{
	*l = {};
	l->index = index;
	if (own)
		CHECK(cudaStreamCreateWithFlags(&l->stream, cudaStreamNonBlocking));
	CHECK(cudaMalloc(&l->words, WORDS * sizeof(*l->words)));
	CHECK(cudaMemset(l->words, 0, WORDS * sizeof(*l->words)));
	CHECK(cudaMalloc(&l->scratch, H2D_BYTES));
	CHECK(cudaMallocHost(&l->host, H2D_BYTES));
	CHECK(cudaDeviceSynchronize());
}

static void run_steps(std::vector<struct lane> &lanes, int count)
{
	std::vector<std::thread> threads;

	for (auto &l : lanes) {
		l.sync_ns = 0;
		l.syncs = 0;
		threads.emplace_back([&l, count] {
			for (int i = 0; i < count; i++)
				lane_step(&l);
		});
	}
	for (auto &t : threads)
		t.join();
}

static void row(FILE *out, const struct lane *l, const char *kernel, dim3 grid, dim3 block,
		unsigned smem, int count, bool last)
{
	fprintf(out,
		"{\"kernel\": \"%s\", \"grid\": [%u, %u, %u], \"block\": [%u, %u, %u], "
		"\"smem\": %u, \"stream\": \"0x%llx\", \"calls\": %d}%s",
		kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z, smem,
		(unsigned long long)(uintptr_t)l->stream, count, last ? "" : ", ");
}

/* What lane_step launches, for whoever compares. */
static void say_steps(FILE *out, const std::vector<struct lane> &lanes, int count, int64_t begin,
		      int64_t end)
{
	long long sync = 0, syncs = 0, n = (long long)lanes.size() * count;

	for (auto &l : lanes) {
		sync += l.sync_ns;
		syncs += l.syncs;
	}
	fprintf(out,
		"{\"say\": \"steps\", \"steps\": %d, \"begin_ns\": %lld, \"end_ns\": %lld, "
		"\"sync_ns\": %lld, \"syncs\": %lld, \"step_p50_ns\": %lld, "
		"\"h2d_bytes\": %lld, \"d2h_bytes\": %lld, \"expected\": [",
		count, (long long)begin, (long long)end, sync, syncs,
		(long long)(end - begin) / (count ? count : 1), n * H2D_BYTES, n * D2H_BYTES);
	for (auto &l : lanes) {
		unsigned t = l.index;

		row(out, &l, "gbpf_empty", dim3(1 + t), dim3(32), 0, count, false);
		row(out, &l, "gbpf_add(unsigned int*, unsigned int)", dim3(4 + t, 2, 3),
		    dim3(32, 4, 2), 1024, count, false);
		row(out, &l, "void gbpf_scale<int>(int*, int, int)", dim3(7 + t), dim3(64), 0,
		    count, false);
		row(out, &l, "gbpf_spin(long long)", dim3(1 + t), dim3(1), 0, count,
		    &l == &lanes.back());
	}
	fprintf(out, "]}\n");
	fflush(out);
}

static void do_steps(FILE *out, std::vector<struct lane> &lanes, int count)
{
	int64_t begin = gate_now();

	run_steps(lanes, count);
	say_steps(out, lanes, count, begin, gate_now());
}

/* A free step is many empty launches in a row; the wait after them is not in its time. */
static void do_free(struct gate *g, struct lane *l)
{
	int64_t begin, times[2];
	long long steps = 0;

	fprintf(g->out, "{\"say\": \"free begins\"}\n");
	fflush(g->out);
	while (!gate_pending(g, 0)) {
		begin = gate_now();
		for (int i = 0; i < FREE_LAUNCHES; i++)
			gbpf_empty<<<1, 32, 0, l->stream>>>();
		times[0] = gate_now();
		times[1] = times[0] - begin;
		CHECK(cudaStreamSynchronize(l->stream));
		fwrite(times, sizeof(times), 1, g->steps);
		steps++;
		if (steps % 64 == 0)
			fflush(g->steps);
	}
	fflush(g->steps);
	fprintf(g->out, "{\"say\": \"free\", \"steps\": %lld, \"launches_per_step\": %d}\n", steps,
		FREE_LAUNCHES);
	fflush(g->out);
}

static void do_checksum(FILE *out, const std::vector<struct lane> &lanes)
{
	std::vector<unsigned> words(WORDS);
	uint64_t sum = 14695981039346656037ull; /* FNV-1a */

	for (auto &l : lanes) {
		CHECK(cudaMemcpy(words.data(), l.words, WORDS * sizeof(words[0]),
				 cudaMemcpyDeviceToHost));
		for (unsigned w : words)
			sum = (sum ^ w) * 1099511628211ull;
	}
	fprintf(out, "{\"say\": \"checksum\", \"checksum\": \"%016llx\"}\n",
		(unsigned long long)sum);
	fflush(out);
}

/* Code of libcuda comes from the file again, where there is a copy of ours. */
static void do_refault(FILE *out)
{
	char line[512], *path;
	unsigned long from, to;
	FILE *maps = fopen("/proc/self/maps", "re");
	int done = 0;

	while (maps && fgets(line, sizeof(line), maps)) {
		path = strchr(line, '/');
		if (path && strstr(path, "/libcuda.so") && strstr(line, " r-xp ") &&
		    sscanf(line, "%lx-%lx", &from, &to) == 2)
			done += !madvise((void *)from, to - from, MADV_DONTNEED);
	}
	if (maps)
		fclose(maps);
	fprintf(out, "{\"say\": \"refault\", \"mappings\": %d}\n", done);
	fflush(out);
}

static int serve(struct gate *g, std::vector<struct lane> &lanes)
{
	const char *order;

	run_steps(lanes, 3); /* all code is loaded, all streams are warm */
	fprintf(g->out, "{\"say\": \"ready\", \"pid\": %d}\n", (int)getpid());
	fflush(g->out);
	for (;;) {
		order = gate_order(g);
		if (!strncmp(order, "steps ", 6))
			do_steps(g->out, lanes, atoi(order + 6));
		else if (!strcmp(order, "free"))
			do_free(g, &lanes[0]);
		else if (!strcmp(order, "checksum"))
			do_checksum(g->out, lanes);
		else if (!strcmp(order, "refault"))
			do_refault(g->out);
		else if (strcmp(order, "rest") != 0)
			return 0;
	}
}

int main(int argc, char **argv)
{
	const char *dir = NULL;
	int steps = 0, threads = 1;
	bool own = true;
	struct gate g;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--dir"))
			dir = argv[i + 1];
		else if (!strcmp(argv[i], "--auto"))
			steps = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--threads"))
			threads = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--stream"))
			own = strcmp(argv[i + 1], "default") != 0;
	}
	if (threads < 1 || threads > THREADS_MAX || (!dir && steps < 1)) {
		fprintf(stderr, "usage: launches --dir DIR | --auto K [--threads N] "
				"[--stream own|default]\n");
		return 2;
	}
	if (dir && gate_open(&g, dir)) {
		perror(dir);
		return 1;
	}
	std::vector<struct lane> lanes(threads);
	for (int i = 0; i < threads; i++)
		lane_open(&lanes[i], i, own);
	if (dir)
		return serve(&g, lanes);
	do_steps(stdout, lanes, steps);
	return AUTO_STATUS;
}
