/* SPDX-License-Identifier: BSD-2-Clause */
/* Who a process is on a cluster, as its cgroup and its environment say. */
#ifndef GBPF_TARGET_LABELS_H
#define GBPF_TARGET_LABELS_H

#include <stdint.h>

/*
 * "" where unknown. The process chose most of it: raw bytes other than NUL, cut
 * to what fits, to be escaped by whoever shows them.
 */
struct labels {
	char container[128]; /* short id, as process_info.container */
	char pod[128];	     /* its name, or where nobody says it its UID */
	char namespace[128];
	char slurm_job[64]; /* decimal digits */
	char rank[32];	    /* decimal digits of the global rank, or "local N" */
};

/*
 * The container, the pod's UID and the Slurm job come from /proc/PID/cgroup; what
 * that does not say comes from the environment the process was started with, of which
 * the first 256 KiB are read and only the names listed in parse_labels.c are kept.
 * Later changes by setenv() do not show there; after an exec() read again.
 *
 * 0 (also where the environment may not be read, which takes CAP_SYS_PTRACE for other
 * users' processes), -ESRCH, -EACCES (hidden by hidepid). *out is filled always.
 */
int labels_read(uint32_t pid, struct labels *out);

#endif
