/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The whole machine watched all the time, inside a budget: CUDA processes found
 * and followed, calls counted in the kernel, what is dear probed in windows only.
 * The order is new → start → step… → free; free undoes whatever was done.
 */
#ifndef GBPF_MONITOR_MONITOR_H
#define GBPF_MONITOR_MONITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "monitor/snapshot.h"
#include "probe/probes.h"

struct monitor;

struct monitor_options {
	const uint32_t *pids; /* with all descendants; NULL: every process */
	size_t pids_count;
	double max_overhead; /* share of a thread's time, 0..1 */
	int64_t interval_ns;
	struct probes_options probes; /* counting is set by monitor_new() */
	bool apis;	/* fill quantiles of each API, too */
	bool ever;	/* fill the histograms of all that was ever seen, too */
	bool detail;	/* and what only people look at: recent histograms of each API, kernels */
	void (*tell)(void *ctx, const char *text); /* what is worth saying meanwhile; NULL: never */
	void *tell_ctx;
};

/* Loads the programs and measures what a hit costs. why gets a sentence on failure. */
int monitor_new(struct monitor **out, const struct monitor_options *o, char *why, size_t size);
/* Finds who uses CUDA and attaches; the first interval begins. */
int monitor_start(struct monitor *m, char *why, size_t size);
/*
 * Does what is to be done, waiting for it max_ns at the most, and never longer than a
 * fifth of a second. 1: an interval has ended, see monitor_snapshot(). 0: not yet.
 * -errno: it cannot go on.
 */
int monitor_step(struct monitor *m, int64_t max_ns);
/* Ends the interval before its time, as when the last target has ended: 1, or -errno. */
int monitor_finish(struct monitor *m);
/* Of the interval that ended last; valid until the next step. */
const struct snapshot *monitor_snapshot(const struct monitor *m);
/* One of the processes that were asked for lives still; true where all are watched. */
bool monitor_targets_alive(const struct monitor *m);
enum rung monitor_rung(const struct monitor *m);
double monitor_detach_s(const struct monitor *m); /* how long monitor_free() takes, about */
/* Lets go of the GPU's driver so that it can be replaced; it is looked for again later. */
void monitor_release_gpus(struct monitor *m);
void monitor_free(struct monitor *m); /* NULL is accepted */

#endif
