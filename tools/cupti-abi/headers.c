/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compiled by tools/check-cupti-abi with the headers of one version of CUPTI; KERNEL and so
 * on are its newest records.
 */
#ifdef KERNEL
#include <stdint.h>
#include <cuda.h>

#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>
#include <cupti_runtime_cbid.h>
#include <cupti_version.h>

#include "user/sidecar/lib/cupti_abi.h"
#include "user/sidecar/lib/layout.h"

#include <stdio.h>

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs);
#define AT(type, ours, theirs) SAME(ours, offsetof(type, theirs))

SAME(CUPTI_OK, CUPTI_SUCCESS)
SAME(CUPTI_NOT_INITIALIZED, CUPTI_ERROR_NOT_INITIALIZED)
SAME(CUPTI_MULTIPLE_SUBSCRIBERS, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)
SAME(CUPTI_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY)
SAME(CUPTI_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET)
SAME(CUPTI_KERNEL, CUPTI_ACTIVITY_KIND_KERNEL)
SAME(CUPTI_DRIVER, CUPTI_ACTIVITY_KIND_DRIVER)
SAME(CUPTI_RUNTIME, CUPTI_ACTIVITY_KIND_RUNTIME)
SAME(CUPTI_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
SAME(CUPTI_OVERHEAD, CUPTI_ACTIVITY_KIND_OVERHEAD)
SAME(CUPTI_MEMCPY_PEER, CUPTI_ACTIVITY_KIND_MEMCPY2)
SAME(CUPTI_FLUSH_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED)
SAME(CUPTI_THREAD_SYSTEM, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM)
SAME(CUPTI_OBJECT_THREAD, CUPTI_ACTIVITY_OBJECT_THREAD)
SAME(CUPTI_DOMAIN_DRIVER, CUPTI_CB_DOMAIN_DRIVER_API)
SAME(CUPTI_DOMAIN_RUNTIME, CUPTI_CB_DOMAIN_RUNTIME_API)

AT(KERNEL, KERNEL_REGISTERS, registersPerThread)
AT(KERNEL, KERNEL_START, start)
AT(KERNEL, KERNEL_END, end)
AT(KERNEL, KERNEL_DEVICE, deviceId)
AT(KERNEL, KERNEL_CONTEXT, contextId)
AT(KERNEL, KERNEL_STREAM, streamId)
AT(KERNEL, KERNEL_GRID, gridX)
AT(KERNEL, KERNEL_GRID + 8, gridZ)
AT(KERNEL, KERNEL_BLOCK, blockX)
AT(KERNEL, KERNEL_BLOCK + 8, blockZ)
AT(KERNEL, KERNEL_SMEM_STATIC, staticSharedMemory)
AT(KERNEL, KERNEL_SMEM_DYNAMIC, dynamicSharedMemory)
AT(KERNEL, KERNEL_LOCAL, localMemoryPerThread)
AT(KERNEL, KERNEL_CORRELATION, correlationId)
AT(KERNEL, KERNEL_NAME, name)
AT(KERNEL, KERNEL_GRAPH_NODE, graphNodeId)
AT(KERNEL, KERNEL_GRAPH, graphId)
AT(KERNEL, KERNEL_CHANNEL, channelID)
AT(KERNEL, KERNEL_CHANNEL_TYPE, channelType)
#if CUPTI_API_VERSION >= 130100
AT(KERNEL, KERNEL_PRIORITY, priority)
#endif

#define WORK(type)                                                                                 \
	AT(type, WORK_BYTES, bytes)                                                                \
	AT(type, WORK_START, start)                                                                \
	AT(type, WORK_END, end)                                                                    \
	AT(type, WORK_DEVICE, deviceId)                                                            \
	AT(type, WORK_CONTEXT, contextId)                                                          \
	AT(type, WORK_STREAM, streamId)
#define WORK_LATER(type)                                                                           \
	AT(type, WORK_CORRELATION, correlationId)                                                  \
	AT(type, WORK_GRAPH_NODE, graphNodeId)                                                     \
	AT(type, WORK_GRAPH, graphId)                                                              \
	AT(type, WORK_CHANNEL, channelID)                                                          \
	AT(type, WORK_CHANNEL_TYPE, channelType)

WORK(COPY)
WORK_LATER(COPY)
AT(COPY, COPY_DIRECTION, copyKind)
AT(COPY, COPY_SOURCE, srcKind)
AT(COPY, COPY_TARGET, dstKind)
WORK(SET)
WORK_LATER(SET)
AT(SET, SET_MEMORY, memoryKind)
WORK(PEER)
AT(PEER, COPY_DIRECTION, copyKind)
AT(PEER, COPY_SOURCE, srcKind)
AT(PEER, COPY_TARGET, dstKind)
AT(PEER, PEER_SOURCE_DEVICE, srcDeviceId)
AT(PEER, PEER_TARGET_DEVICE, dstDeviceId)
AT(PEER, PEER_CORRELATION, correlationId)
AT(PEER, PEER_GRAPH_NODE, graphNodeId)
AT(PEER, PEER_GRAPH, graphId)
AT(PEER, PEER_CHANNEL, channelID)
AT(PEER, PEER_CHANNEL_TYPE, channelType)
AT(CUpti_ActivityAPI, API_CBID, cbid)
AT(CUpti_ActivityAPI, API_START, start)
AT(CUpti_ActivityAPI, API_END, end)
AT(CUpti_ActivityAPI, API_THREAD, threadId)
AT(CUpti_ActivityAPI, API_CORRELATION, correlationId)
AT(CUpti_ActivityAPI, API_RETURN, returnValue)
AT(OVERHEAD, OVERHEAD_KIND, overheadKind)
AT(OVERHEAD, OVERHEAD_OBJECT, objectKind)
AT(OVERHEAD, OVERHEAD_THREAD, objectId.pt.threadId)
AT(OVERHEAD, OVERHEAD_START, start)
AT(OVERHEAD, OVERHEAD_END, end)

static int wrong;

/* Versions that call themselves alike have the shorter one's size. */
static void sized(const char *what, size_t ours, size_t theirs)
{
	if (ours == theirs || (CUPTI_API_VERSION == CUPTI_11_8 && ours < theirs))
		return;
	printf("  %s: %zu bytes here, %zu there\n", what, ours, theirs);
	wrong = 1;
}

/* Functions of the runtime that launch something, from one to another. */
static void launched(uint32_t from, uint32_t to)
{
	for (uint32_t cbid = from; cbid <= to; cbid++) {
		if (layout_runtime_launches(cbid))
			continue;
		printf("  call %u of the runtime launches\n", cbid);
		wrong = 1;
	}
}

#define DRIVER(name) CUPTI_DRIVER_TRACE_CBID_##name

static void check_driver(void)
{
	static const uint32_t launch[] = {
		DRIVER(cuLaunchKernel), DRIVER(cuLaunchKernel_ptsz), DRIVER(cuLaunchKernelEx),
		DRIVER(cuLaunchKernelEx_ptsz), DRIVER(cuLaunchCooperativeKernel),
		DRIVER(cuLaunchCooperativeKernelMultiDevice), DRIVER(cuGraphLaunch),
		DRIVER(cuGraphLaunch_ptsz), DRIVER(cuMemcpyHtoDAsync_v2),
		DRIVER(cuMemcpyHtoDAsync_v2_ptsz), DRIVER(cuMemcpyDtoH_v2),
		DRIVER(cuMemcpyDtoDAsync_v2), DRIVER(cuMemcpyPeerAsync), DRIVER(cuMemsetD8Async),
		DRIVER(cuMemsetD32_v2), DRIVER(cuMemcpy3DAsync_v2),
	};

	for (size_t i = 0; i < sizeof(launch) / sizeof(*launch); i++) {
		if (layout_launches(launch[i]))
			continue;
		printf("  call %u of the driver launches\n", launch[i]);
		wrong = 1;
	}
	if (layout_launches(DRIVER(cuLaunchHostFunc)) ||
	    layout_launches(DRIVER(cuCtxSynchronize)) ||
	    layout_launches(DRIVER(cuCtxGetCurrent))) {
		printf("  a call of the driver launches nothing\n");
		wrong = 1;
	}
}

#define RUNTIME(name) CUPTI_RUNTIME_TRACE_CBID_##name

static void check_runtime(void)
{
	launched(RUNTIME(cudaMemcpy_v3020), RUNTIME(cudaMemset2DAsync_v3020));
	launched(RUNTIME(cudaMemset3D_v3020), RUNTIME(cudaMemcpy3DAsync_v3020));
	launched(RUNTIME(cudaMemcpyPeer_v4000), RUNTIME(cudaMemcpy3DPeerAsync_v4000));
	launched(RUNTIME(cudaLaunchKernel_v7000), RUNTIME(cudaLaunchKernel_v7000));
	launched(RUNTIME(cudaLaunchKernel_ptsz_v7000), RUNTIME(cudaMemset2DAsync_ptsz_v7000));
	launched(RUNTIME(cudaMemset3D_ptds_v7000), RUNTIME(cudaMemcpy3DAsync_ptsz_v7000));
	launched(RUNTIME(cudaLaunchCooperativeKernel_v9000),
		 RUNTIME(cudaLaunchCooperativeKernel_ptsz_v9000));
	launched(RUNTIME(cudaGraphLaunch_v10000), RUNTIME(cudaGraphLaunch_ptsz_v10000));
	launched(RUNTIME(cudaLaunchKernelExC_v11060), RUNTIME(cudaLaunchKernelExC_ptsz_v11060));
#if CUPTI_API_VERSION >= 130000
	launched(RUNTIME(__cudaLaunchKernel_v13000), RUNTIME(__cudaLaunchKernel_ptsz_v13000));
	launched(RUNTIME(cudaMemcpyBatchAsync_v13000), RUNTIME(cudaMemcpy3DBatchAsync_ptsz_v13000));
#endif
	if (layout_runtime_launches(RUNTIME(cudaLaunchHostFunc_v10000)) ||
	    layout_runtime_launches(RUNTIME(cudaStreamSynchronize_v3020)))
		wrong = 1;
}

int main(void)
{
	const struct layout *l = layout_of(CUPTI_API_VERSION);

	if (!l) {
		printf("  version %d is not known\n", CUPTI_API_VERSION);
		return 1;
	}
	sized("kernels", l->kernel, sizeof(KERNEL));
	sized("copies", l->copy, sizeof(COPY));
	sized("copies between devices", l->peer, sizeof(PEER));
	sized("sets", l->set, sizeof(SET));
	sized("calls", l->api, sizeof(CUpti_ActivityAPI));
	if (l->overhead > sizeof(OVERHEAD))
		sized("overhead", l->overhead, sizeof(OVERHEAD));
	check_driver();
	check_runtime();
	if (!wrong)
		printf("  headers of version %d agree\n", CUPTI_API_VERSION);
	return wrong;
}
#endif
