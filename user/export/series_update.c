/* SPDX-License-Identifier: BSD-2-Clause */
/* Which label sets there are after a snapshot, within their bound. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/series.h"

struct member {
	struct series_labels labels;
	const struct snapshot_process *process;
	bool served;
	struct series_process *known; /* of those that are served */
	bool is_new;		      /* nobody else has known yet */
};

/* Processes with the same labels. */
struct group {
	struct member **first;
	size_t count;
	uint64_t launches; /* what it is ranked by */
	struct series_set *old, *set; /* old: NULL if there was none; set: of those served */
};

/* One update: first all that can fail, then what changes the state. */
struct update {
	struct series_state *state;
	const struct snapshot *s;
	struct member *members;
	struct member **sorted;	 /* by labels */
	struct member **by_life; /* by pid and start */
	struct group *groups;	/* by rank, those served first */
	size_t groups_count, served, left_out;
	struct series_process **processes; /* room for what the state will have */
	size_t processes_count;
	struct series_set **sets;
	struct series_gpu *gpus;
};

static int by_labels(const void *a, const void *b)
{
	const struct member *x = *(struct member *const *)a, *y = *(struct member *const *)b;

	return series_labels_compare(&x->labels, &y->labels);
}

static int by_life(const void *a, const void *b)
{
	const struct member *x = *(struct member *const *)a, *y = *(struct member *const *)b;

	if (x->process->pid != y->process->pid)
		return x->process->pid < y->process->pid ? -1 : 1;
	return x->process->start < y->process->start ? -1 : x->process->start > y->process->start;
}

static int by_rank(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	if (x->launches != y->launches)
		return x->launches > y->launches ? -1 : 1;
	if (!x->old != !y->old)
		return x->old ? -1 : 1;
	return series_labels_compare(&x->first[0]->labels, &y->first[0]->labels);
}

/* A set that is served weighs twice, lest two that launch alike take turns. */
static void rank_group(struct update *u, struct group *g)
{
	size_t at;

	for (size_t i = 0; i < g->count; i++) {
		const struct histogram *h = g->first[i]->process->launch_ever;

		g->launches += h && h->count < UINT64_MAX >> 16 ? h->count : 0;
	}
	if (!series_find(&u->state->now, &g->first[0]->labels, &at))
		return;
	g->old = u->state->now.sets[at];
	if (g->launches < UINT64_MAX / 2)
		g->launches *= 2;
}

static int group_members(struct update *u)
{
	size_t n = u->s->processes_count;

	u->members = calloc(n + 1, sizeof(*u->members));
	u->sorted = calloc(n + 1, sizeof(struct member *));
	u->by_life = calloc(n + 1, sizeof(struct member *));
	u->groups = calloc(n + 1, sizeof(*u->groups));
	if (!u->members || !u->sorted || !u->by_life || !u->groups)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		u->members[i].process = &u->s->processes[i];
		series_labels_of(&u->members[i].labels, &u->s->processes[i], u->state->include_pid);
		u->sorted[i] = u->by_life[i] = &u->members[i];
	}
	qsort(u->by_life, n, sizeof(struct member *), by_life);
	qsort(u->sorted, n, sizeof(struct member *), by_labels);
	for (size_t i = 0; i < n; i++) {
		struct group *g;

		if (!i || by_labels(&u->sorted[i - 1], &u->sorted[i]))
			u->groups[u->groups_count++].first = &u->sorted[i];
		g = &u->groups[u->groups_count - 1];
		g->count++;
	}
	for (size_t i = 0; i < u->groups_count; i++)
		rank_group(u, &u->groups[i]);
	qsort(u->groups, u->groups_count, sizeof(*u->groups), by_rank);
	u->served = u->groups_count;
	if (u->served > u->state->max_sets)
		u->served = u->state->max_sets;
	for (size_t i = u->served; i < u->groups_count; i++)
		u->left_out += u->groups[i].count;
	return 0;
}

static int find_sets(struct update *u)
{
	/* those served now, and those that were before */
	u->sets = calloc(u->served + u->state->now.sets_count + 1, sizeof(struct series_set *));
	if (!u->sets)
		return -ENOMEM;
	for (size_t i = 0; i < u->served; i++) {
		struct group *g = &u->groups[i];

		g->set = g->old ? g->old : calloc(1, sizeof(*g->set));
		if (!g->set)
			return -ENOMEM;
		g->set->labels = g->first[0]->labels;
		for (size_t m = 0; m < g->count; m++)
			g->first[m]->served = true;
	}
	return 0;
}

/* Records are ordered by pid and start, too. */
static int know_processes(struct update *u)
{
	struct series_state *state = u->state;
	size_t old = 0;

	u->processes = calloc(u->s->processes_count + 1, sizeof(struct series_process *));
	if (!u->processes)
		return -ENOMEM;
	for (size_t i = 0; i < u->s->processes_count; i++) {
		struct member *m = u->by_life[i];

		if (!m->served)
			continue;
		while (old < state->processes_count &&
		       series_process_order(state->processes[old], m->process) < 0)
			old++;
		if (old < state->processes_count &&
		    !series_process_order(state->processes[old], m->process))
			m->known = state->processes[old++];
		else
			m->known = series_process_new(m->process);
		if (!m->known)
			return -ENOMEM;
		m->is_new = !old || m->known != state->processes[old - 1];
		u->processes[u->processes_count++] = m->known;
	}
	return 0;
}

static void forget_processes(struct update *u)
{
	struct series_state *state = u->state;
	size_t now = 0;

	for (size_t old = 0; old < state->processes_count; old++) {
		/* new ones lie between those known before */
		size_t at = now;

		while (at < u->processes_count && u->processes[at] != state->processes[old])
			at++;
		if (at < u->processes_count)
			now = at + 1;
		else
			series_process_free(state->processes[old]);
	}
	free(state->processes);
	state->processes = u->processes;
	state->processes_count = u->processes_count;
	u->processes = NULL;
}

static int by_seen(const void *a, const void *b)
{
	const struct series_set *x = *(struct series_set *const *)a;
	const struct series_set *y = *(struct series_set *const *)b;

	return x->seen_ns > y->seen_ns ? -1 : x->seen_ns < y->seen_ns;
}

static int by_set(const void *a, const void *b)
{
	const struct series_set *x = *(struct series_set *const *)a;
	const struct series_set *y = *(struct series_set *const *)b;

	return series_labels_compare(&x->labels, &y->labels);
}

/* Sets without a process stay while they are not stale and there is room. */
static void keep_sets(struct update *u)
{
	struct series *now = &u->state->now;
	size_t count = 0, kept = u->served;

	for (size_t i = 0; i < u->served; i++)
		u->sets[count++] = u->groups[i].set;
	for (size_t i = u->served; i < u->groups_count; i++)
		if (u->groups[i].old)
			u->groups[i].old->processes = UINT32_MAX; /* left out from now on */
	for (size_t i = 0; i < now->sets_count; i++) {
		struct series_set *set = now->sets[i];

		if (set->processes == UINT32_MAX)
			free(set);
		else if (set->seen_ns != u->s->mono_ns)
			u->sets[count++] = set;
	}
	qsort(u->sets + u->served, count - u->served, sizeof(struct series_set *), by_seen);
	for (size_t i = u->served; i < count; i++) {
		struct series_set *set = u->sets[i];

		if (kept == u->state->max_sets ||
		    u->s->mono_ns - set->seen_ns > u->state->stale_ns)
			free(set);
		else
			u->sets[kept++] = set;
	}
	qsort(u->sets, kept, sizeof(struct series_set *), by_set);
	free(now->sets);
	now->sets = u->sets;
	now->sets_count = kept;
	u->sets = NULL;
}

static void count_sets(struct update *u)
{
	struct family_source from = { .snapshot = u->s };

	for (size_t i = 0; i < u->state->now.sets_count; i++) {
		memset(&u->state->now.sets[i]->gauges, 0, sizeof(struct series_values));
		u->state->now.sets[i]->processes = 0;
	}
	for (size_t i = 0; i < u->served; i++) {
		struct group *g = &u->groups[i];

		memset(&g->set->gauges, 0, sizeof(g->set->gauges));
		g->set->seen_ns = u->s->mono_ns;
		g->set->processes = (uint32_t)g->count;
		for (size_t m = 0; m < g->count; m++) {
			from.process = g->first[m]->process;
			series_gauges(&g->set->gauges, SCOPE_PROCESS, &from);
			series_process_count(g->first[m]->known, &from, g->set);
		}
	}
}

/* One device is one series: what has no UUID goes by its index, what comes twice is left out. */
static void read_gpus_of(struct update *u)
{
	const struct snapshot *s = u->s;
	struct series *now = &u->state->now;
	struct family_source from = { .snapshot = s };
	size_t n = s->gpus_count < SERIES_GPUS ? s->gpus_count : SERIES_GPUS, count = 0;

	for (size_t i = 0; i < n; i++) {
		const struct gpu_sample *g = from.gpu = &s->gpus[i];
		struct series_gpu *to = &u->gpus[count];
		size_t same = 0;

		memset(to, 0, sizeof(*to));
		series_label(to->uuid, g->uuid, sizeof(g->uuid));
		if (!to->uuid[0])
			snprintf(to->uuid, sizeof(to->uuid), "index %u", g->index);
		while (same < count && strcmp(u->gpus[same].uuid, to->uuid))
			same++;
		if (same < count)
			continue;
		series_label(to->name, g->name, sizeof(g->name));
		series_label(to->pci, g->pci, sizeof(g->pci));
		series_label(to->mig_parent, g->mig_parent, sizeof(g->mig_parent));
		to->index = g->index;
		series_gauges(&to->gauges, SCOPE_GPU, &from);
		count++;
	}
	free(now->gpus);
	now->gpus = u->gpus;
	now->gpus_count = count;
	u->gpus = NULL;
}

static void read_self(struct update *u)
{
	struct family_source from = { .snapshot = u->s, .left_out = u->left_out };
	struct series *now = &u->state->now;
	struct family_walk w = { 0 };

	memset(&now->self, 0, sizeof(now->self));
	series_gauges(&now->self, SCOPE_SELF, &from);
	while (family_walk(&w))
		if (w.family->scope == SCOPE_SELF && w.family->count)
			now->self_count[w.slot] += w.family->count(&from);
}

static void update_free(struct update *u)
{
	for (size_t i = 0; u->processes && i < u->s->processes_count; i++)
		if (u->members[i].is_new)
			series_process_free(u->members[i].known);
	for (size_t i = 0; u->sets && i < u->served; i++)
		if (!u->groups[i].old)
			free(u->groups[i].set);
	free(u->gpus);
	free(u->processes);
	free(u->sets);
	free(u->members);
	free(u->sorted);
	free(u->by_life);
	free(u->groups);
}

int series_update(struct series_state *state, const struct snapshot *s)
{
	struct update u = { .state = state, .s = s };
	int err;

	if (state->now.any && state->mono_ns == s->mono_ns)
		return 0;
	err = group_members(&u);
	if (!err)
		err = find_sets(&u);
	if (!err)
		err = know_processes(&u);
	u.gpus = malloc((s->gpus_count + 1) * sizeof(*u.gpus));
	if (err || !u.gpus) {
		update_free(&u);
		return -ENOMEM;
	}
	count_sets(&u);
	keep_sets(&u);
	forget_processes(&u);
	read_gpus_of(&u);
	read_self(&u);
	state->mono_ns = s->mono_ns;
	state->now.any = true;
	update_free(&u);
	return 0;
}

void series_state_free(struct series_state *state)
{
	for (size_t i = 0; i < state->processes_count; i++)
		series_process_free(state->processes[i]);
	free(state->processes);
	state->processes = NULL;
	state->processes_count = 0;
	series_free(&state->now);
}
