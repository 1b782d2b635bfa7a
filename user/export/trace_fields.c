// SPDX-License-Identifier: BSD-2-Clause
/*
 * Every field of the trace files, once: the writers take their names from here, and the
 * tables of docs/traces.md are compared with it. Kineto's names are those in the files
 * that PyTorch writes, SQLite's those of nsys.
 */
#include "export/trace.h"

#define GPU (EXPORT_OF_KERNEL | EXPORT_OF_COPY | EXPORT_OF_SET)
#define KERNEL EXPORT_OF_KERNEL
#define CALL EXPORT_OF_CALL
#define LAUNCH (EXPORT_OF_CALL | EXPORT_OF_KERNEL)
#define COPY (EXPORT_OF_COPY | EXPORT_OF_SET)
#define ALL (CALL | GPU)
#define NONE NULL

static const struct export_field fields[FIELDS] = {
	[FIELD_KIND] = {"kind", NONE, NONE, "", "call, kernel, copy or set", ALL},
	[FIELD_ID] = {"id", NONE, NONE, "",
		      "number of the row, from 1, the same in every file of one recording: calls "
		      "first, then work on GPUs", ALL},
	[FIELD_CAUSE] = {"cause", NONE, NONE, "", "id of the call that caused this work", GPU},
	[FIELD_PID] = {"pid", NONE, "globalTid", "", "process", ALL},
	[FIELD_TID] = {"tid", NONE, "globalTid", "", "thread that called", CALL},
	[FIELD_PROCESS] = {"process", NONE, NONE, "", "the process' name", ALL},
	[FIELD_THREAD] = {"thread", NONE, NONE, "", "the thread's name", CALL},
	[FIELD_BEGIN] = {"begin_ns", NONE, "start", "ns", "when it began, CLOCK_MONOTONIC", ALL},
	[FIELD_DURATION] = {"duration_ns", NONE, "end", "ns",
			    "how long it lasted; not there where the end is not known", ALL},
	[FIELD_NAME] = {"name", NONE, "nameId", "",
			"the function called, the kernel's name without scope and arguments, or "
			"what was copied or set", ALL},
	[FIELD_CATEGORY] = {"category", NONE, NONE, "",
			    "kind of function: launch, graph, sync, copy, set, alloc, free, "
			    "event, stream, module, query, …", CALL},
	[FIELD_LIBRARY] = {"library", NONE, NONE, "", "driver, runtime or nccl", CALL},
	[FIELD_PARENT] = {"parent", NONE, NONE, "", "id of the call that this one is inside of",
			  CALL},
	[FIELD_STATE] = {"state", NONE, NONE, "",
			 "why its duration is not known, or that it had not returned", CALL},
	[FIELD_RESULT] = {"result", NONE, "returnValue", "",
			  "what it returned, 0 is success; of an XID error its number",
			  CALL | EXPORT_OF_MARK},
	[FIELD_ERROR] = {"error", NONE, NONE, "", "the name of the error it returned", CALL},
	[FIELD_COLD] = {"cold", NONE, NONE, "",
			"a first call, by evidence: first_api, first_kernel or module_load", CALL},
	[FIELD_POLLS] = {"polls", NONE, NONE, "", "queries that this entry stands for", CALL},
	[FIELD_POLL_INSIDE] = {"polls_inside_ns", NONE, NONE, "ns",
			       "time spent inside of these queries", CALL},
	[FIELD_HANDLE] = {"function", NONE, NONE, "", "handle of the function that was launched",
			  CALL},
	[FIELD_STREAM_HANDLE] = {"stream_handle", NONE, NONE, "",
				 "handle of the stream as the caller gave it; 0: the default one",
				 CALL},
	[FIELD_OBJECT] = {"object", NONE, NONE, "",
			  "handle or address that the call is about: what is waited for, freed, "
			  "written to", CALL},
	[FIELD_POINTER] = {"out", NONE, NONE, "", "handle or address that the call gave back",
			   CALL},
	[FIELD_KERNEL] = {"kernel", NONE, "demangledName", "",
			  "the kernel's whole name, demangled", LAUNCH},
	[FIELD_MANGLED] = {"kernel_mangled", NONE, "mangledName", "",
			   "the kernel's name as the linker knows it", LAUNCH},
	[FIELD_DEVICE] = {"device", "device", "deviceId", "",
			  "CUDA's number of the device in this process", GPU},
	[FIELD_CONTEXT] = {"context", "context", "contextId", "", "CUPTI's number of the context",
			   GPU},
	[FIELD_STREAM] = {"stream", "stream", "streamId", "", "CUPTI's number of the stream", GPU},
	[FIELD_CORRELATION] = {"correlation", "correlation", "correlationId", "",
			       "CUPTI's number that call and work have in common", ALL},
	[FIELD_GRID] = {"grid", "grid", "gridX", "blocks", "grid, x y z", LAUNCH},
	[FIELD_BLOCK] = {"block", "block", "blockX", "threads", "block, x y z", LAUNCH},
	[FIELD_REGISTERS] = {"registers_per_thread", "registers per thread", "registersPerThread",
			     "registers", "registers of a thread", KERNEL},
	[FIELD_SMEM] = {"shared_mem", "shared memory", NONE, "bytes",
			"shared memory that a launch asked for (calls)", CALL},
	[FIELD_SMEM_STATIC] = {"shared_mem_static", NONE, "staticSharedMemory", "bytes",
			       "shared memory of a block that the kernel declares", KERNEL},
	[FIELD_SMEM_DYNAMIC] = {"shared_mem_dynamic", NONE, "dynamicSharedMemory", "bytes",
				"shared memory of a block that the launch asked for", KERNEL},
	[FIELD_LOCAL] = {"local_mem_per_thread", NONE, "localMemoryPerThread", "bytes",
			 "local memory of a thread", KERNEL},
	[FIELD_THREADS] = {"thread_count", NONE, NONE, "threads", "threads of the whole grid",
			   KERNEL},
	[FIELD_WAVES] = {"waves_per_multiprocessor", NONE, NONE, "waves",
			 "blocks of the grid over the blocks that fit on the whole device", KERNEL},
	[FIELD_OCCUPANCY] = {"occupancy_pct", "est. achieved occupancy %", NONE, "%",
			     "warps of this grid on a multiprocessor over those that it can hold, "
			     "as Kineto estimates it", KERNEL},
	[FIELD_LIMITER] = {"occupancy_limiter", NONE, NONE, "",
			   "what keeps more blocks from a multiprocessor: blocks, registers, "
			   "shared memory, warps, barriers", KERNEL},
	[FIELD_LIMIT_BLOCKS] = {"occupancy_limit_blocks", NONE, NONE, "blocks",
				"blocks that fit on a multiprocessor, by its own limit", KERNEL},
	[FIELD_LIMIT_REGISTERS] = {"occupancy_limit_registers", NONE, NONE, "blocks",
				   "the same, by registers", KERNEL},
	[FIELD_LIMIT_SMEM] = {"occupancy_limit_shared_mem", NONE, NONE, "blocks",
			      "the same, by shared memory", KERNEL},
	[FIELD_LIMIT_WARPS] = {"occupancy_limit_warps", NONE, NONE, "blocks",
			       "the same, by warps", KERNEL},
	[FIELD_LIMIT_BARRIERS] = {"occupancy_limit_barriers", NONE, NONE, "blocks",
				  "the same, by barriers", KERNEL},
	[FIELD_BLOCKS_PER_SM] = {"blocks_per_sm", "blocks per SM", NONE, "blocks",
				 "blocks of the grid over multiprocessors", KERNEL},
	[FIELD_WARPS_PER_SM] = {"warps_per_sm", "warps per SM", NONE, "warps",
				"warps of the grid over multiprocessors", KERNEL},
	[FIELD_LAUNCH_TO_START] = {"launch_to_start_ns", NONE, NONE, "ns",
				   "from the entry of the call to the begin on the GPU", GPU},
	[FIELD_QUEUE_TIME] = {"queue_time_ns", NONE, NONE, "ns",
			      "from the return of the call to the begin on the GPU, 0 if it began "
			      "before", GPU},
	[FIELD_QUEUE_DELAY] = {"queue_delay_ns", NONE, NONE, "ns",
			       "the part of queue_time_ns in which earlier work of the stream was "
			       "not done", GPU},
	[FIELD_GRAPH] = {"graph", "graph id", "graphId", "", "CUPTI's number of the graph", GPU},
	[FIELD_GRAPH_NODE] = {"graph_node", "graph node id", "graphNodeId", "",
			      "CUPTI's number of the graph's node", GPU},
	[FIELD_PRIORITY] = {"priority", "priority", NONE, "", "priority of the stream", GPU},
	[FIELD_CHANNEL] = {"channel", "channel", NONE, "", "hardware queue", GPU},
	[FIELD_CHANNEL_TYPE] = {"channel_type", "channel_type", NONE, "",
				"kind of the hardware queue, as CUPTI numbers it", GPU},
	[FIELD_BYTES] = {"bytes", "bytes", "bytes", "bytes",
			 "how much was copied, set, or asked for", CALL | COPY},
	[FIELD_BANDWIDTH] = {"bandwidth_gbps", "memory bandwidth (GB/s)", NONE, "GB/s",
			     "bytes over duration, 10^9 bytes a second", COPY},
	[FIELD_DIRECTION] = {"direction", NONE, "copyKind", "",
			     "HtoD, DtoH, DtoD, …: H host, D device, A array, P another device",
			     EXPORT_OF_COPY},
	[FIELD_SOURCE] = {"source", NONE, "srcKind", "", "memory copied from", EXPORT_OF_COPY},
	[FIELD_TARGET] = {"target", NONE, "dstKind", "", "memory copied to, or set", COPY},
	[FIELD_PEER] = {"peer", "toDevice", "dstDeviceId", "",
			"the other device of a copy between two", EXPORT_OF_COPY},
	[FIELD_COUNT] = {"count", NONE, NONE, "", "events lost, errors, or what a mark counts",
			 EXPORT_OF_MARK},
	[FIELD_REASON] = {"reason", NONE, NONE, "", "why, as far as known", EXPORT_OF_MARK},
	[FIELD_CBID] = {"cbid", "cbid", NONE, "", "CUPTI's number of the function", CALL},
};

const struct export_field *export_field(enum export_field_id id)
{
	return &fields[id];
}
