// SPDX-License-Identifier: BSD-2-Clause
/*
 * The GPUs' own numbers, beside the calls. A thread asks for them; all that is
 * done here is to copy what it has, so a driver that hangs costs nothing. What
 * goes wrong with it ends in a line of the file, and never the recording.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/sampler.h"
#include "trace/private.h"

#define ROUND_NS 1000000000LL
#define LAST_NS 250000000LL /* that the last round is waited for */
#define KNOWN_MOST 1024	    /* instances come and go; those beyond are not recorded */

struct gpus_recorder {
	struct gpu_sampler *sampler;
	struct gpu_samples samples;
	char (*known)[sizeof(((struct gpu_sample *)NULL)->uuid)]; /* by id */
	uint32_t known_count;
	char trouble[sizeof(((struct gpu_samples *)NULL)->trouble)]; /* the last one */
};

void gpus_start(struct tracer *t)
{
	struct gpus_recorder *g = calloc(1, sizeof(*g));

	if (!g)
		return;
	g->known = calloc(KNOWN_MOST, sizeof(*g->known));
	if (!g->known || gpu_sampler_new(&g->sampler, ROUND_NS)) {
		free(g->known);
		free(g);
		return;
	}
	t->gpus = g;
}

/* Its id in the file, which says what it is before the first sample; 0 or -errno. */
static int identify(struct tracer *t, const struct gpu_sample *s, uint32_t *id)
{
	struct gpus_recorder *g = t->gpus;
	struct record r = {.kind = RECORD_GPU};

	for (*id = 0; *id < g->known_count; (*id)++)
		if (!strcmp(g->known[*id], s->uuid))
			return 0;
	if (*id == KNOWN_MOST)
		return -ENOSPC;
	memcpy(g->known[g->known_count++], s->uuid, sizeof(s->uuid));
	r.gpu = (struct record_gpu){
		.id = *id,
		.index = s->index,
		.uuid = s->uuid,
		.name = s->name,
		.pci = s->pci,
		.mig_parent = s->mig_parent,
	};
	return tracer_add(t, &r);
}

static uint32_t milli(double pct)
{
	return pct > 0 && pct < 4000000 ? (uint32_t)(pct * 1000 + 0.5) : 0;
}

static const char *pids_text(const struct gpu_sample *s, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (uint32_t i = 0; i < s->processes_count && i < GPU_PROCESSES && used < size; i++)
		used += (size_t)snprintf(buf + used, size - used, "%s%u", i ? "," : "",
					 s->processes[i]);
	return buf;
}

static int sample_write(struct tracer *t, uint32_t id, const struct gpu_sample *s)
{
	struct record r = {.kind = RECORD_GPU_SAMPLE};
	char pids[GPU_PROCESSES * 11 + 1];

	r.gpu_sample = (struct record_gpu_sample){
		.ts = s->time_ns,
		.gpu = id,
		.has = s->has,
		.clock_sm_mhz = s->clock_sm_mhz,
		.clock_memory_mhz = s->clock_memory_mhz,
		.power_mw = s->power_mw,
		.power_limit_mw = s->power_limit_mw,
		.temperature_c = s->temperature_c,
		.throttle = s->throttle,
		.utilisation_pct = s->utilisation_pct,
		.memory_utilisation_pct = s->memory_utilisation_pct,
		.memory_used = s->memory_used,
		.memory_total = s->memory_total,
		.energy_mj = s->energy_mj,
		.gpm_sm = milli(s->gpm_sm_pct),
		.gpm_occupancy = milli(s->gpm_occupancy_pct),
		.gpm_tensor = milli(s->gpm_tensor_pct),
		.gpm_dram = milli(s->gpm_dram_pct),
		.xid_count = s->xid_count,
		.xid_last = s->xid_last,
		.processes = s->processes_count,
		.pids = pids_text(s, pids, sizeof(pids)),
	};
	return tracer_add(t, &r);
}

static int trouble_write(struct tracer *t)
{
	struct gpus_recorder *g = t->gpus;
	struct record r = {.kind = RECORD_INFO, .info = {"gpu_trouble", g->samples.trouble}};

	if (!g->samples.trouble[0] || !strcmp(g->trouble, g->samples.trouble))
		return 0;
	memcpy(g->trouble, g->samples.trouble, sizeof(g->trouble));
	return tracer_add(t, &r);
}

int gpus_tick(struct tracer *t)
{
	struct gpus_recorder *g = t->gpus;
	int err = 0, got = g ? gpu_sampler_latest(g->sampler, &g->samples) : 0;
	uint32_t id;

	for (size_t i = 0; got == 1 && !err && i < g->samples.count; i++) {
		if (!scheduled_covers(t, g->samples.items[i].time_ns))
			continue;
		err = identify(t, &g->samples.items[i], &id);
		if (err == -ENOSPC)
			err = 0;
		else if (!err)
			err = sample_write(t, id, &g->samples.items[i]);
	}
	return err || !g ? err : trouble_write(t);
}

int gpus_finish(struct tracer *t)
{
	int err = gpus_tick(t);

	/* With the first round, even a short recording has two, and its energy is known. */
	if (t->gpus)
		gpu_sampler_now(t->gpus->sampler, LAST_NS);
	if (!err)
		err = gpus_tick(t);
	gpus_stop(t);
	return err;
}

void gpus_stop(struct tracer *t)
{
	struct gpus_recorder *g = t->gpus;

	if (!g)
		return;
	gpu_sampler_free(g->sampler);
	gpu_samples_free(&g->samples);
	free(g->known);
	free(g);
	t->gpus = NULL;
}
