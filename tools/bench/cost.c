// SPDX-License-Identifier: BSD-2-Clause
/*
 * What probes cost, on every rung: prints JSON, nanoseconds a call, one list of
 * samples a case. Cases take turns on one and the same function, so that what
 * the machine does meanwhile happens to all of them.
 *
 *   bench_cost ROUNDS ROUNDS_SINGLE
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "collect/rings.h"
#include "tools/bench/bench.h"
#include "tools/bench/empty.h"

#define PARTS 5	  /* samples a turn */
#define CALLS 400 /* a sample */
#define API 7	  /* any: records are thrown away */
#define IMAGE 1

#define COOKIE(shape) GBPF_COOKIE(API, IMAGE, shape)
#define ARG(which, position) GBPF_COOKIE_ARG(GBPF_ARG_##which, position)

enum { BARE = RUNG_SINGLE + 1, EMPTY_PAIR, EMPTY_SESSION, EMPTY_SINGLE };

struct bench_case {
	const char *name;
	int what; /* a rung, or one of the above */
	uint64_t cookie;
	bool unwanted, entry_only, crowd;
	long answer; /* of the probed function */
};

#define SYNC (COOKIE(GBPF_SHAPE_OBJECT) | ARG(OBJECT, 1))
#define LAUNCH COOKIE(GBPF_SHAPE_LAUNCH)
#define NOT_READY 600

/* the attribute .name = value … of a case follows its cookie */
#define CASE(n, w, c, ...) {.name = (n), .what = (w), .cookie = (c), ##__VA_ARGS__}
#define COPY_ARGS (ARG(OBJECT, 1) | ARG(SOURCE, 2) | ARG(BYTES, 3) | ARG(STREAM, 4))

static const struct bench_case cases[] = {
	CASE("bare", BARE, 0),
	CASE("floor.pair", EMPTY_PAIR, 0),
	CASE("session.sync", RUNG_SESSION, SYNC),
	CASE("session.launch", RUNG_SESSION, LAUNCH),
	CASE("floor.session", EMPTY_SESSION, 0),
	CASE("session.launch_config", RUNG_SESSION, COOKIE(GBPF_SHAPE_CONFIG)),
	CASE("session.launch_runtime", RUNG_SESSION,
	     COOKIE(GBPF_SHAPE_RT_LAUNCH) | GBPF_COOKIE_LEVEL),
	CASE("session.alloc", RUNG_SESSION, COOKIE(GBPF_SHAPE_CALL) | ARG(BYTES, 2) | ARG(OUT, 1)),
	CASE("session.copy", RUNG_SESSION, COOKIE(GBPF_SHAPE_CALL) | COPY_ARGS),
	CASE("session.poll", RUNG_SESSION, COOKIE(GBPF_SHAPE_QUERY) | ARG(OBJECT, 1),
	     .answer = NOT_READY),
	CASE("session.entry_only", RUNG_SESSION, SYNC, .entry_only = true),
	CASE("session.unwanted", RUNG_SESSION, SYNC, .unwanted = true),
	CASE("multi.sync", RUNG_MULTI, SYNC),
	CASE("multi.launch", RUNG_MULTI, LAUNCH),
	CASE("multi.unwanted", RUNG_MULTI, SYNC, .unwanted = true),
	CASE("two.floor.pair", EMPTY_PAIR, 0, .crowd = true),
	CASE("two.session.sync", RUNG_SESSION, SYNC, .crowd = true),
	CASE("two.session.launch", RUNG_SESSION, LAUNCH, .crowd = true),
	/* detaching takes a tenth of a second here: fewer rounds */
	CASE("single.floor", EMPTY_SINGLE, 0),
	CASE("single.sync", RUNG_SINGLE, SYNC),
	CASE("single.launch", RUNG_SINGLE, LAUNCH),
	CASE("single.unwanted", RUNG_SINGLE, SYNC, .unwanted = true),
};

#define CASES (sizeof(cases) / sizeof(cases[0]))
#define SLOW_CASES 4

typedef long (*target_fn)(void *, long, long, long, long, long, long, long, long);

/* Begins as the CUDA libraries' functions do; returns its last argument. */
long bench_target(void *, long, long, long, long, long, long, long, long);

#if defined(__x86_64__)
__asm__(".pushsection .text\n"
	".globl bench_target\n"
	".type bench_target, @function\n"
	".balign 64\n"
	"bench_target:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	mov 32(%rbp), %rax\n"
	"	pop %rbp\n"
	"	ret\n"
	".size bench_target, . - bench_target\n"
	".popsection\n");
#else
long __attribute__((noinline)) bench_target(void *a, long b, long c, long d, long e, long f,
					    long g, long h, long answer)
{
	__asm__ volatile("" ::: "memory");
	return answer;
}
#endif

struct bench {
	struct empty *empty;
	struct probes *probes[RUNG_SINGLE + 1]; /* NULL: not on this kernel */
	struct rings *rings[RUNG_SINGLE + 1];
	struct site_of_target {
		int fd;
		uint64_t offset;
	} site;
	double *samples[CASES];
	size_t count[CASES];
	uint64_t records[CASES], made[CASES]; /* out of the rings; calls */
	pthread_t crowd;
	atomic_int crowded; /* 1: the other thread calls, too; -1: it is to end */
	atomic_ulong crowd_calls;
};

static const void *handle[16]; /* as a kernel's: the name's address at 8 */
static const char kernel_name[] = "_Z15bench_kernel_f32PKfPfi";

static void calls(long answer, int n)
{
	volatile target_fn target = bench_target;
	int i;

	for (i = 0; i < n; i++)
		target(handle, (long)(intptr_t)handle, 4096, 1, 64, 1, 1, 0, answer);
}

static void *crowd_main(void *ctx)
{
	struct bench *b = ctx;
	int now;

	bench_pin(1);
	while ((now = atomic_load(&b->crowded)) >= 0) {
		if (now) {
			calls(0, 16);
			atomic_fetch_add(&b->crowd_calls, 16);
		} else {
			usleep(500);
		}
	}
	return NULL;
}

static int ignore_events(void *ctx, const struct event *events, size_t count)
{
	return 0;
}

static int ignore_name(void *ctx, const struct gbpf_name *name)
{
	return 0;
}

static int ignore_process(void *ctx, const struct gbpf_process *process)
{
	return 0;
}

static int rung_open(struct bench *b, enum rung rung)
{
	struct probes_options o = {.rung = rung};
	struct collect_sink sink = {ignore_events, ignore_name, ignore_process, NULL};
	int err = probes_new(&b->probes[rung], &o, NULL);

	if (err == -EOPNOTSUPP)
		return 0;
	if (err)
		return err;
	probes_name_offset(b->probes[rung], IMAGE, 8);
	probes_switches(b->probes[rung])->mode = GBPF_MODE_PIDS;
	return rings_new(&b->rings[rung], b->probes[rung], &sink);
}

static bool possible(const struct bench *b, const struct bench_case *c)
{
	if (c->what <= RUNG_SINGLE)
		return b->probes[c->what] != NULL;
	if (c->what == EMPTY_PAIR)
		return empty_has(b->empty, EMPTY_AT_MULTI);
	if (c->what == EMPTY_SESSION)
		return empty_has(b->empty, EMPTY_AT_SESSION);
	return true;
}

static int case_attach(struct bench *b, const struct bench_case *c, struct probe_link **link)
{
	struct probe_site site = {
		.offset = b->site.offset, .cookie = c->cookie, .entry_only = c->entry_only};
	struct probes *p;

	*link = NULL;
	switch (c->what) {
	case BARE:
		return 0;
	case EMPTY_PAIR:
		return empty_attach(b->empty, EMPTY_AT_MULTI, b->site.fd, b->site.offset);
	case EMPTY_SESSION:
		return empty_attach(b->empty, EMPTY_AT_SESSION, b->site.fd, b->site.offset);
	case EMPTY_SINGLE:
		return empty_attach(b->empty, EMPTY_AT_SINGLE, b->site.fd, b->site.offset);
	default:
		p = b->probes[c->what];
		probes_want(p, (uint32_t)getpid(), !c->unwanted);
		return probes_attach(p, b->site.fd, &site, 1, link);
	}
}

/* The other thread is at it before anything is measured. */
static void crowd_begin(struct bench *b)
{
	unsigned long before = atomic_load(&b->crowd_calls);

	atomic_store(&b->crowded, 1);
	while (atomic_load(&b->crowd_calls) - before < 64)
		usleep(100);
}

static int case_turn(struct bench *b, size_t at)
{
	const struct bench_case *c = &cases[at];
	struct probe_link *link;
	int err = case_attach(b, c, &link), part, n;
	int64_t begin;

	if (err)
		return err;
	if (c->crowd)
		crowd_begin(b);
	calls(c->answer, 64);
	for (part = 0; part < PARTS; part++) {
		/* time of this thread: what others do on this CPU is not ours */
		begin = bench_clock(CLOCK_THREAD_CPUTIME_ID);
		calls(c->answer, CALLS);
		b->samples[at][b->count[at]++] =
			(double)(bench_clock(CLOCK_THREAD_CPUTIME_ID) - begin) / CALLS;
	}
	atomic_store(&b->crowded, 0);
	probe_link_free(link);
	empty_detach(b->empty);
	if (c->what > RUNG_SINGLE)
		return 0;
	b->made[at] += 64 + PARTS * CALLS;
	do {
		n = rings_consume(b->rings[c->what]);
		b->records[at] += n > 0 ? (uint64_t)n : 0;
	} while (n > 0);
	return n;
}

static int measure(struct bench *b, unsigned rounds, unsigned slow_rounds)
{
	unsigned round;
	int err = 0;
	size_t i;

	for (i = 0; i < CASES; i++) {
		b->samples[i] = calloc((size_t)rounds * PARTS, sizeof(double));
		if (!b->samples[i])
			return -ENOMEM;
	}
	for (round = 0; !err && round < rounds; round++)
		for (i = 0; !err && i < CASES; i++) {
			if (i >= CASES - SLOW_CASES && round >= slow_rounds)
				break;
			if (possible(b, &cases[i]))
				err = case_turn(b, i);
		}
	return err;
}

/* What came out of the rings proves that what was measured was recorded. */
static void report_records(const struct bench *b)
{
	bool first = true;
	size_t i;

	printf("\n}, \"records_per_call\": {");
	for (i = 0; i < CASES; i++) {
		if (!b->made[i] || cases[i].crowd)
			continue;
		printf("%s\"%s\": %.3f", first ? "" : ", ", cases[i].name,
		       (double)b->records[i] / (double)b->made[i]);
		first = false;
	}
}

static void report(const struct bench *b)
{
	bool first = true;
	size_t i, j;

	printf("{\"calls_per_sample\": %d, \"samples_per_turn\": %d, \"ns\": {\n", CALLS, PARTS);
	for (i = 0; i < CASES; i++) {
		if (!b->count[i])
			continue;
		printf("%s  \"%s\": [", first ? "" : ",\n", cases[i].name);
		for (j = 0; j < b->count[i]; j++)
			printf("%s%.1f", j ? ", " : "", b->samples[i][j]);
		printf("]");
		first = false;
	}
	report_records(b);
	printf("}, \"lost\": {");
	for (i = RUNG_SESSION, first = true; i <= RUNG_SINGLE; i++) {
		if (!b->probes[i])
			continue;
		printf("%s\"%s\": %llu", first ? "" : ", ", rung_name((enum rung)i),
		       (unsigned long long)probes_counters(b->probes[i])->ring_full);
		first = false;
	}
	printf("}}\n");
}

static int open_all(struct bench *b)
{
	int err = empty_new(&b->empty), rung;

	handle[1] = kernel_name;
	b->site.fd = -1;
	if (!err)
		err = bench_site((uintptr_t)bench_target, &b->site.fd, &b->site.offset);
	for (rung = RUNG_SESSION; !err && rung <= RUNG_SINGLE; rung++)
		err = rung_open(b, (enum rung)rung);
	if (!err)
		err = -pthread_create(&b->crowd, NULL, crowd_main, b);
	return err;
}

static void close_all(struct bench *b)
{
	size_t i;

	atomic_store(&b->crowded, -1);
	if (b->crowd)
		pthread_join(b->crowd, NULL);
	for (i = 0; i <= RUNG_SINGLE; i++) {
		rings_free(b->rings[i]);
		probes_free(b->probes[i]);
	}
	for (i = 0; i < CASES; i++)
		free(b->samples[i]);
	empty_free(b->empty);
	if (b->site.fd >= 0)
		close(b->site.fd);
}

int main(int argc, char **argv)
{
	struct bench b = {0};
	int err;

	if (argc != 3) {
		fprintf(stderr, "usage: bench_cost ROUNDS ROUNDS_SINGLE\n");
		return 2;
	}
	bench_pin(0);
	err = open_all(&b);
	if (!err)
		err = measure(&b, (unsigned)strtoul(argv[1], NULL, 10),
			      (unsigned)strtoul(argv[2], NULL, 10));
	if (!err)
		report(&b);
	close_all(&b);
	return err ? bench_fail("bench_cost", err) : 0;
}
