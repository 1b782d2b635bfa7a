/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of NVML that gbpf calls, in declarations of its own: numbers and
 * layouts are those of the reference manual of NVML 13 ("NVML API Reference
 * Guide"), and of the versioned entry point named beside each. They are the ABI
 * of libnvidia-ml.so.1 and do not change under one name.
 */
#ifndef GBPF_GPU_NVML_H
#define GBPF_GPU_NVML_H

#include <stddef.h>
#include <stdint.h>

/* nvmlReturn_t; what is not told apart here is not listed. */
enum nvml_return {
	NVML_OK = 0,
	NVML_UNINITIALIZED = 1,
	NVML_NOT_SUPPORTED = 3,
	NVML_NO_PERMISSION = 4,
	NVML_NOT_FOUND = 6,
	NVML_TOO_SMALL = 7, /* NVML_ERROR_INSUFFICIENT_SIZE */
	NVML_NO_DRIVER = 9, /* NVML_ERROR_DRIVER_NOT_LOADED */
	NVML_TIMEOUT = 10,
	NVML_LOST = 15,	    /* NVML_ERROR_GPU_IS_LOST */
	NVML_BLOCKED = 17,  /* NVML_ERROR_OPERATING_SYSTEM */
	NVML_MISMATCH = 18, /* NVML_ERROR_LIB_RM_VERSION_MISMATCH */
	NVML_MEMORY = 20,
	NVML_UNKNOWN = 999,
};

enum nvml_clock { NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2 }; /* nvmlClockType_t */
enum { NVML_TEMPERATURE_GPU = 0 };			   /* nvmlTemperatureSensors_t */
#define NVML_EVENT_XID 0x8ULL				   /* nvmlEventTypeXidCriticalError */

/* nvmlDevice_t, nvmlEventSet_t, nvmlGpmSample_t: pointers to what only NVML knows. */
typedef struct nvml_device_opaque *nvml_device;
typedef struct nvml_events_opaque *nvml_events;
typedef struct nvml_gpm_opaque *nvml_gpm;

/* nvmlPciInfo_t since nvmlDeviceGetPciInfo_v3 */
struct nvml_pci {
	char bus_id_legacy[16];
	uint32_t domain, bus, device, device_id, subsystem_id;
	char bus_id[32];
};
_Static_assert(sizeof(struct nvml_pci) == 68, "nvmlPciInfo_t");

struct nvml_utilisation { /* nvmlUtilization_t, percent */
	uint32_t gpu, memory;
};

/* nvmlMemory_t of nvmlDeviceGetMemoryInfo (version 1), bytes; used holds the driver's reserve */
struct nvml_memory {
	uint64_t total, free, used;
};

/*
 * nvmlProcessInfo_v2_t, of nvmlDeviceGetComputeRunningProcesses_v2 and _v3. Early
 * drivers of branch 535 wrote a fourth number of 8 bytes behind it in _v3.
 */
struct nvml_process {
	uint32_t pid;
	uint64_t used;
	uint32_t gpu_instance, compute_instance;
};
#define NVML_PROCESS_SIZE sizeof(struct nvml_process)
#define NVML_PROCESS_SIZE_535 (sizeof(struct nvml_process) + 8)
_Static_assert(NVML_PROCESS_SIZE == 24, "nvmlProcessInfo_v2_t");

/* nvmlEventData_t since nvmlEventSetWait_v2 */
struct nvml_event {
	nvml_device device;
	uint64_t type;
	uint64_t data; /* the number of an XID error */
	uint32_t gpu_instance, compute_instance;
};
_Static_assert(sizeof(struct nvml_event) == 32, "nvmlEventData_t");

struct nvml_temperature { /* nvmlTemperature_v1_t of nvmlDeviceGetTemperatureV */
	uint32_t version; /* its size, and the version from bit 24 on */
	uint32_t sensor;
	int32_t celsius;
};
#define NVML_TEMPERATURE_VERSION ((uint32_t)sizeof(struct nvml_temperature) | 1u << 24)

struct nvml_gpm_support { /* nvmlGpmSupport_t, version 1 */
	uint32_t version, supported;
};
enum nvml_gpm_metric_id { /* nvmlGpmMetricId_t, percent */
	NVML_GPM_SM = 2,
	NVML_GPM_OCCUPANCY = 3,
	NVML_GPM_TENSOR = 5,
	NVML_GPM_DRAM = 10,
};
struct nvml_gpm_metric { /* nvmlGpmMetric_t */
	uint32_t id;
	int32_t result;
	double value;
	char *short_name, *long_name, *unit;
};
/* nvmlGpmMetricsGet_t, version 1: the array is longer with every release, so as long as any. */
#define NVML_GPM_METRICS 333
struct nvml_gpm_metrics {
	uint32_t version, count;
	nvml_gpm before, after;
	struct nvml_gpm_metric metric[NVML_GPM_METRICS];
};
_Static_assert(offsetof(struct nvml_gpm_metrics, metric) == 24, "nvmlGpmMetricsGet_t");
_Static_assert(sizeof(struct nvml_gpm_metric) == 40, "nvmlGpmMetric_t");

typedef int (*nvml_get_u32)(nvml_device d, uint32_t *out);
typedef int (*nvml_get_u64)(nvml_device d, uint64_t *out);
typedef int (*nvml_get_u32_of)(nvml_device d, int which, uint32_t *out);
typedef int (*nvml_get_text)(nvml_device d, char *out, uint32_t size);
typedef int (*nvml_get_processes)(nvml_device d, uint32_t *count, void *out);

/* A loaded library. What it does not export is NULL, but for the first block. */
struct nvml {
	void *library;
	int (*init)(void);
	int (*shutdown)(void);
	int (*count)(uint32_t *out);
	int (*by_index)(uint32_t index, nvml_device *out);
	nvml_get_text uuid;

	nvml_get_text name;
	int (*pci)(nvml_device d, struct nvml_pci *out);
	nvml_get_u32_of clock; /* MHz */
	nvml_get_u32 power, power_limit, power_limit_set; /* mW */
	nvml_get_u32_of temperature; /* °C */
	int (*temperature_v)(nvml_device d, struct nvml_temperature *t);
	nvml_get_u64 clock_reasons;
	int (*utilisation)(nvml_device d, struct nvml_utilisation *out);
	int (*memory)(nvml_device d, struct nvml_memory *out);
	nvml_get_u64 energy; /* mJ */
	nvml_get_processes processes;

	int (*mig_mode)(nvml_device d, uint32_t *current, uint32_t *pending);
	nvml_get_u32 mig_max;
	int (*mig_by_index)(nvml_device parent, uint32_t index, nvml_device *out);

	int (*events_new)(nvml_events *out);
	int (*events_register)(nvml_device d, uint64_t types, nvml_events set);
	int (*events_wait)(nvml_events set, struct nvml_event *out, uint32_t timeout_ms);
	int (*events_free)(nvml_events set);

	int (*gpm_support)(nvml_device d, struct nvml_gpm_support *s);
	int (*gpm_new)(nvml_gpm *out);
	int (*gpm_get)(nvml_device d, nvml_gpm into);
	int (*gpm_metrics)(struct nvml_gpm_metrics *m);
	int (*gpm_free)(nvml_gpm sample);
};

/*
 * Loads and initialises the library. 0; -ENOENT: there is none; another -errno
 * with a sentence in why. n is all zero after a failure.
 */
int nvml_open(struct nvml *n, char *why, size_t size);
/* Ends its use of the driver and unloads it; whatever was made with it must be freed before. */
void nvml_close(struct nvml *n);

/* What went wrong, in words that say what to do; into buf. Returns the -errno for it. */
int nvml_explain(int result, char *buf, size_t size);

#endif
