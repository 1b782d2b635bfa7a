/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes that use CUDA, and what they and their trees are. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/private.h"

static size_t process_position(const struct monitor *m, uint32_t pid)
{
	size_t low = 0, high = m->processes_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (m->processes[middle]->pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct mon_process *process_get(const struct monitor *m, uint32_t pid)
{
	size_t at = process_position(m, pid);

	return at < m->processes_count && m->processes[at]->pid == pid ? m->processes[at] : NULL;
}

static void api_free(struct monitor *m, struct mon_api *a)
{
	counts_free_cell(&m->counts, a->slot);
	m->apis[a->slot] = NULL;
	free(a->calls);
	free(a->mark);
	free(a);
}

static void thread_free(struct monitor *m, struct mon_thread *t)
{
	counts_free_thread(&m->counts, t->slot);
	m->threads[t->slot] = NULL;
	free(t->share[0]);
	free(t->share[1]);
	free(t);
}

static void process_free(struct monitor *m, struct mon_process *p)
{
	size_t i;

	for (i = 0; i < p->apis_count; i++)
		api_free(m, p->apis[i]);
	for (i = 0; i < p->threads_count; i++)
		thread_free(m, p->threads[i]);
	for (i = 0; i < Q_COUNT; i++)
		free(p->series[i]);
	if (p->proc_slot < GBPF_PROCS) {
		counts_free_proc(&m->counts, p->proc_slot);
		counts_forget_live(&m->counts, p->pid);
	}
	kernels_drop(m, p->pid);
	free(p->apis);
	free(p->threads);
	free(p->command);
	free(p);
}

static void process_remove(struct monitor *m, size_t at)
{
	process_free(m, m->processes[at]);
	m->processes_count--;
	memmove(&m->processes[at], &m->processes[at + 1],
		(m->processes_count - at) * sizeof(*m->processes));
}

void process_info_read(struct mon_process *p)
{
	struct process_info info;
	char *command;

	if (process_read(p->pid, &info))
		return;
	memcpy(p->comm, info.comm, sizeof(p->comm));
	command = strdup(info.cmdline[0] ? info.cmdline : info.comm);
	if (command) {
		free(p->command);
		p->command = command;
	}
	labels_read(p->pid, &p->labels);
}

static int process_insert(struct monitor *m, struct mon_process *p)
{
	size_t at = process_position(m, p->pid);

	if (m->processes_count == m->processes_room) {
		size_t room = m->processes_room ? 2 * m->processes_room : 64;
		struct mon_process **grown = realloc(m->processes, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		m->processes = grown;
		m->processes_room = room;
	}
	memmove(&m->processes[at + 1], &m->processes[at],
		(m->processes_count - at) * sizeof(*m->processes));
	m->processes[at] = p;
	m->processes_count++;
	return 0;
}

struct mon_process *process_add(struct monitor *m, uint32_t pid, int *err)
{
	struct mon_process *p = process_get(m, pid);
	int64_t start;

	*err = 0;
	if (p && !p->ended)
		return p;
	start = process_start(pid);
	if (p && (start < 0 || start == p->start))
		return p; /* what it called last is found after its end */
	if (start < 0)
		return NULL;
	if (p) /* its number is used again */
		process_remove(m, process_position(m, pid));
	p = calloc(1, sizeof(*p));
	if (!p) {
		*err = -ENOMEM;
		return NULL;
	}
	p->pid = pid;
	p->start = start;
	p->seen = mon_now();
	p->proc_slot = GBPF_PROCS;
	p->throttled = -1;
	process_info_read(p);
	if (!p->command)
		p->command = strdup("");
	*err = p->command ? process_insert(m, p) : -ENOMEM;
	if (*err) {
		free(p->command);
		free(p);
		return NULL;
	}
	probes_want(m->probes, pid, true); /* so that its end is told */
	return p;
}

void process_ended(struct monitor *m, uint32_t pid)
{
	struct mon_process *p = process_get(m, pid);

	if (p)
		p->ended = true;
}

void processes_remove_told(struct monitor *m)
{
	size_t i = m->processes_count;

	while (i--)
		if (m->processes[i]->told)
			process_remove(m, i);
}

void processes_free(struct monitor *m)
{
	while (m->processes_count)
		process_remove(m, m->processes_count - 1);
	free(m->processes);
	m->processes = NULL;
	m->processes_room = 0;
}

static void process_quota(struct mon_process *p, struct cgroup_seen *seen, int64_t elapsed)
{
	uint64_t ns, periods;

	if (cgroup_throttled(p->pid, seen, &ns, &periods)) {
		p->quota_known = false;
		p->throttled = -1;
		return;
	}
	p->quota_known &= ns >= p->throttled_ns; /* else it moved to another cgroup */
	p->throttled = p->quota_known ? throttled_share(ns - p->throttled_ns,
							periods - p->throttled_periods, elapsed)
				      : -1;
	p->quota_known = true;
	p->throttled_ns = ns;
	p->throttled_periods = periods;
}

void processes_usage(struct monitor *m)
{
	size_t n = m->processes_count, i;
	uint32_t *pids = malloc((n + 1) * sizeof(*pids));
	struct usage *usage = calloc(n + 1, sizeof(*usage));
	struct cgroup_seen seen = {0};
	int err;

	for (i = 0; pids && i < n; i++)
		pids[i] = m->processes[i]->pid;
	err = pids && usage ? usage_trees(pids, n, usage) : -ENOMEM;
	for (i = 0; !err && i < n; i++) {
		struct mon_process *p = m->processes[i];
		int64_t before = p->usage.time_ns;

		p->usage_known = usage_advance(&p->usage, &usage[i], &p->usage_rate);
		process_quota(p, &seen, before ? usage[i].time_ns - before : 0);
	}
	free(pids);
	free(usage);
}
