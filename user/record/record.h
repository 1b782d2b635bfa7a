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
	RECORD_DEVICE = 14,
	RECORD_SHAPE = 15,
	RECORD_WORK = 16,
	RECORD_WORK_CALL = 17,
	RECORD_OVERHEAD = 18,
	RECORD_SIDECAR = 19,
	RECORD_LABEL = 20,
	RECORD_TRIGGER = 21,
	RECORD_ACTIVE = 22,
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

/*
 * WINDOW: probes were attached from begin until end, ns. ACTIVE: where there is any, nothing
 * else counts; what was recorded around it is there so that the join has both its sides.
 */
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

/*
 * What the sidecar saw in a process (CUPTI's activity records), times converted to
 * CLOCK_MONOTONIC. pid and tid are the host's numbers.
 */

/* A CUDA device as a process numbers it; -1 where a property is not known. */
struct record_device {
	uint32_t pid, ordinal; /* CUDA's, after CUDA_VISIBLE_DEVICES */
	const char *uuid, *name; /* "GPU-…" or "MIG-…", as NVML writes them */
	int64_t memory;		 /* bytes */
	int32_t major, minor;	 /* compute capability */
	int32_t sms, warp, block_threads, sm_threads; /* the last two: at most */
	int32_t sm_blocks, block_registers, sm_registers;
	int32_t block_smem, block_smem_optin, sm_smem, reserved_smem; /* bytes */
};

/* What the launches of one kernel have in common. */
struct record_shape {
	uint32_t pid, id; /* unique in its process */
	const char *kernel; /* mangled */
	uint32_t grid[3], block[3];
	uint32_t registers; /* a thread */
	uint32_t smem_static, smem_dynamic; /* bytes a block */
	uint32_t local;	      /* bytes a thread */
};

enum record_work_kind {
	RECORD_WORK_KERNEL = 1,
	RECORD_WORK_COPY = 2,
	RECORD_WORK_SET = 3,
};

enum record_memory { /* CUpti_ActivityMemoryKind */
	RECORD_MEMORY_UNKNOWN = 0,
	RECORD_MEMORY_PAGEABLE = 1,
	RECORD_MEMORY_PINNED = 2,
	RECORD_MEMORY_DEVICE = 3,
	RECORD_MEMORY_ARRAY = 4,
	RECORD_MEMORY_MANAGED = 5,
	RECORD_MEMORY_DEVICE_STATIC = 6,
	RECORD_MEMORY_MANAGED_STATIC = 7,
};

enum record_direction { /* CUpti_ActivityMemcpyKind */
	RECORD_COPY_UNKNOWN = 0,
	RECORD_COPY_HTOD = 1,
	RECORD_COPY_DTOH = 2,
	RECORD_COPY_HTOA = 3,
	RECORD_COPY_ATOH = 4,
	RECORD_COPY_ATOA = 5,
	RECORD_COPY_ATOD = 6,
	RECORD_COPY_DTOA = 7,
	RECORD_COPY_DTOD = 8,
	RECORD_COPY_HTOH = 9,
	RECORD_COPY_PTOP = 10,
};

/* A kernel, copy or set that ran on a device from begin for duration ns. */
struct record_work {
	int64_t begin;
	uint64_t duration;
	uint32_t pid, kind; /* enum record_work_kind */
	uint32_t device, context, stream; /* CUDA's ordinal, CUPTI's ids */
	uint32_t correlation; /* of the API call that caused it; wraps */
	uint32_t shape;	    /* record_shape.id; kernels */
	uint32_t graph;	    /* id of the executable graph, 0: none */
	uint64_t graph_node;
	uint64_t bytes;	    /* copies and sets */
	uint32_t direction; /* copies: enum record_direction */
	uint32_t source, target; /* enum record_memory; a set has only a target */
	uint32_t channel, channel_type; /* hardware queue, 0 where this CUPTI does not say */
	int32_t priority;   /* of the stream, 0 where not known */
	uint32_t peer;	    /* the other device of a copy between two, else UINT32_MAX */
};

/* An API call as CUPTI saw it, inside of what our probes see of it. */
struct record_work_call {
	int64_t begin;
	uint64_t duration;
	uint32_t pid, tid;
	uint32_t domain; /* 1: driver, 2: runtime */
	uint32_t cbid;	 /* CUpti_driver_api_trace_cbid or CUpti_runtime_api_trace_cbid */
	uint32_t correlation;
	int32_t ret;
};

/* Time that CUPTI says it took itself (CUPTI_ACTIVITY_KIND_OVERHEAD). */
struct record_overhead {
	int64_t begin;
	uint64_t duration;
	uint32_t pid, tid, kind; /* CUpti_ActivityOverheadKind */
};

enum record_sidecar_event {
	RECORD_SIDECAR_ATTACHED = 1,  /* loaded; count: ns that the process was stopped */
	RECORD_SIDECAR_BEGAN = 2,     /* recording from ts; count: ns to switch on, 0: not said */
	RECORD_SIDECAR_ENDED = 3,     /* recorded until ts; all records of the window are in */
	RECORD_SIDECAR_REFUSED = 4,   /* did not record, text says why */
	RECORD_SIDECAR_WITHDREW = 5,  /* stopped because of somebody else; text; count: lost */
	RECORD_SIDECAR_FAILED = 6,    /* an error of CUPTI or of ours; text; count: its code */
	RECORD_SIDECAR_DROPPED = 7,   /* count records did not get through; text: where */
	RECORD_SIDECAR_BAD = 8,	      /* count records made no sense; text: how (zero, negative…) */
	RECORD_SIDECAR_CLOCK = 9,     /* count: error bound in ns of the times before this */
	RECORD_SIDECAR_GONE = 10,     /* the process ended, or closed its end */
	RECORD_SIDECAR_RUNNING = 11,  /* count works still ran as the window ended: not recorded */
	RECORD_SIDECAR_EVENTS,
};

struct record_sidecar {
	int64_t ts;
	uint32_t pid, event; /* enum record_sidecar_event */
	uint64_t count;
	uint32_t cupti;	     /* cuptiGetVersion(), 0: not known */
	const char *text;    /* "" where there is nothing to say */
};

/*
 * Something that is said of a process from ts on: which rank of a job it is, on which
 * host it ran (merged files). docs/format.md has the keys.
 */
struct record_label {
	int64_t ts;
	uint32_t pid;
	const char *key, *value;
};

enum record_trigger_cause {
	RECORD_TRIGGER_FIRED = 1, /* a trigger's condition held */
	RECORD_TRIGGER_ASKED = 2, /* somebody sent a signal */
	RECORD_TRIGGER_END = 3,	  /* the recording ended */
};

enum record_trigger_unit {
	RECORD_TRIGGER_COUNT = 1,
	RECORD_TRIGGER_NS = 2,
	RECORD_TRIGGER_MILLI_PER_S = 3, /* thousandths of one a second */
	RECORD_TRIGGER_BYTES = 4,
};

/* Why a flight recorder wrote this file; what comes after text is 0 unless one FIRED. */
struct record_trigger {
	int64_t ts;
	uint32_t cause;	  /* enum record_trigger_cause */
	const char *text; /* the trigger as it was given; "" */
	int64_t begin;	  /* the value is of [begin, ts), ns */
	int64_t value, threshold;
	uint32_t unit;	  /* of both: enum record_trigger_unit */
	uint64_t samples; /* calls that the value is of */
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
		struct record_device device;
		struct record_shape shape;
		struct record_work work;
		struct record_work_call work_call;
		struct record_overhead overhead;
		struct record_sidecar sidecar;
		struct record_label label;
		struct record_trigger trigger;
	};
};

#endif
