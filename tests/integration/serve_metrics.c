/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Serves made-up snapshots, whose numbers tests know. Reads commands from stdin:
 *
 *   next     another interval: every process makes its calls once more
 *   end      the first process ends
 *   stop     stops the server, twice
 *
 * each answered by "done" (next and end with the time that the update took, us); ends at EOF.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "export/serve.h"
#include "probe/catalogue.h"

#define CALLS 10 /* an interval, of every API */
#define SECOND INT64_C(1000000000)

struct made {
	struct snapshot s;
	struct snapshot_process *processes;
	struct histogram *histograms;
	struct gpu_sample gpu;
	struct snapshot_thread thread;
	size_t apis;
};

static void make_process(struct made *m, size_t i)
{
	struct snapshot_process *p = &m->processes[i];

	p->pid = (uint32_t)(1000 + i);
	snprintf(p->comm, sizeof(p->comm), "%s", "job \"\\\n\xff");
	p->command = "job --token=secret";
	snprintf(p->labels.pod, sizeof(p->labels.pod), "pod-%zu", i);
	snprintf(p->labels.namespace, sizeof(p->labels.namespace), "ml");
	snprintf(p->labels.rank, sizeof(p->labels.rank), "%zu", i);
	snprintf(p->gpu_uuid, sizeof(p->gpu_uuid), "%s", m->gpu.uuid);
	p->launches_per_s = (struct estimate){ true, 1000.5, 900.25, 1100.75 };
	p->dispatch_share = (struct estimate){ true, 0.25, 0.2, 0.3 };
	p->sync_share = (struct estimate){ true, 0.5, 0.5, 0.5 };
	p->elsewhere_share = (struct estimate){ true, 0.25, 0.2, 0.3 };
	p->live_known = true;
	p->live_bytes = 1 << 20;
	p->overhead_pct = 0.5;
	p->coverage = 0.125;
	p->tree_cpu_pct = p->tree_io_bytes_per_s = p->throttled_share = -1;
	p->launch_ever = p->sync_ever = &m->histograms[i];
	p->threads = &m->thread;
	p->threads_count = 1;
	p->apis = calloc(m->apis, sizeof(*p->apis));
	p->apis_count = p->apis ? m->apis : 0;
	for (size_t a = 0; a < p->apis_count; a++)
		p->apis[a].api = (uint16_t)(a + 1);
}

static bool make(struct made *m, size_t processes, size_t apis)
{
	m->apis = apis < catalogue_count() ? apis : catalogue_count();
	m->processes = calloc(processes, sizeof(*m->processes));
	m->histograms = calloc(processes, sizeof(*m->histograms));
	if (!m->processes || !m->histograms)
		return false;
	snprintf(m->gpu.uuid, sizeof(m->gpu.uuid), "GPU-11111111-2222-3333-4444-555555555555");
	snprintf(m->gpu.name, sizeof(m->gpu.name), "Made-up GPU");
	m->gpu.has = GPU_HAS_POWER | GPU_HAS_THROTTLE | GPU_HAS_ENERGY;
	m->gpu.power_mw = 123500;
	m->gpu.throttle = 4;
	m->gpu.energy_mj = 5000;
	m->thread.sched_known = true;
	m->thread.dispatch_share = (struct estimate){ true, 0.25, 0.2, 0.3 };
	m->thread.sync_share = (struct estimate){ true, 0.5, 0.5, 0.5 };
	m->thread.wait_share[WAIT_LOCK] = 0.125;
	for (size_t i = 0; i < processes; i++)
		make_process(m, i);
	m->s = (struct snapshot){
		.time_ns = time(NULL) * SECOND, .window_ns = SECOND, .processes = m->processes,
		.processes_count = processes, .gpus = &m->gpu, .gpus_count = 1,
		.self = { .budget_pct = 1, .rss_bytes = 1 << 24, .windows = 3 },
	};
	return true;
}

static void next_interval(struct made *m)
{
	m->s.mono_ns += SECOND;
	m->s.time_ns += SECOND;
	for (size_t i = 0; i < m->s.processes_count; i++) {
		struct snapshot_process *p = &m->s.processes[i];
		struct histogram *h = &m->histograms[p->pid - 1000];

		for (size_t a = 0; a < p->apis_count; a++) {
			p->apis[a].calls += CALLS;
			p->apis[a].total_ns += CALLS * 1500;
			p->apis[a].bytes += a == 2 ? 4096 : 0;
		}
		for (int k = 0; k < CALLS; k++)
			histogram_count(h, UINT64_C(1000) << k);
	}
}

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void obey(struct made *m, struct metrics *metrics, struct serve *serve)
{
	char line[64];

	while (fgets(line, sizeof(line), stdin)) {
		int64_t began;

		if (!strcmp(line, "stop\n")) {
			serve_stop(serve);
			serve_stop(serve);
			puts("done");
			continue;
		}
		if (!strcmp(line, "end\n")) {
			m->s.processes++;
			m->s.processes_count--;
		}
		next_interval(m);
		began = now_us();
		if (metrics_update(metrics, &m->s))
			exit(1);
		printf("done %" PRId64 "\n", now_us() - began);
	}
}

static void made_free(struct made *m, size_t processes)
{
	for (size_t i = 0; i < processes; i++)
		free(m->processes[i].apis);
	free(m->processes);
	free(m->histograms);
}

static size_t parse(int argc, char **argv, struct serve_options *o, struct metrics_options *mo,
		    size_t *apis)
{
	size_t processes = 3;
	int c;

	while ((c = getopt(argc, argv, "l:c:k:a:L:t:n:i:m:p")) != -1)
		switch (c) {
		case 'l': o->address = optarg; break;
		case 'c': o->cert_file = optarg; break;
		case 'k': o->key_file = optarg; break;
		case 'a': o->auth_file = optarg; break;
		case 'L': o->library = optarg; break;
		case 't': o->timeout_s = (unsigned)atoi(optarg); break;
		case 'n': processes = (size_t)atoi(optarg); break;
		case 'i': *apis = (size_t)atoi(optarg); break;
		case 'm': mo->max_sets = (size_t)atoi(optarg); break;
		case 'p': mo->include_pid = true; break;
		default: exit(2);
		}
	return processes;
}

int main(int argc, char **argv)
{
	struct serve_options o = { .address = "127.0.0.1:0" };
	struct metrics_options mo = { .include_pid = false };
	struct metrics *metrics = NULL;
	struct serve *serve = NULL;
	struct made m = { .apis = 0 };
	size_t apis = 5, processes = parse(argc, argv, &o, &mo, &apis);
	char why[512];
	int err;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!make(&m, processes, apis) || metrics_new(&metrics, &mo))
		abort();
	next_interval(&m);
	if (metrics_update(metrics, &m.s))
		abort();
	err = serve_new(&serve, &o, metrics, why, sizeof(why));
	if (*why)
		fprintf(stderr, "%s\n", why);
	if (!err) {
		printf("ready %s\n", serve_url(serve));
		obey(&m, metrics, serve);
	}
	serve_free(serve);
	metrics_free(metrics);
	made_free(&m, processes);
	return err ? 1 : 0;
}
