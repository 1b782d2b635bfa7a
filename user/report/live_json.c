/* SPDX-License-Identifier: BSD-2-Clause */
#include "probe/catalogue.h"
#include "report/live.h"
#include "util/json.h"

static void known_double(struct json *j, const char *key, bool known, double v, int decimals)
{
	json_key(j, key);
	if (known)
		json_double(j, v, decimals);
	else
		json_null(j);
}

static void known_int(struct json *j, const char *key, bool known, int64_t v)
{
	json_key(j, key);
	if (known)
		json_int(j, v);
	else
		json_null(j);
}

static void text(struct json *j, const char *key, const char *v)
{
	json_key(j, key);
	json_string(j, *v ? v : NULL);
}

static void number(struct json *j, const char *key, uint64_t v)
{
	json_key(j, key);
	json_uint(j, v);
}

static void flag(struct json *j, const char *key, bool v)
{
	json_key(j, key);
	json_bool(j, v);
}

/* A value and, under KEY_ci, its 95 % interval. */
static void estimate(struct json *j, const char *key, struct estimate e, int decimals)
{
	char ci[64];

	known_double(j, key, e.known, e.value, decimals);
	snprintf(ci, sizeof(ci), "%s_ci", key);
	json_key(j, ci);
	if (!e.known) {
		json_null(j);
		return;
	}
	json_begin_array(j);
	json_double(j, e.low, decimals);
	json_double(j, e.high, decimals);
	json_end_array(j);
}

static void api(struct json *j, const struct snapshot_api *a)
{
	json_begin_object(j);
	text(j, "name", catalogue_get(a->api)->name);
	flag(j, "sampled", a->sampled);
	estimate(j, "calls_per_s", a->calls_per_s, 3);
	number(j, "seen", a->seen);
	number(j, "calls_seen", a->calls);
	number(j, "errors", a->errors);
	number(j, "bytes", a->bytes);
	number(j, "total_ns", a->total_ns);
	known_int(j, "p50_ns", a->p50_ns >= 0, a->p50_ns);
	known_int(j, "p99_ns", a->p99_ns >= 0, a->p99_ns);
	known_int(j, "max_ns", a->max_ns >= 0, a->max_ns);
	json_end_object(j);
}

static void thread(struct json *j, const struct snapshot_thread *t, int64_t now)
{
	int k;

	json_begin_object(j);
	number(j, "tid", t->tid);
	text(j, "comm", t->comm);
	estimate(j, "dispatch_share", t->dispatch_share, 5);
	estimate(j, "sync_share", t->sync_share, 5);
	estimate(j, "elsewhere_share", t->elsewhere_share, 5);
	known_double(j, "away_share", t->away_known, t->away_share, 5);
	known_double(j, "call_spin_share", t->sched_known, t->call_spin_share, 5);
	known_double(j, "call_sleep_share", t->sched_known, t->call_sleep_share, 5);
	json_key(j, "wait_share");
	if (t->sched_known) {
		json_begin_object(j);
		for (k = 0; k < WAIT_KINDS; k++)
			known_double(j, wait_kind_name((enum wait_kind)k), true,
				     t->wait_share[k], 5);
		json_end_object(j);
	} else {
		json_null(j);
	}
	known_double(j, "overhead_pct", true, t->overhead_pct, 4);
	json_key(j, "open_call");
	json_string(j, t->open_api ? catalogue_get(t->open_api)->name : NULL);
	known_int(j, "open_ns", t->open_api, now - t->open_since);
	json_end_object(j);
}

static void kernel(struct json *j, const struct snapshot_kernel *k)
{
	json_begin_object(j);
	text(j, "name", k->name);
	estimate(j, "launches_per_s", k->launches_per_s, 3);
	number(j, "seen", k->seen);
	number(j, "launches_seen", k->launches);
	number(j, "total_ns", k->total_ns);
	json_end_object(j);
}

static void who(struct json *j, const struct snapshot_process *p)
{
	number(j, "pid", p->pid);
	text(j, "comm", p->comm);
	text(j, "command", p->command);
	text(j, "container", p->labels.container);
	text(j, "pod", p->labels.pod);
	text(j, "namespace", p->labels.namespace);
	text(j, "slurm_job", p->labels.slurm_job);
	text(j, "rank", p->labels.rank);
	text(j, "gpu_uuid", p->gpu_uuid);
	flag(j, "gpu_shared", p->gpu_shared);
}

static void rates(struct json *j, const struct snapshot_process *p)
{
	bool more = p->throttled_share >= 0;

	estimate(j, "launches_per_s", p->launches_per_s, 3);
	number(j, "launches_seen", p->launches_seen);
	known_int(j, "dispatch_p50_ns", p->dispatch_p50_ns >= 0, p->dispatch_p50_ns);
	known_int(j, "dispatch_p99_ns", p->dispatch_p99_ns >= 0, p->dispatch_p99_ns);
	number(j, "recent_ns", (uint64_t)p->recent_ns);
	estimate(j, "dispatch_share", p->dispatch_share, 5);
	estimate(j, "sync_share", p->sync_share, 5);
	estimate(j, "elsewhere_share", p->elsewhere_share, 5);
	estimate(j, "back_pressured_per_s", p->back_pressured_per_s, 3);
	estimate(j, "copies_per_s", p->copies_per_s, 3);
	estimate(j, "copy_bytes_per_s", p->copy_bytes_per_s, 0);
	known_int(j, "live_allocations", p->live_known, p->live_allocations);
	known_int(j, "live_bytes", p->live_known, p->live_bytes);
	estimate(j, "errors_per_s", p->errors_per_s, 3);
	number(j, "cold_starts", p->cold_starts);
	number(j, "cold_ns", p->cold_ns);
	known_double(j, "tree_cpu_pct", p->tree_cpu_pct >= 0, p->tree_cpu_pct, 1);
	known_double(j, "tree_io_bytes_per_s", p->tree_io_bytes_per_s >= 0,
		     p->tree_io_bytes_per_s, 0);
	known_double(j, "throttled_share", more, p->throttled_share, 5);
	known_double(j, "overhead_pct", true, p->overhead_pct, 4);
	known_double(j, "coverage", true, p->coverage, 5);
}

static void verdict(struct json *j, const struct snapshot_verdict *v)
{
	json_key(j, "verdict");
	json_string(j, diag_verdict_words[v->verdict]);
	json_key(j, "verdict_why");
	json_string(j, v->why);
	json_key(j, "verdict_basis");
	json_string(j, diag_basis_words[v->basis]);
	json_key(j, "verdict_shares");
	json_begin_object(j);
	for (int i = 0; i < CLASSES; i++) /* without those that need GPU time */
		if (i != CLASS_SYNC && i != CLASS_OTHER && i != CLASS_SHARED)
			estimate(j, diag_class_words[i], v->share[i], 4);
	json_end_object(j);
}

static void sibling(struct json *j, const struct snapshot_process *p)
{
	json_key(j, "lock_sibling");
	if (!p->sibling_tid) {
		json_null(j);
		return;
	}
	json_begin_object(j);
	number(j, "tid", p->sibling_tid);
	text(j, "comm", p->sibling_comm);
	known_double(j, "share", true, p->sibling_share, 4);
	json_end_object(j);
}

static void apis(struct json *j, const struct snapshot_process *p)
{
	size_t i;

	json_begin_array(j);
	for (i = 0; i < p->apis_count; i++)
		api(j, &p->apis[i]);
	json_end_array(j);
}

static void kernels(struct json *j, const struct snapshot_process *p)
{
	size_t i;

	json_begin_array(j);
	for (i = 0; i < p->kernels_count; i++)
		kernel(j, &p->kernels[i]);
	json_end_array(j);
}

static void process(struct json *j, const struct snapshot_process *p, unsigned rows, int64_t now)
{
	size_t i;

	json_begin_object(j);
	who(j, p);
	rates(j, p);
	verdict(j, &p->verdict);
	sibling(j, p);
	json_key(j, "threads");
	json_begin_array(j);
	for (i = 0; i < p->threads_count; i++)
		thread(j, &p->threads[i], now);
	json_end_array(j);
	json_key(j, "apis");
	if (rows & LIVE_APIS)
		apis(j, p);
	else
		json_null(j);
	json_key(j, "kernels");
	if (rows & LIVE_KERNELS)
		kernels(j, p);
	else
		json_null(j);
	json_end_object(j);
}

static void gpu_processes(struct json *j, const struct gpu_sample *g)
{
	bool known = g->has & GPU_HAS_PROCESSES;
	uint32_t i;

	known_int(j, "processes_count", known, g->processes_count);
	json_key(j, "processes");
	json_begin_array(j);
	for (i = 0; known && i < g->processes_count && i < GPU_PROCESSES; i++)
		json_uint(j, g->processes[i]);
	json_end_array(j);
}

static void gpu(struct json *j, const struct gpu_sample *g)
{
	char reasons[256];
	uint32_t h = g->has;

	json_begin_object(j);
	number(j, "index", g->index);
	text(j, "uuid", g->uuid);
	text(j, "name", g->name);
	text(j, "pci", g->pci);
	text(j, "mig_parent", g->mig_parent);
	known_int(j, "clock_sm_mhz", h & GPU_HAS_CLOCK_SM, g->clock_sm_mhz);
	known_int(j, "clock_memory_mhz", h & GPU_HAS_CLOCK_MEMORY, g->clock_memory_mhz);
	known_int(j, "power_mw", h & GPU_HAS_POWER, g->power_mw);
	known_int(j, "power_limit_mw", h & GPU_HAS_POWER_LIMIT, g->power_limit_mw);
	known_int(j, "temperature_c", h & GPU_HAS_TEMPERATURE, g->temperature_c);
	known_int(j, "throttle_bits", h & GPU_HAS_THROTTLE, (int64_t)g->throttle);
	json_key(j, "throttle");
	json_string(j, h & GPU_HAS_THROTTLE ? gpu_throttle_text(g->throttle, reasons,
								sizeof(reasons)) : NULL);
	known_int(j, "utilisation_pct", h & GPU_HAS_UTILISATION, g->utilisation_pct);
	known_int(j, "memory_utilisation_pct", h & GPU_HAS_UTILISATION, g->memory_utilisation_pct);
	known_int(j, "memory_used_bytes", h & GPU_HAS_MEMORY, (int64_t)g->memory_used);
	known_int(j, "memory_total_bytes", h & GPU_HAS_MEMORY, (int64_t)g->memory_total);
	known_int(j, "energy_mj", h & GPU_HAS_ENERGY, (int64_t)g->energy_mj);
	known_double(j, "gpm_sm_pct", h & GPU_HAS_GPM, g->gpm_sm_pct, 2);
	known_double(j, "gpm_occupancy_pct", h & GPU_HAS_GPM, g->gpm_occupancy_pct, 2);
	known_double(j, "gpm_tensor_pct", h & GPU_HAS_GPM, g->gpm_tensor_pct, 2);
	known_double(j, "gpm_dram_pct", h & GPU_HAS_GPM, g->gpm_dram_pct, 2);
	gpu_processes(j, g);
	number(j, "xid_errors", g->xid_count);
	known_int(j, "xid_last", g->xid_last, g->xid_last);
	json_end_object(j);
}

static void self(struct json *j, const struct snapshot_self *s)
{
	json_begin_object(j);
	known_double(j, "overhead_pct", true, s->overhead_pct, 4);
	known_double(j, "budget_pct", true, s->budget_pct, 4);
	known_int(j, "worst_pid", s->worst_pid, s->worst_pid);
	known_int(j, "worst_tid", s->worst_tid, s->worst_tid);
	known_double(j, "cpu_pct", true, s->cpu_pct, 3);
	number(j, "rss_bytes", s->rss_bytes);
	number(j, "maps_bytes", s->maps_bytes);
	known_double(j, "coverage", true, s->coverage, 5);
	number(j, "cost_entry_ns", s->cost_entry_ns);
	number(j, "cost_pair_ns", s->cost_pair_ns);
	number(j, "cost_launch_ns", s->cost_launch_ns);
	number(j, "windows", s->windows);
	number(j, "lost_calls", s->lost);
	number(j, "unmatched_calls", s->unmatched);
	json_key(j, "limit");
	json_string(j, s->limit);
	json_end_object(j);
}

void live_json(const struct snapshot *s, unsigned rows, FILE *out)
{
	struct json j;
	size_t i;

	json_init(&j, out);
	json_begin_object(&j);
	number(&j, "time_ns", (uint64_t)s->time_ns);
	number(&j, "mono_ns", (uint64_t)s->mono_ns);
	number(&j, "window_ns", (uint64_t)s->window_ns);
	json_key(&j, "processes");
	json_begin_array(&j);
	for (i = 0; i < s->processes_count; i++)
		process(&j, &s->processes[i], rows, s->mono_ns);
	json_end_array(&j);
	json_key(&j, "gpus");
	json_begin_array(&j);
	for (i = 0; i < s->gpus_count; i++)
		gpu(&j, &s->gpus[i]);
	json_end_array(&j);
	json_key(&j, "gpus_trouble");
	json_string(&j, s->gpus_trouble);
	json_key(&j, "self");
	self(&j, &s->self);
	json_end_object(&j);
	putc('\n', out);
}
