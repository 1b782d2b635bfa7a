/* SPDX-License-Identifier: BSD-2-Clause */
#include "top/history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sample n of every process is at n % HISTORY_SAMPLES. */
struct past {
	uint32_t pid;
	int64_t start;
	uint64_t first, last; /* samples in which the process was there */
	float values[HISTORY_SERIES][HISTORY_SAMPLES];
};

struct history {
	uint64_t next; /* sample */
	int64_t length[HISTORY_SAMPLES]; /* of each sample's interval, ns */
	size_t count;
	struct past *pasts[HISTORY_PROCESSES]; /* by (pid, start) */
};

struct history *history_new(void)
{
	return calloc(1, sizeof(struct history));
}

void history_free(struct history *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->count; i++)
		free(h->pasts[i]);
	free(h);
}

static int compare(uint32_t pid, int64_t start, const struct past *p)
{
	if (pid != p->pid)
		return pid < p->pid ? -1 : 1;
	return (start > p->start) - (start < p->start);
}

/* Where it is, or would be among the first count. */
static size_t position(const struct history *h, uint32_t pid, int64_t start)
{
	size_t low = 0, high = h->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare(pid, start, h->pasts[middle]) > 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct past *find(const struct history *h, uint32_t pid, int64_t start)
{
	size_t at = position(h, pid, start);

	return at < h->count && compare(pid, start, h->pasts[at]) == 0 ? h->pasts[at] : NULL;
}

static void forget(struct history *h, size_t at)
{
	free(h->pasts[at]);
	memmove(&h->pasts[at], &h->pasts[at + 1], (h->count - at - 1) * sizeof(h->pasts[0]));
	h->count--;
}

/* The one that is gone longest; nothing if all are there. */
static bool make_room(struct history *h)
{
	size_t oldest = 0;

	for (size_t i = 1; i < h->count; i++) {
		if (h->pasts[i]->last < h->pasts[oldest]->last)
			oldest = i;
	}
	if (h->pasts[oldest]->last + 1 >= h->next)
		return false;
	forget(h, oldest);
	return true;
}

static struct past *admit(struct history *h, uint32_t pid, int64_t start)
{
	struct past *p;
	size_t at;

	if (h->count == HISTORY_PROCESSES && !make_room(h))
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->pid = pid;
	p->start = start;
	p->first = p->last = h->next;
	at = position(h, pid, start);
	memmove(&h->pasts[at + 1], &h->pasts[at], (h->count - at) * sizeof(h->pasts[0]));
	h->pasts[at] = p;
	h->count++;
	return p;
}

static void put(struct past *p, uint64_t sample, const struct snapshot_process *process)
{
	const struct estimate *const from[HISTORY_SERIES] = {
		&process->launches_per_s, &process->dispatch_share, &process->sync_share};

	for (unsigned i = 0; i < HISTORY_SERIES; i++) {
		/* Samples in which it was not there. */
		for (uint64_t gap = p->last + 1; gap < sample && gap < p->last + HISTORY_SAMPLES;
		     gap++)
			p->values[i][gap % HISTORY_SAMPLES] = NAN;
		p->values[i][sample % HISTORY_SAMPLES] =
			from[i]->known ? (float)from[i]->value : NAN;
	}
	p->last = sample;
}

void history_add(struct history *h, const struct snapshot *s)
{
	h->length[h->next % HISTORY_SAMPLES] = s->window_ns;
	for (size_t i = 0; i < s->processes_count; i++) {
		const struct snapshot_process *process = &s->processes[i];
		struct past *p = find(h, process->pid, process->start);

		if (!p)
			p = admit(h, process->pid, process->start);
		if (p)
			put(p, h->next, process);
	}
	h->next++;
	for (size_t i = h->count; i > 0; i--) {
		if (h->pasts[i - 1]->last + HISTORY_SAMPLES < h->next)
			forget(h, i - 1);
	}
}

uint64_t history_next(const struct history *h)
{
	return h->next;
}

size_t history_get(const struct history *h, uint32_t pid, int64_t start, enum history_of what,
		   uint64_t until, float *out, uint64_t *first)
{
	const struct past *p = find(h, pid, start);
	uint64_t from = h->next > HISTORY_SAMPLES ? h->next - HISTORY_SAMPLES : 0;

	if (!p)
		return 0;
	*first = p->first > from ? p->first : from;
	if (until <= *first)
		return 0;
	for (uint64_t i = *first; i < until; i++)
		out[i - *first] = i > p->last ? NAN : p->values[what][i % HISTORY_SAMPLES];
	return (size_t)(until - *first);
}

int64_t history_span(const struct history *h, uint64_t until, size_t count)
{
	int64_t sum = 0;

	for (uint64_t i = until; i > 0 && count > 0 && i + HISTORY_SAMPLES > h->next; i--, count--)
		sum += h->length[(i - 1) % HISTORY_SAMPLES];
	return sum;
}

size_t history_processes(const struct history *h)
{
	return h->count;
}
