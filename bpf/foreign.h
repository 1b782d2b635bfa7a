/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The wire between foreign.bpf.c and user/probe/foreign.c: who else begins to use CUPTI. */
#ifndef GBPF_FOREIGN_H
#define GBPF_FOREIGN_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#define GBPF_FOREIGN_PROCESSES 4096
#define GBPF_FOREIGN_RANGES 6

/* Code of a process that may call CUPTI: the sidecar's, and CUPTI's own. */
struct gbpf_foreign_process {
	struct {
		__u64 begin, end; /* virtual addresses */
	} ranges[GBPF_FOREIGN_RANGES];
};

struct gbpf_foreign_call {
	__u64 ts; /* CLOCK_MONOTONIC, ns */
	__u32 pid, tid;
	__u64 function; /* the probe's cookie */
};

#endif
