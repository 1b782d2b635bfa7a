/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the libraries export and the catalogue leaves out on purpose. A test
 * compares both lists with the libraries' exports, so that none is forgotten.
 *
 * A pattern names one function and its twins (_v2, _v3, _ptsz, _ptds); one
 * that ends with "*" names every function that begins so.
 */
#include <string.h>

#include "probe/catalogue_table.h"

struct group {
	const char *reason;
	const char *const *patterns; /* ends with NULL */
};

static const char *const frequent[] = {
	"cuCtxGetCurrent", "cuCtxGetDevice", "cuDevicePrimaryCtxGetState",
	"cuPointerGetAttribute", "cuPointerGetAttributes", "cuStreamIsCapturing",
	"cuStreamGetCaptureInfo", "cuDeviceGet", "cuDeviceGetAttribute",
	"cudaGetDevice", "cudaGetLastError", "cudaPeekAtLastError",
	"cudaPointerGetAttributes", "cudaStreamIsCapturing", "cudaStreamGetCaptureInfo",
	"cudaDeviceGetAttribute", NULL,
};

static const char *const properties[] = {
	"cuArray3DGetDescriptor", "cuArrayGet*", "cuCtxGetApiVersion", "cuCtxGetCacheConfig",
	"cuCtxGetDevResource", "cuCtxGetExecAffinity", "cuCtxGetFlags", "cuCtxGetId",
	"cuCtxGetLimit", "cuCtxGetSharedMemConfig", "cuCtxGetStreamPriorityRange",
	"cuDevResource*", "cuDevSmResource*", "cuDeviceCanAccessPeer", "cuDeviceComputeCapability",
	"cuDeviceGetByPCIBusId", "cuDeviceGetCount", "cuDeviceGetDefaultMemPool",
	"cuDeviceGetDevResource", "cuDeviceGetExecAffinitySupport", "cuDeviceGetGraphMemAttribute",
	"cuDeviceGetHostAtomicCapabilities", "cuDeviceGetLuid", "cuDeviceGetMemPool",
	"cuDeviceGetName", "cuDeviceGetNvSciSyncAttributes", "cuDeviceGetP2P*",
	"cuDeviceGetPCIBusId", "cuDeviceGetProperties", "cuDeviceGetTexture1DLinearMaxWidth",
	"cuDeviceGetUuid", "cuDeviceTotalMem", "cuDriverGetVersion", "cuFuncGetAttribute",
	"cuFuncGetParamInfo", "cuFuncIsLoaded", "cuGreenCtxGet*", "cuKernelGetAttribute",
	"cuKernelGetParamInfo", "cuLibraryGetKernelCount", "cuMemGetAccess",
	"cuMemGetAddressRange", "cuMemGetAllocation*", "cuMemGetAttribute",
	"cuMemGetDefaultMemPool", "cuMemGetHandleForAddressRange", "cuMemGetMemPool",
	"cuMemHostGet*", "cuMemPoolGet*", "cuMemRangeGet*", "cuMipmappedArrayGet*",
	"cuModuleGetFunctionCount", "cuModuleGetLoadingMode", "cuMulticastGetGranularity",
	"cuStreamGetAttribute", "cuStreamGetCtx", "cuStreamGetDevice", "cuStreamGetFlags",
	"cuStreamGetGreenCtx", "cuStreamGetId", "cuStreamGetPriority", "cudaArrayGet*",
	"cudaChooseDevice", "cudaCreateChannelDesc", "cudaDeviceCanAccessPeer",
	"cudaDeviceGetByPCIBusId", "cudaDeviceGetCacheConfig", "cudaDeviceGetDefaultMemPool",
	"cudaDeviceGetGraphMemAttribute", "cudaDeviceGetHostAtomicCapabilities",
	"cudaDeviceGetLimit", "cudaDeviceGetMemPool", "cudaDeviceGetNvSciSyncAttributes",
	"cudaDeviceGetP2P*", "cudaDeviceGetPCIBusId", "cudaDeviceGetSharedMemConfig",
	"cudaDeviceGetStreamPriorityRange", "cudaDeviceGetTexture1DLinearMaxWidth",
	"cudaDriverGetVersion", "cudaFuncGetParamInfo", "cudaGetChannelDesc",
	"cudaGetDeviceCount", "cudaGetDeviceFlags", "cudaGetDeviceProperties",
	"cudaGetMipmappedArrayLevel", "cudaGetSymbolSize", "cudaHostGet*",
	"cudaLibraryGetKernelCount", "cudaMemGetDefaultMemPool", "cudaMemGetMemPool",
	"cudaMemPoolGet*", "cudaMemRangeGet*", "cudaMipmappedArrayGet*",
	"cudaRuntimeGetVersion", "cudaStreamGetAttribute", "cudaStreamGetDevice",
	"cudaStreamGetFlags", "cudaStreamGetId", "cudaStreamGetPriority", "ncclCommCount",
	"ncclCommCuDevice", "ncclCommGetAsyncError", "ncclCommUserRank", "ncclGetVersion", NULL,
};

static const char *const graph_inspection[] = {
	"cuGraphBatchMemOpNodeGetParams", "cuGraphChildGraphNodeGetGraph",
	"cuGraphEventRecordNodeGetEvent", "cuGraphEventWaitNodeGetEvent", "cuGraphExecGetFlags",
	"cuGraphExternalSemaphoresSignalNodeGetParams",
	"cuGraphExternalSemaphoresWaitNodeGetParams", "cuGraphGet*", "cuGraphHostNodeGetParams",
	"cuGraphKernelNodeGet*", "cuGraphMemAllocNodeGetParams", "cuGraphMemFreeNodeGetParams",
	"cuGraphMemcpyNodeGetParams", "cuGraphMemsetNodeGetParams", "cuGraphNodeFindInClone",
	"cuGraphNodeGet*", "cudaGraphChildGraphNodeGetGraph", "cudaGraphEventRecordNodeGetEvent",
	"cudaGraphEventWaitNodeGetEvent", "cudaGraphExecGetFlags",
	"cudaGraphExternalSemaphoresSignalNodeGetParams",
	"cudaGraphExternalSemaphoresWaitNodeGetParams", "cudaGraphGet*",
	"cudaGraphHostNodeGetParams", "cudaGraphKernelNodeGet*", "cudaGraphMemAllocNodeGetParams",
	"cudaGraphMemFreeNodeGetParams", "cudaGraphMemcpyNodeGetParams",
	"cudaGraphMemsetNodeGetParams", "cudaGraphNodeFindInClone", "cudaGraphNodeGet*", NULL,
};

static const char *const textures[] = {
	"cuTexRef*", "cuTexObject*", "cuSurfRef*", "cuSurfObject*", "cuModuleGetTexRef",
	"cuModuleGetSurfRef", "cuParamSetTexRef", "cudaCreateSurfaceObject",
	"cudaCreateTextureObject", "cudaDestroySurfaceObject", "cudaDestroyTextureObject",
	"cudaGetSurface*", "cudaGetTexture*", "cudaBindTexture*", "cudaBindSurface*",
	"cudaUnbindTexture", NULL,
};

static const char *const interop[] = {
	"cuGL*", "cuEGL*", "cuVDPAU*", "cuGraphics*", "cudaGL*", "cudaEGL*", "cudaVDPAU*",
	"cudaGraphics*", "cudaEventCreateFromEGLSync", NULL,
};

static const char *const legacy_launch[] = {
	"cuFuncSetBlockShape", "cuFuncSetSharedSize", "cuParamSetSize", "cuParamSetf",
	"cuParamSeti", "cuParamSetv", "cudaConfigureCall", "cudaSetupArgument", NULL,
};

static const char *const compiler[] = {
	"__cudaGetKernel", "__cudaInitModule", "__cudaPopCallConfiguration",
	"__cudaPushCallConfiguration", "__cudaRegister*", "__cudaUnregisterFatBinary", NULL,
};

static const char *const jumps[] = {"__cudaLaunchKernel", NULL};

static const char *const tables[] = {
	"cuGetExportTable", "cudaGetExportTable", "__cudaGetProcAddress", NULL,
};

static const char *const texts[] = {
	"cuGetErrorName", "cuGetErrorString", "cudaGetErrorName", "cudaGetErrorString",
	"ncclGetErrorString", "ncclGetLastError", NULL,
};

static const char *const debugging[] = {
	"cudbg*", "cuCoredump*", "cuLogs*", "cudaLogs*", "cuProfilerInitialize",
	"cudaProfilerInitialize", "cuCheckpointProcessGet*", "ncclResetDebugInit*",
	"cuDeviceRegisterAsyncNotification", "cuDeviceUnregisterAsyncNotification",
	"cudaDeviceRegisterAsyncNotification", "cudaDeviceUnregisterAsyncNotification", NULL,
};

static const char *const nccl_aliases[] = {"pnccl*", NULL};

static const char *const nccl_setup[] = {
	"ncclRedOp*", "ncclGroupSimulateEnd", "ncclDevComm*", "ncclTeam*", "ncclLsa*", "ncclGin*",
	"ncclLLA2A*", NULL,
};

static const struct group groups[] = {
	{"called thousands of times a step by frameworks, and only reads a variable", frequent},
	{"only reads a property", properties},
	{"only looks into a graph", graph_inspection},
	{"texture and surface set-up, which starts no work", textures},
	{"graphics interoperation: no compute job depends on its time", interop},
	{"one step in preparing a launch of the oldest kind; the launch is probed", legacy_launch},
	{"generated by the compiler around a call that is probed", compiler},
	{"jumps to the entry of cudaLaunchKernel, where the probe fires", jumps},
	{"hands out tables of functions, and does nothing on the GPU", tables},
	{"only turns a result into text", texts},
	{"for debuggers, logs and notifications", debugging},
	{"second name of an nccl function at the same address", nccl_aliases},
	{"prepares or simulates a collective, and starts no work", nccl_setup},
};

/* Length of name without its ABI suffixes. */
static size_t stem_length(const char *name)
{
	size_t len = strlen(name);

	if (len > 5 && (!strcmp(name + len - 5, "_ptsz") || !strcmp(name + len - 5, "_ptds")))
		len -= 5;
	if (len > 3 && name[len - 3] == '_' && name[len - 2] == 'v' && name[len - 1] >= '2' &&
	    name[len - 1] <= '9')
		len -= 3;
	return len;
}

static bool matches(const char *pattern, const char *name, size_t stem)
{
	size_t len = strlen(pattern);

	if (pattern[len - 1] == '*')
		return !strncmp(name, pattern, len - 1);
	return (len == stem && !strncmp(name, pattern, len)) || !strcmp(name, pattern);
}

const char *catalogue_excluded(const char *name)
{
	size_t stem;

	if (!name)
		return NULL;
	stem = stem_length(name);
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		for (const char *const *p = groups[i].patterns; *p; p++)
			if (matches(*p, name, stem))
				return groups[i].reason;
	return NULL;
}
