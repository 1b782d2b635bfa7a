/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The GPUs of this machine, by NVIDIA's management library (NVML), which is
 * loaded at run time and never linked. Device-wide numbers: they are nobody's
 * own, however many processes share the device.
 */
#ifndef GBPF_GPU_GPU_H
#define GBPF_GPU_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a sample holds; a number whose bit is not set could not be had. */
enum gpu_has {
	GPU_HAS_CLOCK_SM = 1u << 0,
	GPU_HAS_CLOCK_MEMORY = 1u << 1,
	GPU_HAS_POWER = 1u << 2,
	GPU_HAS_POWER_LIMIT = 1u << 3,
	GPU_HAS_TEMPERATURE = 1u << 4,
	GPU_HAS_THROTTLE = 1u << 5,
	GPU_HAS_UTILISATION = 1u << 6, /* both: share of time with a kernel running, memory busy */
	GPU_HAS_MEMORY = 1u << 7,
	GPU_HAS_ENERGY = 1u << 8,
	GPU_HAS_GPM = 1u << 9,	  /* the gpm_ fields (Hopper and later) */
	GPU_HAS_PROCESSES = 1u << 10,
	GPU_HAS_XID = 1u << 11,	  /* errors are told; of MIG instances only through the device */
};

#define GPU_PROCESSES 64 /* of one device that are listed; more are counted */

struct gpu_sample {
	int64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t index;	 /* NVML's; a MIG instance has its parent's */
	uint32_t has;	 /* enum gpu_has */
	char uuid[80];	 /* "GPU-…", or "MIG-…" of an instance */
	char name[96];
	char pci[32];	 /* bus id */
	char mig_parent[80]; /* UUID of the device that a MIG instance is a part of; "" otherwise */
	uint32_t clock_sm_mhz, clock_memory_mhz;
	uint32_t power_mw, power_limit_mw;
	uint32_t temperature_c;
	uint64_t throttle; /* nvmlClocksEventReasons bits */
	uint32_t utilisation_pct, memory_utilisation_pct;
	uint64_t memory_used, memory_total; /* bytes */
	uint64_t energy_mj;		    /* since the driver was loaded */
	/* since the sample before: share of time, or of what is possible at most */
	double gpm_sm_pct, gpm_occupancy_pct, gpm_tensor_pct, gpm_dram_pct;
	uint32_t processes_count; /* that use it, as NVML knows */
	uint32_t processes[GPU_PROCESSES]; /* host's pids */
	uint64_t xid_count; /* XID errors since the monitor started */
	uint32_t xid_last;  /* number of the last one, 0: none */
};

/* One throttle reason in words, by its bit's number; NULL: none that is known, or idle. */
const char *gpu_throttle_reason(unsigned bit);
/* Whether these bits say that clocks were held back; idle alone does not. */
static inline bool gpu_throttled(uint64_t bits)
{
	return (bits & ~UINT64_C(1)) != 0;
}

/* Throttle reasons in words, joined by ", "; "none" where no bit but idle is set. Into buf. */
const char *gpu_throttle_text(uint64_t bits, char *buf, size_t size);

struct gpus;

/*
 * Loads NVML ("libnvidia-ml.so.1") and counts the devices. -ENOENT: there is no
 * NVML here; other -errno with a sentence in why. A device that fails afterwards is left out of
 * samples and tried again every 10 s.
 */
int gpus_new(struct gpus **out, char *why, size_t size);
void gpus_free(struct gpus *g); /* NULL is accepted; closes every handle of the driver */

/*
 * Reads all devices; MIG instances are devices of their own beside their parent.
 * *samples stays valid until the next call. Returns how many, or -errno.
 */
int gpus_sample(struct gpus *g, const struct gpu_sample **samples);

/*
 * Lets go of the driver so that it can be replaced (SIGHUP), and looks for it
 * again at the first gpus_sample() that is at least 5 s later.
 */
void gpus_release(struct gpus *g);

/* Why there is nothing to be sampled now, or NULL. */
const char *gpus_trouble(const struct gpus *g);

#endif
