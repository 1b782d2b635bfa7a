/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/read.h"

/* Bits of nvmlClocksEventReasons, as nvml.h numbers them; the first is bit 0. */
const char *reason_name(unsigned i)
{
	static const char *const names[READ_REASONS] = {
		"idle",
		"application_clocks",
		"power_cap",
		"hardware_slowdown",
		"sync_boost",
		"software_thermal",
		"hardware_thermal",
		"power_brake",
		"display_clocks",
	};

	return names[i];
}

const char *gpm_name(unsigned i)
{
	static const char *const names[READ_GPM] = { "sm", "warps", "tensor", "memory" };

	return names[i];
}

static bool sampled(const struct gpu_sample *g, uint32_t bit, double v, double *value)
{
	*value = v;
	return (g->has & bit) != 0;
}

READ_GAUGE(read_gpu_sm_clock)
{
	return sampled(f->gpu, GPU_HAS_CLOCK_SM, f->gpu->clock_sm_mhz * 1e6, value);
}

READ_GAUGE(read_gpu_memory_clock)
{
	return sampled(f->gpu, GPU_HAS_CLOCK_MEMORY, f->gpu->clock_memory_mhz * 1e6, value);
}

READ_GAUGE(read_gpu_power)
{
	return sampled(f->gpu, GPU_HAS_POWER, f->gpu->power_mw * 1e-3, value);
}

READ_GAUGE(read_gpu_power_limit)
{
	return sampled(f->gpu, GPU_HAS_POWER_LIMIT, f->gpu->power_limit_mw * 1e-3, value);
}

READ_GAUGE(read_gpu_energy)
{
	return sampled(f->gpu, GPU_HAS_ENERGY, (double)f->gpu->energy_mj * 1e-3, value);
}

READ_GAUGE(read_gpu_temperature)
{
	return sampled(f->gpu, GPU_HAS_TEMPERATURE, f->gpu->temperature_c, value);
}

READ_GAUGE(read_gpu_throttle)
{
	return sampled(f->gpu, GPU_HAS_THROTTLE, (double)(f->gpu->throttle >> i & 1), value);
}

READ_GAUGE(read_gpu_utilisation)
{
	return sampled(f->gpu, GPU_HAS_UTILISATION, f->gpu->utilisation_pct * 0.01, value);
}

READ_GAUGE(read_gpu_memory_utilisation)
{
	return sampled(f->gpu, GPU_HAS_UTILISATION, f->gpu->memory_utilisation_pct * 0.01, value);
}

READ_GAUGE(read_gpu_memory_used)
{
	return sampled(f->gpu, GPU_HAS_MEMORY, (double)f->gpu->memory_used, value);
}

READ_GAUGE(read_gpu_memory_size)
{
	return sampled(f->gpu, GPU_HAS_MEMORY, (double)f->gpu->memory_total, value);
}

READ_GAUGE(read_gpu_gpm)
{
	const double pct[READ_GPM] = {
		f->gpu->gpm_sm_pct,
		f->gpu->gpm_occupancy_pct,
		f->gpu->gpm_tensor_pct,
		f->gpu->gpm_dram_pct,
	};

	return sampled(f->gpu, GPU_HAS_GPM, pct[i] * 0.01, value);
}

READ_GAUGE(read_gpu_processes)
{
	return sampled(f->gpu, GPU_HAS_PROCESSES, f->gpu->processes_count, value);
}

READ_GAUGE(read_gpu_xids)
{
	*value = (double)f->gpu->xid_count;
	return true;
}

READ_GAUGE(read_gpu_last_xid)
{
	*value = f->gpu->xid_last;
	return f->gpu->xid_last != 0;
}
