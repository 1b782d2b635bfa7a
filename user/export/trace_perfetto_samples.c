// SPDX-License-Identifier: BSD-2-Clause
/* Counters that were sampled or counted: NVML's, and memory that is allocated. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/trace_perfetto.h"
#include "gpu/gpu.h"
#include "model/grow.h"
#include "probe/catalogue.h"

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
	uint64_t seen = 0, track;

	packets_sequence(&f->packets, 0, f->begin);
	for (uint32_t i = 0; i < g->samples; i++) {
		const struct record_gpu_sample *v = &f->s->gpu_samples[g->first_sample + i];
		struct packet_args args = {.p = &f->packets, .space = INTERN_NOTE};

		if (!(v->has & GPU_HAS_XID) || v->xid_count <= seen)
			continue;
		packet_arg_uint(&args, FIELD_RESULT, v->xid_last);
		packet_arg_uint(&args, FIELD_COUNT, v->xid_count - seen);
		seen = v->xid_count;
		if (!export_wants(f->o, v->ts, v->ts))
			continue;
		perfetto_gpu(f, number);
		track = perfetto_track(f, &(struct perfetto_track){
			TRACK_XID, number, track_id(TRACK_GPU, number), "XID errors",
			"Noticed by the sample at this time", NULL, -1});
		perfetto_instant(f, v->ts, track, WORD_XID, &args);
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

struct live {
	struct map at;	 /* address to index into sizes */
	uint64_t *sizes; /* 0: freed */
	size_t count, cap;
	uint64_t total;
};

/* Device memory only, and each allocation once where two layers are probed. */
static bool counts(const struct session *s, const struct call *c)
{
	uint8_t kind = s->apis[c->api].kind;

	if (!(c->flags & CALL_ARGS_CALL) || c->flags & (CALL_ERROR | CALL_OPEN | CALL_NO_END) ||
	    strstr(s->apis[c->api].name, "Host"))
		return false;
	return c->parent == CALL_NONE || s->apis[s->calls[c->parent].api].kind != kind;
}

static int allocated(struct live *l, uint64_t address, uint64_t bytes)
{
	uint32_t i = map_get(&l->at, address, 0);
	int err = 0;

	if (i == MAP_NONE) {
		i = (uint32_t)l->count;
		err = GROW(l->sizes, l->cap, l->count + 1);
		if (!err)
			err = map_put(&l->at, address, 0, i);
		if (err)
			return err;
		l->sizes[l->count++] = 0;
	}
	l->total -= l->sizes[i]; /* its free was not seen */
	l->sizes[i] = bytes;
	l->total += bytes;
	return 0;
}

static void freed(struct live *l, uint64_t address)
{
	uint32_t i = map_get(&l->at, address, 0);

	if (i == MAP_NONE)
		return; /* allocated before the trace */
	l->total -= l->sizes[i];
	l->sizes[i] = 0;
}

static int account(struct live *l, const struct session *s, const struct call *c)
{
	const struct call_args *a = &s->transfers[c->args];

	if (s->apis[c->api].kind == API_FREE) {
		freed(l, a->object);
		return 0;
	}
	return a->has_out && a->out ? allocated(l, a->out, a->bytes) : 0;
}

static void put_live(struct perfetto *f, uint32_t process, int64_t ts, uint64_t total, bool *begun)
{
	if (!*begun) {
		uint64_t track;

		perfetto_process(f, process);
		track = perfetto_track(f, &(struct perfetto_track){
			TRACK_LIVE, process, track_id(TRACK_PROCESS, process), "live bytes",
			"Device memory allocated and not freed, of allocations within the trace",
			"bytes", -14});
		packets_sequence(&f->packets, track, ts);
		*begun = true;
	}
	perfetto_value(f, ts, (int64_t)(total & INT64_MAX));
}

static int live_of(struct perfetto *f, uint32_t process, const struct export_options *all)
{
	struct live l = {.total = 0};
	struct export_walk *walk = NULL;
	struct export_item item;
	uint64_t last = 0;
	bool begun = false;
	int err = export_walk_some(&walk, f->s, all, 1u << API_ALLOC | 1u << API_FREE,
				   EXPORT_NO_DEVICE);

	while (!err && export_walk_next(walk, &item)) {
		const struct call *c = &f->s->calls[item.index];

		if (!counts(f->s, c))
			continue;
		err = account(&l, f->s, c);
		if (l.total == last || !export_wants(f->o, item.begin, item.begin))
			continue;
		last = l.total;
		put_live(f, process, item.begin, last, &begun);
	}
	export_walk_free(walk);
	map_free(&l.at);
	free(l.sizes);
	return err;
}

int perfetto_live_bytes(struct perfetto *f)
{
	bool *only = calloc(f->s->processes_count + 1, sizeof(*only));
	struct export_options all = EXPORT_ALL;
	int err = only ? 0 : -ENOMEM;

	all.processes = only;
	for (uint32_t i = 0; i < f->s->processes_count && !err; i++) {
		if (!export_wants_process(f->o, i))
			continue;
		only[i] = true;
		err = live_of(f, i, &all);
		only[i] = false;
	}
	free(only);
	return err;
}
