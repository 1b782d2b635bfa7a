/* SPDX-License-Identifier: BSD-2-Clause */
/* Ring records → events. Pure functions: bytes in, values out. */
#ifndef GBPF_COLLECT_DECODE_H
#define GBPF_COLLECT_DECODE_H

#include <stddef.h>

#include "bpf/switches.h"
#include "collect/event.h"

enum decoded {
	DECODED_MALFORMED = -1, /* too short, or of no known type */
	DECODED_NOTHING = 0,	/* calibration's own */
	DECODED_EVENT = 1,
	DECODED_NAME = 2,	/* data is a struct gbpf_name with name[] checked */
	DECODED_PROCESS = 3,	/* data is a struct gbpf_process */
};

/* data: size bytes, 8-byte aligned, not necessarily written by us. */
enum decoded decode(const void *data, size_t size, struct event *out);

/* A run of queries that was still going on when the trace ended. */
void decode_open_poll(const struct gbpf_poll_state *s, struct event *out);

#endif
