/* SPDX-License-Identifier: BSD-2-Clause */
/* NCCL stand-in: each collective is one kernel, launched through the driver. */
#include <stdlib.h>
#include <string.h>

#include "runtime_core.h"

#define NCCL_UNHANDLED_CUDA 1
#define NCCL_INVALID 4

enum { ALL_REDUCE, BROADCAST, REDUCE, ALL_GATHER, REDUCE_SCATTER, SEND_RECV, KERNELS };

static const struct sim_kernel kernels[KERNELS] = {
	{ "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE", 9000 },
	{ "_Z31ncclDevKernel_Broadcast_RING_LL24ncclDevKernelArgsStorageILm4096EE", 7000 },
	{ "_Z36ncclDevKernel_Reduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE", 7000 },
	{ "_Z31ncclDevKernel_AllGather_RING_LL24ncclDevKernelArgsStorageILm4096EE", 8000 },
	{ "_Z43ncclDevKernel_ReduceScatter_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE",
	  8000 },
	{ "_Z22ncclDevKernel_SendRecv24ncclDevKernelArgsStorageILm4096EE", 5000 },
};

struct sim_comm {
	CUlibrary library;
	CUkernel kernel[KERNELS];
	uint32_t name[KERNELS];
	int ranks, rank;
};

static struct driver_table driver;
static pthread_once_t driver_once = PTHREAD_ONCE_INIT;
static bool driver_ready;
static truth_self_fn truth_of_caller;
static truth_name_fn name_of_caller;

SIM_EXPORT void simTruthAttach(truth_self_fn self, truth_name_fn name)
{
	truth_of_caller = self;
	name_of_caller = name;
}

struct truth_thread *rt_truth(void)
{
	return truth_of_caller ? truth_of_caller() : NULL;
}

static void load_driver(void)
{
	void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);

	driver_ready = handle && !table_driver(&driver, handle);
}

const struct driver_table *rt_driver(void)
{
	pthread_once(&driver_once, load_driver);
	return driver_ready ? &driver : NULL;
}

SIM_EXPORT ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank)
{
	const struct driver_table *drv_ = rt_driver();
	struct sim_image image = { SIM_IMAGE_MAGIC, KERNELS, kernels };
	struct sim_comm *c = calloc(1, sizeof(*c));
	int err;

	*comm = c;
	if (!c || !drv_)
		return NCCL_UNHANDLED_CUDA;
	c->ranks = ranks;
	c->rank = rank;
	err = DRV_OUT(cuLibraryLoadData, (&c->library, &image, NULL, NULL, 0, NULL, NULL, 0),
		      &c->library);
	for (int i = 0; !err && i < KERNELS; i++) {
		const char *name = kernels[i].name;

		if (name_of_caller)
			c->name[i] = name_of_caller(name, (uint32_t)strlen(name));
		err = DRV_OUT(cuLibraryGetKernel, (&c->kernel[i], c->library, name), &c->kernel[i],
			      .source = (uintptr_t)c->library, .name = c->name[i]);
	}
	return err ? NCCL_UNHANDLED_CUDA : 0;
}

static ncclResult_t comm_free(ncclComm_t comm)
{
	const struct driver_table *drv_ = &driver;

	if (!comm)
		return NCCL_INVALID;
	DRV(cuLibraryUnload, (comm->library), .pointer = (uintptr_t)comm->library);
	free(comm);
	return 0;
}

SIM_EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
	return comm_free(comm);
}

SIM_EXPORT ncclResult_t ncclCommAbort(ncclComm_t comm)
{
	return comm_free(comm);
}

static ncclResult_t launch(ncclComm_t comm, int which, cudaStream_t stream)
{
	const struct driver_table *drv_ = &driver;
	struct cu_launch_config c = { .grid = { 4, 1, 1 }, .block = { 512, 1, 1 }, .smem = 82240,
				      .stream = stream };
	uint64_t none = 0;
	void *params[] = { &none };
	int err;

	if (!comm)
		return NCCL_INVALID;
	err = DRV(cuLaunchKernelEx, (&c, comm->kernel[which], params, NULL),
		  .func = (uintptr_t)comm->kernel[which], .stream = (uintptr_t)stream,
		  .grid = { 4, 1, 1 }, .block = { 512, 1, 1 }, .smem = c.smem,
		  .name = comm->name[which]);
	return err ? NCCL_UNHANDLED_CUDA : 0;
}

SIM_EXPORT ncclResult_t ncclAllReduce(const void *send, void *recv, size_t count, int type, int op,
				      ncclComm_t comm, cudaStream_t stream)
{
	return launch(comm, ALL_REDUCE, stream);
}

SIM_EXPORT ncclResult_t ncclBroadcast(const void *send, void *recv, size_t count, int type,
				      int root, ncclComm_t comm, cudaStream_t stream)
{
	return launch(comm, BROADCAST, stream);
}

SIM_EXPORT ncclResult_t ncclReduce(const void *send, void *recv, size_t count, int type, int op,
				   int root, ncclComm_t comm, cudaStream_t stream)
{
	return launch(comm, REDUCE, stream);
}

SIM_EXPORT ncclResult_t ncclAllGather(const void *send, void *recv, size_t count, int type,
				      ncclComm_t comm, cudaStream_t stream)
{
	return launch(comm, ALL_GATHER, stream);
}

SIM_EXPORT ncclResult_t ncclReduceScatter(const void *send, void *recv, size_t count, int type,
					  int op, ncclComm_t comm, cudaStream_t stream)
{
	return launch(comm, REDUCE_SCATTER, stream);
}

SIM_EXPORT ncclResult_t ncclSend(const void *send, size_t count, int type, int peer,
				 ncclComm_t comm, cudaStream_t stream)
{
	return launch(comm, SEND_RECV, stream);
}

SIM_EXPORT ncclResult_t ncclRecv(void *recv, size_t count, int type, int peer, ncclComm_t comm,
				 cudaStream_t stream)
{
	return launch(comm, SEND_RECV, stream);
}

SIM_EXPORT ncclResult_t ncclGroupStart(void)
{
	return rt_driver() ? 0 : NCCL_UNHANDLED_CUDA;
}

SIM_EXPORT ncclResult_t ncclGroupEnd(void)
{
	return rt_driver() ? 0 : NCCL_UNHANDLED_CUDA;
}
