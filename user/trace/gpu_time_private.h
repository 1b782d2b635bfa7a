/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of gpu_time.c, shared with gpu_time_watch.c. */
#ifndef GBPF_TRACE_GPU_TIME_PRIVATE_H
#define GBPF_TRACE_GPU_TIME_PRIVATE_H

#include "trace/injector.h"
#include "trace/private.h"

struct gpu_process {
	struct tracer *t;
	uint32_t pid; /* 0: no one process */
	int64_t seen; /* calling CUDA or connecting first, ns */
	struct sidecar *sidecar; /* NULL: not there, or not yet */
	int64_t stopped_ns;
	bool began, told, withdrew;
	bool gone; /* the number may be another's by now */
};

struct gpu_time {
	struct gpu_time_options options;
	struct gpu_process whole; /* for what concerns no one process */
	struct gpu_process **items;
	size_t count;
	struct injector *injector; /* NULL: they come by themselves */
	bool stopping;
	struct gpu_time_stats stats;
};

/* Writes a RECORD_SIDECAR of a process now, and tells it where it is worth a word. */
int gpu_time_event(struct gpu_process *p, uint32_t event, uint64_t count, const char *text);

#endif
