/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The small part of CUPTI's ABI that is used, in our own words: values and offsets as in
 * cupti_result.h, cupti_activity.h and cupti_driver_cbid.h of CUDA 11.8 to 13.3. They are
 * held against the real headers by tools/check-cupti-abi.
 */
#ifndef GBPF_SIDECAR_LIB_CUPTI_ABI_H
#define GBPF_SIDECAR_LIB_CUPTI_ABI_H

#include <stddef.h>
#include <stdint.h>

enum cupti_result {
	CUPTI_OK = 0,
	CUPTI_NOT_INITIALIZED = 15,
	CUPTI_MULTIPLE_SUBSCRIBERS = 39,
};

enum cupti_kind {
	CUPTI_MEMCPY = 1,
	CUPTI_MEMSET = 2,
	CUPTI_KERNEL = 3,
	CUPTI_DRIVER = 4,
	CUPTI_RUNTIME = 5,
	CUPTI_CONCURRENT_KERNEL = 10,
	CUPTI_OVERHEAD = 17,
	CUPTI_MEMCPY_PEER = 22, /* CUPTI_ACTIVITY_KIND_MEMCPY2 */
};

/* What cuptiGetVersion() says. */
enum cupti_version {
	CUPTI_11_8 = 18, /* of 12.0 and 12.1, too */
	CUPTI_12_4 = 22,
	CUPTI_12_8 = 26,
	CUPTI_13_0 = 130000, /* from here on: major, minor and update */
	CUPTI_13_1 = 130100,
	CUPTI_13_2 = 130200,
	CUPTI_13_3 = 130300,
	CUPTI_13_4 = 130400, /* the first whose headers nobody here has seen */
	CUPTI_14_0 = 140000,
};

enum { CUPTI_FLUSH_FORCED = 1 };
enum { CUPTI_THREAD_SYSTEM = 1 }; /* CUpti_ActivityThreadIdType */
enum { CUPTI_OBJECT_THREAD = 2 }; /* CUpti_ActivityObjectKind */
enum { CUPTI_DOMAIN_DRIVER = 1, CUPTI_DOMAIN_RUNTIME = 2 };

typedef void (*cupti_request_fn)(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void (*cupti_complete_fn)(void *context, uint32_t stream, uint8_t *buffer, size_t size,
				  size_t valid);
typedef void (*cupti_callback_fn)(void *user, int domain, uint32_t cbid, const void *data);

/* Offsets in records: CUpti_ActivityKernel8 and later. */
enum {
	KERNEL_REGISTERS = 6, /* 16 bits */
	KERNEL_START = 16,
	KERNEL_END = 24,
	KERNEL_DEVICE = 40,
	KERNEL_CONTEXT = 44,
	KERNEL_STREAM = 48,
	KERNEL_GRID = 52,
	KERNEL_BLOCK = 64,
	KERNEL_SMEM_STATIC = 76,
	KERNEL_SMEM_DYNAMIC = 80,
	KERNEL_LOCAL = 84,
	KERNEL_CORRELATION = 92,
	KERNEL_NAME = 104,
	KERNEL_LEADING = 112, /* what all since CUpti_ActivityKernel4 have in common ends here */
	KERNEL_GRAPH_NODE = 144,
	KERNEL_GRAPH = 156,
	KERNEL_CHANNEL = 168,
	KERNEL_CHANNEL_TYPE = 172,
	KERNEL_PRIORITY = 216, /* CUpti_ActivityKernel11 */
};

/* CUpti_ActivityMemcpy5, CUpti_ActivityMemcpyPtoP4 and CUpti_ActivityMemset4 and later. */
enum {
	COPY_DIRECTION = 4, /* 8 bits each */
	COPY_SOURCE = 5,
	COPY_TARGET = 6,
	WORK_BYTES = 8,
	WORK_START = 16,
	WORK_END = 24,
	WORK_DEVICE = 32,
	WORK_CONTEXT = 36,
	WORK_STREAM = 40,
	WORK_CORRELATION = 44, /* copies and sets */
	WORK_LEADING = 48,
	SET_MEMORY = 50, /* 16 bits */
	WORK_GRAPH_NODE = 64,
	WORK_GRAPH = 72,
	WORK_CHANNEL = 76,
	WORK_CHANNEL_TYPE = 80,
	PEER_SOURCE_DEVICE = 44,
	PEER_TARGET_DEVICE = 52,
	PEER_CORRELATION = 60,
	PEER_LEADING = 64,
	PEER_GRAPH_NODE = 72,
	PEER_GRAPH = 80,
	PEER_CHANNEL = 84,
	PEER_CHANNEL_TYPE = 88,
};

/* CUpti_ActivityAPI; CUpti_ActivityOverhead and later. */
enum {
	API_CBID = 4,
	API_START = 8,
	API_END = 16,
	API_THREAD = 28,
	API_CORRELATION = 32,
	API_RETURN = 36,
	OVERHEAD_KIND = 4,
	OVERHEAD_OBJECT = 8,
	OVERHEAD_THREAD = 16,
	OVERHEAD_START = 24,
	OVERHEAD_END = 32,
};

#endif
