// SPDX-License-Identifier: BSD-2-Clause
/* One device's numbers. What it does not answer is not set, and is no error. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/private.h"

#define PROCESSES_MOST 4096 /* that are counted */
#define UNTOUCHED 0xa5

struct reading {
	const struct nvml *n;
	nvml_device device;
	struct gpu_sample *s;
	bool lost, unknown;
};

static bool answered(struct reading *r, int result)
{
	r->lost |= result == NVML_LOST || result == NVML_UNINITIALIZED;
	r->unknown |= result == NVML_UNKNOWN;
	return result == NVML_OK;
}

static void number(struct reading *r, nvml_get_u32 get, uint32_t *out, uint32_t has)
{
	uint32_t value = 0;

	if (r->lost || !get || !answered(r, get(r->device, &value)))
		return;
	*out = value;
	r->s->has |= has;
}

static void number_of(struct reading *r, nvml_get_u32_of get, int which, uint32_t *out,
		      uint32_t has)
{
	uint32_t value = 0;

	if (r->lost || !get || !answered(r, get(r->device, which, &value)))
		return;
	*out = value;
	r->s->has |= has;
}

static void number_64(struct reading *r, nvml_get_u64 get, uint64_t *out, uint32_t has)
{
	uint64_t value = 0;

	if (r->lost || !get || !answered(r, get(r->device, &value)))
		return;
	*out = value;
	r->s->has |= has;
}

/* The last byte is ours: what NVML wrote may be as long as the room it was given. */
static void text(struct reading *r, nvml_get_text get, char *out, size_t size)
{
	if (r->lost || !get || !answered(r, get(r->device, out, (uint32_t)size)))
		out[0] = '\0';
	out[size - 1] = '\0';
}

static void identity(struct reading *r)
{
	struct nvml_pci pci = {0};

	text(r, r->n->uuid, r->s->uuid, sizeof(r->s->uuid));
	text(r, r->n->name, r->s->name, sizeof(r->s->name));
	if (r->lost || !r->n->pci || !answered(r, r->n->pci(r->device, &pci)))
		return;
	memcpy(r->s->pci, pci.bus_id, sizeof(r->s->pci));
	r->s->pci[sizeof(r->s->pci) - 1] = '\0';
}

static void temperature(struct reading *r)
{
	struct nvml_temperature t = {NVML_TEMPERATURE_VERSION, NVML_TEMPERATURE_GPU, 0};

	number_of(r, r->n->temperature, NVML_TEMPERATURE_GPU, &r->s->temperature_c,
		  GPU_HAS_TEMPERATURE);
	if (r->s->has & GPU_HAS_TEMPERATURE || r->lost || !r->n->temperature_v)
		return;
	if (!answered(r, r->n->temperature_v(r->device, &t)) || t.celsius < 0)
		return;
	r->s->temperature_c = (uint32_t)t.celsius;
	r->s->has |= GPU_HAS_TEMPERATURE;
}

static void utilisation(struct reading *r)
{
	struct nvml_utilisation u = {0};

	if (r->lost || !r->n->utilisation || !answered(r, r->n->utilisation(r->device, &u)))
		return;
	r->s->utilisation_pct = u.gpu;
	r->s->memory_utilisation_pct = u.memory;
	r->s->has |= GPU_HAS_UTILISATION;
}

static void memory(struct reading *r)
{
	struct nvml_memory m = {0};

	if (r->lost || !r->n->memory || !answered(r, r->n->memory(r->device, &m)))
		return;
	r->s->memory_used = m.used;
	r->s->memory_total = m.total;
	r->s->has |= GPU_HAS_MEMORY;
}

/*
 * The entries that early drivers of branch 535 write are longer. The end of the
 * last one, of count, tells: nothing else is written there.
 */
static size_t entry_size(const uint8_t *buf, uint32_t count)
{
	for (size_t i = NVML_PROCESS_SIZE_535 * count - 8; i < NVML_PROCESS_SIZE_535 * count; i++)
		if (buf[i] != UNTOUCHED)
			return NVML_PROCESS_SIZE_535;
	return NVML_PROCESS_SIZE;
}

static void processes_take(struct gpu_sample *s, const uint8_t *buf, uint32_t count)
{
	size_t size = count ? entry_size(buf, count) : NVML_PROCESS_SIZE;
	struct nvml_process p;

	s->processes_count = count;
	for (uint32_t i = 0; i < count && i < GPU_PROCESSES; i++) {
		memcpy(&p, buf + i * size, sizeof(p));
		s->processes[i] = p.pid;
	}
	s->has |= GPU_HAS_PROCESSES;
}

/* Once more with as much room as it says it needs, and some for those that come meanwhile. */
static void processes(struct reading *r)
{
	uint32_t room = GPU_PROCESSES, count;
	int result;
	uint8_t *buf;

	for (int i = 0; i < 2 && !r->lost && r->n->processes; i++) {
		buf = malloc(room * NVML_PROCESS_SIZE_535);
		if (!buf)
			return;
		memset(buf, UNTOUCHED, room * NVML_PROCESS_SIZE_535);
		count = room;
		result = r->n->processes(r->device, &count, buf);
		if (answered(r, result))
			processes_take(r->s, buf, count < room ? count : room);
		free(buf);
		if (result != NVML_TOO_SMALL)
			return;
		room = count < PROCESSES_MOST ? count + 16 : PROCESSES_MOST;
	}
}

static int result_of(const struct reading *r)
{
	/* An unknown error of one number may be a quirk; of all, the device does not answer. */
	return r->lost || !r->s->uuid[0] || (r->unknown && !r->s->has) ? -ENODEV : 0;
}

int device_read(const struct nvml *n, nvml_device d, struct gpu_sample *s)
{
	struct reading r = {.n = n, .device = d, .s = s};

	memset(s, 0, sizeof(*s));
	identity(&r);
	number_of(&r, n->clock, NVML_CLOCK_SM, &s->clock_sm_mhz, GPU_HAS_CLOCK_SM);
	number_of(&r, n->clock, NVML_CLOCK_MEM, &s->clock_memory_mhz, GPU_HAS_CLOCK_MEMORY);
	number(&r, n->power, &s->power_mw, GPU_HAS_POWER);
	number(&r, n->power_limit, &s->power_limit_mw, GPU_HAS_POWER_LIMIT);
	if (!(s->has & GPU_HAS_POWER_LIMIT))
		number(&r, n->power_limit_set, &s->power_limit_mw, GPU_HAS_POWER_LIMIT);
	temperature(&r);
	number_64(&r, n->clock_reasons, &s->throttle, GPU_HAS_THROTTLE);
	utilisation(&r);
	memory(&r);
	number_64(&r, n->energy, &s->energy_mj, GPU_HAS_ENERGY);
	processes(&r);
	return result_of(&r);
}

int device_read_instance(const struct nvml *n, nvml_device d, struct gpu_sample *s)
{
	struct reading r = {.n = n, .device = d, .s = s};

	memset(s, 0, sizeof(*s));
	identity(&r);
	memory(&r);
	processes(&r);
	return result_of(&r);
}
