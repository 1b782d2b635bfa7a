/* SPDX-License-Identifier: BSD-2-Clause */
/* Prototypes of the driver functions that the runtime, NCCL and the jobs call. */
#ifndef SIM_DRIVER_H
#define SIM_DRIVER_H

#include <unistd.h>

#include "device.h"

#define LAUNCH_PARAMS                                                                              \
	CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,             \
		unsigned bz, unsigned smem, CUstream stream, void **params

CUresult cuInit(unsigned flags);
CUresult cuDriverGetVersion(int *version);
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice device);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);
CUresult cuCtxSetCurrent(CUcontext ctx);
CUresult cuCtxGetDevice(CUdevice *device);
CUresult cuCtxSynchronize(void);
CUresult cuCtxSynchronize_v2(CUcontext ctx);

CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUresult cuModuleUnload(CUmodule module);
CUresult cuModuleGetFunction(CUfunction *func, CUmodule module, const char *name);
CUresult cuLibraryLoadData(CUlibrary *library, const void *code, int *jit, void **jit_values,
			   unsigned jit_count, int *options, void **values, unsigned count);
CUresult cuLibraryUnload(CUlibrary library);
CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name);
CUresult cuKernelGetFunction(CUfunction *func, CUkernel kernel);
CUresult cuFuncGetName(const char **name, CUfunction func);
CUresult cuKernelGetName(const char **name, CUkernel kernel);
CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction func);
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction func, int block,
						     size_t smem);
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction func,
							      int block, size_t smem,
							      unsigned flags);

CUresult cuLaunchKernel(LAUNCH_PARAMS, void **extra);
CUresult cuLaunchKernel_ptsz(LAUNCH_PARAMS, void **extra);
CUresult cuLaunchCooperativeKernel(LAUNCH_PARAMS);
CUresult cuLaunchCooperativeKernel_ptsz(LAUNCH_PARAMS);
CUresult cuLaunchKernelEx(const struct cu_launch_config *config, CUfunction f, void **params,
			  void **extra);
CUresult cuLaunchKernelEx_ptsz(const struct cu_launch_config *config, CUfunction f, void **params,
			       void **extra);
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn fn, void *user);
CUresult cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn fn, void *user);

CUresult cuGraphCreate(CUgraph *graph, unsigned flags);
CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
				 size_t need_count, const struct cu_kernel_node *params);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags);
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream);
CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream);
CUresult cuGraphDestroy(CUgraph graph);
CUresult cuGraphExecDestroy(CUgraphExec exec);
CUresult cuStreamBeginCapture_v2(CUstream stream, int mode);
CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, int mode);
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph);
CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph);
CUresult cuStreamIsCapturing(CUstream stream, int *status);
CUresult cuStreamIsCapturing_ptsz(CUstream stream, int *status);

CUresult cuStreamCreate(CUstream *stream, unsigned flags);
CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority);
CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamSynchronize_ptsz(CUstream stream);
CUresult cuStreamQuery(CUstream stream);
CUresult cuStreamQuery_ptsz(CUstream stream);
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags);
CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned flags);
CUresult cuEventCreate(CUevent *event, unsigned flags);
CUresult cuEventDestroy_v2(CUevent event);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventRecord_ptsz(CUevent event, CUstream stream);
CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags);
CUresult cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream, unsigned flags);
CUresult cuEventQuery(CUevent event);
CUresult cuEventSynchronize(CUevent event);
CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end);

CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes);
CUresult cuMemFree_v2(CUdeviceptr ptr);
CUresult cuMemAllocAsync(CUdeviceptr *out, size_t bytes, CUstream stream);
CUresult cuMemAllocAsync_ptsz(CUdeviceptr *out, size_t bytes, CUstream stream);
CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream stream);
CUresult cuMemFreeAsync_ptsz(CUdeviceptr ptr, CUstream stream);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t bytes, CUmemoryPool pool,
				 CUstream stream);
CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *out, size_t bytes, CUmemoryPool pool,
				      CUstream stream);
CUresult cuMemAllocHost_v2(void **out, size_t bytes);
CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned flags);
CUresult cuMemFreeHost(void *ptr);
CUresult cuMemAllocManaged(CUdeviceptr *out, size_t bytes, unsigned flags);
CUresult cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height,
			    unsigned element);
CUresult cuMemGetInfo_v2(size_t *available, size_t *total);

/* cuMemcpyHtoD_v2 and the like, with their twins. */
#define COPY_PROTO(name, twin, dst, src)                                                           \
	CUresult name(dst to, src from, size_t bytes);                                             \
	CUresult name##_##twin(dst to, src from, size_t bytes);
#define COPY_ASYNC_PROTO(name, dst, src)                                                           \
	CUresult name(dst to, src from, size_t bytes, CUstream stream);                            \
	CUresult name##_ptsz(dst to, src from, size_t bytes, CUstream stream);
COPY_PROTO(cuMemcpy, ptds, CUdeviceptr, CUdeviceptr)
COPY_PROTO(cuMemcpyHtoD_v2, ptds, CUdeviceptr, const void *)
COPY_PROTO(cuMemcpyDtoH_v2, ptds, void *, CUdeviceptr)
COPY_PROTO(cuMemcpyDtoD_v2, ptds, CUdeviceptr, CUdeviceptr)
COPY_ASYNC_PROTO(cuMemcpyAsync, CUdeviceptr, CUdeviceptr)
COPY_ASYNC_PROTO(cuMemcpyHtoDAsync_v2, CUdeviceptr, const void *)
COPY_ASYNC_PROTO(cuMemcpyDtoHAsync_v2, void *, CUdeviceptr)
COPY_ASYNC_PROTO(cuMemcpyDtoDAsync_v2, CUdeviceptr, CUdeviceptr)

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_ctx, CUdeviceptr from, CUcontext from_ctx,
		      size_t bytes);
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_ctx, CUdeviceptr from, CUcontext from_ctx,
			   size_t bytes, CUstream stream);
CUresult cuMemcpy2D_v2(const struct cu_copy2d *copy);
CUresult cuMemcpy2D_v2_ptds(const struct cu_copy2d *copy);
CUresult cuMemcpy2DUnaligned_v2(const struct cu_copy2d *copy);
CUresult cuMemcpy2DAsync_v2(const struct cu_copy2d *copy, CUstream stream);
CUresult cuMemcpy2DAsync_v2_ptsz(const struct cu_copy2d *copy, CUstream stream);
CUresult cuMemcpy3D_v2(const struct cu_copy3d *copy);
CUresult cuMemcpy3D_v2_ptds(const struct cu_copy3d *copy);
CUresult cuMemcpy3DAsync_v2(const struct cu_copy3d *copy, CUstream stream);
CUresult cuMemcpy3DAsync_v2_ptsz(const struct cu_copy3d *copy, CUstream stream);

#define SET_PROTO(bits, type)                                                                      \
	CUresult cuMemsetD##bits##_v2(CUdeviceptr to, type value, size_t count);                   \
	CUresult cuMemsetD##bits##_v2_ptds(CUdeviceptr to, type value, size_t count);              \
	CUresult cuMemsetD##bits##Async(CUdeviceptr to, type value, size_t count, CUstream s);     \
	CUresult cuMemsetD##bits##Async_ptsz(CUdeviceptr to, type value, size_t count,             \
					     CUstream s);                                          \
	CUresult cuMemsetD2D##bits##_v2(CUdeviceptr to, size_t pitch, type value, size_t width,    \
					size_t height);                                            \
	CUresult cuMemsetD2D##bits##_v2_ptds(CUdeviceptr to, size_t pitch, type value,             \
					     size_t width, size_t height);                         \
	CUresult cuMemsetD2D##bits##Async(CUdeviceptr to, size_t pitch, type value, size_t width,  \
					  size_t height, CUstream s);                              \
	CUresult cuMemsetD2D##bits##Async_ptsz(CUdeviceptr to, size_t pitch, type value,           \
					       size_t width, size_t height, CUstream s);
SET_PROTO(8, unsigned char)
SET_PROTO(16, unsigned short)
SET_PROTO(32, unsigned)

#endif
