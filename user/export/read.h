/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One function a metric: its value in a snapshot, in base units. false: not known.
 * families.c says what each is.
 */
#ifndef GBPF_EXPORT_READ_H
#define GBPF_EXPORT_READ_H

#include "export/families.h"

#define READ_STATES (2 + WAIT_KINDS) /* on and off a CPU in calls, then enum wait_kind */
#define READ_REASONS 9		     /* NVML's reasons for lower clocks */
#define READ_GPM 4

const char *activity_name(unsigned i);
const char *state_name(unsigned i);
const char *verdict_name(unsigned i);
const char *reason_name(unsigned i);
const char *gpm_name(unsigned i);

uint64_t read_calls(const struct family_source *f);
uint64_t read_call_errors(const struct family_source *f);
uint64_t read_call_bytes(const struct family_source *f);
uint64_t read_call_ns(const struct family_source *f);
uint64_t read_cold_starts(const struct family_source *f);
uint64_t read_cold_ns(const struct family_source *f);
uint64_t read_self_windows(const struct family_source *f);
uint64_t read_self_lost(const struct family_source *f);
uint64_t read_self_unmatched(const struct family_source *f);
const struct histogram *read_launches(const struct family_source *f);
const struct histogram *read_syncs(const struct family_source *f);

#define READ_GAUGE(name) bool name(const struct family_source *f, unsigned i, double *value)

READ_GAUGE(read_processes);
READ_GAUGE(read_verdict);
READ_GAUGE(read_launch_rate);
READ_GAUGE(read_launch_rate_low);
READ_GAUGE(read_launch_rate_high);
READ_GAUGE(read_back_pressured);
READ_GAUGE(read_copies);
READ_GAUGE(read_copy_bytes);
READ_GAUGE(read_errors);
READ_GAUGE(read_activity);
READ_GAUGE(read_state);
READ_GAUGE(read_open_call);
READ_GAUGE(read_live_allocations);
READ_GAUGE(read_live_bytes);
READ_GAUGE(read_tree_cpu);
READ_GAUGE(read_tree_io);
READ_GAUGE(read_throttled);
READ_GAUGE(read_shared);
READ_GAUGE(read_overhead);
READ_GAUGE(read_coverage);

READ_GAUGE(read_gpu_sm_clock);
READ_GAUGE(read_gpu_memory_clock);
READ_GAUGE(read_gpu_power);
READ_GAUGE(read_gpu_power_limit);
READ_GAUGE(read_gpu_energy);
READ_GAUGE(read_gpu_temperature);
READ_GAUGE(read_gpu_throttle);
READ_GAUGE(read_gpu_utilisation);
READ_GAUGE(read_gpu_memory_utilisation);
READ_GAUGE(read_gpu_memory_used);
READ_GAUGE(read_gpu_memory_size);
READ_GAUGE(read_gpu_gpm);
READ_GAUGE(read_gpu_processes);
READ_GAUGE(read_gpu_xids);
READ_GAUGE(read_gpu_last_xid);

READ_GAUGE(read_left_out);
READ_GAUGE(read_gpus);
READ_GAUGE(read_interval);
READ_GAUGE(read_interval_end);
READ_GAUGE(read_self_overhead);
READ_GAUGE(read_self_budget);
READ_GAUGE(read_self_cpu);
READ_GAUGE(read_self_resident);
READ_GAUGE(read_self_maps);
READ_GAUGE(read_self_coverage);
READ_GAUGE(read_self_limited);

#endif
