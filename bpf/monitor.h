/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared memory of the monitor and its programs: tables that the programs count
 * into and the monitor reads by mapping them, and what it tells them.
 *
 * A table is two arrays: keys, and what belongs to them. A key lives in one of
 * the GBPF_WAYS slots its hash points to, is claimed by compare-and-swap, and is
 * given back (zeroed, after its contents) by the monitor alone.
 */
#ifndef GBPF_MONITOR_H
#define GBPF_MONITOR_H

#include "buckets.h"
#include "gbpf.h"

#define GBPF_WAYS 8
#define GBPF_CELLS 16384   /* (process, API) */
#define GBPF_THREADS 16384 /* that call CUDA */
#define GBPF_PROCS 8192
#define GBPF_KERNELS 16384 /* (process, handle) */
#define GBPF_LIVE 65536	   /* allocations */
#define GBPF_NESTING 4	   /* calls within calls of one thread that are told apart */
#define GBPF_SYSCALLS 512
#define GBPF_SIBLINGS 4
#define GBPF_SLOW_NS 50000 /* a launch that takes longer waited for the GPU, probably */

/*
 * Of launches in windows one in so many is seen at its return, too, and stands for as many;
 * which, does not depend on what the job does. That costs less than seeing all of them,
 * and by how much the next launch is later shows what a return costs in this very thread.
 */
#define GBPF_SPARSE 4
/*
 * Launches so soon after a window opened take longer than the job's own: what attaching left
 * cold is in them. How long they take is left out of the durations' distribution.
 */
#define GBPF_EARLY_NS 200000
#define GBPF_AWAY_NS 1000000 /* outside of calls for longer, a thread is away */
#define GBPF_GAP_MOST_NS 16384 /* between two launches; what is longer counts as this */

#define GBPF_CELL_KEY(pid, api) ((__u64)(pid) << 12 | (api))
#define GBPF_THREAD_KEY(pid, tid) ((__u64)(pid) << 32 | (tid))

/* Of the two cookie bits that gbpf.h leaves: */
#define GBPF_COOKIE_PARITY (1ULL << 62) /* which of two links of an image counts */
#define GBPF_COOKIE_HOT (1ULL << 63)	/* attached in windows only */

enum gbpf_image_state {
	GBPF_IMAGE_PARITY = 1, /* of the link, of those always attached, that counts */
	GBPF_IMAGE_OPEN = 2,   /* its window is open, */
	GBPF_IMAGE_SPARSE = 4, /* and of its launches one in GBPF_SPARSE is timed */
	GBPF_IMAGE_WINDOW = 8, /* from this bit on: the number of the window, so that a call
				* whose return a closed one missed is known for one */
};

enum gbpf_class { /* what an API is to the monitor; by API id */
	GBPF_CLASS_OTHER = 0,
	GBPF_CLASS_LAUNCH = 1,
	GBPF_CLASS_SYNC = 2,
	GBPF_CLASS_COPY = 3,
	GBPF_CLASS_ALLOC = 4,
	GBPF_CLASS_FREE = 5,
	GBPF_CLASS_MODULE = 6,
	GBPF_CLASS_QUERY = 7,
	GBPF_CLASSES = 8,
	GBPF_CLASS_WAITS = 0x80, /* flag: the caller waits for the GPU */
};

/* Like enum wait_kind of user/monitor/snapshot.h, but RUNNING. */
enum gbpf_wait {
	GBPF_WAIT_RUNNABLE = 1,
	GBPF_WAIT_LOCK = 2,
	GBPF_WAIT_PIPE = 3,
	GBPF_WAIT_DISK = 4,
	GBPF_WAIT_SLEEP = 5,
	GBPF_WAIT_OTHER = 6,
	GBPF_WAITS = 7,
};

enum gbpf_in { /* where a thread was when it left its CPU */
	GBPF_IN_NONE = 0,
	GBPF_IN_WAIT = 1,     /* in a call that waits for the GPU */
	GBPF_IN_DISPATCH = 2, /* in another call */
	GBPF_INS = 3,
};

struct gbpf_cell {
	__u64 calls; /* begun */
	__u64 errors, bytes, sum_ns, max_ns, slow;
	__u32 bucket[GBPF_BUCKETS]; /* calls that returned; wrap around */
};

struct gbpf_open {
	__u64 ts;
	__u64 pointer; /* ALLOC: where the call stores it; FREE: what is freed */
	__u64 bytes;
	__u32 sp, cell, kernel;
	__u16 api;
	__u8 class, hot; /* hot: 1, 2 if it stands for GBPF_SPARSE calls, 4 if it is early */
	__u32 image, window; /* whose, if it is hot */
};

/* From launches to the next one, with nothing between that is known of. */
struct gbpf_gap {
	__u64 count, below; /* below: those that are shorter than GBPF_GAP_MOST_NS */
	__u64 sum, squares; /* ns, ns^2 */
};

struct gbpf_thread {
	__u32 pid, tid;
	__u64 spent[2];	    /* ns that probes took: of what is always there, of windows */
	__u64 period_spent; /* of the period below */
	__u32 period, tripped;
	__u64 time[2][2];   /* ns in outermost calls that returned: [windows][waits] */
	__u64 calls[2];	    /* begun: of what is always there, of windows */
	__u64 launches;
	__u64 last;	    /* when it last began a call, or returned from an outermost one */
	__u64 away;	    /* ns outside of calls that were counted, GBPF_AWAY_NS and more each */
	__u32 depth, ended;
	struct gbpf_open open[GBPF_NESTING];
	__u64 off_since;    /* not on a CPU since; 0: on one, or not known */
	__u32 off_wait, off_in; /* enum gbpf_wait, enum gbpf_in */
	__u64 run_delay;    /* as the scheduler counts it, when it last left a CPU */
	__u64 wait[GBPF_INS][GBPF_WAITS]; /* ns: [enum gbpf_in][gbpf_wait] */
	__u64 asleep;	    /* of [GBPF_IN_NONE], but RUNNABLE: GBPF_AWAY_NS and more each */
	__u64 switches;
	__u64 scratch[6];   /* of copies described by a structure */
	__u64 gap_at;	    /* when the launch began that a gap is measured from; 0: none is */
	__u32 timed, pad;   /* that launch, GBPF_SPARSE of which one is, was; 2: and is early */
	struct gbpf_gap gap[2]; /* after those that were not timed, and those that were */
};

struct gbpf_sibling {
	__u32 tid, pad;
	__u64 ns;
};

struct gbpf_proc {
	__u32 pid, lock_tid;
	__u64 lock_since; /* since when lock_tid, which calls CUDA, waits for a lock; 0: not */
	__u64 lock_ns;	  /* all of those waits that ended */
	__s64 live, live_bytes;
	__u64 cold, cold_ns;
	struct gbpf_sibling siblings[GBPF_SIBLINGS]; /* who ran meanwhile */
};

struct gbpf_kernel {
	__u64 handle;
	__u32 pid, pad;
	__u64 launches, sum_ns;
};

struct gbpf_monitor_switches {
	__u32 period;	  /* of the budget */
	__u32 pad;
	__u64 allowance;  /* ns a thread may spend on probes in a period before it trips; 0: any */
	__u64 opened;	  /* when a window opened last; CLOCK_MONOTONIC */
	__u32 inside_ns;  /* what our own probe adds to the duration it measures */
	__u32 cost_entry; /* ns: of a hit without a return probe */
	__u32 cost_pair;  /* of both ends, */
	__u32 cost_launch; /* of a launch, */
	__u32 cost_untimed; /* and of one whose return is not looked at */
	__u32 cost_switch; /* of the scheduler's notices as a thread leaves a CPU and comes back */
};

struct gbpf_monitor_counters {
	__u64 cells_full, threads_full, procs_full, kernels_full, live_full;
	__u64 nesting;	 /* calls nested too deep to be timed */
	__u64 unmatched; /* calls of which the return was never seen, and the other way round */
	__u64 trips, ring_full;
};

/* A thread has used up what it may spend; wakes the monitor. In the ring beside gbpf_process. */
#define GBPF_REC_TRIP 12
struct gbpf_trip {
	struct gbpf_hdr hdr;
	__u64 spent;
};

#endif
