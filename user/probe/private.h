/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by probes.c, link.c and calibrate.c; nobody else. */
#ifndef GBPF_PROBE_PRIVATE_H
#define GBPF_PROBE_PRIVATE_H

#include "probe/probes.h"

struct bpf_object;
struct gbpf_bpf;
struct gbpf_monitor;

/* What was loaded for a rung, whichever of the two objects it is out of (programs.c). */
struct programs {
	struct gbpf_bpf *recorder;    /* one of these is NULL */
	struct gbpf_monitor *counter;
	int entry, returns; /* -1: none; sessions see both ends by entry */
	int tasks[3];	    /* fork, exec, exit */
	struct gbpf_switches *sw;
	__u64 *filter;
	/* the recorder's alone: */
	const volatile struct gbpf_counters *counters;
	uint8_t *name_offset;
	__u32 *name_generation;
	int rings, polls, bss; /* maps */
	struct gbpf_steps *steps;
	int marks, step_kernels; /* maps */
};

/* 0 or -errno; unload() may be called after either, and twice. */
int programs_load(struct programs *p, bool counting, enum rung rung, uint32_t rings);
void programs_unload(struct programs *p);

struct probes {
	struct programs programs;
	bool counting;
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
/* The same of count functions, in one link where the rung has such. */
int probes_attach_entries(struct probes *p, int prog, int fd, const struct probe_site *sites,
			  size_t count, struct probe_link **out);

/* No probe is left on calibration's function. */
void probes_trial_end(struct probes *p);

/* Our own function that calibration probes: its file and offset. */
int calibration_site(int *fd, uint64_t *offset);

/* Reads the uprobe PMU's type and return bit from sysfs. */
int perf_uprobe_pmu(uint32_t *type, uint32_t *return_bit);

#endif
