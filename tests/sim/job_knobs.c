/* SPDX-License-Identifier: BSD-2-Clause */
/* Options that are one number each. */
#include "job.h"

#include <getopt.h>
#include <stddef.h>

struct knob {
	const char *name;
	size_t offset;
	double otherwise;
	const char *help;
};

#define KNOB(field) offsetof(struct job_knobs, field)
static const struct knob knobs[] = {
	{ "rate", KNOB(rate), 0, "launches a second; 0: as fast as it goes" },
	{ "sync-every", KNOB(sync_every), 100, "launches between syncs; 0: no sync" },
	{ "launches", KNOB(launches), 100, "launches of a burst or of a period" },
	{ "gap-us", KNOB(gap_us), 5000, "between two bursts" },
	{ "period-us", KNOB(period_us), 250000, "from one period's begin to the next" },
	{ "random", KNOB(random), 0, "1: bursts and gaps of random length, by --seed" },
	{ "jump-after", KNOB(jump_after), 0, "seconds; 0: at SIGUSR1" },
	{ "work-us", KNOB(work_us), 10000, "launching between two waits" },
	{ "wait-us", KNOB(wait_us), 10000, "of one wait" },
	{ "size", KNOB(size), 4096, "bytes of an allocation" },
	{ "keep-every", KNOB(keep_every), 10, "of so many allocations one is never freed" },
	{ "timeline", KNOB(timeline), 0, "seconds of time whose calls are counted by time" },
	{ "timeline-bin-us", KNOB(bin_us), 1000, "in bins of that" },
	{ "profiler-start", KNOB(profiler_start), 0, "seconds from the first call on" },
	{ "profiler-stop", KNOB(profiler_stop), 1e6, "seconds; it ends with the job in any case" },
};

#define KNOBS (sizeof(knobs) / sizeof(*knobs))

static double *value_of(struct job_knobs *k, size_t i)
{
	return (double *)((char *)k + knobs[i].offset);
}

size_t job_knobs_options(struct option *out, size_t room)
{
	for (size_t i = 0; i < KNOBS && i < room; i++)
		out[i] = (struct option){ knobs[i].name, required_argument, NULL,
					  JOB_KNOB + (int)i };
	return KNOBS < room ? KNOBS : room;
}

void job_knobs_default(struct job_knobs *k)
{
	for (size_t i = 0; i < KNOBS; i++)
		*value_of(k, i) = knobs[i].otherwise;
}

bool job_knobs_set(struct job_knobs *k, int option, double value)
{
	if (option < JOB_KNOB || option >= JOB_KNOB + (int)KNOBS || value < 0)
		return false;
	*value_of(k, (size_t)(option - JOB_KNOB)) = value;
	return true;
}

void job_knobs_help(void)
{
	for (size_t i = 0; i < KNOBS; i++)
		printf("  --%-15s N %s (default %g)\n", knobs[i].name, knobs[i].help,
		       knobs[i].otherwise);
}
