/* SPDX-License-Identifier: BSD-2-Clause */
/* Data of a CUPTI in which the library's own functions for buffers are registered. */
#ifndef GBPF_TESTS_CUPTI_PAIR_H
#define GBPF_TESTS_CUPTI_PAIR_H

#include "sidecar/lib/buffers.h"
#include "sidecar/lib/neighbour.h"

static inline void cupti_pair(uintptr_t data[4])
{
	data[1] = (uintptr_t)buffers_request;
	data[2] = (uintptr_t)buffers_complete;
	session.neighbour.data.ranges[0].from = (uintptr_t)data;
	session.neighbour.data.ranges[0].to = (uintptr_t)(data + 4);
	session.neighbour.data.count = 1;
	assert_true(neighbour_note(&session.neighbour, buffers_request, buffers_complete));
}

#endif
