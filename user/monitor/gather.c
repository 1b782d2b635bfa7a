/* SPDX-License-Identifier: BSD-2-Clause */
/* Counted and sampled, put together into the snapshot of an interval. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "monitor/private.h"
#include "monitor/verdict.h"
#include "probe/catalogue.h"

static void worst_gather(struct snapshot *s, const struct snapshot_process *p)
{
	double most = -1;
	size_t k;

	s->self.worst_pid = p->pid;
	for (k = 0; k < p->threads_count; k++) {
		if (p->threads[k].overhead_pct <= most)
			continue;
		most = p->threads[k].overhead_pct;
		s->self.worst_tid = p->threads[k].tid;
	}
}

static void self_gather(const struct gathering *g, struct snapshot *s)
{
	const struct snapshot_process *worst = NULL;
	struct monitor *m = g->m;
	const volatile struct gbpf_monitor_counters *c = m->counts.counters;
	uint64_t cpu = self_cpu_ns();
	uint64_t lost = c->cells_full + c->threads_full;
	double covered = 0, weight = 0;
	size_t i;

	for (i = 0; i < s->processes_count; i++) {
		const struct snapshot_process *p = &s->processes[i];

		covered += p->coverage;
		weight += 1;
		if (p->overhead_pct > s->self.overhead_pct)
			worst = p;
		if (worst == p)
			s->self.overhead_pct = p->overhead_pct;
	}
	if (worst)
		worst_gather(s, worst);
	s->self.budget_pct = 100 * m->options.max_overhead;
	s->self.cpu_pct = 100 * (double)(cpu - m->self_cpu_ns) / (double)g->length;
	s->self.rss_bytes = self_rss_bytes();
	s->self.maps_bytes = m->counts.bytes;
	s->self.coverage = weight > 0 ? covered / weight : 1;
	s->self.cost_entry_ns = m->counts.mon->cost_entry;
	s->self.cost_pair_ns = m->counts.mon->cost_pair;
	s->self.cost_launch_ns = m->counts.mon->cost_launch;
	s->self.windows = m->windows;
	s->self.lost = lost - m->lost_begin;
	s->self.unmatched = c->unmatched - m->unmatched_begin;
	m->self_cpu_ns = cpu;
	m->lost_begin = lost;
	m->unmatched_begin = c->unmatched;
	m->windows = 0;
}

static const char *limit_of(const struct monitor *m)
{
	if (m->options.max_overhead <= 0)
		return "a budget of 0 allows no probes: calls are not counted";
	if (probes_rung(m->probes) == RUNG_SINGLE)
		return "probes cannot be taken away quickly on this kernel: launches are not "
		       "counted, only rarer calls are";
	if (!probes_returns(m->probes))
		return "return probes are not safe on this kernel: durations are not known";
	return NULL;
}

static int64_t realtime_of(int64_t mono)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec - (mon_now() - mono);
}

static void snapshot_clear(struct snapshot *s)
{
	size_t i, k;

	for (i = 0; i < s->processes_count; i++) {
		struct snapshot_process *p = &s->processes[i];

		for (k = 0; k < p->apis_count; k++)
			free((void *)p->apis[k].recent);
		free((void *)p->launch_recent);
		free(p->apis);
		free(p->kernels);
		free(p->threads);
	}
	free(s->processes);
	memset(s, 0, sizeof(*s));
}

/* What ended stays until the snapshot that tells of it is not needed any more. */
static void begin_next(struct monitor *m, int64_t now)
{
	m->begin = now;
	windows_begin(m, now);
	harvest_interval_begin(m);
}

int gather(struct monitor *m, int64_t now)
{
	struct gathering g = {m, now, now - m->begin};
	struct snapshot *s = &m->snapshot;
	int err = 0;
	size_t i;

	snapshot_clear(s);
	processes_remove_told(m);
	s->mono_ns = now;
	s->time_ns = realtime_of(now);
	s->window_ns = g.length;
	if (m->sampler)
		gpu_sampler_latest(m->sampler, &m->gpus);
	s->gpus = m->gpus.items;
	s->gpus_count = m->gpus.count;
	s->gpus_trouble = m->gpus.trouble[0] ? m->gpus.trouble : NULL;
	s->processes = calloc(m->processes_count + 1, sizeof(*s->processes));
	if (!s->processes)
		return -ENOMEM;
	for (i = 0; !err && i < m->processes_count; i++)
		err = process_gather(&g, m->processes[i], &s->processes[s->processes_count++]);
	for (i = 0; i < m->processes_count; i++)
		m->processes[i]->told = m->processes[i]->ended;
	for (i = 0; i < s->processes_count; i++)
		verdict_live(s, &s->processes[i]);
	self_gather(&g, s);
	s->self.limit = limit_of(m);
	begin_next(m, now);
	return err;
}

const struct snapshot *monitor_snapshot(const struct monitor *m)
{
	return &m->snapshot;
}

void gather_free(struct monitor *m)
{
	snapshot_clear(&m->snapshot);
}
