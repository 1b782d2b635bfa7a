/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Layouts that the stand-in for NVML writes, as the manual of NVML 13 has them.
 * gbpf has declarations of its own (user/gpu/nvml.h), so that a slip in one of
 * the two shows.
 */
#ifndef SIMNVML_ABI_H
#define SIMNVML_ABI_H

typedef struct device *nvmlDevice_t;
typedef struct event_set *nvmlEventSet_t;
typedef struct gpm_sample *nvmlGpmSample_t;

typedef struct {
	char busIdLegacy[16];
	unsigned int domain, bus, device, pciDeviceId, pciSubSystemId;
	char busId[32];
} nvmlPciInfo_t;

typedef struct {
	unsigned int gpu, memory;
} nvmlUtilization_t;

typedef struct {
	unsigned long long total, free, used;
} nvmlMemory_t;

typedef struct {
	unsigned int pid;
	unsigned long long usedGpuMemory;
	unsigned int gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_t;

typedef struct { /* of early drivers of branch 535 */
	nvmlProcessInfo_t info;
	unsigned long long usedGpuCcProtectedMemory;
} nvmlProcessInfo_535_t;

typedef struct {
	nvmlDevice_t device;
	unsigned long long eventType, eventData;
	unsigned int gpuInstanceId, computeInstanceId;
} nvmlEventData_t;

typedef struct {
	unsigned int version, isSupportedDevice;
} nvmlGpmSupport_t;

typedef struct {
	unsigned int metricId;
	int nvmlReturn;
	double value;
	struct {
		char *shortName, *longName, *unit;
	} metricInfo;
} nvmlGpmMetric_t;

typedef struct {
	unsigned int version, numMetrics;
	nvmlGpmSample_t sample1, sample2;
	nvmlGpmMetric_t metrics[333];
} nvmlGpmMetricsGet_t;

#endif
