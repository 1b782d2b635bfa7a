/* SPDX-License-Identifier: BSD-2-Clause */
/* What processes, their descendants and their threads used of CPUs and disks. */
#ifndef GBPF_TARGET_USAGE_H
#define GBPF_TARGET_USAGE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Since each process started: only differences between two readings mean something. */
struct usage {
	int64_t time_ns;     /* CLOCK_MONOTONIC, of this reading */
	uint64_t cpu_ns;     /* user and system, in clock ticks of 10 ms */
	uint32_t processes;  /* that were summed; 0: the process is gone */
	bool io_known;	     /* false: /proc/PID/io of at least one of them may not be read */
	uint64_t read_bytes, write_bytes; /* from and to storage, not the page cache */
	bool fell; /* usage_advance()'s own: the reading after this one was less */
};

/*
 * A process and all its descendants. What a child used stays in the sum once its parent
 * has waited for it, as the kernel then adds it to the parent's. Reads /proc/PID/stat of
 * all processes of the machine, so for several use usage_trees(). -ESRCH, -ENOMEM.
 */
int usage_tree(uint32_t pid, struct usage *out);
/* The same for count processes with one walk over /proc; 0, -ENOMEM, or -errno of /proc. */
int usage_trees(const uint32_t *pids, size_t count, struct usage *out);

/*
 * How much the tree used since the last reading, which now takes the place of. A sum
 * falls when a process leaves the tree, ends and nobody waits for it, or is waited for while
 * /proc is walked: that is shown as 0, never as less, and what is missing from one reading
 * and back in the next is not counted twice. False, and nothing in out, unless time passed
 * and both readings saw the process.
 */
struct usage_rate {
	double cpu_pct;	       /* of one CPU, at most that of all CPUs */
	double io_bytes_per_s; /* read and written; -1: not known */
};
bool usage_advance(struct usage *last, const struct usage *now, struct usage_rate *out);

/* One thread, /proc/PID/task/TID/schedstat; ns since it started. */
struct thread_usage {
	uint64_t run_ns;   /* on a CPU */
	uint64_t delay_ns; /* runnable, waiting for one */
};
/* 0, -ESRCH, -EACCES, -ENOTSUP (a kernel built without scheduler statistics). */
int usage_thread(uint32_t pid, uint32_t tid, struct thread_usage *out);

/* A cgroup and what was read of it: those who follow in the same one do not read it again. */
struct cgroup_seen {
	int version; /* 0: there is none yet */
	int err;
	uint64_t ns, periods;
	char path[PATH_MAX];
};

/*
 * How long, and in how many of its periods, the CPU quota of the process's cgroup and of
 * those above it that have one kept them from running: counters since the cgroups were
 * made. The kernel sums the time over CPUs, so it can grow faster than the clock:
 * throttled_share() says what share of a time that is at the most.
 * -ENOENT: no quota anywhere above it; -ESRCH, -EACCES. seen, zeroed at first, is kept from
 * one process to the next of one look at them.
 */
int cgroup_throttled(uint32_t pid, struct cgroup_seen *seen, uint64_t *ns, uint64_t *periods);
/*
 * The same of the cgroup at path ("/outer/inner") below an open directory of a hierarchy of
 * this version (1 or 2). ns and periods are 0 where it fails.
 */
int cgroup_throttled_at(int root, const char *path, int version, uint64_t *ns,
			uint64_t *periods);

/*
 * Share (0..1) of interval_ns that differences of the two counters stand for: each throttled
 * period lost a period's length (100 ms, the default of all who set quotas) at the most. A
 * difference below 0, wrapped around, is 0: the process went to another cgroup meanwhile.
 */
double throttled_share(uint64_t ns, uint64_t periods, int64_t interval_ns);

#endif
