/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the labelled jobs do (labels.h).
 */
#ifndef GBPF_TESTS_LABEL_JOBS_H
#define GBPF_TESTS_LABEL_JOBS_H

#include "label_check.h"

/* ---- jobs ---- */

/* a @ b + bias of the reference run: 87 us of CPU a step, 4 us of GPU, a sync a step. */
static void matmul_small(struct job *j)
{
	for (int i = 0; i < 2000; i++) {
		job_between(j, 35 * USEC);
		job_kernel(j, 1, 8 * USEC, 3 * USEC);
		job_between(j, 25 * USEC);
		job_kernel(j, 2, 6 * USEC, 1400);
		job_between(j, 6 * USEC);
		job_sync(j);
	}
}

static void matmul_large(struct job *j)
{
	for (int i = 0; i < 60; i++) {
		job_between(j, 35 * USEC);
		job_kernel(j, 1, 8 * USEC, 2700 * USEC);
		job_between(j, 25 * USEC);
		job_kernel(j, 2, 6 * USEC, 31 * USEC);
		job_between(j, 6 * USEC);
		job_sync(j);
	}
}

static void train(struct job *j, int steps, int64_t between, int64_t kernel, bool sync)
{
	for (int i = 0; i < steps; i++) {
		for (unsigned k = 0; k < 80; k++) {
			job_between(j, between);
			job_kernel(j, k % 40, 5 * USEC, kernel);
		}
		job_kernel(j, 50, 5 * USEC, kernel); /* optimizer */
		job_kernel(j, 51, 5 * USEC, kernel);
		if (sync)
			job_sync(j);
	}
}

static void train_overhead(struct job *j)
{
	train(j, 60, 20 * USEC, 3 * USEC, false);
}

static void train_overhead_logging(struct job *j)
{
	for (int i = 0; i < 6; i++) {
		train(j, 10, 20 * USEC, 3 * USEC, false);
		job_copy(j, F_ASYNC, 4, 2 * USEC, RECORD_MEMORY_PINNED);
		job_sync(j);
	}
}

static void train_gpu(struct job *j)
{
	train(j, 30, 10 * USEC, 60 * USEC, true);
}

static void train_gpu_no_sync(struct job *j)
{
	train(j, 60, 5 * USEC, 40 * USEC, false);
}

static void decode_bandwidth(struct job *j)
{
	for (int i = 0; i < 100; i++) {
		for (unsigned k = 0; k < 60; k++)
			job_kernel(j, k % 6, 6 * USEC, 18 * USEC);
		job_copy(j, F_ASYNC, 8, 2 * USEC, RECORD_MEMORY_PINNED);
		job_sync(j);
	}
}

static void queue_full(struct job *j)
{
	for (int i = 0; i < 8000; i++)
		job_kernel(j, 1, 4 * USEC, 60 * USEC);
}

static void nearly_full(struct job *j) /* deep, never full */
{
	for (int i = 0; i < 12; i++) {
		for (int k = 0; k < 900; k++)
			job_kernel(j, 1, 4 * USEC, 40 * USEC);
		job_sync(j);
	}
}

static void sync_each(struct job *j)
{
	for (int i = 0; i < 4000; i++) {
		job_between(j, 12 * USEC);
		job_kernel(j, (unsigned)i % 8, 5 * USEC, 40 * USEC);
		job_sync(j);
	}
}

/* Waits as often, but the CPU would be too slow without them, too. */
static void sync_each_slow_cpu(struct job *j)
{
	for (int i = 0; i < 3000; i++) {
		job_between(j, 90 * USEC);
		job_kernel(j, (unsigned)i % 8, 8 * USEC, 5 * USEC);
		job_sync(j);
	}
}

static void data_loading(struct job *j)
{
	for (int i = 0; i < 40; i++) {
		job_between(j, 12 * MSEC);
		for (unsigned k = 0; k < 30; k++)
			job_kernel(j, k, 5 * USEC, 100 * USEC);
		job_sync(j);
	}
}

/* The loader works while the GPU does: nothing is lost. */
static void data_loading_hidden(struct job *j)
{
	for (int i = 0; i < 60; i++) {
		for (unsigned k = 0; k < 30; k++)
			job_kernel(j, k, 5 * USEC, 300 * USEC);
		job_between(j, 5 * MSEC);
		job_sync(j);
	}
}

static void pageable_copies(struct job *j)
{
	for (int i = 0; i < 60; i++) {
		job_copy(j, F_ASYNC, 32 << 20, 4 * MSEC, RECORD_MEMORY_PAGEABLE);
		for (unsigned k = 0; k < 10; k++)
			job_kernel(j, k, 5 * USEC, 60 * USEC);
		job_sync(j);
	}
}

static void pinned_copies(struct job *j)
{
	for (int i = 0; i < 60; i++) {
		job_copy(j, F_ASYNC, 32 << 20, 600 * USEC, RECORD_MEMORY_PINNED);
		for (unsigned k = 0; k < 10; k++)
			job_kernel(j, k, 5 * USEC, 400 * USEC);
		job_sync(j);
	}
}

static void blocking_copies(struct job *j)
{
	for (int i = 0; i < 100; i++) {
		job_copy(j, F_COPY, 16 << 20, 3 * MSEC, RECORD_MEMORY_PAGEABLE);
		for (unsigned k = 0; k < 6; k++)
			job_kernel(j, k, 5 * USEC, 50 * USEC);
	}
}

static void collectives(struct job *j)
{
	for (int i = 0; i < 60; i++) {
		for (unsigned k = 0; k < 20; k++)
			job_kernel(j, k, 5 * USEC, 40 * USEC);
		job_kernel_named(j, 0, 60, SMALL_ALLREDUCE, 8 * USEC, 3 * MSEC);
		job_sync(j);
	}
}

static void collectives_overlapped(struct job *j)
{
	for (int i = 0; i < 60; i++) {
		for (unsigned k = 0; k < 20; k++) {
			job_kernel(j, k, 5 * USEC, 100 * USEC);
			if (k % 5 == 0)
				job_kernel_named(j, 1, 60, SMALL_ALLREDUCE, 8 * USEC, 350 * USEC);
		}
		job_sync(j);
	}
}

static void graph_busy(struct job *j)
{
	for (int i = 0; i < 60; i++) {
		job_graph(j, 200, 20 * USEC, 15 * USEC);
		job_sync(j);
	}
}

static void graph_starved(struct job *j)
{
	for (int i = 0; i < 60; i++) {
		job_between(j, 6 * MSEC);
		job_graph(j, 100, 20 * USEC, 15 * USEC);
		job_sync(j);
	}
}

static void graph_small(struct job *j)
{
	for (int i = 0; i < 1000; i++) {
		job_between(j, 300 * USEC);
		job_graph(j, 10, 12 * USEC, 2 * USEC);
		job_sync(j);
	}
}

static void two_threads(struct job *j)
{
	for (int i = 0; i < 40; i++) {
		j->f.tid = 100;
		for (unsigned k = 0; k < 30; k++)
			job_kernel(j, k, 5 * USEC, 60 * USEC);
		j->f.tid = 101; /* backward; the first sleeps */
		for (unsigned k = 30; k < 60; k++)
			job_kernel(j, k, 5 * USEC, 60 * USEC);
		j->f.tid = 100;
		job_sync(j);
	}
}

static void two_threads_overhead(struct job *j)
{
	for (int i = 0; i < 60; i++) {
		j->f.tid = 100;
		for (unsigned k = 0; k < 30; k++) {
			job_between(j, 25 * USEC);
			job_kernel(j, k, 5 * USEC, 4 * USEC);
		}
		j->f.tid = 101;
		for (unsigned k = 30; k < 60; k++) {
			job_between(j, 25 * USEC);
			job_kernel(j, k, 5 * USEC, 4 * USEC);
		}
	}
}

static void polls(struct job *j)
{
	for (int i = 0; i < 60; i++) {
		int64_t until;

		for (unsigned k = 0; k < 20; k++)
			job_kernel(j, k, 5 * USEC, 150 * USEC);
		until = job_drained(j) + USEC;
		feed_poll(&j->f, j->now, until, F_QUERY, SP, 900, (until - j->now) / 2);
		j->now = until;
	}
}

/* A prefetching stream makes waits return at once although the GPU is busy. */
static void side_stream(struct job *j)
{
	for (int i = 0; i < 60; i++) {
		for (unsigned k = 0; k < 20; k++) {
			job_kernel(j, k, 5 * USEC, 150 * USEC);
			feed_call(&j->f, j->now, j->now + USEC, F_SYNC, SP);
			j->now += USEC;
		}
		job_sync(j);
	}
}

static void cold_start(struct job *j)
{
	for (int i = 0; i < 40; i++) {
		feed_call(&j->f, j->now, j->now + 20 * MSEC, F_LOAD, SP);
		j->now += 20 * MSEC;
		for (unsigned k = 0; k < 5; k++)
			job_kernel(j, k, 5 * USEC, 50 * USEC);
	}
}

static void recompiles(struct job *j)
{
	for (int i = 0; i < 100; i++) {
		for (unsigned k = 0; k < 20; k++)
			job_kernel(j, k, 5 * USEC, 100 * USEC);
		if (i > 50 && i % 5 == 0) {
			feed_call(&j->f, j->now, j->now + 3 * MSEC, F_LOAD, SP);
			j->now += 3 * MSEC;
		}
		job_sync(j);
	}
}

static void allocates(struct job *j)
{
	for (int i = 0; i < 300; i++) {
		feed_call(&j->f, j->now, j->now + 150 * USEC, F_ALLOC, SP);
		j->now += 150 * USEC;
		for (unsigned k = 0; k < 10; k++)
			job_kernel(j, k, 5 * USEC, 20 * USEC);
		job_sync(j);
	}
}

static void allocates_first(struct job *j)
{
	for (int i = 0; i < 40; i++) {
		feed_call(&j->f, j->now, j->now + 150 * USEC, F_ALLOC, SP);
		j->now += 150 * USEC;
	}
	train(j, 40, 10 * USEC, 60 * USEC, true);
}

static void unsteady(struct job *j)
{
	for (int i = 0; i < 200; i++) {
		for (unsigned k = 0; k < 10; k++)
			job_kernel(j, 1, 5 * USEC, i % 3 ? 100 * USEC : 160 * USEC);
		job_sync(j);
	}
}

/* The same times, but of two shapes: nothing varies. */
static void two_shapes(struct job *j)
{
	for (int i = 0; i < 200; i++) {
		for (unsigned k = 0; k < 10; k++)
			job_kernel(j, i % 3 ? 1 : 2, 5 * USEC, i % 3 ? 100 * USEC : 160 * USEC);
		job_sync(j);
	}
}

static void few_calls(struct job *j)
{
	for (int i = 0; i < 5; i++) {
		job_between(j, 50 * MSEC);
		job_kernel(j, 1, 5 * USEC, 100 * USEC);
	}
}

static void loses(struct job *j)
{
	train(j, 20, 20 * USEC, 3 * USEC, false);
	feed_loss(&j->f, RECORD_LOSS_RING_FULL, 1000);
}

/* Of one launch in twenty no work is on record: what looks idle need not be. */
static void loses_work(struct job *j)
{
	for (int i = 0; i < 2000; i++) {
		job_between(j, 20 * USEC);
		j->unseen = i % 20 == 7;
		job_kernel(j, (unsigned)i % 16, 5 * USEC, 3 * USEC);
	}
}

static void slow_launches(struct job *j)
{
	for (int i = 0; i < 1000; i++) {
		job_between(j, 30 * USEC);
		job_kernel(j, (unsigned)i % 16, i % 4 ? 30 * USEC : 90 * USEC, 5 * USEC);
	}
}

/* Validation in the middle: the GPU works a tenth of the time, for a third of the run. */
static void idles_meanwhile(struct job *j)
{
	train(j, 20, 5 * USEC, 60 * USEC, true);
	for (int i = 0; i < 40; i++) {
		job_between(j, 900 * USEC);
		job_kernel(j, 1, 5 * USEC, 100 * USEC);
		job_sync(j);
	}
	train(j, 20, 5 * USEC, 60 * USEC, true);
}

/* One launch in five takes long to reach a GPU that has nothing to do. */
static void some_late(struct job *j)
{
	for (int i = 0; i < 2000; i++) {
		job_between(j, 60 * USEC);
		j->latency = i % 5 ? 0 : 300 * USEC;
		job_kernel(j, (unsigned)i % 20, 5 * USEC, 10 * USEC);
		job_sync(j);
	}
}

/* Launches that come late, and take a little longer than others to reach the GPU. */
static void some_away(struct job *j)
{
	for (int i = 0; i < 2000; i++) {
		job_between(j, i % 5 ? 60 * USEC : 360 * USEC);
		j->latency = i % 5 ? 0 : 20 * USEC;
		job_kernel(j, (unsigned)i % 20, 5 * USEC, 10 * USEC);
		job_sync(j);
	}
}

/* Now and then a kernel was asked for in time and waits for 2 ms for something else. */
static void depends(struct job *j)
{
	for (int i = 0; i < 2400; i++) {
		j->latency = i % 600 == 20 ? 4 * MSEC : 0; /* 2 before it is free */
		job_kernel(j, (unsigned)i % 20, 5 * USEC, 100 * USEC);
		if (i % 40 == 39)
			job_sync(j);
	}
}

/* As an H200 pauses, in a job that queues 20 products before it waits. */
static void pauses(struct job *j)
{
	j->pause = 2800;
	for (int i = 0; i < 4000; i++) {
		job_kernel(j, 1, 5 * USEC, 13 * USEC);
		if (i % 20 == 19)
			job_sync(j);
	}
}

/* A CPU that takes 25 us for each launch, and kernels of so many. */
#define RATIO(us)                                                                                  \
	static void ratio_##us(struct job *j)                                                      \
	{                                                                                          \
		for (int i = 0; i < 4000; i++) {                                                   \
			job_between(j, 20 * USEC);                                                 \
			job_kernel(j, (unsigned)i % 20, 5 * USEC, (us) * USEC);            \
		}                                                                                  \
	}
RATIO(1) RATIO(4) RATIO(8) RATIO(12) RATIO(16) RATIO(20) RATIO(24) RATIO(30) RATIO(60)

#endif
