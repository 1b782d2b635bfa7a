/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Step markers: a probe with GBPF_COOKIE_STEP counts, by process, how often it fired, and
 * opens and closes the gate (switches.h) at the firings that the loader has chosen, so that
 * a window begins and ends with a step, however late the loader comes to know.
 */
#ifndef GBPF_STEPS_H
#define GBPF_STEPS_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

/*
 * A marker that is a function of the catalogue has its cookie and is recorded besides; one
 * that is not has API 0. These are the two classes; only the one that is chosen counts.
 */
enum gbpf_step_class { GBPF_STEP_FUNCTION = 0, GBPF_STEP_API = 1, GBPF_STEP_CLASSES = 2 };

#define GBPF_STEP_PROCESSES 4096
#define GBPF_STEP_KERNELS 16384

/* By process. */
struct gbpf_fired {
	__u64 count[GBPF_STEP_CLASSES];
};

/* A kernel that marks steps: launches of other ones do not fire. */
struct gbpf_step_kernel {
	__u64 handle;
	__u32 pid, pad;
};

/*
 * What is to happen when. Firings of a process are numbered from 0 in each class; numbers
 * below are of the leader's. The loader writes all up to close_to, and 0 into *_at disarms;
 * a program that acts on one has disarmed it.
 */
struct gbpf_steps {
	__u32 leader;	/* process whose firings count; 0: nobody's yet */
	__u32 class;	/* which of them */
	__u32 tell;	/* of each firing of anybody */
	__u32 kernels;	/* launches fire only of kernels in the map */
	__u32 per_step; /* firings a step, at least 1 */
	__u32 base;	/* a step begins at each firing that is this modulo per_step */
	__u64 wake_at;	/* the loader is told at the first firing from this on; plus one */
	__u64 open_at;	/* the gate opens at the first step from this firing on; plus one */
	__u64 open_for; /* and closes so many firings later */
	__u32 close_to; /* enum gbpf_gate_state */
	__u32 through; /* the gate is open around windows, too, and stays as it is */
	__u64 close_at; /* plus one; set when it opens */
	__u64 fired;	/* number of the last firing, plus one */
};

enum gbpf_mark_event {
	GBPF_MARK_FIRED = 1,
	GBPF_MARK_WAKE = 2,
	GBPF_MARK_OPEN = 3,  /* the window begins at ts */
	GBPF_MARK_CLOSE = 4, /* it ended, at ts */
};

struct gbpf_mark {
	__u64 ts; /* CLOCK_MONOTONIC, ns */
	__u64 number; /* of the firing */
	__u32 pid, tid;
	__u32 event, class;
};

#endif
