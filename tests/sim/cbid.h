/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CUPTI's callback ids (cupti_driver_cbid.h, cupti_runtime_cbid.h) of the functions that have a
 * behaviour here.
 */
#ifndef SIM_CBID_H
#define SIM_CBID_H

/* clang-format off */
#define SIM_CBIDS(C) \
	C(cuInit, 1) C(cuDriverGetVersion, 2) C(cuDeviceGet, 3) C(cuDeviceGetCount, 4) \
	C(cuDeviceGetName, 5) C(cuDeviceGetAttribute, 9) C(cuCtxGetDevice, 16) \
	C(cuCtxSynchronize, 17) C(cuModuleLoadData, 19) C(cuModuleLoadDataEx, 20) \
	C(cuModuleLoadFatBinary, 21) C(cuModuleUnload, 22) C(cuModuleGetFunction, 23) \
	C(cuMemFreeHost, 38) C(cuMemHostAlloc, 39) C(cuFuncGetAttribute, 85) \
	C(cuEventCreate, 118) C(cuEventRecord, 119) C(cuEventQuery, 120) \
	C(cuEventSynchronize, 121) C(cuEventElapsedTime, 123) C(cuStreamCreate, 124) \
	C(cuStreamQuery, 125) C(cuStreamSynchronize, 126) C(cuMemsetD8Async, 216) \
	C(cuMemsetD16Async, 218) C(cuMemsetD32Async, 220) C(cuMemsetD2D8Async, 222) \
	C(cuMemsetD2D16Async, 224) C(cuMemsetD2D32Async, 226) C(cuCtxCreate_v2, 235) \
	C(cuMemGetInfo_v2, 242) C(cuMemAlloc_v2, 243) C(cuMemAllocPitch_v2, 244) \
	C(cuMemFree_v2, 245) C(cuMemsetD8_v2, 249) C(cuMemsetD16_v2, 250) C(cuMemsetD32_v2, 251) \
	C(cuMemsetD2D8_v2, 252) C(cuMemsetD2D16_v2, 253) C(cuMemsetD2D32_v2, 254) \
	C(cuDeviceTotalMem_v2, 259) C(cuMemcpyHtoD_v2, 276) C(cuMemcpyHtoDAsync_v2, 277) \
	C(cuMemcpyDtoH_v2, 278) C(cuMemcpyDtoHAsync_v2, 279) C(cuMemcpyDtoD_v2, 280) \
	C(cuMemcpyDtoDAsync_v2, 281) C(cuMemcpy2D_v2, 287) C(cuMemcpy2DUnaligned_v2, 288) \
	C(cuMemcpy2DAsync_v2, 289) C(cuMemcpy3D_v2, 290) C(cuMemcpy3DAsync_v2, 291) \
	C(cuMemAllocHost_v2, 294) C(cuStreamWaitEvent, 295) C(cuMemHostUnregister, 302) \
	C(cuCtxSetCurrent, 303) C(cuCtxGetCurrent, 304) C(cuMemcpy, 305) C(cuMemcpyAsync, 306) \
	C(cuLaunchKernel, 307) C(cuMemcpyPeer, 318) C(cuMemcpyPeerAsync, 319) \
	C(cuCtxDestroy_v2, 322) C(cuEventDestroy_v2, 325) C(cuStreamDestroy_v2, 326) \
	C(cuDeviceGetPCIBusId, 332) C(cuStreamAddCallback, 346) \
	C(cuStreamCreateWithPriority, 367) C(cuMemAllocManaged, 371) \
	C(cuOccupancyMaxActiveBlocksPerMultiprocessor, 374) C(cuMemHostRegister_v2, 379) \
	C(cuDevicePrimaryCtxRetain, 386) C(cuDevicePrimaryCtxGetState, 392) \
	C(cuMemcpyHtoD_v2_ptds, 397) C(cuMemcpyDtoH_v2_ptds, 398) C(cuMemcpyDtoD_v2_ptds, 399) \
	C(cuMemcpy2D_v2_ptds, 405) C(cuMemcpy2DUnaligned_v2_ptds, 406) \
	C(cuMemcpy3D_v2_ptds, 407) C(cuMemcpy_ptds, 408) C(cuMemcpyPeer_ptds, 409) \
	C(cuMemsetD8_v2_ptds, 411) C(cuMemsetD16_v2_ptds, 412) C(cuMemsetD32_v2_ptds, 413) \
	C(cuMemsetD2D8_v2_ptds, 414) C(cuMemsetD2D16_v2_ptds, 415) C(cuMemsetD2D32_v2_ptds, 416) \
	C(cuMemcpyAsync_ptsz, 418) C(cuMemcpyHtoDAsync_v2_ptsz, 421) \
	C(cuMemcpyDtoHAsync_v2_ptsz, 422) C(cuMemcpyDtoDAsync_v2_ptsz, 423) \
	C(cuMemcpy2DAsync_v2_ptsz, 424) C(cuMemcpy3DAsync_v2_ptsz, 425) \
	C(cuMemcpyPeerAsync_ptsz, 426) C(cuMemsetD8Async_ptsz, 428) \
	C(cuMemsetD16Async_ptsz, 429) C(cuMemsetD32Async_ptsz, 430) \
	C(cuMemsetD2D8Async_ptsz, 431) C(cuMemsetD2D16Async_ptsz, 432) \
	C(cuMemsetD2D32Async_ptsz, 433) C(cuStreamWaitEvent_ptsz, 436) \
	C(cuStreamAddCallback_ptsz, 437) C(cuStreamQuery_ptsz, 439) \
	C(cuStreamSynchronize_ptsz, 440) C(cuEventRecord_ptsz, 441) C(cuLaunchKernel_ptsz, 442) \
	C(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 451) \
	C(cuLaunchCooperativeKernel, 477) C(cuLaunchCooperativeKernel_ptsz, 478) \
	C(cuFuncSetAttribute, 481) C(cuDeviceGetUuid, 482) C(cuStreamEndCapture, 497) \
	C(cuStreamEndCapture_ptsz, 498) C(cuStreamIsCapturing, 499) \
	C(cuStreamIsCapturing_ptsz, 500) C(cuGraphCreate, 501) C(cuGraphAddMemcpyNode, 504) \
	C(cuGraphAddMemsetNode, 506) C(cuGraphLaunch, 514) C(cuGraphLaunch_ptsz, 515) \
	C(cuGraphExecDestroy, 516) C(cuGraphDestroy, 517) C(cuLaunchHostFunc, 527) \
	C(cuLaunchHostFunc_ptsz, 528) C(cuStreamBeginCapture_v2, 539) \
	C(cuStreamBeginCapture_v2_ptsz, 540) C(cuDevicePrimaryCtxRelease_v2, 544) \
	C(cuDevicePrimaryCtxReset_v2, 545) C(cuFuncGetModule, 566) \
	C(cuEventRecordWithFlags, 587) C(cuEventRecordWithFlags_ptsz, 588) \
	C(cuMemAllocAsync, 598) C(cuMemAllocAsync_ptsz, 599) C(cuMemFreeAsync, 600) \
	C(cuMemFreeAsync_ptsz, 601) C(cuMemAllocFromPoolAsync, 611) \
	C(cuMemAllocFromPoolAsync_ptsz, 612) C(cuGraphInstantiateWithFlags, 643) \
	C(cuDeviceGetUuid_v2, 647) C(cuLaunchKernelEx, 652) C(cuLaunchKernelEx_ptsz, 653) \
	C(cuGraphInstantiateWithParams, 656) C(cuGetProcAddress_v2, 677) \
	C(cuLibraryLoadData, 678) C(cuLibraryUnload, 680) C(cuLibraryGetKernel, 681) \
	C(cuLibraryGetModule, 682) C(cuKernelGetFunction, 683) C(cuGraphAddKernelNode_v2, 689) \
	C(cuStreamGetId, 693) C(cuCtxGetId, 695) C(cuFuncGetName, 718) C(cuKernelGetName, 719) \
	C(cuFuncLoad, 742) C(cuCtxCreate_v4, 757) C(cuMemcpyBatchAsync, 776) \
	C(cuEventElapsedTime_v2, 780) C(cuCtxSynchronize_v2, 800)

/* Of the versions of a function (_v7000 and so on) that which CUDA 13.0's runtime has. */
#define SIM_RUNTIME_CBIDS(C) \
	C(cudaMalloc, 20) C(cudaMallocPitch, 21) C(cudaFree, 22) C(cudaMallocHost, 25) \
	C(cudaFreeHost, 26) C(cudaHostAlloc, 27) C(cudaMemcpy, 31) C(cudaMemcpy2D, 32) \
	C(cudaMemcpyAsync, 41) C(cudaMemcpy2DAsync, 44) C(cudaMemset, 49) C(cudaMemset2D, 50) \
	C(cudaMemsetAsync, 51) C(cudaMemset2DAsync, 52) C(cudaStreamCreate, 129) \
	C(cudaStreamSynchronize, 131) C(cudaStreamQuery, 132) C(cudaEventCreate, 133) \
	C(cudaEventCreateWithFlags, 134) C(cudaEventRecord, 135) C(cudaEventDestroy, 136) \
	C(cudaEventSynchronize, 137) C(cudaEventQuery, 138) C(cudaMemcpy3D, 144) \
	C(cudaMemcpy3DAsync, 145) C(cudaStreamWaitEvent, 147) C(cudaDeviceSynchronize, 165) \
	C(cudaStreamCreateWithFlags, 198) C(cudaStreamDestroy, 201) \
	C(cudaStreamCreateWithPriority, 202) C(cudaMallocManaged, 206) \
	C(cudaOccupancyMaxActiveBlocksPerMultiprocessor, 210) C(cudaLaunchKernel, 211) \
	C(cudaLaunchKernel_ptsz, 214) C(cudaMemcpy_ptds, 215) C(cudaMemcpyAsync_ptsz, 225) \
	C(cudaMemset_ptds, 233) C(cudaMemsetAsync_ptsz, 235) C(cudaStreamSynchronize_ptsz, 239) \
	C(cudaStreamQuery_ptsz, 240) C(cudaEventRecord_ptsz, 242) \
	C(cudaStreamWaitEvent_ptsz, 247) \
	C(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 251) \
	C(cudaLaunchCooperativeKernel, 269) C(cudaLaunchCooperativeKernel_ptsz, 270) \
	C(cudaLaunchHostFunc, 284) C(cudaLaunchHostFunc_ptsz, 285) C(cudaGraphLaunch, 311) \
	C(cudaGraphLaunch_ptsz, 312) C(cudaGraphExecDestroy, 313) C(cudaGraphDestroy, 314) \
	C(cudaStreamBeginCapture, 315) C(cudaStreamIsCapturing, 317) \
	C(cudaStreamEndCapture, 319) C(cudaMallocAsync, 373) C(cudaMallocAsync_ptsz, 374) \
	C(cudaFreeAsync, 375) C(cudaFreeAsync_ptsz, 376) C(cudaLaunchKernelExC, 430) \
	C(cudaLaunchKernelExC_ptsz, 431) C(cudaGraphInstantiate, 443) \
	C(cudaEventElapsedTime, 486)
/* clang-format on */

#endif
