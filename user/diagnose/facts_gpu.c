// SPDX-License-Identifier: BSD-2-Clause
/* What GPU time and NVML add. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "diagnose/facts.h"
#include "gpu/gpu.h"
#include "model/grow.h"
#include "util/select.h"

#define UNSTEADY_LEAST 20 /* launches of a kernel and shape whose spread says something */
#define LATE_NS 100000 /* HTA's threshold of a launch delay */
#define DELAY_NS 1500000 /* and of a dependency that nothing explains */
#define USUAL_TIMES 4 /* a launch's way to the GPU that is longer is unusual */
#define PRODUCT_NS 100000 /* a copy this shortly before a kernel goes with it */

/*
 * A kernel and shape: the index is that of the shape, or comes after all of them where that
 * was lost. Of each shape there is one kernel, and so there is of what has lost its own.
 */
struct kind {
	uint32_t kernel, shape;
	size_t count, first; /* first: where its durations are, once they are by kind */
};

struct scan {
	struct facts *f;
	struct work_times *times;
	struct neighbours *others; /* by device, at the first of those that are the same */
	int64_t *durations, *delays, *starts; /* of all kernels */
	uint32_t *kind_of; /* index into kinds, as durations */
	struct kind *kinds;
	size_t kernels, delays_count, starts_count;
};

static bool is_ours(const struct facts *f, const struct work *w)
{
	return f->s->streams[w->stream].process == f->process;
}

static void tally_add(struct tally *t, int64_t ns, uint32_t api)
{
	t->count++;
	t->ns += ns;
	if (ns < t->longest)
		return;
	t->longest = ns;
	t->api = api;
}

/* On a free stream: what did the kernel wait for, if not for others' work? */
static void take_start(struct scan *v, const struct work *w, const struct work_times *t)
{
	const struct session *s = v->f->s;
	const struct call *c = &s->calls[w->call];
	const struct neighbours *others =
		&v->others[s->devices[s->streams[w->stream].device].physical];
	int64_t waited = t->queue_time;

	if (waited > 0)
		waited -= neighbours_held(others, w->begin - waited, w->begin);
	if (waited > LATE_NS)
		tally_add(&v->f->late, waited, c->api);
	if (!neighbours_ran(others, c->begin, w->begin))
		v->starts[v->starts_count++] = t->launch_to_start;
	v->f->uncontended++;
}

static void take_call(struct scan *v, const struct work *w, const struct work_times *t)
{
	struct facts *f = v->f;
	const struct call *c = &f->s->calls[w->call];

	if (w->kind == RECORD_WORK_COPY) {
		bool waits = f->s->apis[c->api].sorts & API_IS_WAIT;

		if (!waits && (w->source == RECORD_MEMORY_PAGEABLE ||
			       w->target == RECORD_MEMORY_PAGEABLE)) {
			f->pageable.count++;
			f->pageable.ns += call_duration(c) > 0 ? call_duration(c) : 0;
			f->pageable.bytes += w->bytes;
			f->pageable.api = c->api;
		}
		return;
	}
	if (w->kind != RECORD_WORK_KERNEL)
		return;
	f->depth_most = t->depth > f->depth_most ? t->depth : f->depth_most;
	if (t->queue_delay != NA_TIME)
		v->delays[v->delays_count++] = t->queue_delay;
	if (t->flags & WORK_UNCONTENDED)
		take_start(v, w, t);
	f->short_kernels += t->flags & WORK_SHORT && !w->graph;
}

static void take_kernel(struct scan *v, const struct work *w)
{
	struct facts *f = v->f;
	uint32_t index = w->shape == SHAPE_NONE ? (uint32_t)f->s->shapes_count : w->shape;
	struct kind *k = &v->kinds[index];

	f->kernels++;
	f->nodes += w->graph != 0;
	f->kernel_ns += w->end - w->begin;
	if (work_class(f->s, w) == WORK_CLASS_COMM)
		f->comm_ns += w->end - w->begin;
	k->kernel = w->kernel;
	k->shape = w->shape;
	k->count++;
	v->kind_of[v->kernels] = index;
	v->durations[v->kernels++] = w->end - w->begin;
}

static void take_work(struct scan *v, size_t i)
{
	struct facts *f = v->f;
	const struct work *w = &f->s->works[i];

	f->works++;
	if (w->kind == RECORD_WORK_KERNEL)
		take_kernel(v, w);
	if (w->call != CALL_NONE)
		take_call(v, w, &v->times[i]);
	if (w->kind == RECORD_WORK_COPY && w->direction == RECORD_COPY_DTOD &&
	    i + 1 < f->s->works_count && f->s->works[i + 1].stream == w->stream &&
	    f->s->works[i + 1].kind == RECORD_WORK_KERNEL &&
	    f->s->works[i + 1].begin - w->end < PRODUCT_NS) {
		f->device_copies.count++;
		f->device_copies.ns += w->end - w->begin;
		f->device_copies.bytes += w->bytes;
	}
}

/* How much the times of one kind vary; reorders them. */
static void take_kind(struct facts *f, const struct kind *k, int64_t *ns)
{
	double mean = 0, square = 0, cv;
	size_t n = k->count;
	int64_t usual;

	for (size_t i = 0; i < n; i++)
		mean += (double)ns[i] / (double)n;
	for (size_t i = 0; i < n; i++)
		square += ((double)ns[i] - mean) * ((double)ns[i] - mean);
	cv = n > 1 && mean > 0 ? sqrt(square / (double)(n - 1)) / mean : 0;
	/* Only what matters: a tenth of all kernel time. */
	if (n < UNSTEADY_LEAST || mean * (double)n * 10 < (double)f->kernel_ns ||
	    cv <= f->unsteady_cv)
		return;
	f->unsteady = k->kernel;
	f->unsteady_cv = cv;
	f->unsteady_count = n;
	usual = select_rank(ns, n, (n - 1) / 2);
	if (usual > 0)
		f->unsteady_ratio = (double)select_rank(ns, n, (n - 1) * 99 / 100) / (double)usual;
}

static int kind_order(const void *pa, const void *pb)
{
	const struct kind *a = pa, *b = pb;

	if (a->kernel != b->kernel)
		return a->kernel < b->kernel ? -1 : 1;
	return a->shape < b->shape ? -1 : a->shape > b->shape;
}

/* Puts the durations of each kind together, in their order; *ns is the caller's to free. */
static int by_kind(const struct scan *v, int64_t **ns)
{
	size_t sum = 0, count = v->f->s->shapes_count + 1;

	*ns = malloc((v->kernels + 1) * sizeof(**ns));
	if (!*ns)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		v->kinds[i].first = sum;
		sum += v->kinds[i].count;
	}
	for (size_t i = 0; i < v->kernels; i++)
		(*ns)[v->kinds[v->kind_of[i]].first++] = v->durations[i];
	for (size_t i = 0; i < count; i++)
		v->kinds[i].first -= v->kinds[i].count;
	return 0;
}

static void find_heaviest(struct facts *f, const struct kind *all, size_t n, const int64_t *ns)
{
	for (size_t from = 0, to; from < n; from = to) {
		int64_t sum = 0;
		size_t count = 0;

		for (to = from; to < n && all[to].kernel == all[from].kernel; to++) {
			for (size_t i = 0; i < all[to].count; i++)
				sum += ns[all[to].first + i];
			count += all[to].count;
		}
		if (sum > f->heaviest_ns && !f->s->kernels[all[from].kernel].comm) {
			f->heaviest_ns = sum;
			f->heaviest = all[from].kernel;
			f->heaviest_count = count;
		}
	}
}

static int take_kinds(struct scan *v)
{
	struct facts *f = v->f;
	int64_t *ns;
	size_t n = 0;
	int err = by_kind(v, &ns);

	if (err)
		return err;
	for (size_t i = 0; i <= f->s->shapes_count; i++)
		if (v->kinds[i].count)
			v->kinds[n++] = v->kinds[i];
	qsort(v->kinds, n, sizeof(*v->kinds), kind_order);
	for (size_t i = 0; i < n; i++)
		take_kind(f, &v->kinds[i], ns + v->kinds[i].first);
	find_heaviest(f, v->kinds, n, ns);
	free(ns);
	return 0;
}

/* Of the gap before it, how long was the work on its way to the GPU? */
static void take_gap(struct facts *f, const struct gap *g, const struct work *w)
{
	const struct call *c = w->call == CALL_NONE ? NULL : &f->s->calls[w->call];
	int64_t ns = g->end - g->begin, way;

	f->gap_ns[g->class] += ns;
	if (ns > f->longest_gap)
		f->longest_gap = ns;
	if (!c)
		return;
	if (g->class == GAP_OTHER && ns > DELAY_NS)
		tally_add(&f->delayed, ns, c->api);
	/* The device had to be switched back from others' work. */
	if (g->before != WORK_NONE && !is_ours(f, &f->s->works[g->before]))
		return;
	way = g->end - (c->begin > g->begin ? c->begin : g->begin);
	if ((g->class == GAP_HOST_WAIT || g->class == GAP_SYNC_DRAIN) && way * 4 > ns &&
	    f->launch_to_start_p50 >= 0 && way > USUAL_TIMES * f->launch_to_start_p50)
		tally_add(&f->anomalous, way, c->api);
}

static int gaps(struct facts *f)
{
	const struct session *s = f->s;

	for (uint32_t i = 0; i < s->devices_count; i++) {
		struct gap *all;
		size_t n;
		int err;

		if (s->devices[i].physical != i)
			continue;
		err = device_gaps(s, i, &all, &n);
		if (err)
			return err;
		for (size_t k = 0; k < n; k++) {
			const struct work *w = all[k].after == WORK_NONE ? NULL :
					       &s->works[all[k].after];

			if (w)
				work_fetch_call(s, all[k].after);
			if (w && is_ours(f, w))
				take_gap(f, &all[k], w);
		}
		free(all);
	}
	return 0;
}

static void sharers(struct facts *f)
{
	const struct session *s = f->s;

	for (uint32_t p = 0; p < s->processes_count; p++) {
		bool shared = false;

		for (uint32_t i = 0; p != f->process && i < s->devices_count; i++)
			shared = shared || (s->devices[i].physical == i &&
					    timeline_works_on(s, f->process, i) &&
					    timeline_works_on(s, p, i));
		f->sharers += shared;
	}
}

static int scan_new(struct scan *v, const struct session *s)
{
	size_t n = s->works_count + 1;

	v->durations = malloc(n * sizeof(int64_t));
	v->delays = malloc(n * sizeof(int64_t));
	v->starts = malloc(n * sizeof(int64_t));
	v->kind_of = malloc(n * sizeof(uint32_t));
	v->kinds = calloc(s->shapes_count + 1, sizeof(*v->kinds));
	v->others = calloc(s->devices_count + 1, sizeof(*v->others));
	if (!v->durations || !v->delays || !v->starts || !v->kind_of || !v->kinds || !v->others)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->devices_count; i++) {
		int err;

		if (s->devices[i].physical != i || !timeline_works_on(s, v->f->process, i))
			continue;
		err = neighbours_find(s, v->f->process, i, &v->others[i]);
		if (err)
			return err;
	}
	return work_times(s, &v->times);
}

static void scan_free(struct scan *v)
{
	for (size_t i = 0; v->others && i < v->f->s->devices_count; i++)
		neighbours_free(&v->others[i]);
	free(v->others);
	free(v->durations);
	free(v->delays);
	free(v->starts);
	free(v->kind_of);
	free(v->kinds);
	free(v->times);
}

int diag_facts_gpu(struct facts *f)
{
	struct scan v = { .f = f };
	int err = scan_new(&v, f->s);

	if (err)
		goto out;
	for (size_t i = 0; i < f->s->works_count; i++) {
		work_fetch_call(f->s, i);
		if (is_ours(f, &f->s->works[i]) && !f->s->works[i].earlier)
			take_work(&v, i);
	}
	free(v.times); /* before others need as much */
	v.times = NULL;
	err = take_kinds(&v);
	if (err)
		goto out;
	f->kernel_p50 = quantile(v.durations, v.kernels, 500);
	f->queue_delay_p50 = quantile(v.delays, v.delays_count, 500);
	f->launch_to_start_p50 = quantile(v.starts, v.starts_count, 500);
	for (size_t i = 0; i < f->s->overheads_count; i++)
		if (f->s->overheads[i].process == f->process)
			f->overhead_records_ns +=
				f->s->overheads[i].end - f->s->overheads[i].begin;
	sharers(f);
	err = gaps(f);
out:
	scan_free(&v);
	return err;
}

/* Samples of the devices that this process used, or of all where that is not known. */
static bool sampled_for(const struct facts *f, uint32_t gpu)
{
	const struct session *s = f->s;
	bool known = false;

	for (size_t i = 0; i < s->devices_count; i++) {
		if (s->devices[i].process != f->process || s->devices[i].gpu == UINT32_MAX)
			continue;
		known = true;
		if (s->devices[i].gpu == gpu)
			return true;
	}
	return !known;
}

void diag_facts_nvml(struct facts *f)
{
	const struct session *s = f->s;
	uint64_t used = 0, able = 0, held = 0;
	double utilisation = 0;

	f->utilisation = f->throttled = -1;
	f->clock_min = f->clock_max = -1;
	for (size_t i = 0; i < s->gpu_samples_count; i++) {
		const struct record_gpu_sample *g = &s->gpu_samples[i];

		if (!sampled_for(f, g->gpu))
			continue;
		if (g->has & GPU_HAS_UTILISATION) {
			utilisation += g->utilisation_pct;
			used++;
		}
		if (g->has & GPU_HAS_CLOCK_SM) {
			int64_t mhz = g->clock_sm_mhz;

			f->clock_min = f->clock_min < 0 || mhz < f->clock_min ? mhz : f->clock_min;
			f->clock_max = mhz > f->clock_max ? mhz : f->clock_max;
		}
	}
	for (size_t i = 0; i < s->gpus_count; i++) {
		if (!sampled_for(f, (uint32_t)i))
			continue;
		able += s->gpus[i].throttle_known;
		held += s->gpus[i].throttled;
		if (s->gpus[i].throttled)
			f->throttled_by = s->gpus[i].throttled_by;
	}
	if (used)
		f->utilisation = utilisation / (double)used;
	if (able)
		f->throttled = (double)held / (double)able;
}
