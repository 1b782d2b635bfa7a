// SPDX-License-Identifier: BSD-2-Clause
/* Counters that were sampled or counted: NVML's, and memory that is allocated. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/trace_perfetto.h"
#include "gpu/gpu.h"
#include "model/memory.h"

static const struct {
	const char *name, *unit;
	uint32_t has;
} kinds[GPU_COUNTERS] = {
	[GPU_CLOCK_SM] = {"SM clock", "MHz", GPU_HAS_CLOCK_SM},
	[GPU_CLOCK_MEMORY] = {"memory clock", "MHz", GPU_HAS_CLOCK_MEMORY},
	[GPU_POWER] = {"power", "mW", GPU_HAS_POWER},
	[GPU_TEMPERATURE] = {"temperature", "C", GPU_HAS_TEMPERATURE},
	[GPU_UTILISATION] = {"utilisation (NVML)", "%", GPU_HAS_UTILISATION},
	[GPU_MEMORY_USED] = {"memory used (NVML)", "bytes", GPU_HAS_MEMORY},
};

static int64_t value_of(const struct record_gpu_sample *v, enum gpu_counter which)
{
	switch (which) {
	case GPU_CLOCK_SM: return v->clock_sm_mhz;
	case GPU_CLOCK_MEMORY: return v->clock_memory_mhz;
	case GPU_POWER: return v->power_mw;
	case GPU_TEMPERATURE: return v->temperature_c;
	case GPU_UTILISATION: return v->utilisation_pct;
	case GPU_MEMORY_USED: return (int64_t)(v->memory_used & INT64_MAX);
	default: return 0;
	}
}

static void put_samples(struct perfetto *f, uint32_t gpu, enum gpu_counter which)
{
	const struct session_gpu *g = &f->s->gpus[gpu];
	size_t number = perfetto_gpu_of_sampled(f, gpu);
	bool begun = false;

	for (uint32_t i = 0; i < g->samples; i++) {
		const struct record_gpu_sample *v = &f->s->gpu_samples[g->first_sample + i];

		if (!(v->has & kinds[which].has) || !export_wants(f->o, v->ts, v->ts))
			continue;
		if (!begun) {
			uint64_t track;

			perfetto_gpu(f, number);
			track = perfetto_track(f, &(struct perfetto_track){
				TRACK_GPU_COUNTER, number * 16 + which,
				track_id(TRACK_GPU, number), kinds[which].name,
				"Sampled; of the device, whoever uses it", kinds[which].unit,
				1 + (int)which});
			packets_sequence(&f->packets, track, v->ts);
			begun = true;
		}
		perfetto_value(f, v->ts, value_of(v, which));
	}
}

static void put_xids(struct perfetto *f, uint32_t gpu)
{
	const struct session_gpu *g = &f->s->gpus[gpu];
	size_t number = perfetto_gpu_of_sampled(f, gpu);
	uint64_t seen = 0;
	bool begun = false;

	for (uint32_t i = 0; i < g->samples; i++) {
		const struct record_gpu_sample *v = &f->s->gpu_samples[g->first_sample + i];
		struct packet_args args;

		uint64_t count = v->xid_count - seen;

		if (!(v->has & GPU_HAS_XID) || v->xid_count <= seen)
			continue;
		seen = v->xid_count;
		if (!export_wants(f->o, v->ts, v->ts))
			continue;
		perfetto_gpu(f, number);
		if (!begun)
			packets_sequence(&f->packets, perfetto_track(f, &(struct perfetto_track){
				TRACK_XID, number, track_id(TRACK_GPU, number), "XID errors",
				"Noticed by the sample at this time", NULL, -1}), v->ts);
		begun = true;
		packet_args_init(&args, &f->packets, INTERN_NOTE);
		packet_arg_uint(&args, FIELD_RESULT, v->xid_last);
		packet_arg_uint(&args, FIELD_COUNT, count);
		perfetto_instant(f, v->ts, 0, WORD_XID, &args);
	}
}

int perfetto_samples(struct perfetto *f)
{
	for (uint32_t i = 0; i < f->s->gpus_count; i++) {
		for (int k = GPU_BUSY + 1; k < GPU_COUNTERS; k++)
			put_samples(f, i, (enum gpu_counter)k);
		put_xids(f, i);
	}
	return f->packets.err;
}

/* ---- live bytes ---- */

struct change {
	int64_t ts, bytes;
};

static int by_ts(const void *pa, const void *pb)
{
	const struct change *a = pa, *b = pb;

	return a->ts < b->ts ? -1 : a->ts > b->ts;
}

/* Of one process, from items on; how many of the items are its own. */
static size_t changes_of(const struct allocation *items, size_t count, struct change *out,
			 size_t *changes)
{
	size_t n = 0, i = 0;

	for (; i < count && items[i].process == items[0].process; i++) {
		int64_t bytes = (int64_t)(items[i].bytes & INT64_MAX >> 8);

		if (items[i].host)
			continue;
		out[n++] = (struct change){items[i].begin, bytes};
		if (items[i].end != NOT_FREED)
			out[n++] = (struct change){items[i].end, -bytes};
	}
	qsort(out, n, sizeof(*out), by_ts);
	*changes = n;
	return i;
}

static void put_live(struct perfetto *f, uint32_t process, const struct change *c, size_t count)
{
	int64_t total = 0;
	bool begun = false;

	for (size_t i = 0; i < count; i++) {
		total += c[i].bytes;
		if (!export_wants(f->o, c[i].ts, c[i].ts))
			continue;
		if (!begun) {
			perfetto_process(f, process);
			packets_sequence(&f->packets, perfetto_track(f, &(struct perfetto_track){
				TRACK_LIVE, process, track_id(TRACK_PROCESS, process), "live bytes",
				"Device memory allocated within the trace and not freed", "bytes",
				-14}), c[i].ts);
			begun = true;
		}
		perfetto_value(f, c[i].ts, total);
	}
}

int perfetto_live_bytes(struct perfetto *f)
{
	struct change *changes;
	struct memory m;
	size_t i = 0;
	int err = memory_find(f->s, &m);

	if (err)
		return err;
	changes = calloc(2 * m.count + 1, sizeof(*changes));
	err = changes ? 0 : -ENOMEM;
	while (!err && i < m.count) {
		uint32_t process = m.items[i].process;
		size_t count;

		i += changes_of(&m.items[i], m.count - i, changes, &count);
		if (export_wants_process(f->o, process))
			put_live(f, process, changes, count);
	}
	memory_free(&m);
	free(changes);
	return err;
}
