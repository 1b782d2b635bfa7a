/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of CUPTI's ABI that the stand-in plays: values and layouts of
 * cupti_activity.h and cupti_callbacks.h of CUDA 11.8 to 13.1, in the words of
 * this project. A newer record is an older one with more at its end, so one
 * struct each and its size by version are enough. cupti_layout.c holds them
 * against the real headers.
 */
#ifndef SIM_CUPTI_ABI_H
#define SIM_CUPTI_ABI_H

#include <stddef.h>
#include <stdint.h>

enum cupti_result {
	CUPTI_OK = 0,
	CUPTI_INVALID_PARAMETER = 1,
	CUPTI_INVALID_OPERATION = 7,
	CUPTI_MAX_LIMIT_REACHED = 12,
	CUPTI_NOT_INITIALIZED = 15,
	CUPTI_INVALID_KIND = 21,
	CUPTI_MULTIPLE_SUBSCRIBERS = 39,
	CUPTI_UNKNOWN = 999,
};

enum cupti_kind {
	CUPTI_MEMCPY = 1,
	CUPTI_MEMSET = 2,
	CUPTI_KERNEL = 3,
	CUPTI_DRIVER = 4,
	CUPTI_RUNTIME = 5,
	CUPTI_CONCURRENT_KERNEL = 10,
	CUPTI_OVERHEAD = 17,
	CUPTI_MEMCPY_PEER = 22,
	CUPTI_KINDS = 64, /* more than there are */
};

enum { CUPTI_FLUSH_FORCED = 1 };
enum { CUPTI_THREAD_DEFAULT = 0, CUPTI_THREAD_SYSTEM = 1, CUPTI_THREAD_TYPES = 2 };
enum { CUPTI_FLAG_ASYNC = 1 }; /* of copies and sets */

typedef void (*cupti_request_fn)(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void (*cupti_complete_fn)(void *context, uint32_t stream, uint8_t *buffer, size_t size,
				  size_t valid);
typedef uint64_t (*cupti_timestamp_fn)(void);
typedef void (*cupti_callback_fn)(void *user, int domain, uint32_t cbid, const void *data);

enum { CUPTI_DOMAIN_DRIVER = 1, CUPTI_DOMAIN_RUNTIME = 2 };
enum { CUPTI_API_ENTER = 0, CUPTI_API_EXIT = 1 };

/* CUpti_CallbackData. */
struct cupti_callback_data {
	uint32_t site;
	const char *function;
	const void *params;
	void *ret; /* int */
	const char *symbol;
	void *context;
	uint32_t context_id;
	uint64_t *correlation_data; /* the same at both sites of a call */
	uint32_t correlation;
};

#define CUPTI_RECORD __attribute__((packed, aligned(8)))

/* CUpti_ActivityKernel8 (200 bytes), 9 (208), 10 (216), 11 (224) and 12 (232). */
struct cupti_kernel {
	uint32_t kind;
	uint8_t cache, shared_config;
	uint16_t registers; /* per thread */
	uint32_t cache_requested, cache_executed;
	uint64_t start, end, completed; /* ns */
	uint32_t device, context, stream;
	int32_t grid[3], block[3];
	int32_t static_shared, dynamic_shared;
	uint32_t local_thread, local_total;
	uint32_t correlation;
	int64_t grid_id;
	const char *name;
	void *reserved;
	uint64_t queued, submitted;
	uint8_t launch_type, carveout_requested, carveout, pad;
	uint32_t shared_executed;
	uint64_t graph_node;
	uint32_t shared_limit;
	uint32_t graph;
	void *access_policy;
	uint32_t channel, channel_type;
	uint32_t cluster[3], cluster_policy;
	uint64_t local_total_v2;
	uint32_t max_cluster, max_active_clusters; /* from 9 on */
	uint8_t device_launched, pad3[7];	   /* from 10 on */
	int32_t priority;			   /* from 11 on */
	uint32_t pad4;
	uint32_t execution_model, pad5;		   /* from 12 on */
} CUPTI_RECORD;

/* CUpti_ActivityMemcpy5 (88 bytes) and 6 (96). */
struct cupti_copy {
	uint32_t kind;
	uint8_t copy, from, to, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation;
	uint32_t runtime_correlation, pad;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph, channel, channel_type;
	uint8_t device_launched, pad2[3]; /* in 5: padding */
	uint64_t count;			  /* from 6 on */
} CUPTI_RECORD;

/* CUpti_ActivityMemcpyPtoP4. */
struct cupti_peer {
	uint32_t kind;
	uint8_t copy, from, to, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream;
	uint32_t from_device, from_context, to_device, to_context;
	uint32_t correlation;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph, channel, channel_type;
} CUPTI_RECORD;

/* CUpti_ActivityOverhead (40 bytes) and 3 (56). */
struct cupti_overhead {
	uint32_t kind, overhead;
	uint32_t object; /* what the ids are of */
	uint32_t process, thread, pad;
	uint64_t start, end;
	uint32_t correlation, reserved; /* from 2 on */
	void *data;			/* from 3 on */
} CUPTI_RECORD;

enum { CUPTI_OVERHEAD_REQUEST = 7 << 16, CUPTI_OBJECT_THREAD = 2 };

/* CUpti_ActivityMemset4. */
struct cupti_set {
	uint32_t kind;
	uint32_t value;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation;
	uint16_t flags, memory;
	uint32_t pad;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph, channel, channel_type;
	uint8_t device_launched, pad2[3]; /* before 13: padding */
} CUPTI_RECORD;

/* CUpti_ActivityAPI. */
struct cupti_api {
	uint32_t kind, cbid;
	uint64_t start, end;
	uint32_t process, thread, correlation;
	int32_t ret;
} CUPTI_RECORD;

_Static_assert(sizeof(struct cupti_kernel) == 232, "CUpti_ActivityKernel12");
_Static_assert(sizeof(struct cupti_copy) == 96, "CUpti_ActivityMemcpy6");
_Static_assert(sizeof(struct cupti_peer) == 96, "CUpti_ActivityMemcpyPtoP4");
_Static_assert(sizeof(struct cupti_overhead) == 56, "CUpti_ActivityOverhead3");
_Static_assert(sizeof(struct cupti_set) == 88, "CUpti_ActivityMemset4");
_Static_assert(sizeof(struct cupti_api) == 40, "CUpti_ActivityAPI");

#endif
