/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions whose entry marks a step (bpf/steps.h): found in any file, probed at their
 * entries only, for all processes that are wanted.
 */
#ifndef GBPF_PROBE_MARKERS_H
#define GBPF_PROBE_MARKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/steps.h"
#include "probe/probes.h"

struct markers;

struct marker_name {
	const char *library; /* base name of the file up to its first ".so" or end; NULL: any */
	const char *symbol;  /* exported */
	bool prefix;	     /* or whatever begins so */
};

/* p must outlive it; the names are copied by nobody. 0 or -errno. */
int markers_new(struct markers **out, struct probes *p, const struct marker_name *names,
		size_t count);
void markers_free(struct markers *m); /* NULL is accepted; detaches */
/* May this file have one, by its path? */
bool markers_wants(const struct markers *m, const char *path);
bool markers_known(const struct markers *m, uint64_t dev, uint64_t ino);
/*
 * Looks into the file behind fd (the caller's), once. How many functions were probed in it
 * now; 0 as well if it cannot be read, is none of ours, or is known; or -ENOMEM.
 */
int markers_file(struct markers *m, int fd);
size_t markers_found(const struct markers *m); /* functions that are probed */

int markers_fd(const struct markers *m); /* readable when a program woke us */
/* Hands over what the markers said, until each returns other than 0, and returns that. */
int markers_consume(struct markers *m, int (*each)(void *ctx, const struct gbpf_mark *mark),
		    void *ctx);
/* Launches of this handle mark a step of this process, from now on, or not any more. */
int markers_kernel(struct markers *m, uint32_t pid, uint64_t handle, bool marks);

/* What both sides share, for the loader to set (bpf/steps.h). */
struct gbpf_steps *probes_steps(struct probes *p);

#endif
