/* SPDX-License-Identifier: BSD-2-Clause */
/* Every function whose calls are written down: D driver, R runtime, N NCCL. */
#ifndef SIM_TRUTH_API_H
#define SIM_TRUTH_API_H

#define TRUTH_DRIVER(D)                                                                            \
	D(cuInit) D(cuDriverGetVersion) D(cuDeviceGet) D(cuDevicePrimaryCtxRetain)                 \
	D(cuDevicePrimaryCtxRelease_v2) D(cuDevicePrimaryCtxReset_v2) D(cuCtxSetCurrent)           \
	D(cuCtxGetDevice) D(cuCtxSynchronize)                                                      \
	D(cuCtxSynchronize_v2) D(cuModuleLoadData) D(cuModuleUnload) D(cuModuleGetFunction)        \
	D(cuLibraryLoadData) D(cuLibraryUnload) D(cuLibraryGetKernel) D(cuKernelGetFunction)       \
	D(cuFuncGetName) D(cuKernelGetName) D(cuFuncGetAttribute)                                  \
	D(cuOccupancyMaxActiveBlocksPerMultiprocessor)                                             \
	D(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)                                    \
	D(cuLaunchKernel) D(cuLaunchKernel_ptsz) D(cuLaunchCooperativeKernel)                      \
	D(cuLaunchCooperativeKernel_ptsz) D(cuLaunchKernelEx) D(cuLaunchKernelEx_ptsz)             \
	D(cuLaunchHostFunc) D(cuLaunchHostFunc_ptsz) D(cuGraphCreate)                              \
	D(cuGraphAddKernelNode_v2) D(cuGraphInstantiateWithFlags) D(cuGraphLaunch)                 \
	D(cuGraphLaunch_ptsz) D(cuGraphDestroy) D(cuGraphExecDestroy) D(cuStreamBeginCapture_v2)   \
	D(cuStreamBeginCapture_v2_ptsz) D(cuStreamEndCapture) D(cuStreamEndCapture_ptsz)           \
	D(cuStreamIsCapturing) D(cuStreamIsCapturing_ptsz) D(cuStreamCreate)                       \
	D(cuStreamCreateWithPriority) D(cuStreamDestroy_v2) D(cuStreamSynchronize)                 \
	D(cuStreamSynchronize_ptsz) D(cuStreamQuery) D(cuStreamQuery_ptsz) D(cuStreamWaitEvent)    \
	D(cuStreamWaitEvent_ptsz) D(cuEventCreate) D(cuEventDestroy_v2) D(cuEventRecord)           \
	D(cuEventRecord_ptsz) D(cuEventRecordWithFlags) D(cuEventRecordWithFlags_ptsz)             \
	D(cuEventQuery) D(cuEventSynchronize) D(cuEventElapsedTime) D(cuMemAlloc_v2)               \
	D(cuMemFree_v2) D(cuMemAllocAsync) D(cuMemAllocAsync_ptsz) D(cuMemFreeAsync)               \
	D(cuMemFreeAsync_ptsz) D(cuMemAllocFromPoolAsync) D(cuMemAllocHost_v2) D(cuMemHostAlloc)   \
	D(cuMemFreeHost) D(cuMemAllocManaged) D(cuMemAllocPitch_v2) D(cuMemGetInfo_v2)             \
	D(cuMemcpy) D(cuMemcpy_ptds) D(cuMemcpyAsync) D(cuMemcpyAsync_ptsz) D(cuMemcpyHtoD_v2)     \
	D(cuMemcpyHtoD_v2_ptds) D(cuMemcpyDtoH_v2) D(cuMemcpyDtoH_v2_ptds) D(cuMemcpyDtoD_v2)      \
	D(cuMemcpyDtoD_v2_ptds) D(cuMemcpyHtoDAsync_v2) D(cuMemcpyHtoDAsync_v2_ptsz)               \
	D(cuMemcpyDtoHAsync_v2) D(cuMemcpyDtoHAsync_v2_ptsz) D(cuMemcpyDtoDAsync_v2)               \
	D(cuMemcpyDtoDAsync_v2_ptsz) D(cuMemcpyPeer) D(cuMemcpyPeerAsync) D(cuMemcpy2D_v2)         \
	D(cuMemcpy2D_v2_ptds) D(cuMemcpy2DUnaligned_v2) D(cuMemcpy2DAsync_v2)                      \
	D(cuMemcpy2DAsync_v2_ptsz) D(cuMemcpy3D_v2) D(cuMemcpy3D_v2_ptds) D(cuMemcpy3DAsync_v2)    \
	D(cuMemcpy3DAsync_v2_ptsz) D(cuMemsetD8_v2) D(cuMemsetD8_v2_ptds) D(cuMemsetD8Async)       \
	D(cuMemsetD8Async_ptsz) D(cuMemsetD16_v2) D(cuMemsetD16Async) D(cuMemsetD32_v2)            \
	D(cuMemsetD32Async) D(cuMemsetD2D8_v2) D(cuMemsetD2D8_v2_ptds) D(cuMemsetD2D8Async)        \
	D(cuMemsetD2D8Async_ptsz) D(cuMemsetD2D16_v2) D(cuMemsetD2D16Async) D(cuMemsetD2D32_v2)    \
	D(cuMemsetD2D32Async)

#define TRUTH_RUNTIME(R)                                                                           \
	R(cudaLaunchKernel) R(cudaLaunchKernel_ptsz) R(cudaLaunchKernelExC)                        \
	R(cudaLaunchKernelExC_ptsz) R(cudaLaunchCooperativeKernel) R(cudaLaunchHostFunc)           \
	R(cudaMalloc) R(cudaFree) R(cudaMallocAsync) R(cudaMallocAsync_ptsz) R(cudaFreeAsync)      \
	R(cudaFreeAsync_ptsz) R(cudaMallocHost) R(cudaHostAlloc) R(cudaFreeHost)                   \
	R(cudaMallocManaged) R(cudaMallocPitch) R(cudaMemcpy) R(cudaMemcpy_ptds)                   \
	R(cudaMemcpyAsync) R(cudaMemcpyAsync_ptsz) R(cudaMemcpy2D) R(cudaMemcpy2DAsync)            \
	R(cudaMemcpy3D) R(cudaMemcpy3DAsync) R(cudaMemset) R(cudaMemset_ptds) R(cudaMemsetAsync)   \
	R(cudaMemsetAsync_ptsz) R(cudaMemset2D) R(cudaMemset2DAsync) R(cudaDeviceSynchronize)      \
	R(cudaStreamCreate) R(cudaStreamCreateWithFlags) R(cudaStreamDestroy)                      \
	R(cudaStreamSynchronize) R(cudaStreamSynchronize_ptsz) R(cudaStreamQuery)                  \
	R(cudaStreamQuery_ptsz) R(cudaStreamWaitEvent) R(cudaStreamWaitEvent_ptsz)                 \
	R(cudaEventCreate) R(cudaEventCreateWithFlags) R(cudaEventDestroy) R(cudaEventRecord)      \
	R(cudaEventRecord_ptsz) R(cudaEventQuery) R(cudaEventSynchronize) R(cudaEventElapsedTime)  \
	R(cudaStreamBeginCapture) R(cudaStreamEndCapture) R(cudaStreamIsCapturing)                 \
	R(cudaGraphInstantiate) R(cudaGraphLaunch) R(cudaGraphLaunch_ptsz) R(cudaGraphDestroy)     \
	R(cudaGraphExecDestroy)                                                                    \
	R(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)

#define TRUTH_NCCL(N)                                                                              \
	N(ncclCommInitRank) N(ncclCommDestroy) N(ncclCommAbort) N(ncclAllReduce) N(ncclBroadcast)  \
	N(ncclReduce) N(ncclAllGather) N(ncclReduceScatter) N(ncclSend) N(ncclRecv)                \
	N(ncclGroupStart) N(ncclGroupEnd)

#define TRUTH_ID(name) TRUTH_##name,
enum truth_api {
	TRUTH_NONE,
	TRUTH_DRIVER(TRUTH_ID) TRUTH_RUNTIME(TRUTH_ID) TRUTH_NCCL(TRUTH_ID) TRUTH_APIS
};

#endif
