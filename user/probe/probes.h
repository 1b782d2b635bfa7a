/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The programs in the kernel and their links: which rung this kernel takes,
 * attaching to sites of a file, the switches both sides share.
 */
#ifndef GBPF_PROBE_PROBES_H
#define GBPF_PROBE_PROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/switches.h"

enum rung {
	RUNG_AUTO = 0, /* the first that works, in this order: */
	RUNG_SESSION,  /* one link, one program for both ends of a call (6.13) */
	RUNG_MULTI,    /* two links an image (6.6) */
	RUNG_SINGLE,   /* a perf event a site and end (5.15) */
};

const char *rung_name(enum rung rung); /* "uprobe.session", "uprobe.multi", "perf_event" */

struct probes;

struct probes_options {
	enum rung rung;	       /* RUNG_AUTO, or exactly this one */
	uint64_t buffer_bytes; /* of all rings together; 0: by the number of CPUs */
	bool entry_only;       /* no return probes at all */
	bool counting;	       /* count in the kernel (counts.h) instead of a record a call */
};

/* What was tried while looking for a rung: 0 worked, -errno, 1 not tried. */
struct probes_trial {
	enum rung rung;
	int load, attach;
};

/*
 * Loads the programs for the best rung that attaches. trials (may be NULL)
 * tells of all rungs up to that one, for doctor. Errors: -EPERM (rights),
 * -EOPNOTSUPP (no rung works), -ENOENT (no BTF), others of bpf(2).
 */
int probes_new(struct probes **out, const struct probes_options *o, struct probes_trial trials[3]);
void probes_free(struct probes *p); /* NULL is accepted; closes every link */

enum rung probes_rung(const struct probes *p);
bool probes_returns(const struct probes *p); /* false: entry only */
void probes_entry_only(struct probes *p);    /* from here on */
struct gbpf_switches *probes_switches(struct probes *p);
const volatile struct gbpf_counters *probes_counters(const struct probes *p);
void probes_want(struct probes *p, uint32_t pid, bool want);
bool probes_wanted(const struct probes *p, uint32_t pid);
bool probes_any_wanted(const struct probes *p);
/* Where handles of this image keep the pointer to their name; GBPF_NO_NAMES: nowhere. */
void probes_name_offset(struct probes *p, uint16_t image, uint8_t offset);
/* Every handle of a process is sent again. */
void probes_forget_names(struct probes *p, uint32_t pid);
void probes_forget_all_names(struct probes *p);

/* Rings, to be read by collect. */
size_t probes_ring_count(const struct probes *p);
int probes_ring_fd(const struct probes *p, size_t i);
uint64_t probes_ring_bytes(const struct probes *p); /* of one */
int probes_polls_fd(const struct probes *p);	    /* map of struct gbpf_poll_state by u64 */

/* fork, exec and exit of wanted processes, from here on. */
int probes_attach_tasks(struct probes *p);

struct probe_site {
	uint64_t offset; /* in the file */
	uint64_t cookie;
	bool entry_only;
};

struct probe_link;

/*
 * Attaches to count sites of the file behind fd: one link (or two) on the
 * upper rungs, a perf event a site and end on the last. Nothing stays if it
 * fails (-EINVAL: no sites, or one outside the file). Takes about 6 ms on the
 * upper rungs, not stopping anybody.
 */
int probes_attach(struct probes *p, int fd, const struct probe_site *sites, size_t count,
		  struct probe_link **out);
void probe_link_free(struct probe_link *l); /* NULL is accepted */

/* ---- calibrate.c: what a hit costs here and now ---- */

struct calibration {
	int64_t begin_ns;  /* entry only, a call with one argument */
	int64_t pair_ns;   /* entry and return of the same */
	int64_t launch_ns; /* entry and return of a launch with all its arguments */
};

/*
 * About 130 ms on a function of our own, most of it the kernel's detaching;
 * leaves records of image 0 in the rings. between (may be NULL) is called every
 * 40 ms or so, to look after targets that are traced already; a negative return
 * ends it.
 */
int calibrate(struct probes *p, struct calibration *out, int (*between)(void *ctx), void *ctx);
/*
 * Programs that count: ns that a launch costs with these flags in its cookie, in calls that
 * take turns with those of a function like it that is not probed. Takes about 80 ms.
 */
int calibrate_launches(struct probes *p, uint64_t flags, double *ns);
/*
 * The same for the entry of a function whose first instruction the kernel must
 * single-step: why such functions are left alone. -EOPNOTSUPP but on x86-64.
 */
int calibrate_stepped(struct probes *p, int64_t *begin_ns);

/*
 * Do return probes kill a process with a seccomp filter here (x86 kernels from
 * 6.11 until the fix)? Tried on a child of ours. 0: no; 1: yes; -errno: could
 * not be tried.
 */
int calibrate_seccomp(struct probes *p);

#endif
