/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of gpu_time.c, shared with gpu_time_watch.c. */
#ifndef GBPF_TRACE_GPU_TIME_PRIVATE_H
#define GBPF_TRACE_GPU_TIME_PRIVATE_H

#include "trace/injector.h"
#include "trace/private.h"

#define PROCESSES_MOST 4096 /* at a time, with a sidecar or about to get one */

struct foreign;

struct gpu_process {
	struct tracer *t;
	uint32_t pid; /* 0: no one process */
	int64_t seen; /* calling CUDA or connecting first, ns */
	struct sidecar *sidecar; /* NULL: not there, or not yet */
	int64_t stopped_ns;
	uint32_t visits; /* that its number has had before */
	uint32_t turn;	 /* of struct gpu_time, the last that it was started in */
	bool watched;	 /* for others who begin to use CUPTI */
	bool asked; /* the injector was */
	bool began, told, over; /* over: its sidecar was there, and is no more */
	bool gone; /* the number may be another's by now */
};

struct gpu_time {
	struct gpu_time_options options;
	struct gpu_process whole; /* for what concerns no one process */
	struct gpu_process *items[PROCESSES_MOST];
	size_t count;
	bool any; /* ever */
	uint32_t turn; /* the first is 1; 0: none yet */
	bool resting;  /* until the next one */
	uint32_t missed; /* the last one that was looked at so */
	struct injector *injector; /* NULL: they come by themselves */
	struct foreign *foreign;   /* NULL: nobody was to be watched yet */
	bool foreign_waited;	   /* for, with all the rest */
	bool stopping;
	struct gpu_time_stats stats; /* of sidecars that are over */
	bool too_many;		     /* processes: told */
};

/* Says on stderr what is worth a word. */
void gpu_time_tell(struct gpu_process *p, const struct record_sidecar *r);
/* Writes a RECORD_SIDECAR of a process now, and tells it where it is worth a word. */
int gpu_time_event(struct gpu_process *p, uint32_t event, uint64_t count, const char *text);

int gpu_time_descriptor(struct tracer *t, int fd); /* a step is to follow when it is readable */
/* gpu_time_process.c */
#define GPU_TIME_ABSENT                                                                            \
	"it uses CUDA and has not loaded the sidecar: it was forked by one that had, its "         \
	"environment lacks CUDA_INJECTION64_PATH, or the library cannot be loaded there"

/* NULL: there is no room, or no memory. */
struct gpu_process *gpu_time_add(struct tracer *t, uint32_t pid, int64_t seen);
int gpu_time_too_many(struct gpu_time *g); /* tells it, once */
/* Its sidecar is over: what is left of it is its numbers. */
void gpu_time_retire(struct gpu_process *p);
struct gpu_process *gpu_time_find(const struct gpu_time *g, uint32_t pid); /* or NULL */

/* gpu_time_watch.c */
/*
 * Watches for others who begin to use CUPTI in a process whose sidecar is there. 0; 1: it
 * cannot be done, and why is a sentence.
 */
int watch_others(struct gpu_process *p, char *why, size_t size);
int watch_others_step(struct tracer *t); /* sidecars withdraw where somebody did; 0 or -errno */
void watch_others_free(struct gpu_time *g);

#endif
