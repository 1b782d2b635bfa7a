/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints the GPU samples of a recording as they are in the file, a JSON object a line. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "record/reader.h"
#include "util/json.h"

#define GPUS 64

static char uuids[GPUS][96];

static void number(struct json *j, const char *key, uint64_t value)
{
	json_key(j, key);
	json_int(j, (int64_t)value);
}

static void print(const struct record_gpu_sample *s)
{
	struct json j;

	json_init(&j, stdout);
	json_begin_object(&j);
	json_key(&j, "uuid");
	json_string(&j, s->gpu < GPUS ? uuids[s->gpu] : "?");
	number(&j, "ts", (uint64_t)s->ts);
	number(&j, "has", s->has);
	number(&j, "sm", s->clock_sm_mhz);
	number(&j, "memory_clock", s->clock_memory_mhz);
	number(&j, "power", s->power_mw);
	number(&j, "power_limit", s->power_limit_mw);
	number(&j, "temperature", s->temperature_c);
	number(&j, "throttle", s->throttle);
	number(&j, "utilisation", s->utilisation_pct);
	number(&j, "memory_utilisation", s->memory_utilisation_pct);
	number(&j, "memory_used", s->memory_used);
	number(&j, "memory_total", s->memory_total);
	number(&j, "energy", s->energy_mj);
	number(&j, "gpm_sm", s->gpm_sm);
	number(&j, "gpm_occupancy", s->gpm_occupancy);
	number(&j, "gpm_tensor", s->gpm_tensor);
	number(&j, "gpm_dram", s->gpm_dram);
	number(&j, "xid_count", s->xid_count);
	number(&j, "xid_last", s->xid_last);
	number(&j, "processes", s->processes);
	json_key(&j, "pids");
	json_string(&j, s->pids);
	json_end_object(&j);
	putchar('\n');
}

int main(int argc, char **argv)
{
	struct reader *r;
	struct record record;

	if (argc != 2 || reader_open(&r, argv[1]))
		return 2;
	while (reader_next(r, &record) == 1) {
		if (record.kind == RECORD_GPU && record.gpu.id < GPUS)
			snprintf(uuids[record.gpu.id], sizeof(uuids[0]), "%s", record.gpu.uuid);
		if (record.kind == RECORD_GPU_SAMPLE)
			print(&record.gpu_sample);
	}
	reader_close(r);
	return 0;
}
