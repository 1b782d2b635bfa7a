/* SPDX-License-Identifier: BSD-2-Clause */
/* Initialisation, devices and contexts. The device is like an H200. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

#define TOTAL_MEMORY 150109880320ull
#define INVALID_DEVICE 101

/* CUdevice_attribute and its value. */
static const int attributes[][2] = {
	{ 1, 1024 },	     /* threads of a block */
	{ 2, 1024 },	     /* block, x */
	{ 3, 1024 },	     /* block, y */
	{ 4, 64 },	     /* block, z */
	{ 5, 2147483647 },   /* grid, x */
	{ 6, 65535 },	     /* grid, y */
	{ 7, 65535 },	     /* grid, z */
	{ 8, 49152 },	     /* shared memory of a block */
	{ 9, 65536 },	     /* constant memory */
	{ 10, 32 },	     /* threads of a warp */
	{ 12, 65536 },	     /* registers of a block */
	{ 13, 1980000 },     /* clock, kHz */
	{ 16, 132 },	     /* multiprocessors */
	{ 33, 0x8d },	     /* PCI bus */
	{ 34, 0 },	     /* PCI device */
	{ 36, 3201000 },     /* memory's clock, kHz */
	{ 37, 6144 },	     /* bits of its bus */
	{ 38, 62914560 },    /* L2 */
	{ 39, 2048 },	     /* threads of a multiprocessor */
	{ 40, 3 },	     /* copy engines */
	{ 50, 0 },	     /* PCI domain */
	{ 75, 9 },	     /* compute capability */
	{ 76, 0 },
	{ 81, 233472 },	     /* shared memory of a multiprocessor */
	{ 82, 65536 },	     /* registers of a multiprocessor */
	{ 97, 232448 },	     /* shared memory of a block that asks for more */
	{ 106, 32 },	     /* blocks of a multiprocessor */
	{ 111, 1024 },	     /* shared memory of a block that the system takes */
};

static bool is_device(CUdevice device)
{
	return device >= 0 && device < sim_settings.devices;
}

/* Once a process; the library may call CUDA, cuInit too. */
static void inject(void)
{
	static atomic_flag before = ATOMIC_FLAG_INIT;
	const char *path = getenv("CUDA_INJECTION64_PATH");
	int (*initialize)(void);
	void *library;

	if (!path || !*path || atomic_flag_test_and_set(&before))
		return;
	library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	if (!library)
		return;
	*(void **)&initialize = dlsym(library, "InitializeInjection");
	if (initialize)
		initialize();
}

SIM_EXPORT CUresult cuInit(unsigned flags)
{
	SIM_CALL();
	if (!flags)
		inject();
	SIM_RETURN(flags ? SIM_INVALID_VALUE : SIM_SUCCESS);
}

SIM_EXPORT CUresult cuDriverGetVersion(int *version)
{
	SIM_CALL();
	*version = 13000;
	SIM_RETURN(SIM_SUCCESS);
}

SIM_EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	SIM_CALL();
	*device = ordinal;
	SIM_RETURN(is_device(ordinal) ? SIM_SUCCESS : INVALID_DEVICE);
}

SIM_EXPORT CUresult cuDeviceGetCount(int *count)
{
	SIM_CALL();
	*count = sim_settings.devices;
	SIM_RETURN(SIM_SUCCESS);
}

SIM_EXPORT CUresult cuDeviceGetName(char *name, int len, CUdevice device)
{
	SIM_CALL();
	if (!is_device(device) || len <= 0)
		SIM_RETURN(INVALID_DEVICE);
	snprintf(name, (size_t)len, "Simulated H200");
	SIM_RETURN(SIM_SUCCESS);
}

SIM_EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
	SIM_CALL();
	*value = 1;
	for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++)
		if (attributes[i][0] == attribute)
			*value = attributes[i][1];
	if (attribute == 33)
		*value += device;
	SIM_RETURN(is_device(device) ? SIM_SUCCESS : INVALID_DEVICE);
}

SIM_EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	SIM_CALL();
	*bytes = TOTAL_MEMORY;
	SIM_RETURN(is_device(device) ? SIM_SUCCESS : INVALID_DEVICE);
}

static CUresult uuid_of(unsigned char *uuid, CUdevice device)
{
	for (unsigned i = 0; i < 16; i++)
		uuid[i] = (unsigned char)(0x51 + 7 * i + (unsigned)device);
	return is_device(device) ? SIM_SUCCESS : INVALID_DEVICE;
}

SIM_EXPORT CUresult cuDeviceGetUuid(unsigned char *uuid, CUdevice device)
{
	SIM_CALL();
	SIM_RETURN(uuid_of(uuid, device));
}

SIM_EXPORT CUresult cuDeviceGetUuid_v2(unsigned char *uuid, CUdevice device)
{
	SIM_CALL();
	SIM_RETURN(uuid_of(uuid, device));
}

SIM_EXPORT CUresult cuDeviceGetPCIBusId(char *id, int len, CUdevice device)
{
	SIM_CALL();
	if (!is_device(device) || len <= 0)
		SIM_RETURN(INVALID_DEVICE);
	snprintf(id, (size_t)len, "0000:%02x:00.0", 0x8du + (unsigned)device);
	SIM_RETURN(SIM_SUCCESS);
}

SIM_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice device)
{
	SIM_CALL();
	if (!is_device(device))
		SIM_RETURN(INVALID_DEVICE);
	*ctx = sim_context_primary(device);
	SIM_RETURN(SIM_SUCCESS);
}

SIM_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	SIM_CALL();
	SIM_RETURN(SIM_SUCCESS);
}

SIM_EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	SIM_CALL();
	if (!is_device(device))
		SIM_RETURN(INVALID_DEVICE);
	sim_context_reset(sim_context_primary(device));
	SIM_RETURN(SIM_SUCCESS);
}

SIM_EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
	SIM_CALL();
	*flags = 0;
	*active = 1;
	SIM_RETURN(SIM_SUCCESS);
}

static CUresult ctx_create(CUcontext *ctx, CUdevice device)
{
	*ctx = is_device(device) ? sim_context_new(device) : NULL;
	if (!*ctx)
		return is_device(device) ? SIM_OUT_OF_MEMORY : INVALID_DEVICE;
	sim_context_set(*ctx);
	return SIM_SUCCESS;
}

SIM_EXPORT CUresult cuCtxCreate_v4(CUcontext *ctx, void *params, unsigned flags, CUdevice device)
{
	SIM_CALL();
	SIM_RETURN(ctx_create(ctx, device));
}

SIM_EXPORT CUresult cuCtxCreate_v2(CUcontext *ctx, unsigned flags, CUdevice device)
{
	SIM_CALL();
	SIM_RETURN(ctx_create(ctx, device));
}

SIM_EXPORT CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	SIM_CALL();
	if (!ctx)
		SIM_RETURN(SIM_INVALID_VALUE);
	sim_context_reset(ctx);
	if (sim_context() == ctx)
		sim_context_set(NULL);
	if (ctx != sim_context_primary(ctx->device))
		free(ctx);
	SIM_RETURN(SIM_SUCCESS);
}

SIM_EXPORT CUresult cuCtxGetCurrent(CUcontext *ctx)
{
	SIM_CALL();
	*ctx = sim_context();
	SIM_RETURN(SIM_SUCCESS);
}

SIM_EXPORT CUresult cuCtxSetCurrent(CUcontext ctx)
{
	SIM_CALL();
	sim_context_set(ctx);
	SIM_RETURN(SIM_SUCCESS);
}

SIM_EXPORT CUresult cuCtxGetDevice(CUdevice *device)
{
	SIM_CALL();
	*device = sim_context()->device;
	SIM_RETURN(SIM_SUCCESS);
}

static CUresult ctx_synchronize(void)
{
	sim_wait(sim_device_end(sim_context()->device));
	return SIM_SUCCESS;
}

SIM_EXPORT CUresult cuCtxSynchronize(void)
{
	SIM_CALL();
	SIM_RETURN(ctx_synchronize());
}

SIM_EXPORT CUresult cuCtxSynchronize_v2(CUcontext ctx)
{
	SIM_CALL();
	SIM_RETURN(ctx_synchronize());
}
