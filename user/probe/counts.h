/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What programs that count (probes_options.counting) share with the monitor: the
 * tables of bpf/monitor.h, mapped, so that reading them costs nobody anything.
 */
#ifndef GBPF_PROBE_COUNTS_H
#define GBPF_PROBE_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/monitor.h"
#include "probe/probes.h"

struct counts {
	/* keys[i] is 0 where a slot is free; programs write to all of them at any time */
	struct gbpf_cell *cells;
	struct gbpf_thread *threads;
	struct gbpf_proc *procs;
	struct gbpf_kernel *kernels;
	__u64 *cells_keys, *threads_keys, *procs_keys, *kernels_keys;
	struct gbpf_monitor_switches *mon;
	const volatile struct gbpf_monitor_counters *counters;
	uint8_t *api_class, *syscall_wait;
	uint32_t *image_state; /* enum gbpf_image_state */
	int live_fd, notices_fd; /* maps, the programs' own */
	uint64_t bytes;		 /* of kernel memory, all maps together */
	int switch_link;	 /* of the scheduler's notices, -1: not attached */
};

/* Maps the tables of p, which must outlive c. -EINVAL: p does not count. */
int counts_open(struct counts *c, struct probes *p);
void counts_close(struct counts *c); /* may be called twice, and on a zeroed one */

/* Notices of the scheduler, from here on: gbpf_thread.wait. */
int counts_attach_switch(struct counts *c, struct probes *p);

/* Gives a slot back; nobody may be counting into it any more. */
void counts_free_cell(struct counts *c, size_t slot);
void counts_free_thread(struct counts *c, size_t slot);
void counts_free_kernel(struct counts *c, size_t slot);
void counts_free_proc(struct counts *c, size_t slot);
/* Forgets the allocations of a process that has ended. */
void counts_forget_live(struct counts *c, uint32_t pid);

#endif
