/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared memory of loader and programs: what to record, and what was lost. */
#ifndef GBPF_SWITCHES_H
#define GBPF_SWITCHES_H

#include "gbpf.h"

#define GBPF_FILTER_WORDS 65536	   /* 4 Mi process ids, the kernel's most */
#define GBPF_NAMED_SLOTS 131072	   /* pairs of slots for 64 Ki sets */
#define GBPF_NAME_GENERATIONS 1024
#define GBPF_NO_NAMES 255

enum gbpf_mode {
	GBPF_MODE_OFF = 0,
	GBPF_MODE_PIDS = 1,   /* processes whose bit is set */
	GBPF_MODE_CGROUP = 2, /* the same, and whoever runs below a cgroup */
	GBPF_MODE_ALL = 3,    /* every process but the loader */
};

/* Whether what wanted processes do is recorded now. */
enum gbpf_gate_state {
	GBPF_GATE_OPEN = 0,
	GBPF_GATE_WARMUP = 1, /* all is done but for keeping the record */
	GBPF_GATE_SHUT = 2,   /* probes that are there do nothing */
};

struct gbpf_switches {
	__u32 mode;
	__u32 self;	     /* the loader's process id */
	__u32 ring_mask;     /* number of rings - 1, a power of two minus one */
	__u32 returns;	     /* 0: entry only, return probes are not safe here */
	__u32 follow;	     /* children of wanted processes are wanted */
	__u32 cgroup_level;
	__u64 cgroup_id;
	__u64 gate_begin;    /* records of before this are not kept, ns */
	__u32 gate;	     /* enum gbpf_gate_state */
	__u32 pad;
};

struct gbpf_counters {
	__u64 ring_full;
	__u64 state_full;
	__u64 polls_open; /* runs of queries begun and not yet sent */
};

struct gbpf_pending {
	__u64 out;  /* where the call stores a pointer or handle */
	__u64 name; /* GET_NAMED: the name asked for */
};

/* Offsets of fields in a structure that describes a copy; 0: it has none. */
struct gbpf_copy_layout {
	__u16 width, height, depth;
	__u16 from, to;		   /* the first of: host pointer, device pointer, array */
	__u16 from_type, to_type;  /* CUmemorytype, which says which of them holds */
	__u16 kind;		   /* cudaMemcpyKind */
};

/* Queries of one thread on one object, at one level (runtime or driver). */
struct gbpf_poll_state {
	__u64 object, first, last_end, inside;
	__u64 entered;	      /* ns; 0: no query is in progress */
	__u64 entered_object;
	__u32 min, max, count;
	__s32 ret;
	__u32 tag, sp; /* of the first query */
	__u32 pid, tid;
};

#endif
