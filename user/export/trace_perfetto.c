// SPDX-License-Identifier: BSD-2-Clause
/*
 * The Perfetto trace of a session: what its tracks are, and in which order they are
 * written. https://perfetto.dev/docs/reference/synthetic-track-event
 */
#include "export/trace_perfetto.h"

#include <errno.h>
#include <stdlib.h>

#define STEPS 20000	    /* of a counter at most */
#define SAMPLE_MIN 10000    /* ns between samples, at least */
#define RATES 1000	    /* of a rate, while its steps are shorter than RATE_MAX */
#define RATE_MIN 100000	    /* ns */
#define RATE_MAX 10000000
#define CLEARED PERFETTO__PROTOS__TRACE_PACKET__SEQUENCE_FLAGS__SEQ_INCREMENTAL_STATE_CLEARED

static void clock_set(Perfetto__Protos__ClockSnapshot__Clock *c, uint32_t id, int64_t ns)
{
	perfetto__protos__clock_snapshot__clock__init(c);
	c->has_clock_id = c->has_timestamp = true;
	c->clock_id = id;
	c->timestamp = ns > 0 ? (uint64_t)ns : 0;
}

/* Of which clock all times are, and what the others showed. */
static void put_clock(struct perfetto *f, const struct record_clock *clock, int64_t ts, bool first)
{
	Perfetto__Protos__TracePacket packet = PERFETTO__PROTOS__TRACE_PACKET__INIT;
	Perfetto__Protos__ClockSnapshot snapshot = PERFETTO__PROTOS__CLOCK_SNAPSHOT__INIT;
	Perfetto__Protos__ClockSnapshot__Clock c[3], *list[3] = {&c[0], &c[1], &c[2]};

	clock_set(&c[0], PERFETTO__PROTOS__BUILTIN_CLOCK__BUILTIN_CLOCK_MONOTONIC, ts);
	if (clock) {
		clock_set(&c[1], PERFETTO__PROTOS__BUILTIN_CLOCK__BUILTIN_CLOCK_REALTIME,
			  clock->realtime);
		clock_set(&c[2], PERFETTO__PROTOS__BUILTIN_CLOCK__BUILTIN_CLOCK_BOOTTIME,
			  clock->boottime);
	}
	snapshot.n_clocks = clock ? 3 : 1;
	snapshot.clocks = list;
	snapshot.has_primary_trace_clock = true;
	snapshot.primary_trace_clock =
		PERFETTO__PROTOS__BUILTIN_CLOCK__BUILTIN_CLOCK_MONOTONIC;
	packet.clock_snapshot = &snapshot;
	packet.has_timestamp = packet.has_timestamp_clock_id = true;
	packet.timestamp = c[0].timestamp;
	packet.timestamp_clock_id = c[0].clock_id;
	packet.has_first_packet_on_sequence = first;
	packet.first_packet_on_sequence = first;
	packet.sequence_flags = first ? CLEARED : 0;
	packets_add(&f->packets, &packet);
}

/* The trace's clock must not go back from one snapshot to the next. */
static void put_clocks(struct perfetto *f)
{
	const struct session *s = f->s;
	int64_t last = INT64_MIN;

	f->packets.sequence = 1;
	for (size_t i = 0; i < s->clocks_count; i++) {
		const struct record_clock *c = &s->clocks[i];

		if (c->monotonic < 0 || c->realtime < 0 || c->boottime < 0 || c->monotonic < last)
			continue;
		put_clock(f, c, c->monotonic, last == INT64_MIN);
		last = c->monotonic;
	}
	if (last == INT64_MIN)
		put_clock(f, NULL, f->begin, true);
}

/* At least min, so that there are less than most of them: 1, 2 or 5 times a power of ten. */
static int64_t step_for(int64_t span, int64_t most, int64_t min)
{
	static const int factors[] = {2, 5, 10};
	int64_t unit = min, step = min;

	for (int at = 0; step < INT64_MAX / 20 && span / step >= most; at = (at + 1) % 3) {
		step = unit * factors[at];
		if (at == 2)
			unit = step;
	}
	return step;
}

/* What the counters cover, and how finely. */
static void cover(struct perfetto *f)
{
	int64_t coarse, fine;

	f->begin = f->s->begin > f->o->from ? f->s->begin : f->o->from;
	f->end = f->s->end < f->o->to ? f->s->end : f->o->to;
	if (f->begin < 0)
		f->begin = 0;
	if (f->end < f->begin)
		f->end = f->begin;
	f->sample_step = step_for(f->end - f->begin, STEPS, SAMPLE_MIN);
	coarse = step_for(f->end - f->begin, RATES, RATE_MIN);
	fine = f->sample_step > RATE_MAX ? f->sample_step : RATE_MAX;
	f->rate_step = coarse < fine ? coarse : fine;
}

static void done(struct perfetto *f)
{
	packets_free(&f->packets);
	export_lanes_free(f->lanes);
	map_free(&f->tracks);
	free(f->gpus);
}

static int write_all(struct perfetto *f)
{
	int (*const parts[])(struct perfetto *) = {
		perfetto_calls, perfetto_works, perfetto_counters, perfetto_samples,
		perfetto_live_bytes, perfetto_marks,
	};
	int err = perfetto_gpus_find(f);

	if (err)
		return err;
	put_clocks(f);
	perfetto_gpu_info(f);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts) && !err; i++) {
		err = parts[i](f);
		if (!err)
			err = f->packets.err;
	}
	return err ? err : packets_flush(&f->packets);
}

static int write_perfetto(const struct session *s, const struct export_options *o,
			  struct export_file *file, char *why, size_t size)
{
	struct perfetto f = {.s = s, .o = o, .all = s->calls_count + s->works_count};
	int err = packets_init(&f.packets, s, export_stream(file));

	cover(&f);
	if (!err)
		err = export_lanes_new(&f.lanes, true);
	if (!err)
		err = write_all(&f);
	done(&f);
	return err;
}

static const char *const endings[] = {".pftrace", ".perfetto-trace", NULL};

const struct export_writer export_perfetto = {
	.name = "perfetto",
	.endings = endings,
	.what = "for ui.perfetto.dev and trace_processor",
	.write = write_perfetto,
};
