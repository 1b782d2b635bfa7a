/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What follows from the join of calls and GPU work: the metrics of docs/metrics.md,
 * each defined here once. A0/A1: entry and return of the call that caused a piece of
 * work; K0/K1: its begin and end on the GPU; F: when its stream was free for it, that is
 * the latest end of what came before it in the stream (INT64_MIN: nothing known).
 */
#ifndef GBPF_MODEL_GPU_H
#define GBPF_MODEL_GPU_H

#include "model/session.h"

/* Was there a sidecar that recorded anything? Without one GPU numbers are n/a, never 0. */
bool session_has_work(const struct session *s);
/*
 * Why there is no GPU time for this process (index; UINT32_MAX: for any), for people; NULL:
 * there is. The text may be the target's: escape it.
 */
const char *session_no_work(const struct session *s, uint32_t process);
/* What this note says of that, if anything. */
const char *sidecar_reason(const struct record_sidecar *r);
extern const char session_no_sidecar[]; /* what is said where there is no note at all */

/*
 * When a work with a call was asked for: that call's entry; of one that was launched before
 * its window, just before that began. ns.
 */
int64_t work_asked(const struct session *s, const struct work *w);

/* Is [from, to) wholly inside the sidecar's windows of this process? */
bool work_covered(const struct session *s, uint32_t process, int64_t from, int64_t to);
/* ns of [from, to) inside them. */
int64_t work_covered_ns(const struct session *s, uint32_t process, int64_t from, int64_t to);

/*
 * Fetches the call of a work a few behind this one: going through the works of a stream, the
 * calls are here and there.
 */
static inline void work_fetch_call(const struct session *s, size_t work)
{
	const size_t ahead = 16;

	if (work + ahead < s->works_count && s->works[work + ahead].call != CALL_NONE)
		__builtin_prefetch(&s->calls[s->works[work + ahead].call]);
}

/* Works caused by a call: points into call_works, *count of them; NULL where none. */
const uint32_t *works_of(const struct session *s, uint32_t call, size_t *count);
/* CUPTI's correlation and cbid of a call; NULL where it was not matched. */
const struct work_call *work_call_of(const struct session *s, uint32_t call);

/* Back-pressured: a launch of more than 50 us with 1000 or more outstanding on its stream. */
#define BACK_PRESSURE_NS 50000
#define BACK_PRESSURE_DEPTH 1000

enum work_time_flags {
	WORK_UNCONTENDED = 1u << 0, /* the stream was free (F <= A0), no overhead record near */
	WORK_BACK_PRESSURED = 1u << 1,
	WORK_SHORT = 1u << 2, /* kernel, K1 - K0 < A1 - A0 of its own launch, not back-pressured */
	WORK_SIDE_STREAM = 1u << 3, /* ran on another stream than the thread's last launch */
};

/* Of one piece of work; all NA_TIME where there is no call. */
#define NA_TIME INT64_MIN
struct work_times {
	int64_t launch_to_start; /* K0 - A0 */
	int64_t queue_time;	 /* max(0, K0 - A1) */
	int64_t queue_delay;	 /* max(0, min(F, K0) - A1) */
	int64_t total;		 /* max(A1, K1) - A0 */
	uint32_t depth;		 /* outstanding on the stream at A0, this one not counted */
	uint32_t flags;		 /* enum work_time_flags */
};
/*
 * Whether it is known what kept the stream of a work, launched at asked, until free_from (ns,
 * INT64_MIN: nothing was recorded before): not where that may be work from before the sidecar's
 * window. Then its queue_delay is NA_TIME and it is not called uncontended.
 */
bool work_queue_known(const struct session *s, const struct work *w, int64_t asked,
		      int64_t free_from);
/* times[i] belongs to works[i]; allocated, the caller frees. 0 or -ENOMEM. */
int work_times(const struct session *s, struct work_times **times);

/* A stretch of time, ns. */
struct span {
	int64_t begin, end;
};

struct spans {
	struct span *items; /* sorted, disjoint */
	size_t count;
};

void spans_free(struct spans *v); /* may be repeated */
/* Makes spans in any order sorted and disjoint; what touches becomes one. 0 or -ENOMEM. */
int spans_unite(struct spans *v);
/*
 * Appends one, of which the begin is not before that of any so far, united with the last if
 * they touch. cap: how many there is room for, 0 at first. 0 or -ENOMEM.
 */
int spans_append(struct spans *v, size_t *cap, int64_t begin, int64_t end);
int64_t spans_within(const struct spans *v, int64_t from, int64_t to); /* ns of [from, to) */

enum work_class {
	WORK_CLASS_COMPUTE = 1u << 0,
	WORK_CLASS_COMM = 1u << 1, /* collectives: NCCL and RCCL by the kernel's name */
	WORK_CLASS_COPY = 1u << 2, /* and sets */
	WORK_CLASS_ALL = 7,
};
unsigned work_class(const struct session *s, const struct work *w); /* one of them */
bool kernel_is_comm(const char *name);
/*
 * A collective whose result on every rank depends on every other's, so that none can end
 * before all have begun. By the kernel's name; false where that does not say.
 */
bool kernel_binds_all(const char *name);

/*
 * When a physical device (session_device.physical) worked on any of these classes: the
 * union over all processes and streams. 0 or -ENOMEM.
 */
int device_busy(const struct session *s, uint32_t physical, unsigned classes, struct spans *out);

/*
 * When a physical device was watched: inside the sidecar's windows of the processes that use
 * it, and outside of the times in which one of them may have used it unwatched. The base of
 * busy and idle shares. 0 or -ENOMEM.
 */
int device_covered(const struct session *s, uint32_t physical, struct spans *out);
/* When CUPTI was at work itself in a process that uses the device. 0 or -ENOMEM. */
int device_overheads(const struct session *s, uint32_t physical, struct spans *out);

enum gap_class {
	/*
	 * The next work was asked for only after the last had ended; or its call was entered in
	 * time, lasted until it began, and the gap is 30 us or longer.
	 */
	GAP_HOST_WAIT = 0,
	GAP_SYNC_DRAIN = 1, /* host-wait while that thread was in a blocking wait across its end */
	GAP_KERNEL_WAIT = 2, /* asked for in time, and less than 30 us */
	GAP_OTHER = 3,	    /* asked for in time and longer: a dependency, a resource; or unknown */
	GAP_ARTEFACT = 4,   /* half or more of it are overheads: the profiler's own doing */
	GAP_CLASSES,
};
extern const char *const gap_class_words[GAP_CLASSES]; /* "host-wait", … */
#define GAP_KERNEL_WAIT_NS 30000

/* A device (stream NO: of the device as a whole) had nothing to do in [begin, end). */
struct gap {
	int64_t begin, end;
	uint32_t physical;    /* index into devices */
	uint32_t before, after; /* works around it; WORK_NONE at the edges */
	enum gap_class class;
};
/*
 * Gaps between works of a physical device, within the sidecar's windows, by begin.
 * Judged on the device, not on one stream. Allocated, the caller frees. 0 or -ENOMEM.
 */
int device_gaps(const struct session *s, uint32_t physical, struct gap **gaps, size_t *count);

/* ---- occupancy.c ---- */

enum occupancy_limit {
	OCCUPANCY_BLOCKS = 1u << 0,
	OCCUPANCY_REGISTERS = 1u << 1,
	OCCUPANCY_SMEM = 1u << 2,
	OCCUPANCY_WARPS = 1u << 3,
	OCCUPANCY_BARRIERS = 1u << 4,
};

/* Theoretical occupancy; what NVIDIA's cuda_occupancy.h and Kineto compute. */
struct occupancy {
	int blocks_per_sm;    /* that fit */
	/* Blocks that each resource allows; INT_MAX: does not limit. Barriers are not recorded. */
	int limit_blocks, limit_registers, limit_smem, limit_warps, limit_barriers;
	unsigned limiting;    /* enum occupancy_limit */
	int allocated_registers, allocated_smem; /* a block */
	/*
	 * Kineto's "est. achieved occupancy %", of this grid: 0 above 48 KiB of shared memory,
	 * which Kineto takes for the limit. blocks_per_sm knows better.
	 */
	int percent;
	double grid_blocks_per_sm, warps_per_sm; /* of the whole grid, over all SMs */
};
/* -ENODATA where the device's properties are not known. */
int occupancy_of(const struct record_device *d, const struct record_shape *shape,
		 struct occupancy *out);

#endif
