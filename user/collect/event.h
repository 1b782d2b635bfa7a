/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One decoded record: what the ring brought, in the reader's terms. This is
 * the unit that collect produces, the file stores and the model consumes.
 */
#ifndef GBPF_COLLECT_EVENT_H
#define GBPF_COLLECT_EVENT_H

#include <stdint.h>

enum event_kind {
	EVENT_BEGIN = 1, /* the call was entered */
	EVENT_END = 2,	 /* it returned */
	EVENT_POLL = 3,	 /* a run of queries, collapsed; begins at ts */
};

enum event_args { /* which member of the union holds something (EVENT_BEGIN) */
	EVENT_ARGS_NONE = 0,
	EVENT_ARGS_LAUNCH = 1,
	EVENT_ARGS_CALL = 2,
};

struct event {
	int64_t ts; /* CLOCK_MONOTONIC, ns */
	uint32_t pid;
	uint32_t tid; /* host's numbers */
	uint32_t sp;  /* low half of the entry stack pointer; equal in begin and end */
	uint16_t api; /* catalogue id */
	uint16_t image; /* image slot the site belongs to */
	uint8_t kind;	/* enum event_kind */
	uint8_t args;	/* enum event_args */
	uint8_t has_out; /* EVENT_END: out is valid */
	uint8_t pad[5];
	union {
		struct {
			uint64_t func, stream, smem; /* handles as the target sees them; bytes */
			uint32_t grid[3], block[3];
		} launch;
		struct {
			uint64_t object, stream, source;
			uint64_t bytes; /* already multiplied out by element size and height */
			uint64_t kind;	/* raw kind argument (cudaMemcpyKind, data type), else 0 */
		} call;
		struct {
			int64_t ret; /* CUresult, cudaError_t or ncclResult_t */
			uint64_t out;
		} end;
		struct {
			uint64_t object;
			int64_t last_end;     /* 0: still inside */
			int64_t inside;	      /* ns in the calls */
			uint32_t min, max;    /* ns */
			uint32_t count;
			int32_t ret;
		} poll;
	};
};

#endif
