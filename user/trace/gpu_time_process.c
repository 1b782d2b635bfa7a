// SPDX-License-Identifier: BSD-2-Clause
/* The processes of gpu_time.c: known once they call CUDA or connect, and what is said of them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sidecar/client.h"
#include "trace/gpu_time_private.h"

struct gpu_process *gpu_time_find(const struct gpu_time *g, uint32_t pid)
{
	size_t i;

	for (i = g->count; i > 0; i--)
		if (g->items[i - 1]->pid == pid && !g->items[i - 1]->gone)
			return g->items[i - 1];
	return NULL;
}

/* Forgets those that are gone; what they were is in the file. */
static void processes_clean(struct gpu_time *g)
{
	size_t i, kept = 0;

	for (i = 0; i < g->count; i++) {
		if (g->items[i]->gone && !g->items[i]->sidecar)
			free(g->items[i]);
		else
			g->items[kept++] = g->items[i];
	}
	g->count = kept;
}

struct gpu_process *gpu_time_add(struct tracer *t, uint32_t pid, int64_t seen)
{
	struct gpu_time *g = t->gpu_time;
	struct gpu_process *p;

	if (g->count == PROCESSES_MOST)
		processes_clean(g);
	p = g->count < PROCESSES_MOST ? calloc(1, sizeof(*p)) : NULL;
	if (!p)
		return NULL;
	p->t = t;
	p->pid = pid;
	p->seen = seen;
	g->items[g->count++] = p;
	g->any = true;
	return p;
}

/* Once: there is no room for all who want it. */
int gpu_time_too_many(struct gpu_time *g)
{
	if (g->too_many)
		return 0;
	g->too_many = true;
	return gpu_time_event(&g->whole, RECORD_SIDECAR_REFUSED, 0,
			      "of some processes, because there are too many");
}

static void stats_add(struct gpu_time_stats *to, const struct sidecar *s)
{
	struct sidecar_stats one;

	sidecar_stats(s, &one);
	to->works += one.works;
	to->calls += one.calls;
	to->dropped += one.dropped;
	to->bad += one.bad;
	to->running += one.running;
	if (one.clock_error > to->clock_error)
		to->clock_error = one.clock_error;
}

/* Its sidecar is over: what is left of it is its numbers. */
void gpu_time_retire(struct gpu_process *p)
{
	stats_add(&p->t->gpu_time->stats, p->sidecar);
	sidecar_free(p->sidecar);
	p->sidecar = NULL;
	p->over = true;
}

/* What is worth a word when it happens; all of it is in the file. */
void gpu_time_tell(struct gpu_process *p, const struct record_sidecar *r)
{
	struct tracer *t = p->t;
	char code[32] = "";

	if (r->event == RECORD_SIDECAR_FAILED && r->count)
		snprintf(code, sizeof(code), " (%" PRId64 ")", (int64_t)r->count);
	if (!p->pid) {
		tracer_tell(t, "no GPU time: %s", r->text);
		return;
	}
	if (r->event == RECORD_SIDECAR_REFUSED)
		tracer_tell(t, "no GPU time of process %u: %s", p->pid, r->text);
	else if (r->event == RECORD_SIDECAR_FAILED)
		tracer_tell(t, "%s GPU time of process %u: %s%s", p->began ? "no more" : "no",
			    p->pid, r->text, code);
	else if (r->event == RECORD_SIDECAR_WITHDREW)
		tracer_tell(t, "no more GPU time of process %u: %s", p->pid, r->text);
	else if (r->event == RECORD_SIDECAR_GONE && !p->began)
		tracer_tell(t, "no GPU time of process %u: it ended, or its sidecar did", p->pid);
	else
		return;
	p->t->gpu_time->stats.refused += !p->told;
	p->told = true;
}

int gpu_time_event(struct gpu_process *p, uint32_t event, uint64_t count, const char *text)
{
	struct record r = {.kind = RECORD_SIDECAR};

	r.sidecar = (struct record_sidecar){
		.ts = tracer_now(), .pid = p->pid, .event = event, .count = count, .text = text,
	};
	gpu_time_tell(p, &r.sidecar);
	return writer_add(p->t->writer, &r);
}

int gpu_time_process(struct tracer *t, uint32_t pid, int64_t ts)
{
	struct gpu_time *g = t->gpu_time;
	struct gpu_process *p;

	if (!g || g->options.why_not || gpu_time_find(g, pid))
		return 0;
	p = gpu_time_add(t, pid, ts);
	return p ? 0 : gpu_time_too_many(g);
}

int gpu_time_ended(struct tracer *t, uint32_t pid, int64_t ts)
{
	struct gpu_process *p = t->gpu_time ? gpu_time_find(t->gpu_time, pid) : NULL;

	/* one that came after that is what took its place already */
	if (!p || p->sidecar || p->seen > ts)
		return 0;
	p->gone = true;
	if (p->over || p->told)
		return 0;
	return gpu_time_event(p, RECORD_SIDECAR_REFUSED, 0,
			      t->gpu_time->injector ? "it ended before the sidecar could begin" :
						      GPU_TIME_ABSENT);
}

/* Rings are read one after the other: its calls can come after its end. */
int gpu_time_missed(struct tracer *t, uint32_t pid, int64_t ts)
{
	struct gpu_time *g = t->gpu_time;
	size_t i;
	int err;

	if (!g || g->missed == pid)
		return 0;
	g->missed = pid;
	for (i = 0; i < g->count; i++)
		if (g->items[i]->pid == pid)
			return 0;
	err = gpu_time_process(t, pid, ts);
	return err ? err : gpu_time_ended(t, pid, ts);
}

void gpu_time_stats(const struct tracer *t, struct gpu_time_stats *out)
{
	const struct gpu_time *g = t->gpu_time;
	size_t i;

	if (!g) {
		*out = t->gpu_time_stats;
		return;
	}
	*out = g->stats;
	for (i = 0; i < g->count; i++)
		if (g->items[i]->sidecar)
			stats_add(out, g->items[i]->sidecar);
}
