/* SPDX-License-Identifier: BSD-2-Clause */
/* CUPTI's activity records, decoded: which versions write what where, and what it means. */
#ifndef GBPF_SIDECAR_LIB_LAYOUT_H
#define GBPF_SIDECAR_LIB_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sidecar/wire.h"

/* Bytes that a record of each kind has at least, as this version writes it. */
struct layout {
	uint32_t since; /* cuptiGetVersion() */
	uint16_t kernel, copy, peer, set, api, overhead;
	bool later; /* fields after the leading ones are known, too */
	bool priority;
	/*
	 * Ids of works rise by one with each call that causes any, while no calls are recorded:
	 * seen with 13.0 on an H200, in ten jobs (docs/measurements.md).
	 */
	bool numbers;
};

/* wire_work.kind, as enum record_work_kind has them. */
enum { WIRE_KERNEL = 1, WIRE_COPY = 2, WIRE_SET = 3 };

enum decoded_what { DECODED_NOTHING, DECODED_WORK, DECODED_CALL, DECODED_OVERHEAD, DECODED_BAD };

struct decoded {
	enum decoded_what what;
	enum wire_bad bad; /* DECODED_BAD */
	bool endless;	   /* DECODED_BAD: a work that has no end, which can be because it runs */
	union {
		struct wire_work work;
		struct wire_call call;
		struct wire_overhead overhead;
	};
	/* Kernels: what wire_work.shape stands for; name_size and id unset. */
	struct wire_shape shape;
	uint64_t name; /* address of the mangled name */
};

/* NULL: this version (cuptiGetVersion()) is older or newer than what is known. */
const struct layout *layout_of(uint32_t version);

/*
 * The record of CUPTI's at record, of which no more than size bytes may be read. Kinds
 * nobody asked for are DECODED_NOTHING. wire_record.size and .type are set. Nothing that
 * the record points to is read.
 */
void layout_decode(const struct layout *l, const void *record, size_t size, struct decoded *d);

/* Does this CUpti_driver_api_trace_cbid enqueue kernels, copies or sets? */
bool layout_launches(uint32_t cbid);
/* Does this CUpti_runtime_api_trace_cbid? One that is not known may. */
bool layout_runtime_launches(uint32_t cbid);

#endif
