/* SPDX-License-Identifier: BSD-2-Clause */
/* A session of the library's with a made-up CUPTI, in which its buffers are registered. */
#ifndef GBPF_TESTS_CUPTI_PAIR_H
#define GBPF_TESTS_CUPTI_PAIR_H

#include "sidecar/lib/buffers.h"
#include "sidecar/lib/neighbour.h"
#include "sidecar/lib/session.h"

static inline void cupti_pair(uintptr_t data[4])
{
	data[1] = (uintptr_t)buffers_request;
	data[2] = (uintptr_t)buffers_complete;
	session.neighbour.data.ranges[0].from = (uintptr_t)data;
	session.neighbour.data.ranges[0].to = (uintptr_t)(data + 4);
	session.neighbour.data.count = 1;
	assert_true(neighbour_note(&session.neighbour, buffers_request, buffers_complete));
}

/* Begins anew; what CUPTI's functions do is up to the test. */
static inline void cupti_session(uintptr_t data[4])
{
	session = (struct session){
		.control = PTHREAD_MUTEX_INITIALIZER,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.pool.lock = PTHREAD_MUTEX_INITIALIZER,
		.pid = getpid(),
		.fd = -1,
		.layout = layout_of(CUPTI_13_0),
		.cupti.version = CUPTI_13_0,
	};
	cupti_pair(data);
}

#endif
