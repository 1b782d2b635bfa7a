/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who else could be using CUPTI in a process, as seen from outside: two at a time steal each
 * other's records, and can crash the process.
 */
#ifndef GBPF_SIDECAR_NEIGHBOUR_H
#define GBPF_SIDECAR_NEIGHBOUR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Is this the file name of a profiler that has come into a process (nvprof, Nsight)? */
bool neighbour_is_tool(const char *path);
/* Is it a libcupti? */
bool neighbour_is_cupti(const char *path);
/* A copy of the sidecar that serves loaders? (Later ones hand them on to it.) */
bool neighbour_is_ours(const char *path);
/*
 * 0: none is seen. -EBUSY: why is a sentence. -ESRCH, -EACCES: it cannot be looked into,
 * and why says so. One that uses CUPTI through its API only is seen by the sidecar itself.
 */
int neighbour_check(uint32_t pid, char *why, size_t size);

#endif
