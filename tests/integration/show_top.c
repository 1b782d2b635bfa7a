/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shows made-up snapshots with gbpf top's screen, for tests that look at it through
 * a pseudo-terminal:
 *
 *   show_top SCENARIO [SORT [FILTER]]
 *
 * After 90 intervals another comes with every byte 'n' on fd 3, a socket, and is
 * answered with a byte; 'e' is an interval in which the first process is gone, 'c'
 * closes. Scenario "waiting" has none at first. Prints "ended" when top has closed.
 */
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "monitor/verdict.h"
#include "probe/catalogue.h"
#include "top/top.h"

#define SECOND INT64_C(1000000000)
#define GIB (UINT64_C(1) << 30)
#define BEFORE 90
#define MANY 1000

static struct estimate counted(double value)
{
	return (struct estimate){true, value, value, value};
}

static struct estimate about(double value, double off)
{
	return (struct estimate){true, value, value - off, value + off};
}

/* ---- one process and what it does ---- */

static struct histogram *calls_around(int64_t ns, int64_t tail, uint64_t count)
{
	struct histogram *h = calloc(1, sizeof(*h));

	if (!h)
		abort();
	/* A bell, in octaves, and one call in 64 in the tail. */
	for (uint64_t i = 0; i < count; i++) {
		double spread = (double)(i * 7919 % 1000 + i * 104729 % 1000) / 1000;

		if (i % 64 == 63)
			histogram_count(h, (uint64_t)((double)tail * exp2(spread - 1)));
		else
			histogram_count(h, (uint64_t)((double)ns * exp2(2 * (spread - 1))));
	}
	return h;
}

static struct snapshot_api *add_api(struct snapshot_process *p, const char *name, bool sampled,
				    struct estimate calls, const struct histogram *h)
{
	struct snapshot_api *a = &p->apis[p->apis_count++];

	a->api = catalogue_find(name);
	a->sampled = sampled;
	a->calls_per_s = calls;
	a->calls = h->count * 40;
	a->total_ns = h->sum_ns * 40;
	a->seen = h->count;
	a->interval_ns = h->sum_ns;
	a->p50_ns = histogram_quantile(h, 0.5);
	a->p99_ns = histogram_quantile(h, 0.99);
	a->max_ns = (int64_t)h->max_ns;
	a->recent = h;
	a->ever = h;
	return a;
}

static void add_kernel(struct snapshot_process *p, const char *name, double share)
{
	struct snapshot_kernel *k = &p->kernels[p->kernels_count++];

	k->handle = 0x7f3a00001000 + 64 * p->kernels_count;
	k->name = name;
	k->seen = (uint64_t)(6200 * share);
	k->launches_per_s = about(p->launches_per_s.value * share,
				  p->launches_per_s.value * share * 0.03 / sqrt(share));
	k->launches = k->seen * 91;
	k->total_ns = k->launches * 4200;
}

static struct snapshot_thread *add_thread(struct snapshot_process *p, uint32_t tid,
					  const char *comm, double dispatch, double sync)
{
	struct snapshot_thread *th = &p->threads[p->threads_count++];

	th->tid = tid;
	snprintf(th->comm, sizeof(th->comm), "%s", comm);
	th->dispatch_share = about(dispatch, dispatch / 20);
	th->sync_share = counted(sync);
	th->elsewhere_share = about(1 - dispatch - sync, dispatch / 20);
	th->sched_known = true;
	th->launches = (uint64_t)(1000 * dispatch);
	th->call_spin_share = dispatch + 0.8 * sync;
	th->call_sleep_share = 0.2 * sync;
	th->wait_share[WAIT_RUNNING] = (1 - dispatch - sync) * 0.7;
	th->wait_share[WAIT_LOCK] = (1 - dispatch - sync) * 0.3;
	th->overhead_pct = 0.72;
	return th;
}

static struct snapshot_process *add_process(struct snapshot *s, uint32_t pid, const char *comm,
					    const char *command)
{
	struct snapshot_process *p = &s->processes[s->processes_count++];

	memset(p, 0, sizeof(*p));
	p->apis = calloc(16, sizeof(*p->apis));
	p->kernels = calloc(16, sizeof(*p->kernels));
	p->threads = calloc(16, sizeof(*p->threads));
	if (!p->apis || !p->kernels || !p->threads)
		abort();
	p->pid = pid;
	p->start = pid * SECOND;
	snprintf(p->comm, sizeof(p->comm), "%s", comm);
	p->command = command;
	p->dispatch_p50_ns = p->dispatch_p99_ns = -1;
	p->recent_ns = 10 * SECOND;
	p->tree_cpu_pct = p->tree_io_bytes_per_s = p->throttled_share = -1;
	p->overhead_pct = -1;
	p->coverage = -1;
	return p;
}

static void free_processes(struct snapshot *s)
{
	for (size_t i = 0; i < s->processes_count; i++) {
		struct snapshot_process *p = &s->processes[i];

		for (size_t a = 0; a < p->apis_count; a++)
			free((void *)p->apis[a].recent);
		free(p->apis);
		free(p->kernels);
		free(p->threads);
	}
	s->processes_count = 0;
}

/* ---- scenarios ---- */

/* Bound by the CPU: launches all the time, in windows. */
static void add_training(struct snapshot *s, unsigned k)
{
	struct snapshot_process *p = add_process(s, 4242, "python",
		"python train.py --model gpt2-xl --batch 8 --compile off --data /data/openwebtext");
	double rate = 183000 * (1 + 0.3 * sin(k / 9.0));

	snprintf(p->labels.pod, sizeof(p->labels.pod), "train-gpt2-7f9c");
	snprintf(p->labels.namespace, sizeof(p->labels.namespace), "research");
	snprintf(p->labels.container, sizeof(p->labels.container), "3f2a91c07d1e");
	snprintf(p->labels.rank, sizeof(p->labels.rank), "3");
	p->launches_per_s = about(rate, rate * 0.021);
	p->copies_per_s = about(1210, 88);
	p->copy_bytes_per_s = about(3.41e9, 0.2e9);
	p->errors_per_s = counted(0);
	p->back_pressured_per_s = about(11.5, 6);
	p->dispatch_p50_ns = 4212;
	p->dispatch_p99_ns = 11930;
	p->dispatch_share = about(0.81, 0.024);
	p->sync_share = counted(0.062);
	p->elsewhere_share = about(0.128, 0.024);
	p->live_known = true;
	p->live_allocations = 1204;
	p->live_bytes = (int64_t)(21 * GIB);
	p->cold_starts = 2;
	p->cold_ns = 31200000;
	p->overhead_pct = 0.72;
	p->coverage = 0.034;
	p->tree_cpu_pct = 412;
	p->tree_io_bytes_per_s = 181e6;
	p->throttled_share = 0;
	p->sibling_tid = 4250;
	snprintf(p->sibling_comm, sizeof(p->sibling_comm), "pt_data_worker");
	p->sibling_share = 0.64;
	p->gpu_shared = true;
	snprintf(p->gpu_uuid, sizeof(p->gpu_uuid), "GPU-0");
	add_api(p, "cuLaunchKernel", true, about(rate, rate * 0.021),
		calls_around(4212, 70000, 6200));
	add_api(p, "cuMemcpyHtoDAsync_v2", true, about(1210, 88), calls_around(7100, 90000, 420));
	add_api(p, "cuStreamSynchronize", false, counted(64), calls_around(940000, 6000000, 640));
	add_api(p, "cuMemAlloc_v2", false, counted(0.4),
		calls_around(210000, 400000, 4))->errors = 1;
	add_api(p, "cuEventRecord", true, about(0, 0), calls_around(900, 900, 1))->seen = 0;
	add_kernel(p, "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEE"
		      "St5arrayIPcLm1EEEEviT0_T1_", 0.52);
	add_kernel(p, "ampere_sgemm_128x64_tn", 0.31);
	add_kernel(p, "_Z13flash_forwardPKfS0_Pfi", 0.14);
	add_kernel(p, "", 0.03);
	add_thread(p, 4242, "python", 0.81, 0.062);
	add_thread(p, 4250, "pt_autograd_0", 0.11, 0.02);
	add_thread(p, 4251, "nccl_watchdog", 0, 0.93)->open_api =
		catalogue_find("cuStreamSynchronize");
	p->threads[2].open_since = s->mono_ns - 12300000000;
}

/* Bound by the GPU: few launches, all counted. */
static void add_serving(struct snapshot *s, unsigned k)
{
	struct snapshot_process *p = add_process(s, 51877, "tritonserver",
						 "tritonserver --model-repository=/models");

	snprintf(p->labels.container, sizeof(p->labels.container), "triton");
	p->launches_per_s = counted(640 + k % 7);
	p->copies_per_s = counted(96);
	p->copy_bytes_per_s = counted(12.5e6);
	p->errors_per_s = counted(3);
	p->back_pressured_per_s = counted(0);
	p->dispatch_p50_ns = 21400;
	p->dispatch_p99_ns = 1940000;
	p->dispatch_share = counted(0.019);
	p->sync_share = counted(0.948);
	p->elsewhere_share = counted(0.033);
	p->overhead_pct = 0.08;
	p->coverage = 1;
	p->tree_cpu_pct = 101;
	p->tree_io_bytes_per_s = 0;
	snprintf(p->gpu_uuid, sizeof(p->gpu_uuid), "GPU-1");
	add_api(p, "cuGraphLaunch", false, counted(640), calls_around(21400, 1900000, 640));
	add_api(p, "cuEventSynchronize", false, counted(96), calls_around(9400000, 12000000, 96));
	add_thread(p, 51877, "tritonserver", 0.019, 0.948);
}

/* Just come: nothing is known of it yet. */
static void add_newcomer(struct snapshot *s)
{
	add_process(s, 52001, "a.out", "./a.out");
}

static void set_gpu(struct gpu_sample *g, uint32_t i)
{
	memset(g, 0, sizeof(*g));
	g->index = i;
	g->has = ~0u;
	snprintf(g->uuid, sizeof(g->uuid), "GPU-%u", i);
	snprintf(g->name, sizeof(g->name), "NVIDIA H100 80GB HBM3");
	snprintf(g->pci, sizeof(g->pci), "00000000:%02X:00.0", 0x1b + i);
	g->utilisation_pct = i ? 97 : 44;
	g->memory_utilisation_pct = 31;
	g->power_mw = i ? 698123 : 311400;
	g->power_limit_mw = 700000;
	g->temperature_c = i ? 71 : 48;
	g->clock_sm_mhz = i ? 1605 : 1980;
	g->clock_memory_mhz = 2619;
	g->memory_used = (i ? 61 : 23) * GIB;
	g->memory_total = 80 * GIB;
	g->throttle = i ? 4 : 0;
	g->gpm_sm_pct = i ? 88 : 31;
	g->gpm_occupancy_pct = 24;
	g->gpm_tensor_pct = i ? 46 : 3;
	g->gpm_dram_pct = 17;
	g->processes_count = i ? 1 : 2;
	if (i == 3) {
		g->has = GPU_HAS_TEMPERATURE;
		g->xid_last = 79;
		g->xid_count = 1;
	}
}

static void add_hostile(struct snapshot *s)
{
	struct snapshot_process *p;

	p = add_process(s, 10, "\x1b[2J\x1b[31mred", "\x1b]0;owned\x07 --evil\n--line");
	p->launches_per_s = counted(9);
	snprintf(p->labels.pod, sizeof(p->labels.pod), "pod\r\nfake line");
	snprintf(p->gpu_uuid, sizeof(p->gpu_uuid), "\x1b[1mGPU");
	add_api(p, "cuLaunchKernel", false, counted(9), calls_around(5000, 9000, 9));
	add_kernel(p, "\x1b[5mblink\xe2\x80\xae" "desrever", 0.6);
	add_kernel(p, "_ZN99999999999999999999E", 0.4);
	add_thread(p, 10, "\x9b" "31mred", 0.5, 0.2);
	p = add_process(s, 11, "gr\xc3\xbc\xc3\x9f" "e",
			"\xe4\xb8\xad\xe6\x96\x87 \xf0\x9f\x9a\x80");
	p->launches_per_s = counted(8);
	p = add_process(s, 12, "\xff\xfe\xfd", "");
	p->launches_per_s = (struct estimate){true, 7, NAN, INFINITY};
	p->dispatch_share = (struct estimate){true, -3, 1e300, NAN};
	p->dispatch_p50_ns = INT64_MAX;
	p->copy_bytes_per_s = about(1e300, 1e299);
}

static void add_many(struct snapshot *s, unsigned k)
{
	static char commands[MANY][32];

	for (unsigned i = 0; i < MANY; i++) {
		char comm[16];
		struct snapshot_process *p;

		snprintf(comm, sizeof(comm), "worker-%u", i);
		snprintf(commands[i], sizeof(commands[i]), "worker --rank %u", i);
		p = add_process(s, 2000 + i, comm, commands[i]);
		p->launches_per_s = about(100 + (i * 7919 + k) % 1000, 5);
		p->dispatch_share = about(0.3, 0.02);
		p->sync_share = counted(0.5);
		p->elsewhere_share = about(0.2, 0.02);
		p->errors_per_s = counted(0);
		add_api(p, "cuLaunchKernel", true, p->launches_per_s,
			calls_around(4000, 9000, 4));
	}
}

static void make(struct snapshot *s, struct gpu_sample *gpus, const char *scenario, unsigned k,
		 bool first_is_gone)
{
	s->time_ns = (1700000000 + (int64_t)k) * SECOND;
	s->mono_ns = (1000 + (int64_t)k) * SECOND;
	s->window_ns = SECOND;
	s->gpus = gpus;
	s->gpus_count = 2;
	s->self = (struct snapshot_self){
		.overhead_pct = 0.72, .budget_pct = 1, .worst_pid = 4242, .worst_tid = 4242,
		.cpu_pct = 0.4, .rss_bytes = 18 << 20, .maps_bytes = 3 << 20, .coverage = 0.034,
		.windows = 5};
	free_processes(s);
	if (!strcmp(scenario, "none")) {
		s->gpus_count = 0;
		s->gpus_trouble = "NVML is not here (libnvidia-ml.so.1)";
		s->self.limit = "Launches are not probed: removing a probe takes this kernel "
				"seconds, so only calls that are rare are counted.";
	} else if (!strcmp(scenario, "hostile")) {
		add_hostile(s);
	} else if (!strcmp(scenario, "many")) {
		s->gpus_count = 8;
		s->self.lost = 1234;
		s->self.overhead_pct = 1.31;
		add_many(s, k);
	} else {
		if (!first_is_gone)
			add_training(s, k);
		add_serving(s, k);
		add_newcomer(s);
	}
	for (size_t i = 0; i < s->processes_count; i++)
		verdict_live(s, &s->processes[i]);
}

int main(int argc, char **argv)
{
	static struct snapshot_process processes[MANY];
	struct gpu_sample gpus[8];
	struct snapshot s = {.processes = processes};
	const char *scenario = argc > 1 ? argv[1] : "machine";
	struct top_options o = {.version = "1.2.3", .host = "node17", .interval_ns = SECOND,
				.sort = argc > 2 && *argv[2] ? argv[2] : NULL,
				.filter = argc > 3 ? argv[3] : NULL};
	struct pollfd control = {.fd = 3, .events = POLLIN};
	char why[768], byte = 0;
	struct top *t;
	unsigned k = 0;

	signal(SIGTSTP, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	for (uint32_t i = 0; i < 8; i++)
		set_gpu(&gpus[i], i);
	if (top_new(&t, &o, why, sizeof(why)) < 0) {
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	for (; k < (strcmp(scenario, "waiting") ? BEFORE : 0); k++) {
		make(&s, gpus, scenario, k, false);
		top_update(t, &s);
	}
	while (byte != 'c' && top_step(t, SECOND / 50)) {
		while (poll(&control, 1, 0) > 0 && read(control.fd, &byte, 1) == 1 && byte != 'c') {
			make(&s, gpus, scenario, k++, byte == 'e');
			top_update(t, &s);
			if (write(control.fd, &byte, 1) != 1)
				break;
		}
	}
	top_close(t);
	top_close(t);
	top_free(t);
	free_processes(&s);
	puts("ended");
	return 0;
}
