/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory: the device's is the host's, so that copies really copy. */
#include <stdlib.h>
#include <string.h>

#include "driver.h"

#define COPY_BYTES_PER_NS 25 /* 25 GB/s */

enum { WAIT = 1, PER_THREAD = 2 };

static void finish(struct sim_work *w, CUstream stream, unsigned flags)
{
	int64_t ns = sim_settings.copy_ns + (int64_t)(w->is.bytes / COPY_BYTES_PER_NS);
	struct sim_stream *s = sim_stream(stream, flags & PER_THREAD);
	struct sim_span span = sim_enqueue(s, ns);

	w->is.async = !(flags & WAIT);
	if (sim_work_wanted())
		sim_work_tell(s, &span, w);
	/* What leaves for memory that may be paged out is there when the call returns. */
	if ((flags & WAIT) || (w->is.kind == TRUTH_COPY && w->is.to == MEMORY_PAGEABLE))
		sim_wait(span.end);
}

static void finish_copy(const void *to, const void *from, uint64_t bytes, CUstream stream,
			unsigned flags)
{
	struct sim_work w = { .is.kind = TRUTH_COPY, .is.bytes = bytes };
	enum sim_memory source = sim_memory_kind(from, &w.is.from_device, &w.from_context);
	enum sim_memory target = sim_memory_kind(to, &w.is.to_device, &w.to_context);

	w.is.copy = (uint8_t)sim_copy_kind(source, target);
	if (source == MEMORY_DEVICE && target == MEMORY_DEVICE &&
	    w.is.from_device != w.is.to_device)
		w.is.copy = COPY_PEER;
	else
		w.is.from_device = w.is.to_device = 0;
	w.is.from = (uint8_t)source;
	w.is.to = (uint8_t)target;
	finish(&w, stream, flags);
}

static CUresult copy(void *to, const void *from, size_t bytes, CUstream stream, unsigned flags)
{
	if (bytes && (!to || !from))
		return SIM_INVALID_VALUE;
	memmove(to, from, bytes);
	finish_copy(to, from, bytes, stream, flags);
	return SIM_SUCCESS;
}

static CUresult allocate(void **out, size_t bytes, enum sim_memory kind)
{
	static atomic_flag before = ATOMIC_FLAG_INIT;

	*out = NULL;
	if (!atomic_flag_test_and_set_explicit(&before, memory_order_relaxed))
		sim_cold(10);
	if (!bytes)
		return SIM_INVALID_VALUE;
	if (posix_memalign(out, 512, bytes))
		return SIM_OUT_OF_MEMORY;
	sim_memory_add(*out, bytes, kind);
	return SIM_SUCCESS;
}

static CUresult allocate_as(CUdeviceptr *out, size_t bytes, enum sim_memory kind)
{
	void *p;
	CUresult err = allocate(&p, bytes, kind);

	*out = (uintptr_t)p;
	return err;
}

static CUresult allocate_device(CUdeviceptr *out, size_t bytes)
{
	return allocate_as(out, bytes, MEMORY_DEVICE);
}

static CUresult release(void *ptr)
{
	sim_memory_remove(ptr);
	free(ptr);
	return SIM_SUCCESS;
}

#define API(name, params, call)                                                                  \
	SIM_EXPORT CUresult name params                                                            \
	{                                                                                          \
		SIM_CALL();                                                                      \
		SIM_RETURN(call);                                                                  \
	}
API(cuMemAlloc_v2, (CUdeviceptr * out, size_t bytes), allocate_device(out, bytes))
API(cuMemAllocAsync, (CUdeviceptr * out, size_t bytes, CUstream stream),
      allocate_device(out, bytes))
API(cuMemAllocAsync_ptsz, (CUdeviceptr * out, size_t bytes, CUstream stream),
      allocate_device(out, bytes))
API(cuMemAllocFromPoolAsync,
      (CUdeviceptr * out, size_t bytes, CUmemoryPool pool, CUstream stream),
      allocate_device(out, bytes))
API(cuMemAllocFromPoolAsync_ptsz,
      (CUdeviceptr * out, size_t bytes, CUmemoryPool pool, CUstream stream),
      allocate_device(out, bytes))
API(cuMemAllocManaged, (CUdeviceptr * out, size_t bytes, unsigned flags),
      allocate_as(out, bytes, MEMORY_MANAGED))
API(cuMemAllocHost_v2, (void **out, size_t bytes), allocate(out, bytes, MEMORY_PINNED))
API(cuMemHostAlloc, (void **out, size_t bytes, unsigned flags),
      allocate(out, bytes, MEMORY_PINNED))
API(cuMemFree_v2, (CUdeviceptr ptr), release((void *)ptr))
API(cuMemFreeAsync, (CUdeviceptr ptr, CUstream stream), release((void *)ptr))
API(cuMemFreeAsync_ptsz, (CUdeviceptr ptr, CUstream stream), release((void *)ptr))
API(cuMemFreeHost, (void *ptr), release(ptr))

SIM_EXPORT CUresult cuMemHostRegister_v2(void *ptr, size_t bytes, unsigned flags)
{
	SIM_CALL();
	sim_memory_add(ptr, bytes, MEMORY_PINNED);
	SIM_RETURN(SIM_SUCCESS);
}

SIM_EXPORT CUresult cuMemHostUnregister(void *ptr)
{
	SIM_CALL();
	sim_memory_remove(ptr);
	SIM_RETURN(SIM_SUCCESS);
}

SIM_EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width,
				       size_t height, unsigned element)
{
	SIM_CALL();
	*pitch = (width + 511) & ~511ul;
	SIM_RETURN(allocate_device(out, *pitch * height));
}

SIM_EXPORT CUresult cuMemGetInfo_v2(size_t *available, size_t *total)
{
	SIM_CALL();
	*available = 100ull << 30;
	*total = 140ull << 30;
	SIM_RETURN(SIM_SUCCESS);
}

#define COPY(name, twin, dst, src)                                                                 \
	SIM_EXPORT CUresult name(dst to, src from, size_t bytes)                                   \
	{                                                                                          \
		SIM_CALL();                                                                      \
		SIM_RETURN(copy((void *)to, (const void *)from, bytes, NULL, WAIT));               \
	}                                                                                          \
	SIM_EXPORT CUresult name##_##twin(dst to, src from, size_t bytes)                          \
	{                                                                                          \
		SIM_CALL();                                                                      \
		SIM_RETURN(copy((void *)to, (const void *)from, bytes, NULL, WAIT | PER_THREAD));  \
	}
#define COPY_ASYNC(name, dst, src)                                                                 \
	SIM_EXPORT CUresult name(dst to, src from, size_t bytes, CUstream stream)                  \
	{                                                                                          \
		SIM_CALL();                                                                      \
		SIM_RETURN(copy((void *)to, (const void *)from, bytes, stream, 0));                \
	}                                                                                          \
	SIM_EXPORT CUresult name##_ptsz(dst to, src from, size_t bytes, CUstream stream)           \
	{                                                                                          \
		SIM_CALL();                                                                      \
		SIM_RETURN(copy((void *)to, (const void *)from, bytes, stream, PER_THREAD));       \
	}
COPY(cuMemcpy, ptds, CUdeviceptr, CUdeviceptr)
COPY(cuMemcpyHtoD_v2, ptds, CUdeviceptr, const void *)
COPY(cuMemcpyDtoH_v2, ptds, void *, CUdeviceptr)
COPY(cuMemcpyDtoD_v2, ptds, CUdeviceptr, CUdeviceptr)
COPY_ASYNC(cuMemcpyAsync, CUdeviceptr, CUdeviceptr)
COPY_ASYNC(cuMemcpyHtoDAsync_v2, CUdeviceptr, const void *)
COPY_ASYNC(cuMemcpyDtoHAsync_v2, void *, CUdeviceptr)
COPY_ASYNC(cuMemcpyDtoDAsync_v2, CUdeviceptr, CUdeviceptr)

#define PEER CUdeviceptr to, CUcontext to_ctx, CUdeviceptr from, CUcontext from_ctx, size_t bytes
#define PEER_COPY(stream, flags) copy((void *)to, (const void *)from, bytes, stream, flags)
API(cuMemcpyPeer, (PEER), PEER_COPY(NULL, WAIT))
API(cuMemcpyPeer_ptds, (PEER), PEER_COPY(NULL, WAIT | PER_THREAD))
API(cuMemcpyPeerAsync, (PEER, CUstream stream), PEER_COPY(stream, 0))
API(cuMemcpyPeerAsync_ptsz, (PEER, CUstream stream), PEER_COPY(stream, PER_THREAD))

static char *address(unsigned type, void *host, CUdeviceptr device)
{
	return type == CU_HOST ? host : type == CU_ARRAY ? NULL : (char *)device;
}

static CUresult copy3d(const struct cu_copy3d *c, CUstream stream, unsigned flags)
{
	char *to = address(c->dst.type, c->dst.host, c->dst.device);
	const char *from = address(c->src.type, c->src.host, c->src.device);

	if (!to || !from)
		return SIM_INVALID_VALUE;
	for (size_t z = 0; z < c->depth; z++)
		for (size_t y = 0; y < c->height; y++)
			memcpy(to + ((c->dst.z + z) * c->dst.height + c->dst.y + y) * c->dst.pitch +
				       c->dst.x,
			       from + ((c->src.z + z) * c->src.height + c->src.y + y) *
						c->src.pitch + c->src.x,
			       c->width);
	finish_copy(to, from, c->width * c->height * c->depth, stream, flags);
	return SIM_SUCCESS;
}

static CUresult copy2d(const struct cu_copy2d *c, CUstream stream, unsigned flags)
{
	struct cu_copy3d box = {
		.src = { .x = c->src.x, .y = c->src.y, .type = c->src.type, .host = c->src.host,
			 .device = c->src.device, .pitch = c->src.pitch },
		.dst = { .x = c->dst.x, .y = c->dst.y, .type = c->dst.type, .host = c->dst.host,
			 .device = c->dst.device, .pitch = c->dst.pitch },
		.width = c->width, .height = c->height, .depth = 1,
	};

	return copy3d(&box, stream, flags);
}

#define PLANE const struct cu_copy2d *c
#define BOX const struct cu_copy3d *c
API(cuMemcpy2D_v2, (PLANE), copy2d(c, NULL, WAIT))
API(cuMemcpy2D_v2_ptds, (PLANE), copy2d(c, NULL, WAIT | PER_THREAD))
API(cuMemcpy2DUnaligned_v2, (PLANE), copy2d(c, NULL, WAIT))
API(cuMemcpy2DUnaligned_v2_ptds, (PLANE), copy2d(c, NULL, WAIT | PER_THREAD))
API(cuMemcpy2DAsync_v2, (PLANE, CUstream s), copy2d(c, s, 0))
API(cuMemcpy2DAsync_v2_ptsz, (PLANE, CUstream s), copy2d(c, s, PER_THREAD))
API(cuMemcpy3D_v2, (BOX), copy3d(c, NULL, WAIT))
API(cuMemcpy3D_v2_ptds, (BOX), copy3d(c, NULL, WAIT | PER_THREAD))
API(cuMemcpy3DAsync_v2, (BOX, CUstream s), copy3d(c, s, 0))
API(cuMemcpy3DAsync_v2_ptsz, (BOX, CUstream s), copy3d(c, s, PER_THREAD))

/* Rows of width elements of size bytes, all holding value. */
static CUresult set(CUdeviceptr to, size_t pitch, unsigned value, size_t size, size_t width,
		    size_t height, CUstream stream, unsigned flags)
{
	struct sim_work w = { .is.kind = TRUTH_SET, .is.bytes = size * width * height,
			      .is.to = MEMORY_DEVICE, .is.value = value };

	if (!to)
		return SIM_INVALID_VALUE;
	for (size_t y = 0; y < height; y++) {
		char *row = (char *)to + y * pitch;

		if (size == 1)
			memset(row, (int)value, width);
		for (size_t x = 0; size > 1 && x < width; x++)
			memcpy(row + x * size, &value, size);
	}
	finish(&w, stream, flags);
	return SIM_SUCCESS;
}

#define LINE(type) CUdeviceptr to, type value, size_t count
#define ROWS(type) CUdeviceptr to, size_t pitch, type value, size_t width, size_t height
#define SET(name, bits, type)                                                                      \
	API(cuMemsetD##bits##_v2, (LINE(type)),                                                  \
	      set(to, 0, value, sizeof(type), count, 1, NULL, WAIT))                               \
	API(cuMemsetD##bits##_v2_ptds, (LINE(type)),                                             \
	      set(to, 0, value, sizeof(type), count, 1, NULL, WAIT | PER_THREAD))                  \
	API(cuMemsetD##bits##Async, (LINE(type), CUstream s),                                    \
	      set(to, 0, value, sizeof(type), count, 1, s, 0))                                     \
	API(cuMemsetD##bits##Async_ptsz, (LINE(type), CUstream s),                               \
	      set(to, 0, value, sizeof(type), count, 1, s, PER_THREAD))                            \
	API(cuMemsetD2D##bits##_v2, (ROWS(type)),                                                \
	      set(to, pitch, value, sizeof(type), width, height, NULL, WAIT))                      \
	API(cuMemsetD2D##bits##_v2_ptds, (ROWS(type)),                                           \
	      set(to, pitch, value, sizeof(type), width, height, NULL, WAIT | PER_THREAD))         \
	API(cuMemsetD2D##bits##Async, (ROWS(type), CUstream s),                                  \
	      set(to, pitch, value, sizeof(type), width, height, s, 0))                            \
	API(cuMemsetD2D##bits##Async_ptsz, (ROWS(type), CUstream s),                             \
	      set(to, pitch, value, sizeof(type), width, height, s, PER_THREAD))
SET(cuMemset, 8, unsigned char)
SET(cuMemset, 16, unsigned short)
SET(cuMemset, 32, unsigned)
