/* SPDX-License-Identifier: BSD-2-Clause */
/* Every form of copy, set and allocation. */
#include "job.h"

#define TO_DEV .pointer = w->dev, .source = U(w->host)
#define TO_HOST .pointer = U(w->host), .source = w->dev
#define TO_OTHER .pointer = w->other, .source = w->dev
#define ON .stream = U(w->stream)
#define CHECK(call) worker_check(w, call)

static void plain_driver(struct worker *w, size_t n)
{
	void *ctx = w->ctx;

	CHECK(D(w, cuMemcpyHtoD_v2, (w->dev, w->host, n), TO_DEV, .bytes = n));
	CHECK(D(w, cuMemcpyDtoH_v2, (w->host, w->dev, n), TO_HOST, .bytes = n));
	CHECK(D(w, cuMemcpyDtoD_v2, (w->other, w->dev, n), TO_OTHER, .bytes = n));
	CHECK(D(w, cuMemcpy, (w->other, w->dev, n), TO_OTHER, .bytes = n));
	CHECK(D(w, cuMemcpyHtoD_v2_ptds, (w->dev, w->host, n), TO_DEV, .bytes = n));
	CHECK(D(w, cuMemcpyDtoH_v2_ptds, (w->host, w->dev, n), TO_HOST, .bytes = n));
	CHECK(D(w, cuMemcpyDtoD_v2_ptds, (w->other, w->dev, n), TO_OTHER, .bytes = n));
	CHECK(D(w, cuMemcpy_ptds, (w->other, w->dev, n), TO_OTHER, .bytes = n));
	CHECK(D(w, cuMemcpyAsync, (w->other, w->dev, n, w->stream), TO_OTHER, .bytes = n, ON));
	CHECK(D(w, cuMemcpyPeer, (w->other, ctx, w->dev, ctx, n), TO_OTHER, .bytes = n));
	CHECK(D(w, cuMemcpyPeerAsync, (w->other, ctx, w->dev, ctx, n, w->stream), TO_OTHER,
		.bytes = n, ON));
}

static void shaped_driver(struct worker *w, size_t width, size_t height, size_t depth)
{
	struct cu_copy2d plane = {
		.src = { .type = CU_HOST, .host = w->host, .pitch = 1024 },
		.dst = { .type = CU_DEVICE, .device = w->dev, .pitch = 512 },
		.width = width,
		.height = height,
	};
	struct cu_copy3d box = {
		.src = { .type = CU_DEVICE, .device = w->dev, .pitch = 512, .height = height },
		.dst = { .type = CU_DEVICE, .device = w->other, .pitch = 512, .height = height },
		.width = width,
		.height = height,
		.depth = depth,
	};
	uint64_t n2 = width * height, n3 = n2 * depth;

	CHECK(D(w, cuMemcpy2D_v2, (&plane), TO_DEV, .bytes = n2));
	CHECK(D(w, cuMemcpy2D_v2_ptds, (&plane), TO_DEV, .bytes = n2));
	CHECK(D(w, cuMemcpy2DUnaligned_v2, (&plane), TO_DEV, .bytes = n2));
	CHECK(D(w, cuMemcpy2DAsync_v2, (&plane, w->stream), TO_DEV, .bytes = n2, ON));
	CHECK(D(w, cuMemcpy2DAsync_v2_ptsz, (&plane, w->stream), TO_DEV, .bytes = n2, ON));
	CHECK(D(w, cuMemcpy3D_v2, (&box), TO_OTHER, .bytes = n3));
	CHECK(D(w, cuMemcpy3D_v2_ptds, (&box), TO_OTHER, .bytes = n3));
	CHECK(D(w, cuMemcpy3DAsync_v2, (&box, w->stream), TO_OTHER, .bytes = n3, ON));
	CHECK(D(w, cuMemcpy3DAsync_v2_ptsz, (&box, w->stream), TO_OTHER, .bytes = n3, ON));
}

#define SET .pointer = w->other, .bytes

static void set_driver(struct worker *w, size_t n)
{
	CHECK(D(w, cuMemsetD8_v2, (w->other, 7, n), SET = n));
	CHECK(D(w, cuMemsetD8_v2_ptds, (w->other, 7, n), SET = n));
	CHECK(D(w, cuMemsetD16_v2, (w->other, 7, n), SET = 2 * n));
	CHECK(D(w, cuMemsetD16Async, (w->other, 7, n, w->stream), SET = 2 * n, ON));
	CHECK(D(w, cuMemsetD32_v2, (w->other, 7, n), SET = 4 * n));
	CHECK(D(w, cuMemsetD32Async, (w->other, 7, n, w->stream), SET = 4 * n, ON));
	CHECK(D(w, cuMemsetD2D8_v2, (w->other, 512, 7, 100, 9), SET = 900));
	CHECK(D(w, cuMemsetD2D8_v2_ptds, (w->other, 512, 7, 100, 9), SET = 900));
	CHECK(D(w, cuMemsetD2D8Async, (w->other, 512, 7, 100, 9, w->stream), SET = 900, ON));
	CHECK(D(w, cuMemsetD2D8Async_ptsz, (w->other, 512, 7, 100, 9, w->stream), SET = 900, ON));
	CHECK(D(w, cuMemsetD2D16_v2, (w->other, 512, 7, 100, 9), SET = 1800));
	CHECK(D(w, cuMemsetD2D16Async, (w->other, 512, 7, 100, 9, w->stream), SET = 1800, ON));
	CHECK(D(w, cuMemsetD2D32_v2, (w->other, 512, 7, 100, 9), SET = 3600));
	CHECK(D(w, cuMemsetD2D32Async, (w->other, 512, 7, 100, 9, w->stream), SET = 3600, ON));
}

static void plain_runtime(struct worker *w, size_t n)
{
	void *dev = (void *)w->dev, *other = (void *)w->other, *host = w->host;

	CHECK(R(w, cudaMemcpy, (dev, host, n, KIND_HTOD), TO_DEV, .bytes = n, .kind = KIND_HTOD));
	CHECK(R(w, cudaMemcpy, (host, dev, n, KIND_DTOH), TO_HOST, .bytes = n, .kind = KIND_DTOH));
	CHECK(R(w, cudaMemcpy, (other, dev, n, KIND_DTOD), TO_OTHER, .bytes = n,
		.kind = KIND_DTOD));
	CHECK(R(w, cudaMemcpy_ptds, (other, dev, n, KIND_DEFAULT), TO_OTHER, .bytes = n,
		.kind = KIND_DEFAULT));
	CHECK(R(w, cudaMemset, (other, 7, n), SET = n));
	CHECK(R(w, cudaMemset_ptds, (other, 7, n), SET = n));
	CHECK(R(w, cudaMemset2D, (other, 512, 7, 100, 9), SET = 900));
	CHECK(R(w, cudaMemset2DAsync, (other, 512, 7, 100, 9, w->stream), SET = 900, ON));
}

static void shaped_runtime(struct worker *w, size_t width, size_t height, size_t depth)
{
	void *dev = (void *)w->dev, *host = w->host;
	struct cuda_copy3d box = {
		.src = { (void *)w->dev, 512, width, height },
		.dst = { (void *)w->other, 512, width, height },
		.extent = { width, height, depth },
		.kind = KIND_DTOD,
	};
	uint64_t n2 = width * height, n3 = n2 * depth;

	CHECK(R(w, cudaMemcpy2D, (dev, 512, host, 1024, width, height, KIND_HTOD), TO_DEV,
		.bytes = n2, .kind = KIND_HTOD));
	CHECK(R(w, cudaMemcpy2DAsync,
		(host, 1024, dev, 512, width, height, KIND_DTOH, w->stream), TO_HOST, .bytes = n2,
		ON, .kind = KIND_DTOH));
	CHECK(R(w, cudaMemcpy3D, (&box), TO_OTHER, .bytes = n3, .kind = KIND_DTOD));
	CHECK(R(w, cudaMemcpy3DAsync, (&box, w->stream), TO_OTHER, .bytes = n3, ON,
		.kind = KIND_DTOD));
}

void step_copy(struct worker *w)
{
	size_t n = 1000 + 4096 * (w->steps % 50);

	if (w->job->opt.runtime) {
		plain_runtime(w, n);
		shaped_runtime(w, 100 + w->steps % 300, 7, 5);
	} else {
		plain_driver(w, n);
		shaped_driver(w, 100 + w->steps % 300, 7, 5);
		set_driver(w, n);
	}
	op_htod(w, n);
	op_dtoh(w, n);
	op_dtod(w, n);
	op_set(w, n);
	op_stream_sync(w);
}

#define OUT .bytes = n

static void allocs_driver(struct worker *w, size_t n)
{
	CUdeviceptr p = 0;
	void *host = NULL;
	size_t pitch;

	CHECK(D_OUT(w, cuMemAlloc_v2, (&p, n), &p, OUT));
	CHECK(D(w, cuMemFree_v2, (p), .pointer = p));
	CHECK(D_OUT(w, cuMemAllocAsync, (&p, n, w->stream), &p, OUT, ON));
	CHECK(D(w, cuMemFreeAsync, (p, w->stream), .pointer = p, ON));
	CHECK(D_OUT(w, cuMemAllocAsync_ptsz, (&p, n, w->stream), &p, OUT, ON));
	CHECK(D(w, cuMemFreeAsync_ptsz, (p, w->stream), .pointer = p, ON));
	CHECK(D_OUT(w, cuMemAllocFromPoolAsync, (&p, n, NULL, w->stream), &p, OUT, ON));
	CHECK(D(w, cuMemFreeAsync, (p, w->stream), .pointer = p, ON));
	CHECK(D_OUT(w, cuMemAllocManaged, (&p, n, 1), &p, OUT));
	CHECK(D(w, cuMemFree_v2, (p), .pointer = p));
	CHECK(D_OUT(w, cuMemAllocPitch_v2, (&p, &pitch, n, 3, 4), &p, .bytes = 3 * n));
	CHECK(D(w, cuMemFree_v2, (p), .pointer = p));
	CHECK(D_OUT(w, cuMemAllocHost_v2, (&host, n), &host, OUT));
	CHECK(D(w, cuMemFreeHost, (host), .pointer = U(host)));
	CHECK(D_OUT(w, cuMemHostAlloc, (&host, n, 0), &host, OUT));
	CHECK(D(w, cuMemFreeHost, (host), .pointer = U(host)));
}

static void allocs_runtime(struct worker *w, size_t n)
{
	void *p = NULL;
	size_t pitch;

	CHECK(R_OUT(w, cudaMalloc, (&p, n), &p, OUT));
	CHECK(R(w, cudaFree, (p), .pointer = U(p)));
	CHECK(R_OUT(w, cudaMallocAsync, (&p, n, w->stream), &p, OUT, ON));
	CHECK(R(w, cudaFreeAsync, (p, w->stream), .pointer = U(p), ON));
	CHECK(R_OUT(w, cudaMallocAsync_ptsz, (&p, n, w->stream), &p, OUT, ON));
	CHECK(R(w, cudaFreeAsync_ptsz, (p, w->stream), .pointer = U(p), ON));
	CHECK(R_OUT(w, cudaMallocManaged, (&p, n, 1), &p, OUT));
	CHECK(R(w, cudaFree, (p), .pointer = U(p)));
	CHECK(R_OUT(w, cudaMallocPitch, (&p, &pitch, n, 3), &p, .bytes = 3 * n));
	CHECK(R(w, cudaFree, (p), .pointer = U(p)));
	CHECK(R_OUT(w, cudaHostAlloc, (&p, n, 0), &p, OUT));
	CHECK(R(w, cudaFreeHost, (p), .pointer = U(p)));
}

void step_allocs(struct worker *w)
{
	size_t n = 100 + 4099 * (w->steps % 100);

	if (w->job->opt.runtime)
		allocs_runtime(w, n);
	else
		allocs_driver(w, n);
}
