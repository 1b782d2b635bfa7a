/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the monitor knows of one interval, in plain data: tables, JSON, top and
 * OpenMetrics read this and nothing else. docs/monitoring.md defines each number.
 */
#ifndef GBPF_MONITOR_SNAPSHOT_H
#define GBPF_MONITOR_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/gpu.h"
#include "target/labels.h"
#include "util/verdict.h"
#include "util/histogram.h"

/* Something a second or a share, with its 95 % interval; equal bounds: counted, not estimated. */
struct estimate {
	bool known; /* false: n/a; value, low and high mean nothing */
	double value, low, high;
};

/* One API of one process. */
struct snapshot_api {
	uint16_t api; /* catalogue id */
	bool sampled; /* probed in windows only */
	struct estimate calls_per_s;
	uint64_t calls, errors, bytes, total_ns; /* seen since the process was first seen */
	uint64_t seen;			 /* calls seen in this interval */
	uint64_t interval_ns;		 /* time in them */
	int64_t p50_ns, p99_ns, max_ns;	 /* of recent calls, -1: n/a */
	const struct histogram *recent;	 /* recent calls' durations (see recent_ns) */
	const struct histogram *ever;	 /* all that were seen */
};

/* One kernel of one process, as its launches show it. */
struct snapshot_kernel {
	uint64_t handle;
	const char *name; /* mangled, as the target has it (hostile); "" unknown */
	uint64_t seen;	  /* launches seen in this interval */
	struct estimate launches_per_s;
	uint64_t launches, total_ns; /* seen ever; time in dispatch */
};

/* Where a thread's wall time went: shares of the interval that add up to 1. */
enum wait_kind { /* between calls; monitor needs the scheduler's notices for these */
	WAIT_RUNNING = 0, /* on a CPU, outside CUDA */
	WAIT_RUNNABLE,	  /* wants a CPU */
	WAIT_LOCK,	  /* futex */
	WAIT_PIPE,	  /* pipe, socket, poll */
	WAIT_DISK,
	WAIT_SLEEP,	  /* a timer */
	WAIT_OTHER,
	WAIT_KINDS,
};
const char *wait_kind_name(enum wait_kind kind); /* "running", "runnable", "lock", … */

struct snapshot_thread {
	uint32_t tid;
	char comm[16];
	struct estimate dispatch_share, sync_share, elsewhere_share;
	uint64_t launches; /* seen in this interval */
	bool away_known;   /* all calls were counted; else away_share is at most that */
	double away_share; /* of the interval: outside of calls, 1 ms and longer at a time */
	bool sched_known; /* the following are */
	double call_spin_share, call_sleep_share; /* inside calls: on a CPU, off it */
	double wait_share[WAIT_KINDS]; /* outside calls */
	double asleep_share; /* of these, but running and runnable: 1 ms and longer at a time */
	double lost_share; /* runnable and without a CPU, in calls and outside */
	double overhead_pct; /* what our probes cost it in this interval */
	uint16_t open_api; /* a call it is in, begun at open_since; 0: none */
	int64_t open_since; /* CLOCK_MONOTONIC ns */
};

/*
 * What a process seems to be bound by, as far as its calls and NVML tell (verdict.h). Where
 * the intervals of what was sampled allow more than one answer, it is inconclusive.
 */
struct snapshot_verdict {
	enum diag_verdict verdict;
	enum diag_basis basis; /* BASIS_CPU or BASIS_CPU_NVML */
	const char *why;       /* it is inconclusive; constant; NULL: it is not */
	struct estimate share[CLASSES]; /* of the interval; not known where inconclusive */
};

struct snapshot_process {
	uint32_t pid;
	int64_t start; /* CLOCK_BOOTTIME ns */
	int64_t seen;  /* first seen by the monitor, CLOCK_MONOTONIC ns */
	char comm[16];
	const char *command; /* its command line: for people on this machine, never for metrics */
	struct labels labels; /* who this is on the cluster; all hostile */
	struct estimate launches_per_s, copies_per_s, copy_bytes_per_s, errors_per_s;
	struct estimate back_pressured_per_s; /* suspected: launches that took over 50 us */
	int64_t dispatch_p50_ns, dispatch_p99_ns; /* of recent launches, -1: n/a */
	const struct histogram *launch_recent;
	const struct histogram *launch_ever, *sync_ever; /* NULL: nobody asked for them */
	int64_t recent_ns;     /* how far back "recent" reaches */
	uint64_t launches_seen; /* in this interval */
	struct estimate dispatch_share, sync_share, elsewhere_share; /* of its busiest thread */
	bool live_known; /* every allocation since `seen` was seen */
	int64_t live_allocations, live_bytes; /* made since `seen` and not freed */
	uint64_t cold_starts; /* in this interval: modules and libraries loaded */
	uint64_t cold_ns;
	double overhead_pct;  /* what our probes cost, of its worst thread */
	double coverage;      /* share of the interval in which launches were probed */
	/* of the process and its descendants, which need not call CUDA; -1: n/a */
	double tree_cpu_pct;	      /* of one CPU */
	double tree_io_bytes_per_s;
	double throttled_share; /* by its CPU quota, of the interval; -1: n/a */
	uint32_t sibling_tid;	/* ran while the launching thread waited for a lock; 0: none */
	char sibling_comm[16];
	double sibling_share; /* of that wait */
	struct snapshot_verdict verdict;
	bool gpu_shared;      /* a GPU that it uses is used by others too */
	char gpu_uuid[80];    /* of the first GPU it uses; "" unknown */
	struct snapshot_api *apis;
	size_t apis_count;
	struct snapshot_kernel *kernels;
	size_t kernels_count;
	struct snapshot_thread *threads;
	size_t threads_count;
};

struct snapshot_self {
	double overhead_pct;	 /* of the worst thread of all in this interval, estimated */
	double budget_pct;	 /* what it may be */
	uint32_t worst_pid, worst_tid;
	double cpu_pct;		 /* of one CPU */
	uint64_t rss_bytes, maps_bytes;
	double coverage;	 /* share of the interval in which launches were probed */
	uint32_t cost_entry_ns, cost_pair_ns, cost_launch_ns; /* of a hit, calibrated */
	uint32_t windows;	 /* opened in this interval */
	uint64_t lost;		 /* calls not counted because a table was full */
	uint64_t unmatched;	 /* returns without an entry, entries without a return */
	const char *limit;	 /* what is not probed here and why, in a sentence; NULL: nothing */
};

struct snapshot {
	int64_t time_ns;  /* CLOCK_REALTIME, end of the interval */
	int64_t mono_ns;  /* the same moment, CLOCK_MONOTONIC */
	int64_t window_ns; /* length of the interval */
	struct snapshot_process *processes; /* ordered by pid */
	size_t processes_count;
	const struct gpu_sample *gpus;
	size_t gpus_count;
	const char *gpus_trouble; /* why there are none; NULL */
	struct snapshot_self self;
};

/*
 * Of durations, ns. -1: not known. How long our own clock readings take has been subtracted, and
 * is known to some tens of ns only: what is in the first bucket lasts less than can be told.
 */
int64_t snapshot_quantile(const struct histogram *h, double q);

/* NULL if there is none. */
const struct snapshot_process *snapshot_find(const struct snapshot *s, uint32_t pid);

#endif
