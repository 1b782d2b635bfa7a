/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Jobs drawn at random, with a seed, that no rule was tuned on: eight families whose verdict
 * follows from their numbers, three of each. What came out when they were run first is in
 * docs/diagnosis.md.
 */
#include "label_check.h"

#define DRAWS 3

static uint64_t seed;

/* SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t draw(void)
{
	uint64_t z = seed += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static int64_t between(int64_t low, int64_t high)
{
	return low + (int64_t)(draw() % (uint64_t)(high - low + 1));
}

static int64_t part(int64_t of, int low_percent, int high_percent)
{
	return of * between(low_percent, high_percent) / 100;
}

/* Whatever is drawn once for a job; then each time a fifth more or less of it. */
static int64_t about(int64_t ns)
{
	return part(ns, 80, 120);
}

static void launches(struct job *j, int count, int64_t gap, int64_t call, int64_t kernel,
		     int64_t every)
{
	for (int i = 0; i < count; i++) {
		job_between(j, about(gap));
		job_kernel(j, (unsigned)i % 12, about(call), about(kernel));
		if (i % every == every - 1)
			job_sync(j);
	}
}

/* The GPU works for a fifth to a half of the time that the CPU takes. */
static void prepares(struct job *j)
{
	int64_t gap = between(8, 60) * USEC, call = between(4, 9) * USEC;
	int64_t kernel = part(gap + call, 15, 45);

	launches(j, 6000, gap, call, kernel, between(20, 400));
}

/* Waits for a GPU that takes at least three times as long. */
static void gpu_waits(struct job *j)
{
	int64_t gap = between(2, 15) * USEC, call = between(4, 9) * USEC;
	int64_t kernel = part(gap + call, 300, 900);

	launches(j, 2000, gap, call, kernel, between(30, 400));
}

static void never_waits(struct job *j)
{
	int64_t call = between(4, 9) * USEC, kernel = part(call, 400, 1500);

	for (int i = 0; i < 9000; i++)
		job_kernel(j, (unsigned)i % 12, about(call), about(kernel));
}

/* Away for longer than the GPU then works. */
static void loads(struct job *j)
{
	int64_t away = between(3, 25) * MSEC, kernels = between(5, 60);
	int64_t kernel = part(away, 10, 60) / kernels;

	for (int i = 0; i < 50; i++) {
		job_between(j, about(away));
		for (int k = 0; k < kernels; k++)
			job_kernel(j, (unsigned)k, 5 * USEC, about(kernel));
		job_sync(j);
	}
}

/* Prepares the next kernel only when the last one is over: both could go on at once. */
static void waits_for_each(struct job *j)
{
	int64_t kernel = between(60, 400) * USEC, gap = part(kernel, 35, 65);

	launches(j, 2000, gap, 5 * USEC, kernel, 1);
}

static void copies_in(struct job *j)
{
	int64_t copy = between(300, 3000) * USEC, kernel = part(copy, 3, 25);

	for (int i = 0; i < 80; i++) {
		job_copy(j, F_COPY, 1 << 20, about(copy), RECORD_MEMORY_PINNED);
		job_kernel(j, 1, 5 * USEC, about(kernel));
	}
}

static void reduces(struct job *j)
{
	int64_t kernel = between(20, 80) * USEC, count = between(10, 40);
	int64_t reduce = part(kernel * count, 160, 500);

	for (int i = 0; i < 60; i++) {
		for (int k = 0; k < count; k++)
			job_kernel(j, (unsigned)k, 5 * USEC, about(kernel));
		job_kernel_named(j, 0, 60, SMALL_ALLREDUCE, 8 * USEC, about(reduce));
		job_sync(j);
	}
}

static void replays(struct job *j)
{
	unsigned nodes = (unsigned)between(60, 300);
	int64_t kernel = between(6, 25) * USEC;

	for (int i = 0; i < 60; i++) {
		job_graph(j, nodes, between(15, 40) * USEC, kernel);
		job_sync(j);
	}
}

static const struct label families[] = {
	{ "prepares", prepares, VERDICT_OVERHEAD_BOUND, VERDICT_OVERHEAD_BOUND,
	  { "overhead_bound" }, { "queue_full", "starved", "heavy_kernel" } },
	{ "gpu_waits", gpu_waits, VERDICT_GPU_BOUND, VERDICT_GPU_BOUND, { NULL },
	  { "overhead_bound", "starved", "sync_serialisation" } },
	{ "never_waits", never_waits, VERDICT_GPU_BOUND, VERDICT_BACK_PRESSURED,
	  { "queue_full" }, { "overhead_bound", "slow_dispatch", "starved" } },
	{ "loads", loads, VERDICT_STARVED, VERDICT_STARVED, { "starved" },
	  { "overhead_bound", "queue_full" } },
	{ "waits_for_each", waits_for_each, VERDICT_SYNC_BOUND, ANY, { "sync_serialisation" },
	  { "queue_full", "starved" } },
	{ "copies_in", copies_in, VERDICT_COPY_BOUND, VERDICT_COPY_BOUND, { "blocking_copy" },
	  { "pageable_copy", "overhead_bound", "starved" } },
	{ "reduces", reduces, VERDICT_COMM_BOUND, ANY, { "communication" },
	  { "overhead_bound", "starved", "heavy_kernel" } },
	{ "replays", replays, VERDICT_GPU_BOUND, VERDICT_GPU_BOUND, { NULL },
	  { "short_kernels", "graph_candidate", "overhead_bound", "starved" } },
};
#define FAMILIES (sizeof(families) / sizeof(families[0]))

static int drawn_one(size_t family, int number, bool gpu)
{
	struct label l = families[family];
	char name[64];

	snprintf(name, sizeof(name), "%s %d", l.name, number);
	l.name = name;
	seed = (uint64_t)family << 32 | (uint64_t)number; /* the same with GPU time and without */
	return run(&l, gpu);
}

static void drawn(bool gpu)
{
	int wrong = 0;

	for (size_t i = 0; i < FAMILIES; i++)
		for (int number = 1; number <= DRAWS; number++)
			wrong += drawn_one(i, number, gpu) != 0;
	if (wrong)
		fail_msg("%d of %zu jobs are not judged as labelled", wrong, FAMILIES * DRAWS);
}

static void with_gpu_time(void **state)
{
	drawn(true);
}

static void without_gpu_time(void **state)
{
	drawn(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(with_gpu_time),
		cmocka_unit_test(without_gpu_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
