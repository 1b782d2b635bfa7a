/* SPDX-License-Identifier: BSD-2-Clause */
#include "top/copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES (256u << 10)

struct block {
	struct block *next;
	size_t size, used;
	max_align_t bytes[];
};

/* A histogram without the empty buckets around it: thousands are held. */
struct packed {
	uint64_t count, sum_ns, max_ns;
	uint16_t first, buckets;
	uint64_t bucket[];
};

struct pair {
	struct packed *recent, *ever;
};

struct copy {
	struct block *blocks, *current;
	size_t total;
	bool short_of_memory, taken;
	struct snapshot s;
	struct pair **pairs; /* of each process, an array by API */
};

struct copy *copy_new(void)
{
	return calloc(1, sizeof(struct copy));
}

void copy_free(struct copy *c)
{
	if (!c)
		return;
	while (c->blocks) {
		struct block *next = c->blocks->next;

		free(c->blocks);
		c->blocks = next;
	}
	free(c);
}

static struct block *more(struct copy *c, size_t size)
{
	size_t bytes = size > BLOCK_BYTES ? size : BLOCK_BYTES;
	struct block *b;

	if (bytes > COPY_BYTES - c->total)
		return NULL;
	b = malloc(sizeof(*b) + bytes);
	if (!b)
		return NULL;
	b->size = bytes;
	b->used = 0;
	b->next = NULL;
	if (c->current) {
		b->next = c->current->next;
		c->current->next = b;
	} else {
		c->blocks = b;
	}
	c->total += bytes;
	return b;
}

/* Zeroed; NULL for 0 bytes and out of memory. */
static void *take(struct copy *c, size_t count, size_t each)
{
	size_t size = (count * each + sizeof(max_align_t) - 1) & ~(sizeof(max_align_t) - 1);
	struct block *b = c->current;
	void *at;

	if (size == 0 || count > COPY_BYTES / each) {
		c->short_of_memory |= size != 0;
		return NULL;
	}
	while (b && b->size - b->used < size && b->next) {
		b = b->next;
		b->used = 0;
	}
	if (!b || b->size - b->used < size) {
		c->current = b;
		b = more(c, size);
	}
	if (!b) {
		c->short_of_memory = true;
		return NULL;
	}
	c->current = b;
	at = (char *)b->bytes + b->used;
	b->used += size;
	return memset(at, 0, size);
}

static const char *text(struct copy *c, const char *s)
{
	size_t len = s ? strnlen(s, COPY_NAME) : 0;
	char *copied = len ? take(c, len + 1, 1) : NULL;

	if (!copied)
		return "";
	memcpy(copied, s, len);
	return copied;
}

static void *array(struct copy *c, const void *from, size_t *count, size_t each)
{
	void *to = take(c, *count, each);

	if (to)
		memcpy(to, from, *count * each);
	else
		*count = 0;
	return to;
}

static struct packed *pack(struct copy *c, const struct histogram *h)
{
	unsigned first = 0, end = GBPF_BUCKETS;
	struct packed *p;

	if (!h || !h->count)
		return NULL;
	while (first < end && !h->bucket[first])
		first++;
	while (end > first && !h->bucket[end - 1])
		end--;
	p = take(c, 1, sizeof(*p) + (end - first) * sizeof(p->bucket[0]));
	if (!p)
		return NULL;
	p->count = h->count;
	p->sum_ns = h->sum_ns;
	p->max_ns = h->max_ns;
	p->first = (uint16_t)first;
	p->buckets = (uint16_t)(end - first);
	memcpy(p->bucket, h->bucket + first, (end - first) * sizeof(p->bucket[0]));
	return p;
}

static void copy_process(struct copy *c, struct snapshot_process *p, struct pair **pairs)
{
	p->command = text(c, p->command);
	p->launch_recent = p->launch_ever = p->sync_ever = NULL;
	p->threads = array(c, p->threads, &p->threads_count, sizeof(*p->threads));
	p->kernels = array(c, p->kernels, &p->kernels_count, sizeof(*p->kernels));
	for (size_t i = 0; i < p->kernels_count; i++)
		p->kernels[i].name = text(c, p->kernels[i].name);
	p->apis = array(c, p->apis, &p->apis_count, sizeof(*p->apis));
	*pairs = take(c, p->apis_count, sizeof(**pairs));
	for (size_t i = 0; i < p->apis_count; i++) {
		struct snapshot_api *a = &p->apis[i];

		if (*pairs) {
			(*pairs)[i].recent = pack(c, a->recent);
			(*pairs)[i].ever = pack(c, a->ever);
		}
		a->recent = a->ever = NULL;
	}
}

int copy_take(struct copy *c, const struct snapshot *s)
{
	c->current = c->blocks;
	if (c->current)
		c->current->used = 0;
	c->short_of_memory = false;
	c->taken = true;
	c->s = *s;
	c->s.gpus_trouble = s->gpus_trouble ? text(c, s->gpus_trouble) : NULL;
	c->s.self.limit = s->self.limit ? text(c, s->self.limit) : NULL;
	c->s.gpus = array(c, s->gpus, &c->s.gpus_count, sizeof(*s->gpus));
	c->s.processes = array(c, s->processes, &c->s.processes_count, sizeof(*s->processes));
	c->pairs = take(c, c->s.processes_count, sizeof(*c->pairs));
	if (!c->pairs)
		c->s.processes_count = 0;
	for (size_t i = 0; i < c->s.processes_count; i++)
		copy_process(c, &c->s.processes[i], &c->pairs[i]);
	return c->short_of_memory ? -ENOMEM : 0;
}

const struct snapshot *copy_snapshot(const struct copy *c)
{
	return c->taken ? &c->s : NULL;
}

bool copy_histogram(const struct copy *c, const struct snapshot_process *p,
		    const struct snapshot_api *api, bool ever, struct histogram *out)
{
	const struct pair *pairs = c->pairs[p - c->s.processes];
	const struct packed *packed;

	if (!pairs)
		return false;
	pairs += api - p->apis;
	packed = ever ? pairs->ever : pairs->recent;
	if (!packed)
		return false;
	memset(out, 0, sizeof(*out));
	out->count = packed->count;
	out->sum_ns = packed->sum_ns;
	out->max_ns = packed->max_ns;
	memcpy(out->bucket + packed->first, packed->bucket,
	       packed->buckets * sizeof(packed->bucket[0]));
	return true;
}
