// SPDX-License-Identifier: BSD-2-Clause
/* What the SMs did between two samples: NVML's GPU performance monitoring (Hopper and later). */
#include <math.h>
#include <string.h>

#include "gpu/private.h"

/* NVML's counters are refreshed in such steps; two samples of one step would say nothing. */
#define APART_NS 100000000LL

static const uint32_t ids[] = {NVML_GPM_SM, NVML_GPM_OCCUPANCY, NVML_GPM_TENSOR, NVML_GPM_DRAM};
#define IDS (sizeof(ids) / sizeof(ids[0]))

static bool exported(const struct nvml *n)
{
	return n->gpm_support && n->gpm_new && n->gpm_get && n->gpm_metrics && n->gpm_free;
}

void gpm_free(const struct nvml *n, struct gpm *g)
{
	for (size_t i = 0; i < 2; i++)
		if (g->sample[i])
			n->gpm_free(g->sample[i]);
	memset(g, 0, sizeof(*g));
}

static bool prepare(const struct nvml *n, struct gpm *g, nvml_device d)
{
	struct nvml_gpm_support support = {.version = 1};

	if (g->sample[0])
		return true;
	if (n->gpm_support(d, &support) || !support.supported || n->gpm_new(&g->sample[0]) ||
	    n->gpm_new(&g->sample[1])) {
		gpm_free(n, g);
		g->refused = true;
		return false;
	}
	return true;
}

/* The numbers between the two samples; all or none. */
static void compare(const struct nvml *n, const struct gpm *g, struct nvml_gpm_metrics *m,
		    struct gpu_sample *s)
{
	double *out[IDS] = {&s->gpm_sm_pct, &s->gpm_occupancy_pct, &s->gpm_tensor_pct,
			    &s->gpm_dram_pct};

	memset(m, 0, sizeof(*m));
	m->version = 1;
	m->count = IDS;
	m->before = g->sample[!g->last];
	m->after = g->sample[g->last];
	for (size_t i = 0; i < IDS; i++)
		m->metric[i].id = ids[i];
	if (n->gpm_metrics(m))
		return;
	for (size_t i = 0; i < IDS; i++)
		if (m->metric[i].result || !isfinite(m->metric[i].value))
			return;
	for (size_t i = 0; i < IDS; i++)
		*out[i] = m->metric[i].value;
	s->has |= GPU_HAS_GPM;
}

void gpm_read(const struct nvml *n, struct gpm *g, nvml_device d, struct nvml_gpm_metrics *m,
	      int64_t now, struct gpu_sample *s)
{
	if (g->refused || !exported(n) || !prepare(n, g, d))
		return;
	if (g->at && now - g->at < APART_NS)
		return;
	if (n->gpm_get(d, g->sample[!g->last])) {
		g->at = 0;
		return;
	}
	g->last = !g->last;
	if (g->at)
		compare(n, g, m, s);
	g->at = now;
}
