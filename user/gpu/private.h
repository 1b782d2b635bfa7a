/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of this folder share. */
#ifndef GBPF_GPU_PRIVATE_H
#define GBPF_GPU_PRIVATE_H

#include "gpu/gpu.h"
#include "gpu/nvml.h"

#define GPU_RETRY_NS 10000000000LL  /* a device or a driver that failed is tried again */
#define GPU_RELEASE_NS 5000000000LL /* after gpus_release() the driver is left alone */

/* Two samples of GPM's counters; all zero is a valid empty state. */
struct gpm {
	nvml_gpm sample[2];
	unsigned last;	/* which of them was taken last */
	int64_t at;	/* when, CLOCK_MONOTONIC ns; 0: never */
	bool refused;	/* the device has no GPM */
};

/* gpm.c: fills the gpm_ fields of s, if the counters were read before. */
void gpm_read(const struct nvml *n, struct gpm *g, nvml_device d, struct nvml_gpm_metrics *m,
	      int64_t now, struct gpu_sample *s);
void gpm_free(const struct nvml *n, struct gpm *g);

/*
 * device.c: fills all of s but its time, its XIDs and the gpm_ fields. -ENODEV:
 * the device is gone or does not answer.
 */
int device_read(const struct nvml *n, nvml_device d, struct gpu_sample *s);
/* The same of a MIG instance: only what is its own, and not the device's. */
int device_read_instance(const struct nvml *n, nvml_device d, struct gpu_sample *s);

/* As gpus_sample() and gpus_release(), at a time of the caller's: tests need not wait. */
int gpus_sample_at(struct gpus *g, int64_t now, const struct gpu_sample **samples);
void gpus_release_at(struct gpus *g, int64_t now);

#endif
