/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SIM_JOB_THROW_H
#define SIM_JOB_THROW_H

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*job_between)(void *user);

/* Goes down levels frames, throws there and catches here; between runs in every frame. -1. */
int job_throw(int levels, job_between between, void *user);
/* Calls fn under an object whose destructor counts: the frame was left, however. */
void job_guarded(job_between fn, void *user, unsigned *count);

#ifdef __cplusplus
}
#endif

#endif
