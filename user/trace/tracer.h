/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A live recording: targets found and followed, images probed, rings emptied
 * into a file. The order is new → start → step… → stop → free; each step may
 * fail, and free undoes whatever was done.
 */
#ifndef GBPF_TRACE_TRACER_H
#define GBPF_TRACE_TRACER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probe/images.h"
#include "probe/probes.h"
#include "probe/selection.h"
#include "trace/gpu_time.h"
#include "trace/recorder.h"
#include "trace/scheduled.h"

struct tracer;

struct tracer_options {
	const struct selection *selection;
	const uint32_t *pids; /* with all descendants, unless no_follow */
	size_t pids_count;
	const char *cgroup; /* or whoever runs below this cgroup */
	bool all;	    /* or everybody */
	bool no_follow;
	const char *command;	/* about to be started: its libraries are looked for */
	struct probes_options probes;
	bool allow_slow;
	bool default_selection; /* nobody chose: fewer will do where each probe is dear */
	const char *command_line; /* of gbpf, for the file */
	const struct gpu_time_options *gpu_time; /* NULL: not asked for */
	const struct schedule_options *schedule; /* NULL: all of the time is recorded */
	const struct recorder_options *recorder; /* NULL: no flight recorder; alone, if any */
	/* when something is worth telling while it happens; NULL: never */
	void (*tell)(void *ctx, const char *text);
	void *tell_ctx;
};

struct tracer_stats {
	uint64_t events, bytes_written, lost;
	uint64_t events_written; /* in the file for sure, whatever comes */
	size_t images_hooked, functions_hooked;
	double detach_s; /* how long tracer_free() is going to take, about */
	uint32_t targets;    /* processes recorded so far */
	bool targets_alive;  /* of PIDs or a command: some still run */
	bool cuda_seen;	     /* a target maps a CUDA library */
	int64_t begin;	     /* of the window, ns; 0 before */
	struct calibration cost;
	struct schedule_stats schedule;
	struct recorder_stats recorder;
	bool gpu_time_asked;
	struct gpu_time_stats gpu_time;
};

/* Loads the programs. why gets a sentence on failure, everywhere here. */
int tracer_new(struct tracer **out, const struct tracer_options *o, char *why, size_t size);
/*
 * Begins the file on fd, which becomes the tracer's (-1 with a recorder, which opens its
 * own); finds the targets and
 * attaches to every image known so far. Events come from here on.
 */
int tracer_start(struct tracer *t, int fd, char *why, size_t size);
/*
 * Waits until something is to do (at most max_ns), and does it: new mappings,
 * new processes, the rings. extra_fd (-1: none) ends the wait when readable.
 * Returns 0, or -errno of the file or the kernel.
 */
int tracer_step(struct tracer *t, int64_t max_ns, int extra_fd);
/*
 * Ends the recording: takes what is left and closes the file. Probes stay, idle,
 * until tracer_free(). The first error is returned.
 */
int tracer_stop(struct tracer *t);
void tracer_free(struct tracer *t); /* NULL is accepted */

/* With a recorder: a file of what is kept, soon. NULL is accepted. */
void tracer_write_now(struct tracer *t);

/* One more target, from now on, with its images. */
int tracer_add_target(struct tracer *t, uint32_t pid);

void tracer_stats(const struct tracer *t, struct tracer_stats *out);
const struct images *tracer_images(const struct tracer *t);
struct probes *tracer_probes(struct tracer *t);

#endif
