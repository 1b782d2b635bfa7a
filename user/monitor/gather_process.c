/* SPDX-License-Identifier: BSD-2-Clause */
/* What one process did in an interval: counted and sampled, put together. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/private.h"
#include "probe/catalogue.h"

struct estimate exactly(double value)
{
	return (struct estimate){.known = true, .value = value, .low = value, .high = value};
}

struct estimate sum_of(struct estimate a, struct estimate b)
{
	a.known = a.known && b.known;
	a.value += b.value;
	a.low += b.low;
	a.high += b.high;
	return a;
}

const struct mon_image *item_of(const struct gathering *g, const struct mon_process *p)
{
	return p->image ? find_item(g->m, p->image) : NULL;
}

bool item_sampled(const struct mon_image *item)
{
	return item && item->hot_ns > 0;
}

struct interval_facts facts_of(const struct gathering *g, const struct mon_process *p,
			       const struct anchor *anchor, double seen)
{
	const struct mon_image *item = item_of(g, p);
	struct cost cost = cost_of(g->m, p);

	return (struct interval_facts){
		.length = item->hot_ns,
		.covered = item->covered,
		.windows = item->windows,
		.anchor = anchor ? anchor->all : 0,
		.spent = anchor ? anchor->spent : 0,
		.cost = cost.factor,
		.cost_sd = cost.sd,
		.seen = seen,
	};
}

/* Of the part of the interval in which windows were needed, as part of the whole. */
struct estimate hot_part(const struct gathering *g, const struct mon_image *item,
			 struct estimate e)
{
	double part = (double)item->hot_ns / (double)g->length;

	e.value *= part;
	e.low *= part;
	e.high *= part;
	return e;
}

static bool counts_for(const struct mon_api *a, enum quantity q)
{
	switch (q) {
	case Q_LAUNCHES:
	case Q_SLOW:
		return a->class == GBPF_CLASS_LAUNCH;
	case Q_COPIES:
	case Q_COPY_BYTES:
		return a->class == GBPF_CLASS_COPY;
	default:
		return true;
	}
}

/* Of what was first counted and then sampled beside others nobody knows which part is which. */
static bool mixed(const struct mon_process *p, enum quantity q)
{
	size_t i;

	for (i = 0; i < p->apis_count; i++)
		if (p->apis[i]->mixed && counts_for(p->apis[i], q))
			return true;
	return false;
}

/* Something of it is probed in windows, of which there was none yet. */
static bool unseen(const struct mon_process *p, enum quantity q)
{
	size_t i;

	for (i = 0; i < p->apis_count; i++)
		if (p->apis[i]->hot && counts_for(p->apis[i], q))
			return true;
	return q == Q_LAUNCHES; /* launches nobody has looked for yet are not none */
}

/* What is always probed is counted; what is sampled comes on top. */
static struct estimate rate_of(const struct gathering *g, const struct mon_process *p,
			       enum quantity q)
{
	const struct mon_image *item = item_of(g, p);
	struct estimate steady = exactly((double)p->steady[q] * 1e9 / (double)g->length);
	struct interval_facts facts;

	steady.known = item != NULL; /* else nothing of it is probed */
	if (!item_sampled(item))
		return steady;
	if (!p->series[q]) {
		steady.known = !unseen(p, q);
		return steady;
	}
	facts = facts_of(g, p, &p->anchors, (double)p->sampled[q]);
	steady.known = !mixed(p, q);
	return sum_of(steady, hot_part(g, item, estimate_rate(p->series[q], &facts)));
}

/* ---- one API ---- */

/* The first bucket from i on that counted since, or GBPF_BUCKETS: most did not. */
static size_t next_changed(const uint32_t *bucket, const uint32_t *mark, size_t i)
{
	while (i + 8 <= GBPF_BUCKETS && !memcmp(bucket + i, mark + i, 8 * sizeof(*mark)))
		i += 8;
	while (i < GBPF_BUCKETS && bucket[i] == mark[i])
		i++;
	return i;
}

static void buckets_since(const struct gbpf_cell *c, const uint32_t *mark, struct histogram *out)
{
	memset(out, 0, sizeof(*out));
	for (size_t i = next_changed(c->bucket, mark, 0); i < GBPF_BUCKETS;
	     i = next_changed(c->bucket, mark, i + 1)) {
		uint32_t more = c->bucket[i] - mark[i];

		out->bucket[i] = more;
		out->count += more;
	}
	histogram_limit(out, c->max_ns);
}

static bool apis_wanted(const struct monitor *m)
{
	return m->options.apis || m->options.detail;
}

bool recent_wanted(const struct monitor *m, const struct mon_api *a)
{
	return apis_wanted(m) || a->class == GBPF_CLASS_LAUNCH;
}

static void api_gather(const struct gathering *g, const struct mon_process *p, struct mon_api *a,
		       struct histogram *recent, struct snapshot_api *out)
{
	const struct gbpf_cell *c = &g->m->counts.cells[a->slot];
	const struct mon_image *item = item_of(g, p);
	const struct api *api = catalogue_get(a->api);
	struct interval_facts facts;

	memset(out, 0, sizeof(*out));
	out->api = a->api;
	out->sampled = a->hot;
	out->calls = a->last.calls;
	out->errors = a->last.errors;
	out->bytes = a->last.bytes * (api->element ? api->element : 1);
	out->total_ns = a->last.sum_ns;
	out->seen = a->last.calls - a->begin.calls;
	out->interval_ns = a->last.sum_ns - a->begin.sum_ns;
	out->p50_ns = out->p99_ns = out->max_ns = -1;
	if (recent)
		buckets_since(c, a->mark[1], recent);
	if (recent && apis_wanted(g->m)) {
		out->p50_ns = snapshot_quantile(recent, 0.5);
		out->p99_ns = snapshot_quantile(recent, 0.99);
		out->max_ns = recent->count ? (int64_t)recent->max_ns : -1;
	}
	out->calls_per_s = exactly((double)(out->seen - a->seen) * 1e9 / (double)g->length);
	if (!item_sampled(item) || (!a->hot && !a->seen))
		return;
	facts = facts_of(g, p, &p->anchors, (double)a->seen);
	out->calls_per_s.known = a->calls && !a->mixed;
	if (a->calls)
		out->calls_per_s = sum_of(out->calls_per_s,
					  hot_part(g, item, estimate_rate(a->calls, &facts)));
}

static int apis_gather(const struct gathering *g, struct mon_process *p,
		       struct snapshot_process *out)
{
	struct histogram *launch = calloc(1, sizeof(*launch)), recent;
	size_t i;

	out->apis = calloc(p->apis_count + 1, sizeof(*out->apis));
	if (!launch || !out->apis) {
		free(launch);
		return -ENOMEM;
	}
	out->launch_recent = launch;
	for (i = 0; i < p->apis_count; i++) {
		struct mon_api *a = p->apis[i];
		struct snapshot_api *o = &out->apis[out->apis_count++];

		api_gather(g, p, a, a->mark ? &recent : NULL, o);
		if (a->class == GBPF_CLASS_LAUNCH)
			histogram_add(launch, &recent);
		if (g->m->options.detail) {
			struct histogram *copy = malloc(sizeof(*copy));

			if (!copy)
				return -ENOMEM;
			*copy = recent;
			o->recent = copy;
		}
	}
	out->dispatch_p50_ns = snapshot_quantile(launch, 0.5);
	out->dispatch_p99_ns = snapshot_quantile(launch, 0.99);
	return 0;
}

/* The histograms of all that was ever seen. */
static void ever_gather(const struct gathering *g, struct mon_process *p,
			struct snapshot_process *out)
{
	size_t i, k;

	if (!g->m->options.ever)
		return;
	out->launch_ever = &p->launch_ever;
	out->sync_ever = &p->sync_ever;
	memset(&p->launch_ever, 0, sizeof(p->launch_ever));
	memset(&p->sync_ever, 0, sizeof(p->sync_ever));
	for (i = 0; i < p->apis_count; i++) {
		const struct mon_api *a = p->apis[i];
		const struct gbpf_cell *c = &g->m->counts.cells[a->slot];
		struct histogram *h = a->class == GBPF_CLASS_LAUNCH ? &p->launch_ever
				      : a->class == GBPF_CLASS_SYNC ? &p->sync_ever : NULL;
		uint64_t count = 0;

		if (!h)
			continue;
		for (k = 0; k < GBPF_BUCKETS; k++) {
			uint32_t calls = c->bucket[k];

			h->bucket[k] += calls;
			count += calls;
		}
		h->count += count;
		h->sum_ns += c->sum_ns;
		if (c->max_ns > h->max_ns)
			h->max_ns = c->max_ns;
	}
}

/* ---- kernels ---- */

static int kernels_gather(const struct gathering *g, const struct mon_process *p,
			  struct snapshot_process *out)
{
	size_t i, room = 0;

	for (i = 0; g->m->options.detail && i < GBPF_KERNELS; i++) {
		struct mon_kernel *k = g->m->kernels[i];
		struct snapshot_kernel *o;

		if (!k || k->pid != p->pid)
			continue;
		if (out->kernels_count == room) {
			room = room ? 2 * room : 16;
			o = realloc(out->kernels, room * sizeof(*o));
			if (!o)
				return -ENOMEM;
			out->kernels = o;
		}
		o = &out->kernels[out->kernels_count++];
		memset(o, 0, sizeof(*o));
		o->handle = g->m->counts.kernels[i].handle;
		o->name = kernels_name(g->m, k);
		o->seen = k->launches - k->begin;
		o->launches = k->launches;
		o->total_ns = g->m->counts.kernels[i].sum_ns;
		if (out->launches_seen) { /* its part of what was seen, of what was estimated */
			double part = (double)o->seen / (double)out->launches_seen;

			o->launches_per_s = out->launches_per_s;
			o->launches_per_s.value *= part;
			o->launches_per_s.low *= part;
			o->launches_per_s.high *= part;
		}
		k->begin = k->launches;
	}
	return 0;
}

/* ---- a process ---- */

static void proc_gather(const struct gathering *g, const struct mon_process *p,
			struct snapshot_process *out)
{
	const struct gbpf_proc *c, *b = &p->proc_begin;
	uint64_t most = 0, waited, ran;
	size_t i;

	if (p->proc_slot >= GBPF_PROCS)
		return;
	c = &g->m->counts.procs[p->proc_slot];
	out->live_allocations = c->live;
	out->live_bytes = c->live_bytes;
	out->cold_starts = c->cold - b->cold;
	out->cold_ns = c->cold_ns - b->cold_ns;
	waited = c->lock_ns - b->lock_ns;
	for (i = 0; i < GBPF_SIBLINGS; i++) {
		ran = c->siblings[i].ns;
		if (c->siblings[i].tid == b->siblings[i].tid)
			ran -= b->siblings[i].ns;
		if (ran <= most)
			continue;
		most = ran;
		out->sibling_tid = c->siblings[i].tid;
	}
	if (!out->sibling_tid || !waited)
		out->sibling_tid = 0;
	else
		process_thread_comm(p->pid, out->sibling_tid, out->sibling_comm);
	out->sibling_share = waited ? (double)most / (double)waited : 0;
	if (out->sibling_share > 1)
		out->sibling_share = 1;
}

static bool allocations_hot(const struct mon_process *p)
{
	size_t i;

	for (i = 0; i < p->apis_count; i++)
		if (p->apis[i]->hot && (p->apis[i]->class == GBPF_CLASS_ALLOC ||
					p->apis[i]->class == GBPF_CLASS_FREE))
			return true;
	return false;
}

static void gpus_gather(const struct gathering *g, struct snapshot_process *out)
{
	size_t i, k;

	for (i = 0; i < g->m->gpus.count; i++) {
		const struct gpu_sample *s = &g->m->gpus.items[i];
		bool uses = false;

		for (k = 0; k < s->processes_count && k < GPU_PROCESSES; k++)
			uses |= s->processes[k] == out->pid;
		if (!uses)
			continue;
		if (!out->gpu_uuid[0])
			memcpy(out->gpu_uuid, s->uuid, sizeof(out->gpu_uuid));
		out->gpu_shared |= s->processes_count > 1;
	}
}

static void labels_gather(const struct mon_process *p, struct snapshot_process *out)
{
	out->pid = p->pid;
	out->start = p->start;
	out->seen = p->seen;
	memcpy(out->comm, p->comm, sizeof(out->comm));
	out->command = p->command;
	out->labels = p->labels;
	out->tree_cpu_pct = p->usage_known ? p->usage_rate.cpu_pct : -1;
	out->tree_io_bytes_per_s = p->usage_known ? p->usage_rate.io_bytes_per_s : -1;
	out->throttled_share = p->throttled;
}

int process_gather(const struct gathering *g, struct mon_process *p,
			  struct snapshot_process *out)
{
	const struct mon_image *item = item_of(g, p);
	int err;

	memset(out, 0, sizeof(*out));
	labels_gather(p, out);
	out->launches_per_s = rate_of(g, p, Q_LAUNCHES);
	out->copies_per_s = rate_of(g, p, Q_COPIES);
	out->copy_bytes_per_s = rate_of(g, p, Q_COPY_BYTES);
	out->errors_per_s = rate_of(g, p, Q_ERRORS);
	out->back_pressured_per_s = rate_of(g, p, Q_SLOW);
	out->launches_seen = p->steady[Q_LAUNCHES] + p->sampled[Q_LAUNCHES];
	out->recent_ns = RECENT_TURN_NS;
	out->coverage = item ? 1 : 0;
	if (item_sampled(item))
		out->coverage = 1 - (double)(item->hot_ns - item->covered) / (double)g->length;
	out->live_known = !allocations_hot(p) && item;
	ever_gather(g, p, out);
	proc_gather(g, p, out);
	gpus_gather(g, out);
	err = apis_gather(g, p, out);
	if (!err)
		err = threads_gather(g, p, out);
	return err ? err : kernels_gather(g, p, out);
}
