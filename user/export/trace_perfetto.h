/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of the Perfetto writer. Internal to export/. */
#ifndef GBPF_EXPORT_TRACE_PERFETTO_H
#define GBPF_EXPORT_TRACE_PERFETTO_H

#include "export/trace_packet.h"
#include "model/map.h"

/* What tracks there are: track_id() of these and a number is the track's uuid. */
enum track_kind {
	TRACK_PROCESS = 1, /* by index into processes, as the next three */
	TRACK_ERRORS,
	TRACK_COLD,
	TRACK_SIDECAR,
	TRACK_LAUNCHES,
	TRACK_LIVE,
	TRACK_THREAD,	   /* by index into threads */
	TRACK_THREAD_ROW,  /* by thread times EXPORT_LANES plus the row */
	TRACK_GPU,	   /* by number of the GPU: see struct perfetto_gpu */
	TRACK_GPU_COUNTER, /* by number of the GPU times 16 plus enum gpu_counter */
	TRACK_XID,
	TRACK_STREAM,	   /* by index into streams, as the next */
	TRACK_DEPTH,
	TRACK_STREAM_ROW,  /* by stream times EXPORT_LANES plus the row */
	TRACK_CONTEXT,	   /* by the first stream of it */
	TRACK_RECORDER,	   /* what gbpf itself did */
	TRACK_WINDOWS,
	TRACK_LOSSES,
	TRACK_TRIGGERS,
};
static inline uint64_t track_id(enum track_kind kind, uint64_t number)
{
	return (uint64_t)kind << 48 | (number + 1);
}

enum gpu_counter {
	GPU_BUSY, GPU_CLOCK_SM, GPU_CLOCK_MEMORY, GPU_POWER, GPU_TEMPERATURE, GPU_UTILISATION,
	GPU_MEMORY_USED, GPU_COUNTERS,
};

#define NO_GPU UINT32_MAX
/* A GPU of the trace: one that was sampled, one that worked, mostly both. */
struct perfetto_gpu {
	uint32_t number; /* NVML's where that tells them apart, else one of its own */
	uint32_t sampled;  /* index into gpus, NO_GPU */
	uint32_t physical; /* index into devices, NO_GPU */
	bool described;
};

struct perfetto {
	const struct session *s;
	const struct export_options *o;
	struct packets packets;
	struct export_lanes *lanes; /* of calls, which nest */
	struct perfetto_gpu *gpus;
	size_t gpus_count;
	struct map tracks;  /* kind and number of those that are described */
	int64_t begin, end; /* what counters cover, ns */
	int64_t sample_step, rate_step; /* of counters that are worked out, ns */
	uint64_t done, all; /* for progress: calls and works */
};

/* ---- trace_perfetto_tracks.c ---- */

int perfetto_gpus_find(struct perfetto *f); /* -ENOMEM */
/* Number in gpus[] of a device, of a sampled GPU. */
size_t perfetto_gpu_of_device(const struct perfetto *f, uint32_t device);
size_t perfetto_gpu_of_sampled(const struct perfetto *f, uint32_t gpu);

/* Describes a track unless it was before; what it hangs on, too. */
void perfetto_process(struct perfetto *f, uint32_t process);
void perfetto_thread(struct perfetto *f, uint32_t thread);
void perfetto_gpu(struct perfetto *f, size_t gpu);
/* A plain one; unit NULL: for slices and instants. Returns its id. */
struct perfetto_track {
	enum track_kind kind;
	uint64_t number, parent;
	const char *name, *description; /* description may be NULL */
	const char *unit;
	int rank; /* among those of its parent */
};
uint64_t perfetto_track(struct perfetto *f, const struct perfetto_track *about);
void perfetto_gpu_info(struct perfetto *f);
const char *perfetto_process_name(const struct perfetto *f, uint32_t process, char *buf,
				  size_t size);

/* Looks up, now and then, whether the file is still wanted. 0 or -EINTR. */
int perfetto_progress(struct perfetto *f);

/* ---- one file each; 0 or -errno ---- */

int perfetto_calls(struct perfetto *f);
int perfetto_works(struct perfetto *f);
int perfetto_counters(struct perfetto *f);
int perfetto_samples(struct perfetto *f); /* NVML's */
int perfetto_live_bytes(struct perfetto *f);
int perfetto_marks(struct perfetto *f);

/* An event without duration; args may be NULL. */
void perfetto_instant(struct perfetto *f, int64_t ts, uint64_t track, unsigned word,
		      const struct packet_args *args);
void perfetto_value(struct perfetto *f, int64_t ts, int64_t value); /* of the sequence's track */

#endif
