/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory, streams, events and graphs of the runtime stand-in. */
#include "runtime_core.h"

#define U(x) ((uintptr_t)(x))

static cudaError_t malloc_device(const struct driver_table *drv_, void **out, size_t bytes)
{
	CUdeviceptr p = 0;
	int err = DRV_OUT(cuMemAlloc_v2, (&p, bytes), &p, .bytes = bytes);

	*out = (void *)p;
	return err;
}

static cudaError_t malloc_async(const struct driver_table *drv_, void **out, size_t bytes,
				cudaStream_t s, bool per_thread)
{
	CUdeviceptr p = 0;
	int err;

	if (per_thread)
		err = DRV_OUT(cuMemAllocAsync_ptsz, (&p, bytes, s), &p, .bytes = bytes,
			      .stream = U(s));
	else
		err = DRV_OUT(cuMemAllocAsync, (&p, bytes, s), &p, .bytes = bytes, .stream = U(s));
	*out = (void *)p;
	return err;
}

static cudaError_t malloc_managed(const struct driver_table *drv_, void **out, size_t bytes,
				  unsigned flags)
{
	CUdeviceptr p = 0;
	int err = DRV_OUT(cuMemAllocManaged, (&p, bytes, flags), &p, .bytes = bytes);

	*out = (void *)p;
	return err;
}

static cudaError_t malloc_pitch(const struct driver_table *drv_, void **out, size_t *pitch,
				size_t width, size_t height)
{
	CUdeviceptr p = 0;
	int err = DRV_OUT(cuMemAllocPitch_v2, (&p, pitch, width, height, 4), &p,
			  .bytes = width * height);

	*out = (void *)p;
	return err;
}

RT(cudaMalloc, (void **out, size_t bytes), malloc_device(drv_, out, bytes))
RT(cudaFree, (void *ptr), ptr ? DRV(cuMemFree_v2, (U(ptr)), .pointer = U(ptr)) : 0)
RT(cudaMallocAsync, (void **out, size_t bytes, cudaStream_t s),
   malloc_async(drv_, out, bytes, s, false))
RT(cudaMallocAsync_ptsz, (void **out, size_t bytes, cudaStream_t s),
   malloc_async(drv_, out, bytes, s, true))
RT(cudaFreeAsync, (void *ptr, cudaStream_t s),
   DRV(cuMemFreeAsync, (U(ptr), s), .pointer = U(ptr), .stream = U(s)))
RT(cudaFreeAsync_ptsz, (void *ptr, cudaStream_t s),
   DRV(cuMemFreeAsync_ptsz, (U(ptr), s), .pointer = U(ptr), .stream = U(s)))
RT(cudaMallocHost, (void **out, size_t bytes),
   DRV_OUT(cuMemHostAlloc, (out, bytes, 0), out, .bytes = bytes))
RT(cudaHostAlloc, (void **out, size_t bytes, unsigned flags),
   DRV_OUT(cuMemHostAlloc, (out, bytes, flags), out, .bytes = bytes))
RT(cudaFreeHost, (void *ptr), DRV(cuMemFreeHost, (ptr), .pointer = U(ptr)))
RT(cudaMallocManaged, (void **out, size_t bytes, unsigned flags),
   malloc_managed(drv_, out, bytes, flags))
RT(cudaMallocPitch, (void **out, size_t *pitch, size_t width, size_t height),
   malloc_pitch(drv_, out, pitch, width, height))

#define COPIED .pointer = U(to), .source = U(from), .bytes = bytes
#define RT_COPY(api, twin)                                                                         \
	RT(api, (void *to, const void *from, size_t bytes, int kind),                              \
	   kind == KIND_HTOD   ? DRV(cuMemcpyHtoD_v2##twin, (U(to), from, bytes), COPIED) :        \
	   kind == KIND_DTOH   ? DRV(cuMemcpyDtoH_v2##twin, (to, U(from), bytes), COPIED) :        \
	   kind == KIND_DTOD   ? DRV(cuMemcpyDtoD_v2##twin, (U(to), U(from), bytes), COPIED) :     \
				 DRV(cuMemcpy##twin, (U(to), U(from), bytes), COPIED))
RT_COPY(cudaMemcpy, )
RT_COPY(cudaMemcpy_ptds, _ptds)

#define COPIED_ASYNC COPIED, .stream = U(s)
#define RT_COPY_ASYNC(api, twin)                                                                   \
	RT(api, (void *to, const void *from, size_t bytes, int kind, cudaStream_t s),              \
	   kind == KIND_HTOD ?                                                                     \
		   DRV(cuMemcpyHtoDAsync_v2##twin, (U(to), from, bytes, s), COPIED_ASYNC) :        \
	   kind == KIND_DTOH ?                                                                     \
		   DRV(cuMemcpyDtoHAsync_v2##twin, (to, U(from), bytes, s), COPIED_ASYNC) :        \
	   kind == KIND_DTOD ?                                                                     \
		   DRV(cuMemcpyDtoDAsync_v2##twin, (U(to), U(from), bytes, s), COPIED_ASYNC) :     \
		   DRV(cuMemcpyAsync##twin, (U(to), U(from), bytes, s), COPIED_ASYNC))
RT_COPY_ASYNC(cudaMemcpyAsync, )
RT_COPY_ASYNC(cudaMemcpyAsync_ptsz, _ptsz)

/* Host or device is the kind's to say, bit 0 for the destination. */
static struct cu_copy2d plane(void *to, size_t to_pitch, const void *from, size_t from_pitch,
			      size_t width, size_t height, int kind)
{
	bool to_device = kind == KIND_HTOD || kind == KIND_DTOD;
	bool from_device = kind == KIND_DTOH || kind == KIND_DTOD;

	return (struct cu_copy2d){
		.src = { .type = from_device ? CU_DEVICE : CU_HOST, .host = (void *)U(from),
			 .device = U(from), .pitch = from_pitch },
		.dst = { .type = to_device ? CU_DEVICE : CU_HOST, .host = to, .device = U(to),
			 .pitch = to_pitch },
		.width = width,
		.height = height,
	};
}

static struct cu_copy3d box(const struct cuda_copy3d *c)
{
	bool to_device = c->kind == KIND_HTOD || c->kind == KIND_DTOD;
	bool from_device = c->kind == KIND_DTOH || c->kind == KIND_DTOD;

	return (struct cu_copy3d){
		.src = { .x = c->src_pos[0], .y = c->src_pos[1], .z = c->src_pos[2],
			 .type = from_device ? CU_DEVICE : CU_HOST, .host = c->src.ptr,
			 .device = U(c->src.ptr), .pitch = c->src.pitch, .height = c->src.ysize },
		.dst = { .x = c->dst_pos[0], .y = c->dst_pos[1], .z = c->dst_pos[2],
			 .type = to_device ? CU_DEVICE : CU_HOST, .host = c->dst.ptr,
			 .device = U(c->dst.ptr), .pitch = c->dst.pitch, .height = c->dst.ysize },
		.width = c->extent[0],
		.height = c->extent[1],
		.depth = c->extent[2],
	};
}

#define PLANE                                                                                      \
	void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,              \
		size_t height, int kind

static cudaError_t copy2d(const struct driver_table *drv_, PLANE, cudaStream_t s, bool async)
{
	struct cu_copy2d c = plane(to, to_pitch, from, from_pitch, width, height, kind);

	if (async)
		return DRV(cuMemcpy2DAsync_v2, (&c, s), .pointer = U(to), .source = U(from),
			   .bytes = width * height, .stream = U(s));
	return DRV(cuMemcpy2DUnaligned_v2, (&c), .pointer = U(to), .source = U(from),
		   .bytes = width * height);
}

static cudaError_t copy3d(const struct driver_table *drv_, const struct cuda_copy3d *copy,
			  cudaStream_t s, bool async)
{
	struct cu_copy3d c = box(copy);
	uint64_t bytes = c.width * c.height * c.depth, to = c.dst.device, from = c.src.device;

	if (async)
		return DRV(cuMemcpy3DAsync_v2, (&c, s), COPIED, .stream = U(s));
	return DRV(cuMemcpy3D_v2, (&c), COPIED);
}

RT(cudaMemcpy2D, (PLANE),
   copy2d(drv_, to, to_pitch, from, from_pitch, width, height, kind, NULL, false))
RT(cudaMemcpy2DAsync, (PLANE, cudaStream_t s),
   copy2d(drv_, to, to_pitch, from, from_pitch, width, height, kind, s, true))
RT(cudaMemcpy3D, (const struct cuda_copy3d *copy), copy3d(drv_, copy, NULL, false))
RT(cudaMemcpy3DAsync, (const struct cuda_copy3d *copy, cudaStream_t s),
   copy3d(drv_, copy, s, true))

#define SET (U(to), (unsigned char)value, bytes)
#define SET_ASYNC (U(to), (unsigned char)value, bytes, s)
#define FILLED .pointer = U(to), .bytes = bytes
RT(cudaMemset, (void *to, int value, size_t bytes), DRV(cuMemsetD8_v2, SET, FILLED))
RT(cudaMemset_ptds, (void *to, int value, size_t bytes), DRV(cuMemsetD8_v2_ptds, SET, FILLED))
RT(cudaMemsetAsync, (void *to, int value, size_t bytes, cudaStream_t s),
   DRV(cuMemsetD8Async, SET_ASYNC, FILLED, .stream = U(s)))
RT(cudaMemsetAsync_ptsz, (void *to, int value, size_t bytes, cudaStream_t s),
   DRV(cuMemsetD8Async_ptsz, SET_ASYNC, FILLED, .stream = U(s)))
RT(cudaMemset2D, (void *to, size_t pitch, int value, size_t width, size_t height),
   DRV(cuMemsetD2D8_v2, (U(to), pitch, (unsigned char)value, width, height), .pointer = U(to),
       .bytes = width * height))
RT(cudaMemset2DAsync,
   (void *to, size_t pitch, int value, size_t width, size_t height, cudaStream_t s),
   DRV(cuMemsetD2D8Async, (U(to), pitch, (unsigned char)value, width, height, s),
       .pointer = U(to), .bytes = width * height, .stream = U(s)))

#define ON_STREAM .stream = U(s)
RT(cudaDeviceSynchronize, (void), DRV(cuCtxSynchronize, (), 0))
RT(cudaStreamCreate, (cudaStream_t *out), DRV_OUT(cuStreamCreate, (out, 0), out, 0))
RT(cudaStreamCreateWithFlags, (cudaStream_t *out, unsigned flags),
   DRV_OUT(cuStreamCreate, (out, flags), out, 0))
RT(cudaStreamCreateWithPriority, (cudaStream_t *out, unsigned flags, int priority),
   DRV_OUT(cuStreamCreateWithPriority, (out, flags, priority), out, 0))
RT(cudaStreamDestroy, (cudaStream_t s), DRV(cuStreamDestroy_v2, (s), ON_STREAM))
RT(cudaStreamSynchronize, (cudaStream_t s), DRV(cuStreamSynchronize, (s), ON_STREAM))
RT(cudaStreamSynchronize_ptsz, (cudaStream_t s), DRV(cuStreamSynchronize_ptsz, (s), ON_STREAM))
RT(cudaStreamQuery, (cudaStream_t s), DRV(cuStreamQuery, (s), ON_STREAM))
RT(cudaStreamQuery_ptsz, (cudaStream_t s), DRV(cuStreamQuery_ptsz, (s), ON_STREAM))
RT(cudaStreamWaitEvent, (cudaStream_t s, cudaEvent_t e, unsigned flags),
   DRV(cuStreamWaitEvent, (s, e, flags), ON_STREAM, .pointer = U(e)))
RT(cudaStreamWaitEvent_ptsz, (cudaStream_t s, cudaEvent_t e, unsigned flags),
   DRV(cuStreamWaitEvent_ptsz, (s, e, flags), ON_STREAM, .pointer = U(e)))
RT(cudaEventCreate, (cudaEvent_t * out), DRV_OUT(cuEventCreate, (out, 0), out, 0))
RT(cudaEventCreateWithFlags, (cudaEvent_t * out, unsigned flags),
   DRV_OUT(cuEventCreate, (out, flags), out, 0))
RT(cudaEventDestroy, (cudaEvent_t e), DRV(cuEventDestroy_v2, (e), .pointer = U(e)))
RT(cudaEventRecord, (cudaEvent_t e, cudaStream_t s),
   DRV(cuEventRecord, (e, s), ON_STREAM, .pointer = U(e)))
RT(cudaEventRecord_ptsz, (cudaEvent_t e, cudaStream_t s),
   DRV(cuEventRecord_ptsz, (e, s), ON_STREAM, .pointer = U(e)))
RT(cudaEventQuery, (cudaEvent_t e), DRV(cuEventQuery, (e), .pointer = U(e)))
RT(cudaEventSynchronize, (cudaEvent_t e), DRV(cuEventSynchronize, (e), .pointer = U(e)))
RT(cudaEventElapsedTime, (float *ms, cudaEvent_t start, cudaEvent_t e),
   DRV(cuEventElapsedTime, (ms, start, e), .pointer = U(start), .source = U(e)))

RT(cudaStreamBeginCapture, (cudaStream_t s, int mode),
   DRV(cuStreamBeginCapture_v2, (s, mode), ON_STREAM))
RT(cudaStreamEndCapture, (cudaStream_t s, cudaGraph_t *graph),
   DRV_OUT(cuStreamEndCapture, (s, graph), graph, ON_STREAM))
RT(cudaStreamIsCapturing, (cudaStream_t s, int *status),
   DRV(cuStreamIsCapturing, (s, status), ON_STREAM))
RT(cudaGraphInstantiate, (cudaGraphExec_t * exec, cudaGraph_t g, unsigned long long flags),
   DRV_OUT(cuGraphInstantiateWithFlags, (exec, g, flags), exec, .source = U(g)))
RT(cudaGraphLaunch, (cudaGraphExec_t g, cudaStream_t s),
   DRV(cuGraphLaunch, (g, s), ON_STREAM, .pointer = U(g)))
RT(cudaGraphLaunch_ptsz, (cudaGraphExec_t g, cudaStream_t s),
   DRV(cuGraphLaunch_ptsz, (g, s), ON_STREAM, .pointer = U(g)))
RT(cudaGraphDestroy, (cudaGraph_t g), DRV(cuGraphDestroy, (g), .pointer = U(g)))
RT(cudaGraphExecDestroy, (cudaGraphExec_t g), DRV(cuGraphExecDestroy, (g), .pointer = U(g)))
