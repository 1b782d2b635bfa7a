/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of the builder share; nobody outside model/ includes this. */
#ifndef GBPF_MODEL_INTERNAL_H
#define GBPF_MODEL_INTERNAL_H

#include "bpf/gbpf.h"
#include "model/builder.h"
#include "model/grow.h"
#include "model/map.h"

#define NO_INDEX UINT32_MAX
#define TS_LIMIT (INT64_C(1) << 62) /* differences of clamped times cannot overflow */
#define ARGS_CACHE (1u << 16)

#define RECENT_QUEUES 64
#define RECENT_RANGES 256

enum pending_kind {
	PENDING_BEGIN = EVENT_BEGIN,
	PENDING_END = EVENT_END,
	PENDING_POLL = EVENT_POLL,
};

/* An event until it is paired: 24 bytes, because there are 10 million of them. */
struct pending {
	int64_t ts;
	uint32_t sp;
	uint32_t arg;	/* index into launches, transfers, polls or outs */
	int32_t ret;	/* END, POLL; BEGIN: enum event_args */
	uint16_t image;
	uint16_t what; /* API id in bits 0..11, enum pending_kind above */
};

#define PENDING_API(p) ((p)->what & 0xfff)
#define PENDING_KIND(p) ((p)->what >> 12)

/* Events of one (pid, tid); pids may be reused in it. */
struct queue {
	uint32_t pid, tid;
	struct pending *events;
	size_t count, cap;
	bool unsorted;
};

struct process_note {
	struct record_process r; /* strings owned */
	size_t order;
};

struct name_note {
	int64_t ts;
	uint64_t handle;
	uint32_t pid, source;
	uint32_t epoch;	 /* index into epochs */
	uint32_t kernel; /* index into kernels, NO_INDEX: not believed, or unreadable */
	uint32_t after;	 /* of the first name of a handle: where its names end */
	size_t order;
	char *text;
};

/* Between two of these a pid is one program of one process. */
struct epoch {
	int64_t from;
	uint32_t pid, process;
};

/* What was looked up in ranges; epoch NO_INDEX: nothing. */
struct recent_range {
	uint64_t handle;
	uint32_t epoch, range;
};

/* A stream as records name it; processes may share its pid. */
struct raw_stream {
	uint32_t pid, device; /* device: index into devices */
	uint32_t context, id;
	uint32_t process, stream; /* that it was last found to be; NO_INDEX: none yet */
	bool one_process;	  /* of this pid there is only one */
};

/* CUPTI's record of a call until it is joined. */
struct work_call_note {
	int64_t begin, end;
	uint32_t pid, tid, correlation, cbid;
	uint32_t domain;
};

/* What the sidecar recorded, until it is sorted out; works.c. */
struct works_builder {
	struct map device_of;	/* (pid, ordinal) to devices: the last one of that number */
	struct map shape_of;	/* (pid, id) to shapes */
	struct map stream_of;	/* (pid and device, context and stream) to raw */
	struct map pid_of;	/* pid to pids */
	uint32_t *shape_kernel; /* index into kernels, as shapes */
	struct raw_stream *raw;
	uint32_t recent; /* raw stream of the last work */
	uint32_t lost_kernel; /* of works whose shape was lost; NO_INDEX: not made yet */
	uint32_t *pids;
	struct work_call_note *calls;
	size_t raw_count, raw_cap, shape_kernel_cap, pids_count, pids_cap, calls_count, calls_cap,
		devices_cap, shapes_cap, works_cap, overheads_cap, sidecars_cap, streams_cap,
		covers_cap;
};

struct session_builder {
	struct session *s;
	struct works_builder works;
	struct queue *queues;
	size_t queues_count, queues_cap;
	struct map queue_of; /* (pid, tid) */
	uint32_t recent[RECENT_QUEUES]; /* by tid: the queue of the last event */

	struct process_note *notes;
	size_t notes_count, notes_cap;
	struct session_thread *named; /* pid, tid, ns_tid, comm of thread records */
	size_t named_count, named_cap;
	struct name_note *names;
	size_t names_count, names_cap;
	struct epoch *epochs; /* by (pid, from) */
	size_t epochs_count, epochs_cap;

	uint64_t *outs;
	size_t outs_count, outs_cap;
	uint32_t *launch_cache, *transfer_cache;
	uint32_t api_of[GBPF_MAX_API]; /* catalogue id of the file to index into apis */
	struct map entry_only_sites; /* (image, api index) */

	struct map texts;     /* (hash of the text, attempt) to kernel */
	struct map confirmed; /* (process, kernel): a getter gave this name */
	struct map ranges;    /* (epoch, handle) to the first of its names */
	struct recent_range recent_ranges[RECENT_RANGES]; /* by handle */
	struct map unnamed;   /* (process, handle) to kernel */
	struct map gpu_of;    /* id of a GPU in the file to gpus */

	size_t apis_cap, processes_cap, threads_cap, kernels_cap, calls_cap, launches_cap,
		transfers_cap, polls_cap, images_cap, sites_cap, clocks_cap, losses_cap, infos_cap,
		windows_cap, actives_cap, gpus_cap, gpu_samples_cap, labels_cap, triggers_cap;
	struct record_window *actives; /* in their order, once builder_windows() was called */
	size_t actives_count;
	int64_t first_event, last_event;
	int64_t known_begin; /* of the first window that the file names; INT64_MIN: it names none */
	bool finished;
};

/* Each returns 0, -ENOMEM or -EOVERFLOW. */
int builder_events(struct session_builder *b, const struct record_events *r); /* intake.c */
int builder_note(struct session_builder *b, const struct record *r);	       /* notes.c */
uint32_t builder_api(struct session_builder *b, uint16_t id); /* notes.c; NO_INDEX: no memory */
int builder_gpu(struct session_builder *b, const struct record_gpu *r); /* gpus.c */
int builder_gpu_sample(struct session_builder *b, const struct record_gpu_sample *r);
int builder_gpus(struct session_builder *b);
int builder_device(struct session_builder *b, const struct record_device *r); /* works.c */
int builder_shape(struct session_builder *b, const struct record_shape *r);
int builder_work(struct session_builder *b, const struct record_work *r);
int builder_work_call(struct session_builder *b, const struct record_work_call *r);
int builder_overhead(struct session_builder *b, const struct record_overhead *r);
int builder_sidecar(struct session_builder *b, const struct record_sidecar *r);
void works_builder_free(struct works_builder *w);
int builder_streams(struct session_builder *b); /* streams.c: works in their order */
int builder_covers(struct session_builder *b);	/* covers.c: when the sidecar recorded */
int builder_join(struct session_builder *b);	/* join.c: works get their calls */
int builder_drained(struct session_builder *b); /* drained.c: covers without what is not known */
int join_list(struct session *s); /* join_finish.c: call_works anew; 0 or -ENOMEM */
/* By its mangled name; kernels of one name are one, whoever uses them; names.c. */
int builder_kernel(struct session_builder *b, const char *name, bool named, uint32_t *out);
int builder_label(struct session_builder *b, const struct record_label *r); /* labels.c */
void builder_labels(struct session_builder *b);
int builder_processes(struct session_builder *b);	       /* process.c */
int builder_windows(struct session_builder *b);		       /* windows.c */
/* windows.c: the first of windows, disjoint and in order, that ends after ts; count: none does. */
size_t windows_after(const struct record_window *w, size_t count, int64_t ts);
void builder_cut(struct session_builder *b); /* windows.c: calls that a window's end cut */
int builder_trim(struct session_builder *b); /* active.c: to what counts, after the join */
bool builder_active(const struct session_builder *b, int64_t ts); /* does that count? */
int builder_names(struct session_builder *b);		       /* names.c */
int builder_pair(struct session_builder *b);		       /* pair.c */
int builder_cold(struct session_builder *b);		       /* cold.c */

/* sort.c: the last event, late, goes where it belongs if that is near; and all events do. */
void queue_settle(struct queue *q);
int queue_sort(struct queue *q);

/* First epoch of pid, as an index, and how many; process.c. */
size_t epochs_of(const struct session_builder *b, uint32_t pid, size_t *count);
uint32_t epoch_at(const struct session_builder *b, uint32_t pid, int64_t ts);

/* Gives the launches in calls[from, to), all of one epoch, their kernels; names.c. */
int names_apply(struct session_builder *b, uint32_t epoch, size_t from, size_t to);

/* The same as builder_api(), for every event. */
static inline uint32_t builder_api_fast(struct session_builder *b, uint16_t id)
{
	return b->api_of[id] != NO_INDEX ? b->api_of[id] : builder_api(b, id);
}

static inline int64_t clamp_ts(int64_t ts)
{
	return ts < 0 ? 0 : ts > TS_LIMIT ? TS_LIMIT : ts;
}

static inline int64_t add_ns(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

#endif
