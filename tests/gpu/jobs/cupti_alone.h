/* SPDX-License-Identifier: BSD-2-Clause */
/* A client of CUPTI: what recording costs without gbpf, and what it leaves. */
#ifndef GBPF_GPU_CUPTI_ALONE_H
#define GBPF_GPU_CUPTI_ALONE_H

#include <stdint.h>

/* Opens libcupti at path, once in a process. 0 or -1; the others: 0, a CUptiResult or -1. */
int cupti_alone_open(const char *path);
/* Holds the subscriber's slot for a moment. */
int cupti_alone_subscribe(void);
/*
 * Records of calls, in moments as the sidecar has them: of all, or of those that launch, with the
 * choice of functions taken back after each moment, or kept.
 */
enum cupti_alone_calls {
	CUPTI_ALONE_NONE, CUPTI_ALONE_KINDS, CUPTI_ALONE_LAUNCHES, CUPTI_ALONE_LAUNCHES_KEPT,
};
/* Registers buffers; kinds by their number's bit, without a pause. */
int cupti_alone_on(uint64_t kinds, enum cupti_alone_calls calls);
int cupti_alone_off(void);
/* After off, tries to undo what that left: callbacks of "domains", records of "functions". */
int cupti_alone_reset(const char *how);
/* From now on records are written down: what, ids, times. 0 or -1. */
int cupti_alone_log(const char *path);
/* Only while no other thread calls CUDA and the GPU is idle. */
int cupti_alone_finalize(void);
/*
 * After ms in place of off, whatever other threads do: off, and finalizes when the next call of
 * any thread ends, within its callback, which is where NVIDIA's sample does. The log then says
 * "finalized", CUptiResult, domain, function, ns; or "stays", CUptiResult.
 */
int cupti_alone_leave(unsigned ms);

#endif
