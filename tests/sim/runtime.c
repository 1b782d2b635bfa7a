/* SPDX-License-Identifier: BSD-2-Clause */
/* Start-up, registered kernels and launches of the runtime stand-in. */
#include "runtime_core.h"

#include <stdlib.h>
#include <string.h>

#define STUBS 1024 /* a power of two */

struct fat_binary {
	void *image;
	CUlibrary _Atomic library;
};

/* A kernel that the program registered. Never removed, as the hash has no holes. */
struct stub {
	_Atomic rt_func host;
	struct fat_binary *binary;
	const char *device;
	CUkernel _Atomic kernel;
	uint32_t name;
};

struct rt_cupti rt_cupti;
static struct driver_table driver;
static pthread_once_t driver_once = PTHREAD_ONCE_INIT;
static bool driver_ready;
static CUcontext primary;
static truth_self_fn truth_of_caller;
static truth_name_fn name_of_caller;
static struct stub stubs[STUBS];
static pthread_mutex_t stub_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool thread_ready;

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
	const struct driver_table *drv_ = &driver;
	void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	int version;

	if (!handle) {
		fprintf(stderr, "sim: %s\n", dlerror());
		return;
	}
	*(void **)&rt_cupti.enter = dlsym(handle, "simRuntimeEnter");
	*(void **)&rt_cupti.leave = dlsym(handle, "simRuntimeLeave");
	if (table_driver(&driver, handle) || DRV(cuDriverGetVersion, (&version)) ||
	    DRV(cuInit, (0)))
		return;
	driver_ready = !DRV_OUT(cuDevicePrimaryCtxRetain, (&primary, 0), &primary);
}

const struct driver_table *rt_driver(void)
{
	const struct driver_table *drv_ = &driver;

	if (__builtin_expect(thread_ready, 1))
		return drv_;
	pthread_once(&driver_once, load_driver);
	if (!driver_ready)
		return NULL;
	thread_ready = !DRV(cuCtxSetCurrent, (primary), .pointer = (uintptr_t)primary);
	return thread_ready ? drv_ : NULL;
}

SIM_EXPORT void **__cudaRegisterFatBinary(void *image)
{
	struct fat_binary *b = calloc(1, sizeof(*b));

	if (b)
		b->image = image;
	return (void **)b;
}

SIM_EXPORT void __cudaRegisterFatBinaryEnd(void **handle)
{
	rt_truth();
}

SIM_EXPORT void __cudaUnregisterFatBinary(void **handle)
{
	struct fat_binary *b = (struct fat_binary *)handle;
	const struct driver_table *drv_ = rt_driver();
	CUlibrary library = b ? atomic_exchange(&b->library, NULL) : NULL;

	if (drv_ && library)
		DRV(cuLibraryUnload, (library), .pointer = (uintptr_t)library);
	for (unsigned i = 0; i < STUBS; i++)
		if (stubs[i].binary == b)
			atomic_store(&stubs[i].kernel, NULL);
}

static struct stub *find_stub(rt_func host)
{
	unsigned at = (unsigned)((uintptr_t)host * 0x9e3779b97f4a7c15ull >> 54);

	for (unsigned i = 0; i < STUBS; i++) {
		struct stub *s = &stubs[(at + i) % STUBS];
		rt_func its = atomic_load_explicit(&s->host, memory_order_acquire);

		if (its == host || !its)
			return s;
	}
	return NULL;
}

SIM_EXPORT void __cudaRegisterFunction(void **handle, const char *host, char *device,
				       const char *name, int threads, void *tid, void *bid,
				       void *block, void *grid, int *warp)
{
	struct stub *s;

	pthread_mutex_lock(&stub_lock);
	s = find_stub(host);
	if (s) {
		s->binary = (struct fat_binary *)handle;
		s->device = name;
		s->name = name_of_caller ? name_of_caller(name, (uint32_t)strlen(name)) : 0;
		atomic_store_explicit(&s->host, host, memory_order_release);
	}
	pthread_mutex_unlock(&stub_lock);
}

static CUkernel load_kernel(struct stub *s, const struct driver_table *drv_)
{
	CUlibrary library;
	CUkernel kernel;

	pthread_mutex_lock(&stub_lock);
	library = atomic_load(&s->binary->library);
	kernel = atomic_load(&s->kernel);
	if (!library && !DRV_OUT(cuLibraryLoadData,
				 (&library, s->binary->image, NULL, NULL, 0, NULL, NULL, 0),
				 &library))
		atomic_store(&s->binary->library, library);
	if (library && !kernel &&
	    !DRV_OUT(cuLibraryGetKernel, (&kernel, library, s->device), &kernel,
		     .source = (uintptr_t)library, .name = s->name))
		atomic_store(&s->kernel, kernel);
	pthread_mutex_unlock(&stub_lock);
	return kernel;
}

struct sim_func *rt_kernel(rt_func host, uint32_t *name)
{
	struct stub *s = find_stub(host);
	CUkernel kernel;

	if (!host || !s || !atomic_load_explicit(&s->host, memory_order_relaxed))
		return NULL;
	*name = s->name;
	kernel = atomic_load_explicit(&s->kernel, memory_order_acquire);
	return kernel ? kernel : load_kernel(s, &driver);
}

#define LAUNCH_ARGS                                                                                \
	.func = (uintptr_t)k, .stream = (uintptr_t)stream, .grid = { grid.x, grid.y, grid.z },     \
	.block = { block.x, block.y, block.z }, .smem = (uint32_t)smem, .name = name

#define RT_LAUNCH(api, driver_api, ...)                                                            \
	SIM_EXPORT cudaError_t api(rt_func f, dim3 grid, dim3 block, void **args, size_t smem,     \
				   cudaStream_t stream)                                            \
	{                                                                                          \
		const struct driver_table *drv_ = rt_driver();                                     \
		struct sim_func *k;                                                                \
		uint32_t name = 0;                                                                 \
		if (!drv_)                                                                         \
			return RT_NO_DRIVER;                                                       \
		RT_ENTER();                                                                        \
		k = rt_kernel(f, &name);                                                           \
		if (!k)                                                                            \
			RT_RETURN(RT_NO_FUNCTION);                                                 \
		RT_RETURN(DRV(driver_api,                                                          \
			      (k, grid.x, grid.y, grid.z, block.x, block.y, block.z,               \
			       (unsigned)smem, stream, args __VA_ARGS__),                          \
			      LAUNCH_ARGS));                                                       \
	}
RT_LAUNCH(cudaLaunchKernel, cuLaunchKernel, , NULL)
RT_LAUNCH(cudaLaunchKernel_ptsz, cuLaunchKernel_ptsz, , NULL)
RT_LAUNCH(cudaLaunchCooperativeKernel, cuLaunchCooperativeKernel)
RT_LAUNCH(cudaLaunchCooperativeKernel_ptsz, cuLaunchCooperativeKernel_ptsz)

static struct cu_launch_config driver_config(const struct cuda_launch_config *c)
{
	return (struct cu_launch_config){
		.grid = { c->grid.x, c->grid.y, c->grid.z },
		.block = { c->block.x, c->block.y, c->block.z },
		.smem = (unsigned)c->smem,
		.stream = c->stream,
		.attrs = c->attrs,
		.attr_count = c->attr_count,
	};
}

#define RT_LAUNCH_EX(api, driver_api)                                                              \
	SIM_EXPORT cudaError_t api(const struct cuda_launch_config *config, rt_func f,             \
				   void **args)                                                    \
	{                                                                                          \
		const struct driver_table *drv_ = rt_driver();                                     \
		struct cu_launch_config c = driver_config(config);                                 \
		dim3 grid = config->grid, block = config->block;                                   \
		cudaStream_t stream = config->stream;                                              \
		size_t smem = config->smem;                                                        \
		struct sim_func *k;                                                                \
		uint32_t name = 0;                                                                 \
		if (!drv_)                                                                         \
			return RT_NO_DRIVER;                                                       \
		RT_ENTER();                                                                        \
		k = rt_kernel(f, &name);                                                           \
		if (!k)                                                                            \
			RT_RETURN(RT_NO_FUNCTION);                                                 \
		RT_RETURN(DRV(driver_api, (&c, k, args, NULL), LAUNCH_ARGS));                      \
	}
RT_LAUNCH_EX(cudaLaunchKernelExC, cuLaunchKernelEx)
RT_LAUNCH_EX(cudaLaunchKernelExC_ptsz, cuLaunchKernelEx_ptsz)

RT(cudaLaunchHostFunc, (cudaStream_t stream, CUhostFn fn, void *user),
   DRV(cuLaunchHostFunc, (stream, fn, user), .stream = (uintptr_t)stream))
RT(cudaLaunchHostFunc_ptsz, (cudaStream_t stream, CUhostFn fn, void *user),
   DRV(cuLaunchHostFunc_ptsz, (stream, fn, user), .stream = (uintptr_t)stream))

static cudaError_t occupancy(const struct driver_table *drv_, int *blocks, rt_func f, int block,
			     size_t smem, unsigned flags)
{
	uint32_t name = 0;
	struct sim_func *k = rt_kernel(f, &name);

	if (!k)
		return RT_NO_FUNCTION;
	return DRV(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
		   (blocks, k, block, smem, flags), .func = (uintptr_t)k, .name = name);
}

RT(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
   (int *blocks, rt_func f, int block, size_t smem, unsigned flags),
   occupancy(drv_, blocks, f, block, smem, flags))
RT(cudaOccupancyMaxActiveBlocksPerMultiprocessor, (int *blocks, rt_func f, int block, size_t smem),
   occupancy(drv_, blocks, f, block, smem, 0))

/* As in CUDA 13, what the compiler calls for <<<>>> jumps to the public function's entry. */
__asm__(".text\n"
	".globl __cudaLaunchKernel\n.type __cudaLaunchKernel, @function\n"
	"__cudaLaunchKernel:\n\tjmp cudaLaunchKernel@PLT\n"
	".size __cudaLaunchKernel, . - __cudaLaunchKernel\n"
	".globl __cudaLaunchKernel_ptsz\n.type __cudaLaunchKernel_ptsz, @function\n"
	"__cudaLaunchKernel_ptsz:\n\tjmp cudaLaunchKernel_ptsz@PLT\n"
	".size __cudaLaunchKernel_ptsz, . - __cudaLaunchKernel_ptsz\n");
