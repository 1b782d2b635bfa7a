/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GPU samples from a thread of its own: whatever the driver does, nobody who
 * asks for the latest samples waits for it.
 */
#ifndef GBPF_GPU_SAMPLER_H
#define GBPF_GPU_SAMPLER_H

#include "gpu/gpu.h"

struct gpu_sampler;

/* What the caller has of a round; all zero is a valid empty state. */
struct gpu_samples {
	struct gpu_sample *items;
	size_t count, cap;
	uint64_t round;	   /* grows with every round; 0: there was none yet */
	char trouble[256]; /* why there are none; "": nothing to say, as where there is no NVML */
};

/*
 * Starts the thread, which takes a round every interval_ns, the first at once.
 * It gives up all its capabilities, and the way back to them, as soon as the driver
 * is open (or could not be), and tries again every 10 s where it could not be. 0 or
 * -errno.
 */
int gpu_sampler_new(struct gpu_sampler **out, int64_t interval_ns);

/*
 * Copies the latest round, if it is another one than into->round: 1, else 0, or
 * -ENOMEM. Where the driver has been silent for long, there are no samples, and
 * the trouble says so.
 */
int gpu_sampler_latest(struct gpu_sampler *s, struct gpu_samples *into);
void gpu_samples_free(struct gpu_samples *samples);

/*
 * Takes a round out of turn and waits for it for at most ns. Whether it came, or there
 * is no driver to wait for.
 */
bool gpu_sampler_now(struct gpu_sampler *s, int64_t ns);

/* Lets go of the driver, soon, and looks for it again at least 5 s later (gpus_release()). */
void gpu_sampler_release(struct gpu_sampler *s);

/*
 * Ends the thread and lets go of the driver. A thread that the driver keeps for
 * over a second is left behind, and frees what it has when it comes back. NULL
 * is accepted.
 */
void gpu_sampler_free(struct gpu_sampler *s);

#endif
