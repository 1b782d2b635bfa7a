/* SPDX-License-Identifier: BSD-2-Clause */
/* CUPTI's own clock is like CLOCK_REALTIME; a client may register another. */
#include <time.h>

#include "cupti.h"

#define TRIES 9
#define SAME_NS 1000
#define BROKEN_NS (1ll << 40)

static int64_t read_clock(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static uint64_t read_real(void)
{
	return (uint64_t)read_clock(CLOCK_REALTIME);
}

/* What fn reads more than CLOCK_MONOTONIC, ns. */
static int64_t offset_of(cupti_timestamp_fn fn)
{
	int64_t best = INT64_MAX, offset = 0;

	for (int i = 0; i < TRIES; i++) {
		int64_t before = truth_now(), its = (int64_t)fn(), after = truth_now();

		if (after - before < best) {
			best = after - before;
			offset = its - (before + (after - before) / 2);
		}
	}
	return offset;
}

void cupti_clock_begin(void)
{
	cupti.mono0 = truth_now();
	cupti.real0 = cupti.mono0 + offset_of(read_real);
}

static int64_t native(int64_t mono)
{
	int64_t past = mono - cupti.mono0, ppm = cupti.set.drift_ppm;
	int64_t drift = past / 1000000 * ppm + past % 1000000 * ppm / 1000000;

	return cupti.real0 + past + drift + cupti.set.offset_ns;
}

uint64_t cupti_clock(int64_t mono)
{
	if (!cupti.timestamp)
		return (uint64_t)native(mono);
	return (uint64_t)(mono + cupti.timestamp_offset + (cupti.clock_broken ? BROKEN_NS : 0));
}

uint64_t cupti_clock_now(void)
{
	return cupti.timestamp ? cupti.timestamp() : (uint64_t)native(truth_now());
}

void cupti_clock_set(cupti_timestamp_fn fn)
{
	int64_t offset = offset_of(fn);

	if (cupti.timestamp_set++ || atomic_load(&cupti.enabled))
		cupti.clock_broken = true;
	/* CLOCK_MONOTONIC itself: what was measured is the error of measuring. */
	if (offset > -SAME_NS && offset < SAME_NS)
		offset = 0;
	cupti.timestamp_offset = offset;
	cupti.timestamp = fn;
}
