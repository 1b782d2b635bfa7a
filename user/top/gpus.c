/* SPDX-License-Identifier: BSD-2-Clause */
/* GPUs: a line each above the processes, and a table of their own. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "top/internal.h"
#include "util/text.h"

enum {
	G_INDEX, G_NAME, G_UTIL, G_MEMORY, G_USED, G_TOTAL, G_POWER, G_LIMIT, G_TEMP, G_SM_CLOCK,
	G_MEM_CLOCK, G_SM, G_OCCUPANCY, G_TENSOR, G_DRAM, G_PROCESSES, G_XID, G_THROTTLE, G_PCI,
	G_UUID, G_COLUMNS,
};

static const struct column columns[G_COLUMNS] = {
	[G_INDEX] = {"GPU", "gpu", "NVML's index; M: MIG instance", 4, .ascending = true},
	[G_NAME] = {"NAME", "name", "model", 12, 28, .left = true, .ascending = true},
	[G_UTIL] = {"UTIL%", "utilisation", "time with a kernel running", 6},
	[G_MEMORY] = {"MEM%", "memory", "memory in use", 5},
	[G_USED] = {"USED", "used", "memory in use", 8},
	[G_TOTAL] = {"OF", "total", "memory there is", 8},
	[G_POWER] = {"WATTS", "power", "power drawn", 6},
	[G_LIMIT] = {"LIMIT", "limit", "power allowed, W", 6},
	[G_TEMP] = {"TEMP", "temperature", "degrees Celsius", 5},
	[G_SM_CLOCK] = {"SM MHZ", "sm-clock", "clock of the SMs", 7},
	[G_MEM_CLOCK] = {"MEM MHZ", "memory-clock", "clock of the memory", 8},
	[G_SM] = {"SM%", "sm", "SMs with work on them (GPM)", 5},
	[G_OCCUPANCY] = {"OCC%", "occupancy", "warps there are of those possible (GPM)", 5},
	[G_TENSOR] = {"TENS%", "tensor", "tensor cores at work (GPM)", 6},
	[G_DRAM] = {"DRAM%", "dram", "memory bandwidth in use (GPM)", 6},
	[G_PROCESSES] = {"PROCS", "processes", "processes that use it", 6},
	[G_XID] = {"XID", "xid", "last XID error, and how many since gbpf started",
		   8, .left = true, .ascending = true},
	[G_THROTTLE] = {"THROTTLED BY", "throttle", "why clocks are lower than they could be",
			14, 50, .left = true, .ascending = true},
	[G_PCI] = {"PCI", "pci", "bus id", 16, .left = true, .ascending = true},
	[G_UUID] = {"UUID", "uuid", "name for ever", 40, 44, .left = true, .ascending = true},
};

static const struct column_set sets[] = {
	{"overview", 20, {G_INDEX, G_UTIL, G_MEMORY, G_POWER, G_TEMP, G_SM_CLOCK, G_THROTTLE, G_XID,
			  G_PROCESSES, G_NAME, G_USED, G_TOTAL, G_LIMIT, G_MEM_CLOCK, G_SM,
			  G_OCCUPANCY, G_TENSOR, G_DRAM, G_PCI, G_UUID}},
	{"counters", 10, {G_INDEX, G_UTIL, G_SM, G_OCCUPANCY, G_TENSOR, G_DRAM, G_MEM_CLOCK,
			  G_PROCESSES, G_XID, G_NAME}},
	{"places", 4, {G_INDEX, G_NAME, G_PCI, G_UUID}},
};

static struct cell have(const struct gpu_sample *g, uint32_t bit, enum cell_kind kind, double value)
{
	struct cell c = cell_value(kind, value);

	c.known = g->has & bit;
	return c;
}

static double memory_pct(const struct gpu_sample *g)
{
	return g->memory_total ? 100 * (double)g->memory_used / (double)g->memory_total : 0;
}

static struct cell label(const struct gpu_sample *g, unsigned column)
{
	struct cell c = {.kind = CELL_TEXT, .known = true};

	switch (column) {
	case G_INDEX:
		snprintf(c.own, sizeof(c.own), "%s%u", *g->mig_parent ? "M" : "", g->index);
		break;
	case G_NAME:
		return cell_text(g->name);
	case G_PCI:
		return cell_text(g->pci);
	case G_UUID:
		return cell_text(g->uuid);
	case G_XID:
		if (!g->xid_last)
			return cell_text("");
		snprintf(c.own, sizeof(c.own), "%u (%" PRIu64 ")", g->xid_last, g->xid_count);
		c.style = STYLE_BAD;
		break;
	default: /* G_THROTTLE */
		if (!(g->has & GPU_HAS_THROTTLE))
			return cell_if_known(CELL_NUMBER, -1);
		gpu_throttle_text(g->throttle, c.own, sizeof(c.own));
		c.style = strcmp(c.own, "none") != 0 ? STYLE_WARN : STYLE_PLAIN;
		break;
	}
	return c;
}

static void cell(const void *rows, size_t row, unsigned column, struct cell *c)
{
	const struct gpu_sample *g = &((const struct top *)rows)->s->gpus[row];

	switch (column) {
	case G_UTIL:
		*c = have(g, GPU_HAS_UTILISATION, CELL_NUMBER, g->utilisation_pct);
		break;
	case G_MEMORY:
		*c = have(g, GPU_HAS_MEMORY, CELL_NUMBER, memory_pct(g));
		break;
	case G_USED:
		*c = have(g, GPU_HAS_MEMORY, CELL_BYTES, (double)g->memory_used);
		break;
	case G_TOTAL:
		*c = have(g, GPU_HAS_MEMORY, CELL_BYTES, (double)g->memory_total);
		break;
	case G_POWER:
		*c = have(g, GPU_HAS_POWER, CELL_NUMBER, g->power_mw / 1000.0);
		break;
	case G_LIMIT:
		*c = have(g, GPU_HAS_POWER_LIMIT, CELL_NUMBER, g->power_limit_mw / 1000.0);
		break;
	case G_TEMP:
		*c = have(g, GPU_HAS_TEMPERATURE, CELL_NUMBER, g->temperature_c);
		break;
	case G_SM_CLOCK:
		*c = have(g, GPU_HAS_CLOCK_SM, CELL_NUMBER, g->clock_sm_mhz);
		break;
	case G_MEM_CLOCK:
		*c = have(g, GPU_HAS_CLOCK_MEMORY, CELL_NUMBER, g->clock_memory_mhz);
		break;
	case G_SM:
		*c = have(g, GPU_HAS_GPM, CELL_NUMBER, g->gpm_sm_pct);
		break;
	case G_OCCUPANCY:
		*c = have(g, GPU_HAS_GPM, CELL_NUMBER, g->gpm_occupancy_pct);
		break;
	case G_TENSOR:
		*c = have(g, GPU_HAS_GPM, CELL_NUMBER, g->gpm_tensor_pct);
		break;
	case G_DRAM:
		*c = have(g, GPU_HAS_GPM, CELL_NUMBER, g->gpm_dram_pct);
		break;
	case G_PROCESSES:
		*c = have(g, GPU_HAS_PROCESSES, CELL_NUMBER, g->processes_count);
		break;
	default:
		*c = label(g, column);
		break;
	}
}

static uint64_t identity(const void *rows, size_t row)
{
	return row; /* devices do not move */
}

const struct table gpus_table = {
	.columns = columns, .columns_count = G_COLUMNS,
	.sets = sets, .sets_count = sizeof(sets) / sizeof(sets[0]),
	.cell = cell, .identity = identity,
};

/* ---- a line each ---- */

#define BAR 10

static void meter(double pct, char *buf, size_t size)
{
	unsigned filled = (unsigned)lround(fmin(fmax(pct, 0), 100) * BAR / 100);

	snprintf(buf, size, "%3.0f%% [%.*s%*s]", pct, (int)filled, "||||||||||", BAR - (int)filled,
		 "");
}

static void memory_text(const struct gpu_sample *g, char *buf, size_t size)
{
	char used[16], total[16];

	snprintf(buf, size, "%s of %s", format_bytes((double)g->memory_used, used, sizeof(used)),
		 format_bytes((double)g->memory_total, total, sizeof(total)));
}

static void power_text(const struct gpu_sample *g, char *buf, size_t size)
{
	if (g->has & GPU_HAS_POWER_LIMIT)
		snprintf(buf, size, "%u of %u W", g->power_mw / 1000, g->power_limit_mw / 1000);
	else
		snprintf(buf, size, "%u W", g->power_mw / 1000);
}

static void add(struct line *l, const struct gpu_sample *g, uint32_t bit, const char *name,
		const char *text)
{
	if (g->has & bit)
		line_add(l, name, STYLE_PLAIN, text);
	else
		line_add(l, name, STYLE_DIM, "n/a");
}

static void draw_gpu(struct top *t, int row, const struct gpu_sample *g)
{
	struct line l = line_begin(t, row, 1);
	char text[256], name[128];

	snprintf(text, sizeof(text), "GPU %s%u", *g->mig_parent ? "M" : "", g->index);
	line_add(&l, "", STYLE_BOLD, text);
	meter(g->utilisation_pct, text, sizeof(text));
	add(&l, g, GPU_HAS_UTILISATION, "", text);
	if (g->xid_last) {
		snprintf(text, sizeof(text), "XID %u", g->xid_last);
		line_add(&l, "", STYLE_BAD, text);
	}
	power_text(g, text, sizeof(text));
	add(&l, g, GPU_HAS_POWER, "", text);
	snprintf(text, sizeof(text), "%u%sC", g->temperature_c,
		 screen_utf8(t->screen) ? "°" : " ");
	add(&l, g, GPU_HAS_TEMPERATURE, "", text);
	snprintf(text, sizeof(text), "%u MHz", g->clock_sm_mhz);
	add(&l, g, GPU_HAS_CLOCK_SM, "", text);
	memory_text(g, text, sizeof(text));
	add(&l, g, GPU_HAS_MEMORY, "mem", text);
	gpu_throttle_text(g->throttle, text, sizeof(text));
	if (strcmp(text, "none") != 0 && (g->has & GPU_HAS_THROTTLE))
		line_add(&l, "throttled:", STYLE_WARN, text);
	line_add(&l, "", STYLE_DIM, text_printable(g->name, name, sizeof(name), 40));
}

int draw_gpus(struct top *t, int row, int rows)
{
	const struct snapshot *s = t->s;
	size_t shown = s->gpus_count, max = (size_t)(rows > 0 ? rows : 0);
	char text[200], trouble[160];

	if (!s->gpus_count && max) {
		snprintf(text, sizeof(text), "%s",
			 text_printable(s->gpus_trouble ? s->gpus_trouble : "none here", trouble,
					sizeof(trouble), 0));
		struct line l = line_begin(t, row, 1);

		line_add(&l, "GPUs", STYLE_DIM, text);
		return row + 1;
	}
	if (shown > max)
		shown = max ? max - 1 : 0;
	for (size_t i = 0; i < shown; i++)
		draw_gpu(t, row + (int)i, &s->gpus[i]);
	row += (int)shown;
	if (shown < s->gpus_count && max) {
		struct line l = line_begin(t, row++, 1);

		snprintf(text, sizeof(text), "and %zu more GPUs: g shows all",
			 s->gpus_count - shown);
		line_add(&l, "", STYLE_DIM, text);
	}
	return row;
}
