/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/families.h"

#include "export/read.h"

/* Most launches take 3 to 10 us; from 50 us on the queue was probably full. */
static const double launch_bounds[FAMILY_CLASSIC] = {
	1e-6, 2e-6, 4e-6, 6e-6, 1e-5, 2e-5, 5e-5, 1e-4, 1e-3, 1e-2, 0.1, 1,
};
static const double sync_bounds[FAMILY_CLASSIC] = {
	1e-6, 1e-5, 5e-5, 1e-4, 5e-4, 1e-3, 5e-3, 1e-2, 5e-2, 0.1, 1, 10,
};

#define COUNTER .type = FAMILY_COUNTER
#define GAUGE .type = FAMILY_GAUGE
#define API .scope = SCOPE_API
#define PROCESS .scope = SCOPE_PROCESS
#define GPU .scope = SCOPE_GPU
#define SELF .scope = SCOPE_SELF
#define NS .unit = "seconds", .scale = 1e-9

static const struct family families[] = {
	{ "gbpf_calls", "", "Calls of a CUDA function that were seen. Where a function is probed "
	  "in windows only, more were made: take rates from the gauges.",
	  COUNTER, API, .count = read_calls },
	{ "gbpf_call_errors", "", "Calls that were seen and returned an error.",
	  COUNTER, API, .count = read_call_errors },
	{ "gbpf_call_bytes", "bytes", "Bytes that the calls that were seen copied, set or "
	  "allocated; absent before the first.",
	  COUNTER, API, .count = read_call_bytes, .sparse = true },
	{ "gbpf_call_seconds", .help = "Time in the calls that were seen, calls that they made "
	  "included.",
	  COUNTER, API, .count = read_call_ns, NS },
	{ "gbpf_launch_dispatch_seconds", "seconds", "How long launches that were seen kept the "
	  "CPU.",
	  FAMILY_HISTOGRAM, PROCESS, .histogram = read_launches, .classic = launch_bounds },
	{ "gbpf_sync_seconds", "seconds", "How long synchronizing calls that were seen waited.",
	  FAMILY_HISTOGRAM, PROCESS, .histogram = read_syncs, .classic = sync_bounds },
	{ "gbpf_cold_starts", "", "Modules and libraries that were seen to be loaded.",
	  COUNTER, PROCESS, .count = read_cold_starts, .interval = true },
	{ "gbpf_cold_start_seconds", .help = "Time in cold starts that were seen.",
	  COUNTER, PROCESS, .count = read_cold_ns, NS, .interval = true },
	{ "gbpf_processes", "", "Processes that use CUDA and have these labels.",
	  GAUGE, PROCESS, .gauge = read_processes },
	{ "gbpf_launches_per_second", "", "Kernel and graph launches, estimated over the last "
	  "interval.",
	  GAUGE, PROCESS, .gauge = read_launch_rate },
	{ "gbpf_launches_per_second_low", "", "Lower end of the 95 % interval of "
	  "gbpf_launches_per_second.",
	  GAUGE, PROCESS, .gauge = read_launch_rate_low },
	{ "gbpf_launches_per_second_high", "", "Upper end of the 95 % interval of "
	  "gbpf_launches_per_second.",
	  GAUGE, PROCESS, .gauge = read_launch_rate_high },
	{ "gbpf_back_pressured_launches_per_second", "", "Launches that took over 50 us, "
	  "estimated: the queue of the GPU was probably full.",
	  GAUGE, PROCESS, .gauge = read_back_pressured },
	{ "gbpf_copies_per_second", "", "Copies and sets of memory, estimated over the last "
	  "interval.",
	  GAUGE, PROCESS, .gauge = read_copies },
	{ "gbpf_copy_bytes_per_second", "", "Bytes copied and set, estimated over the last "
	  "interval.",
	  GAUGE, PROCESS, .gauge = read_copy_bytes },
	{ "gbpf_errors_per_second", "", "Calls that returned an error, estimated over the last "
	  "interval.",
	  GAUGE, PROCESS, .gauge = read_errors },
	{ "gbpf_suspected_processes", "", "Processes of these labels that seem to be bound by this "
	  "(docs/diagnosis.md), as far as their calls and NVML tell; inconclusive where these "
	  "allow more than one answer.",
	  GAUGE, PROCESS, COMBINE_SUM, "verdict", VERDICTS, verdict_name, .gauge = read_verdict },
	{ "gbpf_thread_activity_ratio", "ratio", "Where the wall time of the busiest launching "
	  "thread went: into dispatching work, into waiting for the GPU, or elsewhere.",
	  GAUGE, PROCESS, COMBINE_MEAN, "activity", 3, activity_name, .gauge = read_activity },
	{ "gbpf_thread_state_ratio", "ratio", "What the busiest launching thread did, as the "
	  "scheduler saw it: on or off a CPU inside CUDA calls, and outside of them what it "
	  "waited for.",
	  GAUGE, PROCESS, COMBINE_MEAN, "state", READ_STATES, state_name, .gauge = read_state },
	{ "gbpf_open_call_seconds", "seconds", "How long the CUDA call that is open longest has "
	  "not returned; 0 where none is open.",
	  GAUGE, PROCESS, COMBINE_MAX, .gauge = read_open_call },
	{ "gbpf_live_allocations", "", "Allocations made since the process was first seen and not "
	  "freed.",
	  GAUGE, PROCESS, .gauge = read_live_allocations },
	{ "gbpf_live_allocation_bytes", "bytes", "Their size.",
	  GAUGE, PROCESS, .gauge = read_live_bytes },
	{ "gbpf_tree_cpu_ratio", "ratio", "CPU time a second of the process and its descendants: "
	  "1 is one CPU.",
	  GAUGE, PROCESS, .gauge = read_tree_cpu },
	{ "gbpf_tree_io_bytes_per_second", "", "Bytes that the process and its descendants read "
	  "and wrote.",
	  GAUGE, PROCESS, .gauge = read_tree_io },
	{ "gbpf_cpu_throttled_ratio", "ratio", "Share of the interval in which the CPU quota held "
	  "the process back.",
	  GAUGE, PROCESS, COMBINE_MAX, .gauge = read_throttled },
	{ "gbpf_gpu_shared", "", "1 if others use a GPU that the process uses, otherwise 0.",
	  GAUGE, PROCESS, COMBINE_MAX, .gauge = read_shared },
	{ "gbpf_overhead_ratio", "ratio", "What the probes cost the worst thread, as a share of "
	  "the interval.",
	  GAUGE, PROCESS, COMBINE_MAX, .gauge = read_overhead },
	{ "gbpf_coverage_ratio", "ratio", "Share of the interval in which launches were probed.",
	  GAUGE, PROCESS, COMBINE_MIN, .gauge = read_coverage },

	{ "gbpf_gpu", "", "A GPU or MIG instance of this machine.", FAMILY_INFO, GPU },
	{ "gbpf_gpu_sm_clock_hertz", "hertz", "Clock of the multiprocessors.",
	  GAUGE, GPU, .gauge = read_gpu_sm_clock },
	{ "gbpf_gpu_memory_clock_hertz", "hertz", "Clock of the memory.",
	  GAUGE, GPU, .gauge = read_gpu_memory_clock },
	{ "gbpf_gpu_power_watts", "watts", "Power that is drawn.",
	  GAUGE, GPU, .gauge = read_gpu_power },
	{ "gbpf_gpu_power_limit_watts", "watts", "Power that may be drawn.",
	  GAUGE, GPU, .gauge = read_gpu_power_limit },
	{ "gbpf_gpu_energy_joules", "joules", "Energy used since the driver was loaded.",
	  COUNTER, GPU, .gauge = read_gpu_energy },
	{ "gbpf_gpu_temperature_celsius", "celsius", "Temperature of the GPU.",
	  GAUGE, GPU, .gauge = read_gpu_temperature },
	{ "gbpf_gpu_throttle_active", "", "1 for every reason for which the clocks are lower than "
	  "they could be, otherwise 0.",
	  GAUGE, GPU, .label = "reason", .variants = READ_REASONS, .variant = reason_name,
	  .gauge = read_gpu_throttle },
	{ "gbpf_gpu_utilisation_ratio", "ratio", "Share of time in which a kernel ran, of all "
	  "processes together.",
	  GAUGE, GPU, .gauge = read_gpu_utilisation },
	{ "gbpf_gpu_memory_utilisation_ratio", "ratio", "Share of time in which memory was read "
	  "or written.",
	  GAUGE, GPU, .gauge = read_gpu_memory_utilisation },
	{ "gbpf_gpu_memory_used_bytes", "bytes", "Memory in use, of all processes together.",
	  GAUGE, GPU, .gauge = read_gpu_memory_used },
	{ "gbpf_gpu_memory_size_bytes", "bytes", "Memory that the GPU has.",
	  GAUGE, GPU, .gauge = read_gpu_memory_size },
	{ "gbpf_gpu_activity_ratio", "ratio", "Between the last two samples, where the GPU "
	  "measures it: multiprocessors with work, warps resident of those possible, tensor "
	  "cores busy, bandwidth of the memory used.",
	  GAUGE, GPU, .label = "unit", .variants = READ_GPM, .variant = gpm_name,
	  .gauge = read_gpu_gpm },
	{ "gbpf_gpu_processes", "", "Processes that use the GPU.",
	  GAUGE, GPU, .gauge = read_gpu_processes },
	{ "gbpf_gpu_xid_errors", "", "XID errors since gbpf was started.",
	  COUNTER, GPU, .gauge = read_gpu_xids },
	{ "gbpf_gpu_last_xid", "", "Number of the last XID error; absent before the first.",
	  GAUGE, GPU, .gauge = read_gpu_last_xid },

	{ "gbpf_build", "", "The version of gbpf.", FAMILY_INFO, SELF },
	{ "gbpf_processes_left_out", "", "Processes that use CUDA and are not among the others "
	  "here, because there are too many.",
	  GAUGE, SELF, .gauge = read_left_out },
	{ "gbpf_gpus", "", "GPUs that could be sampled.", GAUGE, SELF, .gauge = read_gpus },
	{ "gbpf_interval_seconds", "seconds", "Length of the last interval.",
	  GAUGE, SELF, .gauge = read_interval },
	{ "gbpf_interval_end_seconds", "seconds", "When the last interval ended, since 1970.",
	  GAUGE, SELF, .gauge = read_interval_end },
	{ "gbpf_self_overhead_ratio", "ratio", "What the probes cost the worst thread of all, as "
	  "a share of the interval.",
	  GAUGE, SELF, .gauge = read_self_overhead },
	{ "gbpf_self_overhead_budget_ratio", "ratio", "What they may cost (--max-overhead).",
	  GAUGE, SELF, .gauge = read_self_budget },
	{ "gbpf_self_cpu_ratio", "ratio", "CPU time a second of gbpf itself: 1 is one CPU.",
	  GAUGE, SELF, .gauge = read_self_cpu },
	{ "gbpf_self_resident_bytes", "bytes", "Memory of gbpf itself.",
	  GAUGE, SELF, .gauge = read_self_resident },
	{ "gbpf_self_map_bytes", "bytes", "Memory of the kernel that its maps take.",
	  GAUGE, SELF, .gauge = read_self_maps },
	{ "gbpf_self_coverage_ratio", "ratio", "Share of the interval in which launches were "
	  "probed.",
	  GAUGE, SELF, .gauge = read_self_coverage },
	{ "gbpf_self_limited", "", "1 if some functions cannot be probed here (gbpf doctor says "
	  "why), otherwise 0.",
	  GAUGE, SELF, .gauge = read_self_limited },
	{ "gbpf_self_windows", "", "Windows in which launches were probed.",
	  COUNTER, SELF, .count = read_self_windows, .interval = true },
	{ "gbpf_self_lost_calls", "", "Calls that were not counted because a table was full.",
	  COUNTER, SELF, .count = read_self_lost, .interval = true },
	{ "gbpf_self_unmatched_calls", "", "Entries without a return and returns without an "
	  "entry.",
	  COUNTER, SELF, .count = read_self_unmatched, .interval = true },
};

const struct family *family_get(size_t i)
{
	return i < sizeof(families) / sizeof(families[0]) ? &families[i] : NULL;
}

unsigned family_values(const struct family *f)
{
	return f->variants ? f->variants : 1;
}

const char *family_suffix(const struct family *f)
{
	if (f->type == FAMILY_COUNTER)
		return "_total";
	return f->type == FAMILY_INFO ? "_info" : "";
}

const char *family_type_name(enum family_type type)
{
	static const char *const names[] = {
		[FAMILY_COUNTER] = "counter",
		[FAMILY_GAUGE] = "gauge",
		[FAMILY_HISTOGRAM] = "histogram",
		[FAMILY_INFO] = "info",
	};

	return names[type];
}

const char *set_label_name(enum set_label label)
{
	static const char *const names[SET_LABELS] = {
		[LABEL_COMM] = "comm",
		[LABEL_CONTAINER] = "container",
		[LABEL_POD] = "pod",
		[LABEL_NAMESPACE] = "namespace",
		[LABEL_SLURM_JOB] = "slurm_job",
		[LABEL_RANK] = "rank",
		[LABEL_GPU] = "gpu",
	};

	return names[label];
}
