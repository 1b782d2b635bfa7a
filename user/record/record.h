/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a .gbpf file holds, as one tagged union. The writer takes these, the
 * reader gives them back in the order written; docs/format.md has the bytes.
 * Strings are NUL-terminated and belong to whoever passed them: copy to keep.
 */
#ifndef GBPF_RECORD_RECORD_H
#define GBPF_RECORD_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "collect/event.h"

enum record_kind {
	RECORD_EVENTS = 1,
	RECORD_NAME = 2,
	RECORD_PROCESS = 3,
	RECORD_THREAD = 4,
	RECORD_IMAGE = 5,
	RECORD_SITE = 6,
	RECORD_API = 7,
	RECORD_CLOCK = 8,
	RECORD_LOSS = 9,
	RECORD_WINDOW = 10,
	RECORD_INFO = 11,
	RECORD_GPU = 12,
	RECORD_GPU_SAMPLE = 13,
	RECORD_KINDS, /* one more than the last */
};

struct record_events {
	const struct event *events;
	size_t count;
};

/* From ts on, this handle in this process means this kernel. */
struct record_name {
	int64_t ts;
	uint32_t pid;
	uint32_t source; /* enum gbpf_name_source */
	uint64_t handle;
	const char *name; /* mangled, raw bytes of the target */
	size_t len;	  /* without the NUL; up to 8191, longer ones were cut */
};

enum record_process_event {
	RECORD_PROCESS_SEEN = 1, /* was there when the trace began */
	RECORD_PROCESS_FORK = 2,
	RECORD_PROCESS_EXEC = 3,
	RECORD_PROCESS_EXIT = 4,
};

struct record_process {
	int64_t ts;
	uint32_t event; /* enum record_process_event */
	uint32_t pid, ppid;
	uint32_t ns_pid; /* its own number in its innermost pid namespace, 0 unknown */
	uint32_t uid;
	int32_t exit_code; /* wait status; EXIT only */
	uint32_t flags;	   /* RECORD_PROCESS_* */
	int64_t start;	   /* CLOCK_BOOTTIME ns, identity together with pid */
	const char *comm, *cmdline, *exe, *container; /* "" when unknown */
};
#define RECORD_PROCESS_SECCOMP 1u    /* has a seccomp filter */
#define RECORD_PROCESS_ENTRY_ONLY 2u /* no return probes here: durations are unknown */

struct record_thread {
	uint32_t pid, tid, ns_tid;
	const char *comm;
};

enum record_image_kind {
	RECORD_IMAGE_DRIVER = 1,
	RECORD_IMAGE_RUNTIME = 2,
	RECORD_IMAGE_STATIC_RUNTIME = 3,
	RECORD_IMAGE_NCCL = 4,
	RECORD_IMAGE_OTHER = 5,
};

struct record_image {
	uint32_t id; /* slot, as in event.image */
	uint32_t kind;
	uint64_t dev, ino;
	int64_t mapped;	 /* first seen mapped, ns; 0: before the trace, or never */
	int64_t covered; /* probes were in place from here, ns */
	const char *path, *build_id, *version;
};

enum record_site_state {
	RECORD_SITE_HOOKED = 1,
	RECORD_SITE_ENTRY_ONLY = 2,
	RECORD_SITE_REFUSED = 3, /* reason says why */
};

struct record_site {
	uint32_t image;
	uint32_t state;
	uint64_t offset; /* in the file */
	const char *api, *reason;
};

/* The catalogue travels with the file: ids mean nothing outside it. */
struct record_api {
	uint32_t id;
	const char *name, *library, *kind; /* words of probe/catalogue.h */
};

/* One instant on three clocks, ns; error bounds the distance between them. */
struct record_clock {
	int64_t monotonic, realtime, boottime, error;
};

enum record_loss_cause {
	RECORD_LOSS_RING_FULL = 1,    /* the loader was too slow */
	RECORD_LOSS_STATE_FULL = 2,   /* no room to keep an entry's argument or a poll */
	RECORD_LOSS_PERF_LOST = 3,    /* mapping or process notices lost by perf */
	RECORD_LOSS_MALFORMED = 4,    /* a ring record that made no sense */
	RECORD_LOSS_WRITE_FAILED = 5, /* could not be written to the file */
	RECORD_LOSS_NAME = 6,	      /* a kernel's name could not be read */
};

struct record_loss {
	int64_t ts;	/* noticed then; lost between the previous notice and this */
	uint32_t cause; /* enum record_loss_cause */
	uint64_t count;
};

/* Probes were attached from begin until end, ns. */
struct record_window {
	int64_t begin, end;
};

/* Keys are documented in docs/format.md; numbers travel as decimal text. */
struct record_info {
	const char *key, *value;
};

/* A GPU, or a MIG instance of one, that samples refer to. */
struct record_gpu {
	uint32_t id;	/* in this file */
	uint32_t index; /* NVML's; of the parent for an instance */
	const char *uuid, *name, *pci;
	const char *mig_parent; /* UUID of the GPU that this is an instance of; "" otherwise */
};

/* What NVML said of one of them at ts. Of the device, whoever uses it. */
struct record_gpu_sample {
	int64_t ts;
	uint32_t gpu; /* record_gpu.id */
	uint32_t has; /* enum gpu_has of gpu/gpu.h: which of the numbers are known */
	uint32_t clock_sm_mhz, clock_memory_mhz;
	uint32_t power_mw, power_limit_mw;
	uint32_t temperature_c;
	uint64_t throttle; /* bits of nvmlClocksEventReasons */
	uint32_t utilisation_pct, memory_utilisation_pct;
	uint64_t memory_used, memory_total; /* bytes */
	uint64_t energy_mj;		    /* since the driver was loaded */
	uint32_t gpm_sm, gpm_occupancy, gpm_tensor, gpm_dram; /* 1/1000 % */
	uint64_t xid_count; /* errors since the recording began */
	uint32_t xid_last;  /* number of the last one, 0: none */
	uint32_t processes; /* that use it */
	const char *pids;   /* of them, as far as listed: decimal, separated by commas */
};

struct record {
	enum record_kind kind;
	union {
		struct record_events events;
		struct record_name name;
		struct record_process process;
		struct record_thread thread;
		struct record_image image;
		struct record_site site;
		struct record_api api;
		struct record_clock clock;
		struct record_loss loss;
		struct record_window window;
		struct record_info info;
		struct record_gpu gpu;
		struct record_gpu_sample gpu_sample;
	};
};

#endif
