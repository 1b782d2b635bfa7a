/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Jobs whose verdict is known because they are built that way: a thread that dispatches,
 * waits, copies and is away by a script, and streams that run what they are given. The
 * same script makes a session with GPU time or without. Times in ns.
 */
#ifndef GBPF_TESTS_LABELLED_JOBS_H
#define GBPF_TESTS_LABELLED_JOBS_H

#include <stdio.h>

#include "gpu_feed.h"

#define USEC INT64_C(1000)
#define MSEC INT64_C(1000000)
#define LANES 4	      /* streams */
#define QUEUE 1021    /* launches outstanding on a stream; the next one waits */
#define LATENCY 4000  /* from a launch's entry to the earliest start */
#define KERNELS 64

#define SMALL_ALLREDUCE                                                                            \
	"_Z36ncclDevKernel_AllReduce_Sum_f32_RING24ncclDevKernelArgsStorageILm4096EE"

struct lane {
	int64_t free_at;
	int64_t ends[QUEUE]; /* a ring of what is outstanding */
	size_t count;
};

struct job {
	struct feed f;
	bool gpu; /* with the sidecar */
	int64_t now, begin;
	struct lane lane[LANES];
	uint32_t correlation, pid;
	bool unseen;	 /* the sidecar does not tell of what is given now */
	int64_t pause;	 /* of the GPU between works of a stream */
	int64_t latency; /* more than LATENCY from a launch's entry to the earliest start */
	bool shape[KERNELS];
	int64_t busy; /* ns in which any lane worked; kept by job_work() */
	int64_t busy_until;
};

static inline void job_start(struct job *j, bool gpu)
{
	*j = (struct job){ .gpu = gpu, .now = 10 * MSEC, .begin = 10 * MSEC, .pid = 100 };
	feed_start(&j->f);
	feed_process(&j->f, 1, RECORD_PROCESS_SEEN, 100, 1, "job");
	feed_info(&j->f, "probe_pair_ns", "0");
	if (gpu)
		feed_device(&j->f, 0, "GPU-1");
}

/* Work that is ready at `ready` runs when its lane is free; its end. */
static inline int64_t job_runs(struct job *j, unsigned lane, int64_t ready, int64_t ns,
			       struct record_work w)
{
	struct lane *l = &j->lane[lane];
	int64_t next = l->free_at + (l->count ? j->pause : 0);
	int64_t begin = ready > next ? ready : next, from;

	l->free_at = begin + ns;
	l->ends[l->count++ % QUEUE] = l->free_at;
	from = begin > j->busy_until ? begin : j->busy_until;
	if (l->free_at > from) {
		j->busy += l->free_at - from;
		j->busy_until = l->free_at;
	}
	w.begin = begin;
	w.duration = (uint64_t)ns;
	w.stream = 7 + lane;
	w.context = 1;
	w.correlation = j->correlation;
	w.peer = UINT32_MAX;
	if (j->gpu && !j->unseen)
		feed_work(&j->f, &w);
	return l->free_at;
}

/* How long a launch on this lane has to wait for room. */
static inline int64_t job_room(const struct job *j, unsigned lane)
{
	const struct lane *l = &j->lane[lane];
	int64_t oldest = l->count < QUEUE ? 0 : l->ends[l->count % QUEUE];

	return oldest > j->now ? oldest - j->now : 0;
}

static inline void job_shape(struct job *j, unsigned kernel, const char *name)
{
	if (j->shape[kernel])
		return;
	j->shape[kernel] = true;
	feed_name(&j->f, j->now - 1, 0x1000 + kernel * 16, GBPF_NAME_LAYOUT, name);
	if (j->gpu)
		feed_shape(&j->f, kernel, name, kernel + 1, 128);
}

static inline void job_kernel_named(struct job *j, unsigned lane, unsigned kernel,
				    const char *name, int64_t dispatch, int64_t ns)
{
	int64_t end = j->now + dispatch + job_room(j, lane);

	job_shape(j, kernel, name);
	j->correlation++;
	if (j->gpu) {
		feed_launched(&j->f, j->now, end, 0x1000 + kernel * 16, 0x70 + lane, kernel + 1,
			      128, j->correlation);
	} else {
		feed_launch(&j->f, j->now, end, F_LAUNCH, SP, 0x1000 + kernel * 16, kernel + 1,
			    128);
	}
	job_runs(j, lane, end - dispatch + LATENCY + j->latency, ns,
		 (struct record_work){ .kind = RECORD_WORK_KERNEL, .shape = kernel });
	j->now = end;
}

static inline void job_kernel(struct job *j, unsigned kernel, int64_t dispatch, int64_t ns)
{
	char name[32];

	snprintf(name, sizeof(name), "_Z8kernel%02uv", kernel);
	job_kernel_named(j, 0, kernel, name, dispatch, ns);
}

/* A call with arguments, which CUPTI sees only with the sidecar. */
static inline void job_called(struct job *j, int64_t end, uint16_t api, uint64_t object,
			      uint64_t bytes)
{
	struct event e = { .args = EVENT_ARGS_CALL,
			   .call = { .object = object, .stream = 0x70, .bytes = bytes } };

	if (j->gpu) {
		feed_called(&j->f, j->now, end, api, object, 0x70, bytes, j->correlation);
	} else {
		feed_begin_with(&j->f, j->now, api, SP, &e);
		feed_end(&j->f, end, api, SP, 0);
	}
}

static inline void job_between(struct job *j, int64_t ns)
{
	j->now += ns;
}

static inline int64_t job_drained(const struct job *j)
{
	int64_t at = 0;

	for (unsigned i = 0; i < LANES; i++)
		at = j->lane[i].free_at > at ? j->lane[i].free_at : at;
	return at;
}

static inline void job_sync(struct job *j)
{
	int64_t until = job_drained(j), end = until > j->now ? until + 2 * USEC : j->now + USEC;

	feed_call(&j->f, j->now, end, F_SYNC, SP);
	j->now = end;
}

static inline void job_graph(struct job *j, unsigned nodes, int64_t dispatch, int64_t ns)
{
	int64_t end = j->now + dispatch, ready = j->now + LATENCY;

	j->correlation++;
	job_shape(j, 1, "_Z8kernel01v");
	job_called(j, end, F_GRAPH, 0x9000, 0);
	for (unsigned i = 0; i < nodes; i++)
		ready = job_runs(j, 0, ready, ns,
				 (struct record_work){ .kind = RECORD_WORK_KERNEL, .shape = 1,
						       .graph = 3, .graph_node = 10 + i }) + USEC;
	j->now = end;
}

/* memory: where the host's side lies; a pageable one makes the call wait. */
static inline void job_copy(struct job *j, uint16_t api, uint64_t bytes, int64_t ns,
			    uint32_t memory)
{
	bool waits = api == F_COPY || memory == RECORD_MEMORY_PAGEABLE;
	bool in = api == F_COPY;
	int64_t done, end;

	j->correlation++;
	done = job_runs(j, 0, j->now + LATENCY, ns,
			(struct record_work){ .kind = RECORD_WORK_COPY, .bytes = bytes,
					      .direction = in ? RECORD_COPY_HTOD
							      : RECORD_COPY_DTOH,
					      .source = in ? memory : RECORD_MEMORY_DEVICE,
					      .target = in ? RECORD_MEMORY_DEVICE : memory });
	end = waits ? done + 2 * USEC : j->now + 3 * USEC;
	job_called(j, end, api, 0xd000, bytes);
	j->now = end;
}

/* Ends the recording where the GPU has ended, and loads it. */
static inline const struct session *job_finish(struct job *j)
{
	job_sync(j);
	feed_window(&j->f, j->begin, j->now);
	if (j->gpu) {
		j->f.pid = j->pid;
		feed_cover(&j->f, j->begin, j->now);
	}
	return feed_finish(&j->f);
}

static inline double job_busy(const struct job *j)
{
	return (double)j->busy / (double)(j->now - j->begin);
}

#endif
