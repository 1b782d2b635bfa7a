// SPDX-License-Identifier: BSD-2-Clause
/*
 * How fast the loader empties the rings into a file: prints JSON. A program in
 * the kernel, run from threads of its own, writes the records that calls would;
 * everything behind the rings is what `gbpf trace` runs.
 *
 *   bench_drain RATE SECONDS FILE
 *
 * RATE is records a second, half of them from each of two CPUs, and what finds no
 * room is lost; 0: from one CPU, the other being the loader's, as many as there is
 * room for, so that the loader never rests.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "bpf/bench.h" /* before the skeleton, which needs it */

#include "bench.skel.h"
#include "probe/catalogue.h"
#include "tools/bench/bench.h"
#include "trace/tracer.h"

#define SECOND 1000000000LL
#define TURN_NS 500000
#define CLOSED_COUNT 20000

struct fill {
	struct gbpf_bench *skel;
	uint64_t rate; /* of all together */
	atomic_bool stop;
	struct filler {
		struct fill *all;
		unsigned cpu;
		uint64_t rate, written, refused;
		struct bench_fill state;
		pthread_t thread;
		bool started;
		int err;
	} filler[2];
};

static int fill_run(struct filler *f, uint32_t count)
{
	struct bench_fill *s = &f->state;
	/* the kernel writes it back to where it came from */
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = s, .ctx_size_in = sizeof(*s));

	s->count = count;
	s->written = s->refused = 0;
	if (bpf_prog_test_run_opts(bpf_program__fd(f->all->skel->progs.fill), &opts))
		return -errno;
	f->written += s->written;
	f->refused += s->refused;
	return 0;
}

static void *filler_main(void *ctx)
{
	struct timespec turn = {.tv_nsec = TURN_NS};
	struct filler *f = ctx;
	int64_t begin = bench_clock(CLOCK_MONOTONIC);

	bench_pin(f->cpu);
	f->state.tid = (uint32_t)gettid();
	while (!f->err && !atomic_load(&f->all->stop)) {
		double passed = (double)(bench_clock(CLOCK_MONOTONIC) - begin) / SECOND;
		uint64_t due = (uint64_t)(passed * (double)f->rate);
		uint64_t done = f->written + f->refused;

		if (!f->rate)
			f->err = fill_run(f, CLOSED_COUNT);
		else if (due > done)
			f->err = fill_run(f, (uint32_t)(due - done));
		nanosleep(&turn, NULL);
	}
	return NULL;
}

static int fill_open(struct fill *f, struct probes *p)
{
	uint32_t i, rings = (uint32_t)probes_ring_count(p);
	struct bench_fill_options *o;
	int fd, err;

	f->skel = gbpf_bench__open();
	if (!f->skel)
		return -errno;
	bpf_map__set_max_entries(f->skel->maps.rings, rings);
	err = gbpf_bench__load(f->skel);
	if (err)
		return err;
	for (i = 0; i < rings; i++) {
		fd = probes_ring_fd(p, i);
		if (bpf_map_update_elem(bpf_map__fd(f->skel->maps.rings), &i, &fd, BPF_ANY))
			return -errno;
	}
	o = &f->skel->bss->options;
	o->pid = (uint32_t)getpid();
	o->ring_mask = rings - 1;
	o->stop_when_full = !f->rate;
	o->launch = catalogue_find("cuLaunchKernel");
	o->copy = catalogue_find("cuMemcpyHtoDAsync_v2");
	o->sync = catalogue_find("cuStreamSynchronize");
	return 0;
}

static int fill_start(struct fill *f)
{
	unsigned i;
	int err;

	for (i = 0; i < 2; i++) {
		struct filler *one = &f->filler[i];

		if (!f->rate && !i)
			continue;
		one->all = f;
		one->cpu = i;
		one->rate = f->rate / 2;
		err = pthread_create(&one->thread, NULL, filler_main, one);
		if (err)
			return -err;
		one->started = true;
	}
	return 0;
}

static int fill_stop(struct fill *f)
{
	int err = 0;
	unsigned i;

	atomic_store(&f->stop, true);
	for (i = 0; i < 2; i++) {
		if (f->filler[i].started)
			pthread_join(f->filler[i].thread, NULL);
		if (f->filler[i].err)
			err = f->filler[i].err;
	}
	return err;
}

static int drain(struct tracer *t, struct fill *f, double seconds)
{
	int64_t until = bench_clock(CLOCK_MONOTONIC) + (int64_t)(seconds * SECOND);
	int err = fill_start(f), last;

	bench_pin(0);
	while (!err && bench_clock(CLOCK_MONOTONIC) < until)
		err = tracer_step(t, SECOND / 4, -1);
	last = fill_stop(f);
	err = err ? err : last;
	last = tracer_stop(t); /* takes what the last turn brought */
	return err ? err : last;
}

static void report(const struct tracer *t, const struct fill *f, double cpu, double wall)
{
	struct tracer_stats stats;
	struct rusage usage;

	tracer_stats(t, &stats);
	getrusage(RUSAGE_SELF, &usage);
	printf("{\"rate\": %" PRIu64 ", \"written\": %" PRIu64 ", \"refused\": %" PRIu64
	       ", \"events\": %" PRIu64 ", \"lost\": %" PRIu64 ", \"bytes\": %" PRIu64
	       ", \"cpu_s\": %.6f, \"wall_s\": %.6f, \"max_rss_kib\": %ld}\n",
	       f->rate, f->filler[0].written + f->filler[1].written,
	       f->filler[0].refused + f->filler[1].refused, stats.events, stats.lost,
	       stats.bytes_written,
	       cpu, wall, usage.ru_maxrss);
}

static int measure(struct tracer *t, struct fill *f, double seconds, const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int64_t cpu, wall;
	char why[512];
	int err;

	if (fd < 0)
		return -errno;
	err = tracer_start(t, fd, why, sizeof(why));
	if (!err)
		err = fill_open(f, tracer_probes(t));
	if (err)
		return err;
	cpu = bench_clock(CLOCK_THREAD_CPUTIME_ID);
	wall = bench_clock(CLOCK_MONOTONIC);
	err = drain(t, f, seconds);
	cpu = bench_clock(CLOCK_THREAD_CPUTIME_ID) - cpu;
	wall = bench_clock(CLOCK_MONOTONIC) - wall;
	if (!err)
		report(t, f, (double)cpu / SECOND, (double)wall / SECOND);
	return err;
}

int main(int argc, char **argv)
{
	static struct selection selection;
	uint32_t self = (uint32_t)getpid();
	struct tracer_options o = {
		.selection = &selection, .pids = &self, .pids_count = 1, .command_line = "bench"};
	struct fill f = {0};
	struct tracer *t = NULL;
	char why[512] = "";
	int err;

	if (argc != 4) {
		fprintf(stderr, "usage: bench_drain RATE SECONDS FILE\n");
		return 2;
	}
	f.rate = strtoull(argv[1], NULL, 10);
	err = selection_parse(&selection, "driver", why, sizeof(why));
	if (!err)
		err = tracer_new(&t, &o, why, sizeof(why));
	if (!err)
		err = measure(t, &f, strtod(argv[2], NULL), argv[3]);
	gbpf_bench__destroy(f.skel);
	tracer_free(t);
	return err ? bench_fail("bench_drain", err) : 0;
}
