// SPDX-License-Identifier: BSD-2-Clause
/* GPUs and what was sampled of them: by GPU, in the order of time. */
#include <stdio.h>

#include "gpu/gpu.h"
#include "model/internal.h"

#define REASONS 64
#define REASONS_TEXT 512

/* Of a GPU by its id in the file, known or yet to be; NO_INDEX: no memory. */
static uint32_t gpu_of(struct session_builder *b, uint32_t id)
{
	struct session *s = b->s;
	uint32_t at = map_get(&b->gpu_of, id, 0);

	if (at != MAP_NONE)
		return at;
	at = (uint32_t)s->gpus_count;
	if (GROW(s->gpus, b->gpus_cap, s->gpus_count + 1) || map_put(&b->gpu_of, id, 0, at))
		return NO_INDEX;
	s->gpus[s->gpus_count++] = (struct session_gpu){ .index = UINT32_MAX };
	return at;
}

static int copy(char **out, const char *text)
{
	*out = strdup(text ? text : "");
	return *out ? 0 : -ENOMEM;
}

int builder_gpu(struct session_builder *b, const struct record_gpu *r)
{
	uint32_t at = gpu_of(b, r->id);
	struct session_gpu *g;

	if (at == NO_INDEX)
		return -ENOMEM;
	g = &b->s->gpus[at];
	if (g->uuid)
		return 0;
	g->index = r->index;
	return copy(&g->uuid, r->uuid) | copy(&g->name, r->name) | copy(&g->pci, r->pci) |
	       copy(&g->mig_parent, r->mig_parent);
}

int builder_gpu_sample(struct session_builder *b, const struct record_gpu_sample *r)
{
	struct session *s = b->s;
	uint32_t at = gpu_of(b, r->gpu);
	struct record_gpu_sample *kept;
	int err = at == NO_INDEX ? -ENOMEM : 0;

	if (!err)
		err = GROW(s->gpu_samples, b->gpu_samples_cap, s->gpu_samples_count + 1);
	if (err)
		return err;
	kept = &s->gpu_samples[s->gpu_samples_count++];
	*kept = *r;
	kept->ts = clamp_ts(r->ts);
	kept->gpu = at;
	kept->pids = NULL;
	return 0;
}

static int sample_order(const void *pa, const void *pb)
{
	const struct record_gpu_sample *a = pa, *b = pb;

	if (a->gpu != b->gpu)
		return a->gpu < b->gpu ? -1 : 1;
	return a->ts < b->ts ? -1 : a->ts > b->ts;
}

struct reason {
	unsigned bit;
	uint32_t samples; /* that have it */
};

static int reason_order(const void *pa, const void *pb)
{
	const struct reason *a = pa, *b = pb;

	if (a->samples != b->samples)
		return a->samples > b->samples ? -1 : 1;
	return a->bit < b->bit ? -1 : a->bit > b->bit;
}

static void reasons_print(const struct reason *reasons, uint32_t known, char *buf, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < REASONS && reasons[i].samples && used < size; i++) {
		char word[64];

		gpu_throttle_text(UINT64_C(1) << reasons[i].bit, word, sizeof(word));
		used += (size_t)snprintf(buf + used, size - used, "%s%s %.1f %%", used ? ", " : "",
					 word, 100.0 * reasons[i].samples / known);
	}
	if (!used)
		snprintf(buf, size, "none");
}

/* Which reasons held the clocks back, in which share of the samples that could tell. */
static int reasons_sum(const struct session *s, struct session_gpu *g)
{
	struct reason reasons[REASONS] = { { 0 } };
	char text[REASONS_TEXT];
	uint32_t known = 0;

	for (unsigned bit = 0; bit < REASONS; bit++)
		reasons[bit].bit = bit;
	for (uint32_t i = 0; i < g->samples; i++) {
		const struct record_gpu_sample *r = &s->gpu_samples[g->first_sample + i];

		if (!(r->has & GPU_HAS_THROTTLE))
			continue;
		known++;
		g->throttled += gpu_throttled(r->throttle);
		for (unsigned bit = 1; bit < REASONS; bit++)
			reasons[bit].samples += r->throttle >> bit & 1;
	}
	g->throttle_known = known;
	if (!known)
		return 0;
	qsort(reasons, REASONS, sizeof(reasons[0]), reason_order);
	reasons_print(reasons, known, text, sizeof(text));
	return copy(&g->throttled_by, text);
}

int builder_gpus(struct session_builder *b)
{
	struct session *s = b->s;
	int err = 0;

	if (s->gpu_samples_count)
		qsort(s->gpu_samples, s->gpu_samples_count, sizeof(*s->gpu_samples), sample_order);
	for (size_t i = 0; i < s->gpu_samples_count; i++) {
		struct session_gpu *g = &s->gpus[s->gpu_samples[i].gpu];

		if (!g->samples++)
			g->first_sample = (uint32_t)i;
	}
	for (size_t i = 0; i < s->gpus_count && !err; i++)
		err = reasons_sum(s, &s->gpus[i]);
	return err;
}
