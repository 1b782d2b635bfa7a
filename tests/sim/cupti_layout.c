/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compiled with the real headers of a version of CUPTI, holds what cupti_abi.h
 * and cbid.h say against them. KERNEL_N and MEMCPY_N are the newest records of
 * that version: 10 for CUpti_ActivityKernel10.
 */
#ifdef KERNEL_N
#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>
#include <cupti_runtime_cbid.h>

#define CUPTI_API_ENTER SIM_API_ENTER
#define CUPTI_API_EXIT SIM_API_EXIT
#include "cupti_abi.h"

#include "cbid.h"

#undef CUPTI_API_ENTER
#undef CUPTI_API_EXIT
#define PASTE2(a, b) a##b
#define PASTE(a, b) PASTE2(a, b)
typedef PASTE(CUpti_ActivityKernel, KERNEL_N) real_kernel;
typedef PASTE(CUpti_ActivityMemcpy, MEMCPY_N) real_copy;
typedef CUpti_ActivityMemset4 real_set;
typedef CUpti_ActivityAPI real_api;
typedef CUpti_ActivityMemcpyPtoP4 real_peer;
#if OVERHEAD_N >= 2
typedef PASTE(CUpti_ActivityOverhead, OVERHEAD_N) real_overhead;
#else
typedef CUpti_ActivityOverhead real_overhead;
#endif
typedef CUpti_CallbackData real_callback_data;

#define AT(kind, ours, theirs)                                                                     \
	_Static_assert(offsetof(struct cupti_##kind, ours) == offsetof(real_##kind, theirs) &&     \
			       sizeof(((struct cupti_##kind *)0)->ours) >=                         \
				       sizeof(((real_##kind *)0)->theirs),                         \
		       #theirs);

_Static_assert(sizeof(real_kernel) == 200 + 8 * (KERNEL_N - 8), "size of a kernel's record");
_Static_assert(sizeof(real_copy) == 88 + 8 * (MEMCPY_N - 5), "size of a copy's record");
_Static_assert(sizeof(real_set) == sizeof(struct cupti_set), "size of a set's record");
_Static_assert(sizeof(real_api) == sizeof(struct cupti_api), "size of a call's record");

_Static_assert(sizeof(real_peer) == sizeof(struct cupti_peer), "size of a copy between devices");
_Static_assert(sizeof(real_overhead) == 40 + 8 * (OVERHEAD_N - 1), "size of an overhead's record");

AT(kernel, kind, kind)
AT(kernel, registers, registersPerThread)
AT(kernel, start, start)
AT(kernel, end, end)
AT(kernel, completed, completed)
AT(kernel, device, deviceId)
AT(kernel, context, contextId)
AT(kernel, stream, streamId)
AT(kernel, grid, gridX)
AT(kernel, block, blockX)
AT(kernel, static_shared, staticSharedMemory)
AT(kernel, dynamic_shared, dynamicSharedMemory)
AT(kernel, local_thread, localMemoryPerThread)
AT(kernel, correlation, correlationId)
AT(kernel, grid_id, gridId)
AT(kernel, name, name)
AT(kernel, queued, queued)
AT(kernel, submitted, submitted)
AT(kernel, launch_type, launchType)
AT(kernel, shared_executed, sharedMemoryExecuted)
AT(kernel, graph_node, graphNodeId)
AT(kernel, graph, graphId)
AT(kernel, channel, channelID)
AT(kernel, channel_type, channelType)
AT(kernel, cluster, clusterX)
AT(kernel, local_total_v2, localMemoryTotal_v2)
#if KERNEL_N >= 9
AT(kernel, max_cluster, maxPotentialClusterSize)
#endif
#if KERNEL_N >= 10
AT(kernel, device_launched, isDeviceLaunched)
#endif
#if KERNEL_N >= 11
AT(kernel, priority, priority)
#endif

AT(copy, kind, kind)
AT(copy, copy, copyKind)
AT(copy, from, srcKind)
AT(copy, to, dstKind)
AT(copy, flags, flags)
AT(copy, bytes, bytes)
AT(copy, start, start)
AT(copy, end, end)
AT(copy, device, deviceId)
AT(copy, context, contextId)
AT(copy, stream, streamId)
AT(copy, correlation, correlationId)
AT(copy, graph_node, graphNodeId)
AT(copy, graph, graphId)
AT(copy, channel, channelID)
#if MEMCPY_N >= 6
AT(copy, count, copyCount)
#endif

AT(peer, kind, kind)
AT(peer, copy, copyKind)
AT(peer, from, srcKind)
AT(peer, to, dstKind)
AT(peer, flags, flags)
AT(peer, bytes, bytes)
AT(peer, start, start)
AT(peer, end, end)
AT(peer, device, deviceId)
AT(peer, context, contextId)
AT(peer, stream, streamId)
AT(peer, from_device, srcDeviceId)
AT(peer, from_context, srcContextId)
AT(peer, to_device, dstDeviceId)
AT(peer, to_context, dstContextId)
AT(peer, correlation, correlationId)
AT(peer, graph_node, graphNodeId)
AT(peer, graph, graphId)

AT(overhead, overhead, overheadKind)
AT(overhead, object, objectKind)
AT(overhead, process, objectId.pt.processId)
AT(overhead, thread, objectId.pt.threadId)
AT(overhead, start, start)
AT(overhead, end, end)
#if OVERHEAD_N >= 2
AT(overhead, correlation, correlationId)
#endif

AT(set, kind, kind)
AT(set, value, value)
AT(set, bytes, bytes)
AT(set, start, start)
AT(set, end, end)
AT(set, device, deviceId)
AT(set, context, contextId)
AT(set, stream, streamId)
AT(set, correlation, correlationId)
AT(set, flags, flags)
AT(set, memory, memoryKind)
AT(set, graph_node, graphNodeId)
AT(set, graph, graphId)

AT(api, kind, kind)
AT(api, cbid, cbid)
AT(api, start, start)
AT(api, end, end)
AT(api, process, processId)
AT(api, thread, threadId)
AT(api, correlation, correlationId)
AT(api, ret, returnValue)

AT(callback_data, site, callbackSite)
AT(callback_data, function, functionName)
AT(callback_data, params, functionParams)
AT(callback_data, ret, functionReturnValue)
AT(callback_data, symbol, symbolName)
AT(callback_data, context, context)
AT(callback_data, context_id, contextUid)
AT(callback_data, correlation_data, correlationData)
AT(callback_data, correlation, correlationId)

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs);
SAME(CUPTI_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY)
SAME(CUPTI_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET)
SAME(CUPTI_KERNEL, CUPTI_ACTIVITY_KIND_KERNEL)
SAME(CUPTI_DRIVER, CUPTI_ACTIVITY_KIND_DRIVER)
SAME(CUPTI_RUNTIME, CUPTI_ACTIVITY_KIND_RUNTIME)
SAME(CUPTI_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
SAME(CUPTI_DOMAIN_DRIVER, CUPTI_CB_DOMAIN_DRIVER_API)
SAME(SIM_API_ENTER, CUPTI_API_ENTER)
SAME(SIM_API_EXIT, CUPTI_API_EXIT)
SAME(CUPTI_MEMCPY_PEER, CUPTI_ACTIVITY_KIND_MEMCPY2)
SAME(CUPTI_OVERHEAD, CUPTI_ACTIVITY_KIND_OVERHEAD)
SAME(CUPTI_OBJECT_THREAD, CUPTI_ACTIVITY_OBJECT_THREAD)
#if KERNEL_N >= 10
SAME(CUPTI_OVERHEAD_REQUEST, CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST)
#endif
SAME(CUPTI_FLUSH_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED)
SAME(CUPTI_THREAD_SYSTEM, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM)
SAME(CUPTI_FLAG_ASYNC, CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC)
SAME(CUPTI_FLAG_ASYNC, CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC)
SAME(CUPTI_INVALID_PARAMETER, CUPTI_ERROR_INVALID_PARAMETER)
SAME(CUPTI_INVALID_OPERATION, CUPTI_ERROR_INVALID_OPERATION)
SAME(CUPTI_MAX_LIMIT_REACHED, CUPTI_ERROR_MAX_LIMIT_REACHED)
SAME(CUPTI_NOT_INITIALIZED, CUPTI_ERROR_NOT_INITIALIZED)
SAME(CUPTI_INVALID_KIND, CUPTI_ERROR_INVALID_KIND)
SAME(CUPTI_MULTIPLE_SUBSCRIBERS, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)
SAME(CUPTI_UNKNOWN, CUPTI_ERROR_UNKNOWN)

#define SAME_CBID(name, id) SAME(id, CUPTI_DRIVER_TRACE_CBID_##name)
#if KERNEL_N >= 10 /* some came with CUDA 13 */
SIM_CBIDS(SAME_CBID)
#endif
#else /* nothing to hold it against */
#include "cupti_abi.h"
#endif
