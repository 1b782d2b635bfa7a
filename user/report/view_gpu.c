// SPDX-License-Identifier: BSD-2-Clause
/* What the GPUs said of themselves while the trace ran: gpu_sum. */
#include <errno.h>
#include <stdlib.h>

#include "gpu/gpu.h"
#include "report/row.h"
#include "util/select.h"
#include "util/text.h"

/* Of the samples that know a number: sum and count, least and most. */
struct spread {
	int64_t sum, count, least, most;
};

static void spread_add(struct spread *s, int64_t v)
{
	if (!s->count || v < s->least)
		s->least = v;
	if (!s->count || v > s->most)
		s->most = v;
	if (__builtin_add_overflow(s->sum, v, &s->sum))
		s->sum = INT64_MAX;
	s->count++;
}

static int64_t spread_avg(const struct spread *s)
{
	return s->count ? s->sum / s->count : NA;
}

static int64_t spread_most(const struct spread *s)
{
	return s->count ? s->most : NA;
}

static int64_t limited(uint64_t v)
{
	return v > INT64_MAX ? INT64_MAX : (int64_t)v;
}

/* The samples of one GPU, as they are added up. */
struct sums {
	struct spread sm, power, limit, temperature, utilisation, memory_utilisation, used, total,
		gpm[4], processes, xids;
	int64_t *sm_clocks, *memory_clocks;
	size_t sm_count, memory_count;
	int64_t energy, energy_count;
	uint64_t energy_last;
};

/* The counter begins anew when the driver is loaded: what was used meanwhile is not known. */
static void add_energy(struct sums *sum, uint64_t mj)
{
	if (sum->energy_count && mj > sum->energy_last &&
	    __builtin_add_overflow(sum->energy, limited(mj - sum->energy_last), &sum->energy))
		sum->energy = INT64_MAX;
	sum->energy_last = mj;
	sum->energy_count++;
}

static void add_sample(struct sums *sum, const struct record_gpu_sample *r)
{
	const uint32_t gpm[4] = { r->gpm_sm, r->gpm_occupancy, r->gpm_tensor, r->gpm_dram };

	if (r->has & GPU_HAS_CLOCK_SM) {
		spread_add(&sum->sm, r->clock_sm_mhz);
		sum->sm_clocks[sum->sm_count++] = r->clock_sm_mhz;
	}
	if (r->has & GPU_HAS_CLOCK_MEMORY)
		sum->memory_clocks[sum->memory_count++] = r->clock_memory_mhz;
	if (r->has & GPU_HAS_POWER)
		spread_add(&sum->power, r->power_mw);
	if (r->has & GPU_HAS_POWER_LIMIT)
		spread_add(&sum->limit, r->power_limit_mw);
	if (r->has & GPU_HAS_TEMPERATURE)
		spread_add(&sum->temperature, r->temperature_c);
	if (r->has & GPU_HAS_UTILISATION) {
		spread_add(&sum->utilisation, (int64_t)r->utilisation_pct * 1000);
		spread_add(&sum->memory_utilisation, (int64_t)r->memory_utilisation_pct * 1000);
	}
	if (r->has & GPU_HAS_MEMORY) {
		spread_add(&sum->used, limited(r->memory_used));
		spread_add(&sum->total, limited(r->memory_total));
	}
	if (r->has & GPU_HAS_ENERGY)
		add_energy(sum, r->energy_mj);
	for (int i = 0; i < 4 && r->has & GPU_HAS_GPM; i++)
		spread_add(&sum->gpm[i], gpm[i]);
	if (r->has & GPU_HAS_PROCESSES)
		spread_add(&sum->processes, r->processes);
	if (r->has & GPU_HAS_XID)
		spread_add(&sum->xids, limited(r->xid_count));
}

static int64_t median(int64_t *v, size_t count)
{
	return count ? select_rank(v, count, stats_rank(count, 50)) : NA;
}

static void fill_sums(struct row_gpu *g, struct sums *sum)
{
	g->sm_min = sum->sm.count ? sum->sm.least : NA;
	g->sm_p50 = median(sum->sm_clocks, sum->sm_count);
	g->sm_max = spread_most(&sum->sm);
	g->memory_clock_p50 = median(sum->memory_clocks, sum->memory_count);
	g->power_avg = spread_avg(&sum->power);
	g->power_max = spread_most(&sum->power);
	g->power_limit = spread_most(&sum->limit);
	g->temperature_max = spread_most(&sum->temperature);
	g->utilisation = spread_avg(&sum->utilisation);
	g->memory_utilisation = spread_avg(&sum->memory_utilisation);
	g->memory_used = spread_most(&sum->used);
	g->memory_total = spread_most(&sum->total);
	g->energy = sum->energy_count > 1 ? sum->energy : NA;
	for (int i = 0; i < 4; i++)
		g->gpm[i] = spread_avg(&sum->gpm[i]);
	g->processes = spread_most(&sum->processes);
	g->xids = spread_most(&sum->xids);
}

static const char *known(const char *text)
{
	return text && *text ? text : NULL;
}

static void fill_gpu(const struct session *s, const struct session_gpu *g, struct row *r)
{
	const struct record_gpu_sample *last = &s->gpu_samples[g->first_sample + g->samples - 1];

	r->gpu.index = g->index == UINT32_MAX ? NA : (int64_t)g->index;
	r->gpu.samples = g->samples;
	r->gpu.throttled = share(g->throttled, g->throttle_known);
	r->gpu.throttled_by = g->throttled_by;
	r->gpu.xid_last = last->has & GPU_HAS_XID && last->xid_last ? (int64_t)last->xid_last : NA;
	r->gpu.uuid = known(g->uuid);
	r->gpu.pci = known(g->pci);
	r->gpu.mig_parent = known(g->mig_parent);
	r->name = known(g->name);
}

static int gpu_row(const struct session *s, const struct session_gpu *g, struct rows *rows)
{
	struct sums sum = { .sm_clocks = malloc(g->samples * sizeof(int64_t)),
			    .memory_clocks = malloc(g->samples * sizeof(int64_t)) };
	struct row *r;
	int err = sum.sm_clocks && sum.memory_clocks ? rows_add(rows, &r) : -ENOMEM;

	if (!err) {
		for (uint32_t i = 0; i < g->samples; i++)
			add_sample(&sum, &s->gpu_samples[g->first_sample + i]);
		fill_gpu(s, g, r);
		fill_sums(&r->gpu, &sum);
	}
	free(sum.sm_clocks);
	free(sum.memory_clocks);
	return err;
}

int gpu_rows(const struct session *s, struct rows *rows)
{
	int err = 0;

	for (size_t i = 0; i < s->gpus_count && !err; i++)
		if (s->gpus[i].samples)
			err = gpu_row(s, &s->gpus[i], rows);
	return err;
}

static int build_gpu(struct report_ctx *c)
{
	return gpu_rows(c->s, &c->rows);
}

static const struct column columns_gpu[] = {
	COLUMN("gpu", "GPU", INT, ID, gpu.index),
	COLUMN_OPTIONAL("samples", "Samples", INT, NONE, gpu.samples),
	COLUMN_OPTIONAL("sm_clock_min_mhz", "SM, min (MHz)", INT, NONE, gpu.sm_min),
	COLUMN("sm_clock_p50_mhz", "SM, med (MHz)", INT, NONE, gpu.sm_p50),
	COLUMN_OPTIONAL("sm_clock_max_mhz", "SM, max (MHz)", INT, NONE, gpu.sm_max),
	COLUMN("power_avg_w", "Power, avg (W)", INT, MILLI, gpu.power_avg),
	COLUMN_OPTIONAL("power_max_w", "Power, max (W)", INT, MILLI, gpu.power_max),
	COLUMN_OPTIONAL("temperature_max_c", "Temperature, max (°C)", INT, NONE,
			gpu.temperature_max),
	COLUMN("throttled_pct", "Throttled (%)", INT, PERCENT, gpu.throttled),
	COLUMN_OPTIONAL("utilisation_avg_pct", "Utilisation, avg (%)", INT, PERCENT,
			gpu.utilisation),
	COLUMN_OPTIONAL("memory_used_max_bytes", "Memory used, max", INT, BYTES, gpu.memory_used),
	COLUMN_OPTIONAL("energy_j", "Energy (J)", INT, MILLI, gpu.energy),
	COLUMN_OPTIONAL("xid_count", "XID errors", INT, NONE, gpu.xids),
	COLUMN_OPTIONAL("xid_last", "Last XID", INT, ID, gpu.xid_last),
	COLUMN_OPTIONAL("name", "Name", TEXT, NONE, name),
	COLUMN_OPTIONAL("memory_clock_p50_mhz", "Memory, med (MHz)", INT, NONE,
			gpu.memory_clock_p50),
	COLUMN_OPTIONAL("power_limit_w", "Power limit (W)", INT, MILLI, gpu.power_limit),
	COLUMN_OPTIONAL("memory_utilisation_avg_pct", "Memory utilisation, avg (%)", INT, PERCENT,
			gpu.memory_utilisation),
	COLUMN_OPTIONAL("memory_total_bytes", "Memory", INT, BYTES, gpu.memory_total),
	COLUMN_OPTIONAL("gpm_sm_avg_pct", "SMs active, avg (%)", INT, PERCENT, gpu.gpm[0]),
	COLUMN_OPTIONAL("gpm_occupancy_avg_pct", "Occupancy, avg (%)", INT, PERCENT, gpu.gpm[1]),
	COLUMN_OPTIONAL("gpm_tensor_avg_pct", "Tensor cores, avg (%)", INT, PERCENT, gpu.gpm[2]),
	COLUMN_OPTIONAL("gpm_dram_avg_pct", "DRAM bandwidth, avg (%)", INT, PERCENT, gpu.gpm[3]),
	COLUMN_OPTIONAL("processes_max", "Processes, max", INT, NONE, gpu.processes),
	COLUMN_OPTIONAL("pci", "PCI", TEXT, NONE, gpu.pci),
	COLUMN_OPTIONAL("uuid", "UUID", TEXT, NONE, gpu.uuid),
	COLUMN_OPTIONAL("mig_parent", "Part of", TEXT, NONE, gpu.mig_parent),
	COLUMN("throttled_by", "Throttled by", TEXT, NONE, gpu.throttled_by),
	{ 0 },
};

/* A table, and what kept NVML from answering, if it was asked and something did. */
static void print_gpu_table(const struct report_ctx *c, FILE *out)
{
	const char *trouble = session_info(c->s, "gpu_trouble");
	char text[512];

	print_table(c, &view_gpu, out);
	if (trouble)
		fprintf(out, "NVML: %s\n", text_printable(trouble, text, sizeof(text), 0));
}

const struct view view_gpu = {
	.about = { "gpu_sum", NULL, "each GPU: clocks, power, temperature, what held it back" },
	.columns = columns_gpu,
	.sort = "+gpu",
	.bases = "SM: their clock. Throttled: share of the samples. All is of the whole device, "
		 "whoever used it, sampled about once a second.",
	.build = build_gpu,
	.print = print_gpu_table,
};
