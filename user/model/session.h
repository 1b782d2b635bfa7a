/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One session in memory: the calls of every thread, paired and nested, with
 * what is known of processes, images and kernels. report, diagnose and export
 * read this and nothing else.
 */
#ifndef GBPF_MODEL_SESSION_H
#define GBPF_MODEL_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/reader.h"

#define CALL_NONE UINT32_MAX

enum call_flags {
	CALL_OPEN = 1u << 0,	 /* begun, not returned when the trace ended */
	CALL_NO_END = 1u << 1,	 /* end was lost, or never came (longjmp, exec, killed thread) */
	CALL_NO_BEGIN = 1u << 2, /* end without begin: entered before the trace, or begin lost */
	CALL_ERROR = 1u << 3,	 /* returned an error */
	CALL_POLL = 1u << 4,	 /* a collapsed run of queries */
	CALL_NESTED = 1u << 5,	 /* inside another probed call of its thread */
	CALL_COLD = 1u << 6,	 /* a first call, by evidence (docs/metrics.md) */
	CALL_ENTRY_ONLY = 1u << 7, /* no return probe here: duration unknown */
	CALL_ARGS_LAUNCH = 1u << 8, /* args is an index into launches */
	CALL_ARGS_CALL = 1u << 9,   /* args is an index into transfers */
	CALL_COLD_API = 1u << 10,   /* COLD as the first call of its API in the process */
	CALL_COLD_KERNEL = 1u << 11, /* COLD as the first launch of its kernel in the process */
	CALL_COLD_LOAD = 1u << 12,  /* the evidence for COLD_KERNEL is a module load just before */
	CALL_CUT = 1u << 13, /* NO_END, NO_BEGIN: it was going on when a window ended, or began */
};

/*
 * begin and end are CLOCK_MONOTONIC ns, half-open. end is valid unless OPEN, NO_END or
 * ENTRY_ONLY, begin unless NO_BEGIN (it then equals end, or its window's begin). A POLL lasts
 * from the first query's entry to the last one's return. The end of one that is CUT is that
 * of its window, where another window follows.
 */
struct call {
	int64_t begin, end;
	int64_t children;   /* ns spent in probed calls directly inside this one */
	uint32_t thread;    /* index into threads */
	uint32_t parent;    /* index into calls, CALL_NONE at the top */
	uint32_t kernel;    /* index into kernels (launches), UINT32_MAX if none */
	uint32_t args;	    /* index into what ARGS_LAUNCH, ARGS_CALL or POLL says, or UINT32_MAX */
	int32_t ret;
	uint16_t api;	    /* index into apis */
	uint16_t flags;	    /* enum call_flags */
};

/* Equal arguments of several calls may share one entry. */
struct launch_args {
	uint64_t func, stream, smem;
	uint32_t grid[3], block[3];
};

struct call_args {
	uint64_t object, stream, source, bytes, kind, out;
	bool has_out;
};

struct poll_args {
	int64_t inside; /* ns spent in the queries */
	int64_t end;	/* return of the last query, 0: it has not returned */
	uint64_t object;
	uint32_t min, max, count; /* shortest and longest query, ns; queries */
};

/* What an API's calls are to the reports, by its name and kind. */
enum api_sorts {
	API_IS_LAUNCH = 1u << 0, /* kernels, graphs, host functions */
	API_IS_KERNEL_LAUNCH = 1u << 1,
	API_IS_GRAPH_LAUNCH = 1u << 2,
	API_IS_WAIT = 1u << 3, /* blocks its caller: syncs, blocking copies and sets */
	API_IS_COPY = 1u << 4, /* copies and sets */
};

struct session_api {
	const char *name; /* as exported */
	char *display;
	uint16_t catalogue; /* id in this build's catalogue, 0 if unknown to it */
	uint8_t library, kind; /* enum api_library, enum api_kind */
	uint8_t sorts;	       /* enum api_sorts */
};

struct session_process {
	uint32_t pid, ppid, ns_pid; /* 0: not known */
	uint32_t uid;		    /* UINT32_MAX: not known */
	uint32_t flags; /* RECORD_PROCESS_* */
	int64_t start;	/* identity, CLOCK_BOOTTIME ns */
	int64_t first, last; /* CLOCK_MONOTONIC ns: alive in [first, last) as far as seen */
	int64_t begun; /* its fork or first exec, if inside the trace, else 0 */
	bool started; /* begun before its first call, and none of its calls was missed */
	bool exited;
	int32_t exit_code;
	char *comm, *cmdline, *exe, *container;
};

struct session_thread {
	uint32_t pid, tid, ns_tid;
	uint32_t process; /* index into processes */
	char *comm;
	uint32_t first_call, calls; /* its calls, by begin, in calls[] */
};

struct session_kernel {
	char *mangled, *demangled, *short_name; /* "kernel@0x…" where there is no name */
	bool named;
	bool comm; /* a collective's, by its name */
};

/* Something said of a process: see session_label(). */
struct session_label {
	int64_t ts;
	uint32_t pid, process; /* index into processes; UINT32_MAX: of none of them */
	char *key, *value;
};

/* A GPU or MIG instance of which there are samples. Strings are NULL where not known. */
struct session_gpu {
	uint32_t index; /* NVML's, of the parent for an instance; UINT32_MAX: not known */
	char *uuid, *name, *pci, *mig_parent;
	uint32_t first_sample, samples; /* its own, by time, in gpu_samples[] */
	uint32_t throttle_known, throttled; /* samples that could tell, and that were held back */
	char *throttled_by; /* "power cap 40.0 %, …" of those that could tell; "none"; NULL */
};

/* A CUDA device of a process; properties as the process' driver told them. */
struct session_device {
	struct record_device about; /* uuid and name owned by the session, never NULL */
	uint32_t process;	    /* index into processes */
	uint32_t gpu;		    /* index into gpus, by UUID; UINT32_MAX: no samples of it */
	uint32_t physical;	    /* equal ones are one device: first index of its UUID */
};

/* A stream of one context, as CUPTI numbers it; its works are neighbours in works[]. */
struct session_stream {
	uint32_t process, device; /* indices */
	uint32_t context, id;
	uint64_t handle;     /* what API calls name it by; 0: the default stream, or not known */
	uint32_t first_work, works; /* its own, by begin, in works[] */
};

#define SHAPE_NONE UINT32_MAX
#define WORK_NONE UINT32_MAX

/* Something that ran on a GPU in [begin, end), ns of CLOCK_MONOTONIC. */
struct work {
	int64_t begin, end;
	uint64_t bytes;	     /* copies and sets */
	uint64_t graph_node; /* 0: not of a graph */
	uint32_t graph;	     /* executable graph, 0: none */
	uint32_t stream;     /* index into streams */
	uint32_t call;	     /* index into calls: what caused it; CALL_NONE: unmatched */
	uint32_t kernel;     /* index into kernels; UINT32_MAX: a copy or set */
	uint32_t shape;	     /* index into shapes; SHAPE_NONE: a copy or set, or was lost */
	uint32_t correlation;
	uint32_t channel, channel_type, peer; /* as recorded */
	int32_t priority;
	uint8_t kind;	     /* enum record_work_kind */
	uint8_t direction;   /* enum record_direction */
	uint8_t source, target; /* enum record_memory */
	bool earlier; /* launched before its window: its call is not kept, and is CALL_NONE */
};

/* CUPTI's own record of a call, where it was matched with ours: its correlation and cbid. */
struct work_call {
	uint32_t call; /* index into calls */
	uint32_t correlation, cbid;
	uint8_t domain;
};

struct session_overhead {
	int64_t begin, end;
	uint32_t process, kind;
};

/* The sidecar recorded what a process' devices did in [begin, end). */
struct session_cover {
	int64_t begin, end;
	int64_t switching; /* ns that switching on took until begin, 0: not known */
	uint32_t process;
	bool whole; /* all records of it are in: no cut file, no withdrawal, nothing lost */
};

/* How the two sides met; counts are of the sidecar's windows only. */
struct session_join {
	uint64_t works, matched;	 /* pieces of work, and those with a call */
	uint64_t earlier; /* others, launched before their window */
	uint64_t launches, launches_without; /* calls that must cause work, and those with none */
	uint64_t before_entry; /* works that would begin before their call: not matched */
	uint64_t contradicted; /* works of another grid than their call asked for: not matched */
	uint64_t dropped, bad; /* records that were lost, or made no sense */
	uint64_t running; /* works that still ran as a window ended: not recorded */
	int64_t clock_error;   /* the worst bound, ns; -1: no sidecar */
};

struct session_quality {
	uint64_t events;
	uint64_t losses[8]; /* by enum record_loss_cause */
	uint64_t unpaired_begin, unpaired_end;
	uint64_t lost_bytes; /* of the file, after its last readable chunk */
	enum reader_end end;
};

struct session {
	int64_t begin, end; /* the union of the windows' span, ns */
	struct record_window *windows;
	size_t windows_count;
	struct session_api *apis;
	size_t apis_count;
	struct session_process *processes;
	size_t processes_count;
	struct session_thread *threads;
	size_t threads_count;
	struct session_kernel *kernels;
	size_t kernels_count;
	struct call *calls; /* grouped by thread, each group sorted by begin */
	size_t calls_count;
	struct launch_args *launches;
	size_t launches_count;
	struct call_args *transfers;
	size_t transfers_count;
	struct poll_args *polls;
	size_t polls_count;
	struct record_image *images; /* strings owned by the session */
	size_t images_count;
	struct record_site *sites;
	size_t sites_count;
	struct record_clock *clocks;
	size_t clocks_count;
	struct record_loss *losses; /* as noticed, by the file's order; quality has their sums */
	size_t losses_count;
	struct record_trigger *triggers; /* by ts: why a flight recorder wrote it */
	size_t triggers_count;		 /* text owned by the session */
	struct record_info *infos;
	size_t infos_count;
	struct session_gpu *gpus;
	size_t gpus_count;
	struct record_gpu_sample *gpu_samples; /* .gpu: index into gpus; no pids */
	size_t gpu_samples_count;
	struct session_label *labels; /* by process, then ts */
	size_t labels_count;
	/* From here on: empty without the sidecar. */
	struct session_device *devices;
	size_t devices_count;
	struct session_stream *streams;
	size_t streams_count;
	struct record_shape *shapes; /* .kernel is NULL: see kernel of its works */
	size_t shapes_count;
	struct work *works; /* grouped by stream, each group sorted by begin */
	size_t works_count;
	uint32_t *call_works; /* indices into works, grouped by call, by begin; see works_of() */
	size_t call_works_count;
	struct work_call *work_calls; /* sorted by call */
	size_t work_calls_count;
	struct session_overhead *overheads; /* by begin */
	size_t overheads_count;
	struct record_sidecar *sidecars; /* by ts; text owned by the session */
	uint32_t *sidecar_process;	 /* of each of them: index into processes */
	size_t sidecars_count;
	struct session_cover *covers; /* by process and begin, disjoint in a process */
	size_t covers_count;
	struct session_join join;
	struct session_quality quality;
};

/*
 * Reads everything r has left. Returns 0 or -errno (-ENOMEM, -EIO, -EOVERFLOW
 * for more calls than 32 bits can count). The reader stays the caller's.
 */
int session_load(struct session **out, struct reader *r);
void session_free(struct session *s); /* NULL is accepted */

/* ns of [from, to) in which probes were attached. */
int64_t session_recorded(const struct session *s, int64_t from, int64_t to);

/* Begin of the window that ts is in, or ts. */
int64_t session_window_begin(const struct session *s, int64_t ts);

/* Value of an info key, or NULL. */
const char *session_info(const struct session *s, const char *key);

/*
 * What a label of a process (index) says, NULL if there is none: "rank", "host" and
 * "host_pid" of a merged file, … (docs/format.md). The last one counts.
 */
const char *session_label(const struct session *s, uint32_t process, const char *key);

/* It was launched in its window, or may have been, and its call is not known. */
static inline bool work_unmatched(const struct work *w)
{
	return w->call == CALL_NONE && !w->earlier;
}

/* Wall duration of a call in ns, -1 where it is not known. */
int64_t call_duration(const struct call *c);
/*
 * Time of its own, in ns: without the probed calls inside it, and of a poll
 * only what was spent in the queries. -1 where not known.
 */
int64_t call_self(const struct session *s, const struct call *c);

#endif
