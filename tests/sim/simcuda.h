/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of CUDA's C ABI that the stand-ins and the jobs share: handles are
 * opaque pointers, structs have the sizes and offsets that programs built
 * with the real headers pass.
 */
#ifndef SIMCUDA_H
#define SIMCUDA_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef int cudaError_t;
typedef int ncclResult_t;
typedef unsigned long long CUdeviceptr;
typedef struct sim_context *CUcontext;
typedef struct sim_stream *CUstream;
typedef struct sim_stream *cudaStream_t;
typedef struct sim_event *CUevent;
typedef struct sim_event *cudaEvent_t;
typedef struct sim_module *CUmodule;
typedef struct sim_module *CUlibrary;
typedef struct sim_func *CUfunction;
typedef struct sim_func *CUkernel;
typedef struct sim_graph *CUgraph;
typedef struct sim_graph *cudaGraph_t;
typedef struct sim_graph *CUgraphExec;
typedef struct sim_graph *cudaGraphExec_t;
typedef struct sim_node *CUgraphNode;
typedef struct sim_pool *CUmemoryPool;
typedef struct sim_comm *ncclComm_t;
typedef void (*CUhostFn)(void *user);
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void *user);

enum sim_result {
	SIM_SUCCESS = 0,
	SIM_INVALID_VALUE = 1,
	SIM_OUT_OF_MEMORY = 2,
	SIM_NOT_INITIALIZED = 3,
	SIM_NO_BINARY = 209,
	SIM_INVALID_HANDLE = 400,
	SIM_NOT_FOUND = 500,
	SIM_NOT_READY = 600,
	SIM_NOT_SUPPORTED = 801,
};

#define SIM_STREAM_LEGACY ((CUstream)(uintptr_t)1)
#define SIM_STREAM_PER_THREAD ((CUstream)(uintptr_t)2)

typedef struct {
	unsigned x, y, z;
} dim3;

/* CUlaunchConfig */
struct cu_launch_config {
	unsigned grid[3], block[3], smem;
	CUstream stream;
	void *attrs;
	unsigned attr_count;
};

/* cudaLaunchConfig_t */
struct cuda_launch_config {
	dim3 grid, block;
	size_t smem;
	cudaStream_t stream;
	void *attrs;
	unsigned attr_count;
};

enum cu_memory_type { CU_HOST = 1, CU_DEVICE = 2, CU_ARRAY = 3, CU_UNIFIED = 4 };

struct cu_plane {
	size_t x, y;
	unsigned type;
	void *host;
	CUdeviceptr device;
	void *array;
	size_t pitch;
};

/* CUDA_MEMCPY2D */
struct cu_copy2d {
	struct cu_plane src, dst;
	size_t width, height;
};

struct cu_box {
	size_t x, y, z, lod;
	unsigned type;
	void *host;
	CUdeviceptr device;
	void *array, *reserved;
	size_t pitch, height;
};

/* CUDA_MEMCPY3D */
struct cu_copy3d {
	struct cu_box src, dst;
	size_t width, height, depth;
};

struct cuda_pitched {
	void *ptr;
	size_t pitch, xsize, ysize;
};

/* cudaMemcpy3DParms */
struct cuda_copy3d {
	void *src_array;
	size_t src_pos[3];
	struct cuda_pitched src;
	void *dst_array;
	size_t dst_pos[3];
	struct cuda_pitched dst;
	size_t extent[3];
	int kind;
};

/* CUDA_KERNEL_NODE_PARAMS_v2 */
struct cu_kernel_node {
	CUfunction func;
	unsigned grid[3], block[3], smem;
	void **params, **extra;
	CUkernel kernel;
	CUcontext ctx;
};

_Static_assert(offsetof(struct cu_launch_config, stream) == 32, "CUlaunchConfig");
_Static_assert(offsetof(struct cuda_launch_config, stream) == 32, "cudaLaunchConfig_t");
_Static_assert(sizeof(struct cu_copy2d) == 128, "CUDA_MEMCPY2D");
_Static_assert(sizeof(struct cu_copy3d) == 200, "CUDA_MEMCPY3D");
_Static_assert(sizeof(struct cuda_copy3d) == 160, "cudaMemcpy3DParms");

/* cudaMemcpyKind */
enum cuda_kind { KIND_HTOH = 0, KIND_HTOD = 1, KIND_DTOH = 2, KIND_DTOD = 3, KIND_DEFAULT = 4 };

/*
 * What cuModuleLoadData and cuLibraryLoadData take in place of a fat binary:
 * a count and that many kernels. A launch runs for duration_ns; where its
 * first parameter is a device pointer that is not 0, the word there becomes
 * word * SIM_MIX + grid, block and shared memory, so that a job's output
 * shows that every launch arrived, in order, with its arguments.
 */
#define SIM_IMAGE_MAGIC 0x314741494d4953ull
#define SIM_MIX 6364136223846793005ull

struct sim_kernel {
	const char *name; /* NUL-terminated; copied by the driver */
	uint64_t duration_ns;
};

struct sim_image {
	uint64_t magic;
	uint64_t count;
	const struct sim_kernel *kernels;
};

/* The word that a launch adds; the same in the device and in the jobs' own check. */
static inline uint64_t sim_launch_word(const unsigned grid[3], const unsigned block[3],
				       unsigned smem)
{
	uint64_t h = grid[0] + 3ull * grid[1] + 5ull * grid[2];

	return h * 31 + block[0] + 7ull * block[1] + 11ull * block[2] + 13ull * smem;
}

#endif
