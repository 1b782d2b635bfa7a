/* SPDX-License-Identifier: BSD-2-Clause */
/* A client of CUPTI that throws all records away: what recording costs without gbpf. */
#ifndef GBPF_GPU_CUPTI_ALONE_H
#define GBPF_GPU_CUPTI_ALONE_H

#include <stdbool.h>
#include <stdint.h>

/* Opens libcupti at path and registers buffers, once in a process. 0, or a CUptiResult or -1. */
int cupti_alone_open(const char *path);
/* Holds the subscriber's slot for a moment. */
int cupti_alone_subscribe(void);
/* Kinds by their number's bit; calls in moments, too, where asked for, as the sidecar has them. */
int cupti_alone_on(uint64_t kinds, bool moments);
int cupti_alone_off(void);
/* Only while no other thread calls CUDA and the GPU is idle. */
int cupti_alone_finalize(void);

#endif
