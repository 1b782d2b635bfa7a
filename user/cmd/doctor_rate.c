/* SPDX-License-Identifier: BSD-2-Clause */
/* How often a process calls CUDA now, and what probes would cost it. Counts, keeps nothing. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bpf/gbpf.h"
#include "cmd/doctor.h"
#include "cmd/summary.h"

#define THREADS_MAX 4096 /* a power of two */
#define MEASURE_NS 1000000000LL
#define ROUND_US 20000

struct doctor_thread {
	uint32_t tid;
	uint64_t calls;
	int64_t cost; /* of their probes, ns */
};

/* Threads beyond the room are counted as one, the last. */
static struct doctor_thread *thread_of(struct doctor_sink *s, uint32_t tid)
{
	uint32_t at = tid * 2654435761u % THREADS_MAX, i;

	for (i = 0; i < 64; i++) {
		struct doctor_thread *t = &s->threads[(at + i) % THREADS_MAX];

		if (t->tid == tid)
			return t;
		if (t->tid)
			continue;
		t->tid = tid;
		s->threads_count++;
		return t;
	}
	return &s->threads[(at + i - 1) % THREADS_MAX];
}

static int on_events(void *ctx, const struct event *events, size_t count)
{
	struct doctor_sink *s = ctx;
	size_t i;

	for (i = 0; i < count && s->threads; i++) {
		const struct event *e = &events[i];
		struct doctor_thread *t;
		uint64_t calls = e->kind == EVENT_POLL ? e->poll.count : 1;
		bool launch = e->kind == EVENT_BEGIN && e->args == EVENT_ARGS_LAUNCH;

		if (e->pid != s->pid || e->kind == EVENT_END)
			continue;
		t = thread_of(s, e->tid);
		t->calls += calls;
		t->cost += (int64_t)calls * (launch ? s->launch_ns : s->call_ns);
		s->calls += calls;
		s->launches += launch;
	}
	return 0;
}

static int on_name(void *ctx, const struct gbpf_name *name)
{
	return 0;
}

static int on_process(void *ctx, const struct gbpf_process *process)
{
	struct doctor_sink *s = ctx;

	if (s->child && process->hdr.pid == s->child && process->event < 32)
		s->child_seen |= 1u << process->event;
	return 0;
}

int doctor_rings(struct doctor *d)
{
	struct collect_sink sink = {on_events, on_name, on_process, NULL};

	d->sink = calloc(1, sizeof(*d->sink));
	if (!d->sink)
		return -ENOMEM;
	sink.ctx = d->sink;
	return rings_new(&d->rings, d->probes, &sink);
}

void doctor_free(struct doctor *d)
{
	doctor_process_free(d->process);
	rings_free(d->rings);
	probes_free(d->probes);
	if (d->sink)
		free(d->sink->threads);
	free(d->sink);
}

struct attach {
	struct images *images;
	uint32_t pid;
};

static int on_mapping(const struct mapping *m, void *ctx)
{
	struct attach *a = ctx;
	struct image *image;
	int fd = maps_open(a->pid, m);
	int err;

	if (fd < 0)
		return 0;
	err = images_add(a->images, fd, m->path, 0, &image);
	close(fd);
	return err == -ENOMEM ? err : 0;
}

static void choose_worst(const struct doctor_sink *s, struct doctor_rate *r)
{
	const struct doctor_thread *worst = NULL;
	size_t i;

	for (i = 0; i < THREADS_MAX; i++)
		if (s->threads[i].tid && (!worst || s->threads[i].cost > worst->cost))
			worst = &s->threads[i];
	if (!worst)
		return;
	r->worst_tid = worst->tid;
	r->worst_calls = worst->calls;
	r->worst_cost_ns = worst->cost;
	/* the second contained the probes' own cost: without them its work had taken the rest */
	if (worst->cost < r->elapsed_ns)
		r->slowdown = (double)worst->cost / (double)(r->elapsed_ns - worst->cost);
}

static int count(struct doctor *d, struct doctor_rate *r)
{
	struct gbpf_switches *sw = probes_switches(d->probes);
	const volatile struct gbpf_counters *c = probes_counters(d->probes);
	uint64_t lost = c->ring_full + c->state_full;
	int64_t begin = clock_now();
	int n = 0;

	probes_want(d->probes, d->process->pid, true);
	sw->mode = GBPF_MODE_PIDS;
	while (n >= 0 && clock_now() - begin < MEASURE_NS) {
		usleep(ROUND_US);
		n = rings_consume(d->rings);
	}
	sw->mode = GBPF_MODE_OFF;
	r->elapsed_ns = clock_now() - begin;
	probes_want(d->probes, d->process->pid, false);
	while (n > 0)
		n = rings_consume(d->rings);
	if (n >= 0)
		n = rings_finish(d->rings);
	r->lost = c->ring_full + c->state_full - lost;
	return n;
}

/* Why the process should better be left alone; NULL: nothing speaks against it. */
static const char *reason_not_to(const struct doctor *d)
{
	size_t i, hooked = 0;

	for (i = 0; i < d->process->images_count; i++)
		if (d->process->images[i].asked)
			hooked += d->process->images[i].asked->hooked;
	if (d->options->no_attach)
		return "not asked for (--no-attach)";
	if (!hooked)
		return "nothing of it can be hooked";
	if (!d->probes || !d->cost_known)
		return "probes cannot be attached";
	if (probes_rung(d->probes) == RUNG_SINGLE)
		return "on this rung it takes a tenth of a second to let go of each function";
	return NULL;
}

static bool ended(const struct doctor_process *p)
{
	struct process_info now;
	int err = process_read(p->pid, &now);

	return err == -ESRCH || (!err && now.start != p->info.start);
}

int doctor_measure(struct doctor *d)
{
	struct images_options o = {.selection = d->selection, .static_runtime = true};
	struct doctor_rate *r = &d->process->rate;
	struct attach a = {.pid = d->process->pid};
	int err;

	r->why_not = reason_not_to(d);
	if (r->why_not)
		return 0;
	d->sink->threads = calloc(THREADS_MAX, sizeof(*d->sink->threads));
	if (!d->sink->threads)
		return -ENOMEM;
	d->sink->pid = a.pid;
	d->sink->call_ns = d->returns_safe ? d->cost.pair_ns : d->cost.begin_ns;
	d->sink->launch_ns = d->returns_safe ? d->cost.launch_ns : d->cost.begin_ns;
	if (!d->returns_safe)
		probes_entry_only(d->probes);
	err = images_new(&a.images, d->probes, &o);
	if (!err)
		err = maps_each(a.pid, on_mapping, &a);
	if (!err)
		err = count(d, r);
	images_free(a.images);
	if (err == -ENOMEM)
		return err;
	if (err)
		r->why_not = "the records could not be read";
	else if (ended(d->process))
		r->why_not = "the process ended meanwhile";
	r->measured = !r->why_not;
	r->calls = d->sink->calls;
	r->launches = d->sink->launches;
	r->threads = (uint32_t)d->sink->threads_count;
	choose_worst(d->sink, r);
	if (r->worst_tid)
		process_thread_comm(a.pid, r->worst_tid, r->worst_comm);
	return 0;
}
