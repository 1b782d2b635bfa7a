// SPDX-License-Identifier: BSD-2-Clause
#include "trace/trigger_pairs.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define WAITING 65536u
#define BUCKET_BITS 13 /* 65 536 calls at a time */
#define BUCKET 8

/* The begin or end of a call; kind 0: none. */
struct half {
	int64_t ts;
	uint32_t tid, sp;
	uint16_t api;
	uint8_t kind; /* EVENT_BEGIN or EVENT_END */
};

struct pairs {
	pairs_call call;
	void *ctx;
	size_t count; /* of waiting[] */
	struct half waiting[WAITING], merged[WAITING];
	struct half open[1u << BUCKET_BITS][BUCKET]; /* begins */
};

struct pairs *pairs_new(pairs_call call, void *ctx)
{
	struct pairs *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->call = call;
	p->ctx = ctx;
	return p;
}

void pairs_free(struct pairs *p)
{
	free(p);
}

static struct half *bucket_of(struct pairs *p, const struct half *h)
{
	uint64_t key = (uint64_t)h->tid << 32 | (h->sp ^ (uint32_t)h->api << 16);

	return p->open[key * 0x9e3779b97f4a7c15ULL >> (64 - BUCKET_BITS)];
}

/* The begin of the same call, where there is one: of a thread there cannot be two. */
static struct half *open_find(struct half *bucket, const struct half *h)
{
	for (int i = 0; i < BUCKET; i++)
		if (bucket[i].kind && bucket[i].tid == h->tid && bucket[i].sp == h->sp &&
		    bucket[i].api == h->api)
			return &bucket[i];
	return NULL;
}

/* A free place, or that of the oldest: of a call that never returned, most likely. */
static struct half *open_place(struct half *bucket)
{
	struct half *oldest = &bucket[0];

	for (int i = 0; i < BUCKET; i++) {
		if (!bucket[i].kind)
			return &bucket[i];
		if (bucket[i].ts < oldest->ts)
			oldest = &bucket[i];
	}
	return oldest;
}

/* Halves come here in the order of their times. */
static void meet(struct pairs *p, const struct half *h)
{
	struct half *bucket = bucket_of(p, h), *open = open_find(bucket, h);

	if (h->kind == EVENT_BEGIN) {
		*(open ? open : open_place(bucket)) = *h; /* what was open there never returned */
	} else if (open) {
		open->kind = 0;
		p->call(p->ctx, h->api, open->ts, h->ts);
	}
}

/* Where the run that begins here ends: rings bring their events in order. */
static size_t run_end(const struct half *h, size_t at, size_t count)
{
	if (at == count)
		return count;
	while (at + 1 < count && h[at].ts <= h[at + 1].ts)
		at++;
	return at + 1;
}

/* Merges neighbouring runs, two and two; whether there was more than one. */
static bool merge_runs(struct pairs *p)
{
	size_t out = 0, at = 0, a, middle, b, end;
	struct half *h = p->waiting;

	if (run_end(h, 0, p->count) == p->count)
		return false;
	while (at < p->count) {
		a = at;
		middle = run_end(h, a, p->count);
		b = middle;
		end = run_end(h, b, p->count);
		while (a < middle || b < end)
			p->merged[out++] = b == end || (a < middle && h[a].ts <= h[b].ts) ?
						   h[a++] : h[b++];
		at = end;
	}
	memcpy(h, p->merged, p->count * sizeof(*h));
	return true;
}

void pairs_settle(struct pairs *p, int64_t upto)
{
	size_t i;

	if (!p)
		return;
	while (merge_runs(p))
		;
	for (i = 0; i < p->count && p->waiting[i].ts < upto; i++)
		meet(p, &p->waiting[i]);
	p->count -= i;
	memmove(p->waiting, p->waiting + i, p->count * sizeof(p->waiting[0]));
}

void pairs_add(struct pairs *p, const struct event *e)
{
	if (p->count == WAITING)
		pairs_settle(p, INT64_MAX);
	p->waiting[p->count++] = (struct half){e->ts, e->tid, e->sp, e->api, e->kind};
}
