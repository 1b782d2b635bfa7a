/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The GPU's own time, from a sidecar in each process: asked for in tracer_options. What
 * goes wrong with it ends in a sentence and a record of the file, and never the recording.
 */
#ifndef GBPF_TRACE_GPU_TIME_H
#define GBPF_TRACE_GPU_TIME_H

#include <stddef.h>
#include <stdint.h>

struct gpu_time_options {
	const void *library; /* libgbpf-cupti.so; outlives the tracer */
	size_t library_size;
	const char *cupti; /* libcupti to use, as the targets name it; NULL: their choice */
	bool calls;	   /* CUPTI records some calls, too */
	int64_t window;	   /* ns that each process is recorded for, at the most */
	int listener;	   /* where processes come by themselves; -1: the sidecar is injected */
	const char *why_not; /* it cannot be had at all: why; else NULL */
};

struct gpu_time_stats {
	uint32_t processes; /* that were recorded */
	uint32_t refused;   /* that were not, or not to the end */
	uint64_t works, calls, dropped, bad;
	uint64_t running; /* works that still ran when their windows ended */
	int64_t stopped_ns;  /* the longest that one was stopped */
	int64_t clock_error; /* the worst bound of a time, ns */
};

#endif
