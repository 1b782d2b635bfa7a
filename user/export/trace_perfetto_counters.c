// SPDX-License-Identifier: BSD-2-Clause
/*
 * Counters that are worked out, in steps of equal length: what is outstanding on each
 * stream, how busy each GPU is, how fast each process launches.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "export/trace_perfetto.h"
#include "model/merge.h"

#define SECOND 1000000000.0

/* One number a step. */
struct steps {
	double *value;
	size_t count;
	int64_t step; /* ns */
};

static int steps_make(struct steps *v, const struct perfetto *f, int64_t step)
{
	v->step = step;
	v->count = (size_t)((f->end - f->begin + step - 1) / step);
	v->value = calloc(v->count + 2, sizeof(*v->value));
	return v->value ? 0 : -ENOMEM;
}

static void steps_clear(struct steps *v)
{
	memset(v->value, 0, (v->count + 2) * sizeof(*v->value));
}

static int64_t step_begin(const struct perfetto *f, const struct steps *v, size_t i)
{
	return f->begin + (int64_t)i * v->step;
}

/* The first step that begins at or after ts; count: none. */
static size_t step_after(const struct perfetto *f, const struct steps *v, int64_t ts)
{
	int64_t i = ts <= f->begin ? 0 : (ts - f->begin + v->step - 1) / v->step;

	return i < (int64_t)v->count ? (size_t)i : v->count;
}

/* Adds the ns of [begin, end) to the steps that they are in. */
static void steps_fill(const struct perfetto *f, struct steps *v, int64_t begin, int64_t end)
{
	if (begin < f->begin)
		begin = f->begin;
	if (end > f->end)
		end = f->end;
	while (begin < end) {
		size_t i = (size_t)((begin - f->begin) / v->step);
		int64_t until = step_begin(f, v, i + 1);

		if (until > end)
			until = end;
		v->value[i] += (double)(until - begin);
		begin = until;
	}
}

static void put_double(struct perfetto *f, int64_t ts, double value)
{
	struct packets *p = &f->packets;
	struct packet_open open = packet_begin(p, ts, PACKET_TRACK_EVENT);

	packet_uint(p, EVENT_TYPE, PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_COUNTER);
	packet_double(p, EVENT_COUNTER_DOUBLE, value);
	packet_end(p, open);
}

void perfetto_value(struct perfetto *f, int64_t ts, int64_t value)
{
	struct packets *p = &f->packets;
	struct packet_open open = packet_begin(p, ts, PACKET_TRACK_EVENT);

	packet_uint(p, EVENT_TYPE, PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_COUNTER);
	packet_uint(p, EVENT_COUNTER, (uint64_t)value);
	packet_end(p, open);
}

/* What changes from the first step on, scaled and rounded to a tenth; back to 0 at the end. */
static void put_steps(struct perfetto *f, const struct steps *v, size_t first, uint64_t track,
		      double scale)
{
	double last = -1;

	packets_sequence(&f->packets, track, f->begin);
	for (size_t i = first; i < v->count; i++) {
		double value = round(v->value[i] * scale * 10) / 10;

		if (value > last || value < last)
			put_double(f, step_begin(f, v, i), value);
		last = value;
	}
	if (last > 0 || last < 0)
		put_double(f, f->end, 0);
}

/* ---- queue depth ---- */

/* Work that was asked for and had not begun, at the beginning of each step. */
static bool depth_of(const struct perfetto *f, const struct session_stream *st, struct steps *v)
{
	const struct session *s = f->s;
	bool any = false;

	for (uint32_t i = 0; i < st->works; i++) {
		const struct work *w = &s->works[st->first_work + i];
		size_t asked, began;

		if (work_unmatched(w) || w->begin < f->begin)
			continue;
		asked = step_after(f, v, work_asked(s, w));
		began = step_after(f, v, w->begin);
		if (asked >= began)
			continue;
		v->value[asked]++;
		v->value[began]--;
		any = true;
	}
	for (size_t i = 1; i < v->count; i++)
		v->value[i] += v->value[i - 1];
	return any;
}

static void put_depth(struct perfetto *f, uint32_t stream, struct steps *v)
{
	const struct session_stream *st = &f->s->streams[stream];
	uint64_t track;
	char name[96];

	steps_clear(v);
	if (!depth_of(f, st, v))
		return;
	perfetto_process(f, st->process);
	snprintf(name, sizeof(name), "queue depth, stream %u of context %u", st->id, st->context);
	track = perfetto_track(f, &(struct perfetto_track){
		TRACK_DEPTH, stream, track_id(TRACK_PROCESS, st->process), name,
		"Work asked for that had not begun on the GPU, sampled in equal steps", "works",
		-10});
	put_steps(f, v, 0, track, 1);
}

/* ---- GPU busy ---- */

/* Adds what of [begin, end) was watched; *at: the first span that may matter. */
static void fill_watched(const struct perfetto *f, struct steps *v, const struct spans *watched,
			 size_t *at, int64_t begin, int64_t end)
{
	while (*at < watched->count && watched->items[*at].end <= begin)
		++*at;
	for (size_t k = *at; k < watched->count && watched->items[k].begin < end; k++) {
		const struct span *w = &watched->items[k];

		steps_fill(f, v, w->begin > begin ? w->begin : begin,
			   w->end < end ? w->end : end);
	}
}

/* The union, as the works come: nothing is kept of them. */
static int busy_of(const struct perfetto *f, uint32_t physical, const struct spans *watched,
		   struct steps *v)
{
	struct merge merge;
	int64_t until = INT64_MIN;
	size_t at = 0;
	uint32_t i;
	int err = merge_begin(&merge, f->s, physical);

	if (err)
		return err;
	while ((i = merge_next(&merge)) != WORK_NONE) {
		const struct work *w = &f->s->works[i];

		if (!export_wants_work(f->s, f->o, i))
			continue;
		fill_watched(f, v, watched, &at, w->begin > until ? w->begin : until, w->end);
		if (w->end > until)
			until = w->end;
	}
	merge_end(&merge);
	return 0;
}

/* When the device was watched: all of the time where no file says when, and what ran when. */
static int busy_and_watched(const struct perfetto *f, uint32_t physical, struct steps *busy,
			    struct steps *watched)
{
	struct span all = { f->begin, f->end };
	struct spans covered = { 0 }, always = { &all, 1 };
	const struct spans *v = f->s->sidecars_count ? &covered : &always;
	int err = device_covered(f->s, physical, &covered);

	if (err)
		return err;
	for (size_t i = 0; i < v->count; i++)
		steps_fill(f, watched, v->items[i].begin, v->items[i].end);
	err = busy_of(f, physical, v, busy);
	spans_free(&covered);
	return err;
}

/* Busy becomes a share of what was watched; the first step of that, count: there is none. */
static size_t shares_make(struct steps *busy, const struct steps *watched)
{
	size_t first = busy->count;

	for (size_t i = busy->count; i-- > 0;) {
		if (watched->value[i] <= 0)
			continue; /* nothing of it is busy, either */
		busy->value[i] /= watched->value[i];
		first = i;
	}
	return first;
}

static int put_busy(struct perfetto *f, size_t gpu, struct steps *v, struct steps *watched)
{
	uint64_t track;
	size_t first;
	int err;

	steps_clear(v);
	steps_clear(watched);
	err = busy_and_watched(f, f->gpus[gpu].physical, v, watched);
	if (err)
		return err;
	first = shares_make(v, watched);
	if (first == v->count)
		return 0;
	perfetto_gpu(f, gpu);
	track = perfetto_track(f, &(struct perfetto_track){
		TRACK_GPU_COUNTER, gpu * 16 + GPU_BUSY, track_id(TRACK_GPU, gpu), "GPU busy",
		"Share of the watched time with a kernel, copy or set running; 0 between times "
		"in which GPU work was recorded",
		"%", 1});
	put_steps(f, v, first, track, 100);
	return 0;
}

/* ---- launches a second ---- */

static bool counts_as_launch(const struct session *s, const struct call *c)
{
	if (!(s->apis[c->api].sorts & API_IS_LAUNCH))
		return false;
	return c->parent == CALL_NONE ||
	       !(s->apis[s->calls[c->parent].api].sorts & API_IS_LAUNCH);
}

static bool launches_of(const struct perfetto *f, const struct session_thread *t, struct steps *v)
{
	bool any = false;

	for (uint32_t i = 0; i < t->calls; i++) {
		const struct call *c = &f->s->calls[t->first_call + i];

		if (c->begin < f->begin || c->begin >= f->end || !counts_as_launch(f->s, c))
			continue;
		v->value[(size_t)((c->begin - f->begin) / v->step)]++;
		any = true;
	}
	return any;
}

static void put_launches(struct perfetto *f, uint32_t process, struct steps *v)
{
	bool any = false;
	uint64_t track;

	steps_clear(v);
	for (size_t i = 0; i < f->s->threads_count; i++)
		if (f->s->threads[i].process == process)
			any |= launches_of(f, &f->s->threads[i], v);
	if (!any)
		return;
	perfetto_process(f, process);
	track = perfetto_track(f, &(struct perfetto_track){
		TRACK_LAUNCHES, process, track_id(TRACK_PROCESS, process), "launches/s",
		"Kernels and graphs asked for, over each step", "launches/s", -15});
	put_steps(f, v, 0, track, SECOND / (double)v->step);
}

int perfetto_counters(struct perfetto *f)
{
	const struct session *s = f->s;
	struct steps samples = {0}, rates = {0}, watched = {0};
	int err;

	if (f->end <= f->begin)
		return 0;
	err = steps_make(&samples, f, f->sample_step);
	if (!err)
		err = steps_make(&rates, f, f->rate_step);
	if (!err)
		err = steps_make(&watched, f, f->rate_step);
	for (uint32_t i = 0; i < s->processes_count && !err; i++)
		if (export_wants_process(f->o, i))
			put_launches(f, i, &rates);
	for (uint32_t i = 0; i < s->streams_count && !err; i++)
		if (export_wants_process(f->o, s->streams[i].process))
			put_depth(f, i, &samples);
	for (size_t i = 0; i < f->gpus_count && !err; i++)
		if (f->gpus[i].physical != NO_GPU)
			err = put_busy(f, i, &rates, &watched);
	free(samples.value);
	free(watched.value);
	free(rates.value);
	return err;
}
