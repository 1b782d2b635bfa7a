/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How fast the .gbpf file is written and read, by one core, and how large it
 * gets: prints JSON. Usage: bench_record [EVENTS]. The file is in memory, so
 * that no disk is measured; speeds are of CPU time.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "record/reader.h"
#include "record/writer.h"
#include "tests/record_data.h"

#define BATCH 1024
#define POOL (BATCH * 1024)

struct result {
	double write_s, read_s;
	uint64_t bytes, events;
};

static double cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* Events are made beforehand, a pool at a time, and making them is not counted. */
static int write_events(struct result *r, struct data *d, int fd, uint64_t events)
{
	struct event *pool = malloc(POOL * sizeof(*pool));
	struct writer *w = NULL;
	int err = pool ? writer_new(&w, dup(fd), 0) : -ENOMEM;

	while (!err && r->events < events) {
		double begin;

		for (size_t i = 0; i < POOL; i++)
			data_next(d, &pool[i]);
		begin = cpu_seconds();
		for (size_t i = 0; !err && i < POOL; i += BATCH)
			err = writer_events(w, pool + i, BATCH);
		r->write_s += cpu_seconds() - begin;
		r->events += POOL;
	}
	if (w) {
		double begin = cpu_seconds();
		int last = writer_flush(w);

		r->bytes = writer_size(w);
		err = err ? err : last;
		last = writer_close(w);
		err = err ? err : last;
		r->write_s += cpu_seconds() - begin;
	}
	free(pool);
	return err;
}

static int read_events(struct result *r, int fd)
{
	double begin = cpu_seconds();
	struct record record;
	struct reader *in;
	uint64_t events = 0;
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	err = reader_open(&in, path);
	if (err)
		return err;
	while ((err = reader_next(in, &record)) > 0)
		events += record.events.count;
	if (!err && (events != r->events || reader_end(in) != READER_END_WHOLE))
		err = -EBADMSG;
	reader_close(in);
	r->read_s = cpu_seconds() - begin;
	return err;
}

static int measure(const char *name, unsigned int threads, bool shuffled, uint64_t events)
{
	struct result r = {0};
	struct data d;
	int fd = memfd_create("bench", MFD_CLOEXEC);
	int err = fd < 0 ? -errno : 0;

	data_begin(&d, 1, threads, shuffled);
	if (!err)
		err = write_events(&r, &d, fd, events);
	if (!err)
		err = read_events(&r, fd);
	if (fd >= 0)
		close(fd);
	if (err)
		return err;
	printf("{\"data\": \"%s\", \"threads\": %u, \"events\": %" PRIu64
	       ", \"write_events_per_s\": %.0f, \"read_events_per_s\": %.0f"
	       ", \"bytes_per_event\": %.3f}",
	       name, threads, r.events, (double)r.events / r.write_s,
	       (double)r.events / r.read_s, (double)r.bytes / (double)r.events);
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t events = argc > 1 ? strtoull(argv[1], NULL, 10) : 4 * POOL;
	static const struct {
		const char *name;
		unsigned int threads;
		bool shuffled;
	} jobs[] = {{"steps", 1, false}, {"steps", 8, false}, {"shuffled", 8, true}};
	int err = 0;

	printf("{\"bench\": \"record\", \"results\": [\n");
	for (size_t i = 0; !err && i < sizeof(jobs) / sizeof(jobs[0]); i++) {
		printf(i ? ",\n  " : "  ");
		err = measure(jobs[i].name, jobs[i].threads, jobs[i].shuffled, events);
	}
	printf("\n]}\n");
	if (err)
		fprintf(stderr, "bench_record: %s\n", strerror(-err));
	return err ? 1 : 0;
}
