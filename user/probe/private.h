/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by probes.c, link.c and calibrate.c; nobody else. */
#ifndef GBPF_PROBE_PRIVATE_H
#define GBPF_PROBE_PRIVATE_H

#include "probe/probes.h"

struct gbpf_bpf;

struct probes {
	struct gbpf_bpf *skel;
	enum rung rung;
	int *rings;
	size_t rings_count;
	uint64_t ring_bytes;
	int task_links[3];
	struct probe_link *trial; /* on calibration's own function, since the rung was found */
	uint32_t perf_type;   /* of the uprobe PMU; RUNG_SINGLE only */
	uint32_t perf_return; /* config bit for return probes */
};

/* Programs of a rung: the one for entries (sessions: for both ends) and for returns, or -1. */
int probes_entry_fd(const struct probes *p);
int probes_return_fd(const struct probes *p);

/*
 * Attaches another program than those of the rung (but loaded for it) to the entry
 * of one function of the file behind fd.
 */
int probes_attach_entry(struct probes *p, int prog, int fd, const struct probe_site *site,
			struct probe_link **out);

/* No probe is left on calibration's function. */
void probes_trial_end(struct probes *p);

/* Our own function that calibration probes: its file and offset. */
int calibration_site(int *fd, uint64_t *offset);

/* Reads the uprobe PMU's type and return bit from sysfs. */
int perf_uprobe_pmu(uint32_t *type, uint32_t *return_bit);

#endif
