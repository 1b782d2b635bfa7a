// SPDX-License-Identifier: BSD-2-Clause
/*
 * Trace files for benchmarks: prints JSON.
 *
 *   bench_export make FILE STEPS SCALE   a job with GPU work: a step is 80 launches of 40
 *                                        kernels, a copy and a wait, times jittered; SCALE
 *                                        10: the queue is full, 1: the GPU waits
 *   bench_export write FILE FORMAT OUT   what it takes to export it, once it is loaded
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "export/trace.h"
#include "record/writer.h"
#include "tools/bench/bench.h"

#define KERNELS 40
#define LAUNCHES 80
#define PID 4242
#define STREAMS 2

struct job {
	struct writer *w;
	uint64_t random;
	int64_t now, free_at[STREAMS];
	uint32_t correlation;
	uint64_t scale; /* of how long kernels take */
	int err;
};

static uint64_t below(struct job *j, uint64_t limit)
{
	j->random ^= j->random << 13;
	j->random ^= j->random >> 7;
	j->random ^= j->random << 17;
	return j->random % limit;
}

static void add(struct job *j, const struct record *r)
{
	if (!j->err)
		j->err = writer_add(j->w, r);
}

static void describe(struct job *j, const char *name, const char *kind, uint32_t id)
{
	add(j, &(struct record){.kind = RECORD_API, .api = {.id = id, .name = name,
							    .library = "driver", .kind = kind}});
}

static void begin(struct job *j)
{
	const struct record_device h200 = {
		.pid = PID, .uuid = "GPU-1", .name = "NVIDIA H200", .memory = 150109880320,
		.major = 9, .sms = 132, .warp = 32, .block_threads = 1024, .sm_threads = 2048,
		.sm_blocks = 32, .block_registers = 65536, .sm_registers = 65536,
		.block_smem = 49152, .block_smem_optin = 232448, .sm_smem = 233472,
		.reserved_smem = 1024};
	char name[128];

	describe(j, "cuLaunchKernel", "launch", 1);
	describe(j, "cuMemcpyDtoHAsync_v2", "copy", 2);
	describe(j, "cuStreamSynchronize", "sync", 3);
	add(j, &(struct record){.kind = RECORD_DEVICE, .device = h200});
	for (uint32_t i = 0; i < KERNELS; i++) {
		snprintf(name, sizeof(name), "_ZN2at6native29vectorized_elementwise_%02uEPfi", i);
		add(j, &(struct record){.kind = RECORD_SHAPE, .shape = {
			.pid = PID, .id = i + 1, .kernel = name, .grid = {16 * (i + 1), 1, 1},
			.block = {128, 1, 1}, .registers = 32 + i}});
		add(j, &(struct record){.kind = RECORD_NAME, .name = {
			.pid = PID, .handle = 0x1000 + i, .name = name, .len = strlen(name)}});
	}
	add(j, &(struct record){.kind = RECORD_SIDECAR, .sidecar = {
		.ts = j->now, .pid = PID, .event = RECORD_SIDECAR_BEGAN, .text = ""}});
}

static void event(struct job *j, const struct event *e)
{
	if (!j->err)
		j->err = writer_events(j->w, e, 1);
}

/* A call that lasts about typical ns, and CUPTI's record of it. */
static int64_t call(struct job *j, struct event e, int64_t typical)
{
	int64_t begun = j->now, lasts = typical + (int64_t)below(j, (uint64_t)typical);

	e.ts = begun;
	e.pid = e.tid = PID;
	e.sp = 0x7000;
	e.image = 1;
	e.kind = EVENT_BEGIN;
	event(j, &e);
	add(j, &(struct record){.kind = RECORD_WORK_CALL, .work_call = {
		.begin = begun + 300, .duration = (uint64_t)lasts - 600, .pid = PID, .tid = PID,
		.domain = 1, .cbid = 307, .correlation = ++j->correlation}});
	j->now += lasts;
	e.ts = j->now;
	e.kind = EVENT_END;
	e.args = 0;
	e.end.ret = 0;
	event(j, &e);
	j->now += 400 + (int64_t)below(j, 6000);
	return begun;
}

static void work(struct job *j, int64_t asked, struct record_work w, uint64_t typical)
{
	int64_t *free_at = &j->free_at[w.stream - 7];

	w.begin = asked + 4000 + (int64_t)below(j, 4000);
	if (w.begin < *free_at)
		w.begin = *free_at + 700 + (int64_t)below(j, 600);
	w.duration = typical + below(j, typical / 4);
	*free_at = w.begin + (int64_t)w.duration;
	w.pid = PID;
	w.context = 1;
	w.peer = UINT32_MAX;
	w.correlation = j->correlation;
	add(j, &(struct record){.kind = RECORD_WORK, .work = w});
}

static void step(struct job *j)
{
	struct event e = {.args = EVENT_ARGS_CALL, .api = 2};
	int64_t asked, drained = 0;

	for (uint32_t i = 0; i < LAUNCHES; i++) {
		uint32_t kernel = i * 7 % KERNELS, stream = i % 10 == 9;
		struct event l = {.args = EVENT_ARGS_LAUNCH, .api = 1, .launch = {
			.func = 0x1000 + kernel, .stream = 0x5500 + stream,
			.grid = {16 * (kernel + 1), 1, 1}, .block = {128, 1, 1}}};

		asked = call(j, l, 3000);
		work(j, asked,
		     (struct record_work){.kind = RECORD_WORK_KERNEL, .stream = 7 + stream,
					  .shape = kernel + 1},
		     200 * j->scale + kernel * 30 * j->scale);
	}
	e.call.bytes = 4096;
	asked = call(j, e, 4000);
	work(j, asked, (struct record_work){.kind = RECORD_WORK_COPY, .stream = 7, .bytes = 4096,
					    .direction = 2, .source = 3, .target = 1}, 2000);
	e.api = 3;
	for (int i = 0; i < STREAMS; i++) /* waits for the GPU, as a job does once a step */
		drained = j->free_at[i] > drained ? j->free_at[i] : drained;
	call(j, e, drained > j->now + 2000 ? drained - j->now : 2000);
}

static int make(const char *path, uint64_t steps, uint64_t scale)
{
	struct job j = {.random = 88172645463325252u, .now = 86400000000000, .scale = scale};
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	int64_t first = j.now - 1000;

	if (fd < 0)
		return -errno;
	j.err = writer_new(&j.w, fd, 1790000000000000000);
	if (j.err)
		return j.err;
	begin(&j);
	for (uint64_t i = 0; i < steps && !j.err; i++)
		step(&j);
	add(&j, &(struct record){.kind = RECORD_SIDECAR, .sidecar = {
		.ts = j.now, .pid = PID, .event = RECORD_SIDECAR_ENDED, .text = ""}});
	add(&j, &(struct record){.kind = RECORD_WINDOW, .window = {first, j.now + 1000}});
	puts("{}");
	return j.err ? j.err : writer_close(j.w);
}

/* ---- writing ---- */

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* VmRSS or VmHWM, bytes. */
static uint64_t memory(const char *what)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	uint64_t kib = 0;

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, what, strlen(what)))
			kib = strtoull(line + strlen(what) + 1, NULL, 10);
	if (f)
		fclose(f);
	return kib * 1024;
}

/* Forget the peak of loading: VmHWM starts anew. */
static void peak_reset(void)
{
	int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, "5", 1) != 1)
		perror("clear_refs");
	close(fd);
}

static int load(const char *path, struct session **s)
{
	struct reader *r;
	int err = reader_open(&r, path);

	if (err)
		return err;
	err = session_load(s, r);
	reader_close(r);
	return err;
}

static int export(const char *path, const char *format, const char *out)
{
	const struct export_writer *w = export_writer_named(format);
	struct export_options o = EXPORT_ALL;
	char why[256] = "";
	struct export_file *f;
	struct session *s;
	uint64_t before;
	double began;
	int err = load(path, &s);

	if (err || !w)
		return err ? err : -EINVAL;
	o.compat = getenv("COMPAT") != NULL;
	malloc_trim(0); /* what loading left is not the writer's */
	peak_reset();
	before = memory("VmRSS:");
	began = cpu_s();
	err = export_open(&f, out, w->quick);
	if (!err)
		err = w->write(s, &o, f, why, sizeof(why));
	if (!err)
		err = export_commit(f);
	printf("{\"calls\": %zu, \"works\": %zu, \"cpu_s\": %.4f, \"bytes\": %" PRIu64
	       ", \"memory\": %" PRIu64 "}\n", s->calls_count, s->works_count, cpu_s() - began,
	       err ? 0 : export_size(f), memory("VmHWM:") - before);
	export_close(f);
	session_free(s);
	return err;
}

int main(int argc, char **argv)
{
	int err = -EINVAL;

	if (argc == 5 && !strcmp(argv[1], "make"))
		err = make(argv[2], strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10));
	else if (argc == 5 && !strcmp(argv[1], "write"))
		err = export(argv[2], argv[3], argv[4]);
	if (err)
		fprintf(stderr, "bench_export: %s\n", strerror(-err));
	return err != 0;
}
