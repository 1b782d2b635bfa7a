// SPDX-License-Identifier: BSD-2-Clause
/*
 * What it takes to join GPU work with calls, and to measure it: prints JSON.
 * Usage: bench_join [WORKS]. A launch a work, on four threads and eight streams; the records
 * are taken in beforehand. Times are of the CPU.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "model/builder.h"
#include "model/gpu.h"
#include "tools/bench/bench.h"

#define THREADS 4
#define STREAMS 8
#define PID 4242

static double cpu_seconds(void)
{
	return (double)bench_clock(CLOCK_PROCESS_CPUTIME_ID) * 1e-9;
}

static int note(struct session_builder *b, int64_t ts, uint32_t event)
{
	struct record r = { .kind = RECORD_SIDECAR,
			    .sidecar = { .ts = ts, .pid = PID, .event = event, .count = 100,
					 .cupti = 130101, .text = "" } };

	return session_builder_add(b, &r);
}

static int prepare(struct session_builder *b)
{
	struct record api = { .kind = RECORD_API, .api = { .id = 1, .name = "cuLaunchKernel",
			      .library = "driver", .kind = "launch" } };
	struct record shape = { .kind = RECORD_SHAPE, .shape = { .pid = PID, .id = 1,
				.kernel = "_Z6kernelv", .grid = { 8, 1, 1 },
				.block = { 128, 1, 1 } } };
	int err = session_builder_add(b, &api);

	if (!err)
		err = session_builder_add(b, &shape);
	return err ? err : note(b, 1, RECORD_SIDECAR_BEGAN);
}

static int add_launch(struct session_builder *b, uint32_t tid, int64_t at)
{
	struct event e[2] = {
		{ .ts = at, .pid = PID, .tid = tid, .sp = 0x7000, .api = 1, .image = 1,
		  .kind = EVENT_BEGIN, .args = EVENT_ARGS_LAUNCH,
		  .launch = { .func = 0xabc, .grid = { 8, 1, 1 }, .block = { 128, 1, 1 } } },
		{ .ts = at + 3000, .pid = PID, .tid = tid, .sp = 0x7000, .api = 1, .image = 1,
		  .kind = EVENT_END },
	};
	struct record r = { .kind = RECORD_EVENTS, .events = { e, 2 } };

	return session_builder_add(b, &r);
}

static int add_work(struct session_builder *b, uint32_t tid, int64_t at, uint32_t i)
{
	struct record call = { .kind = RECORD_WORK_CALL,
			       .work_call = { .begin = at + 300, .duration = 2400, .pid = PID,
					      .tid = tid, .domain = 1, .correlation = i + 1 } };
	struct record work = { .kind = RECORD_WORK,
			       .work = { .begin = at + 9000 + i * 7919 % 1000, .duration = 6000,
					 .pid = PID, .kind = RECORD_WORK_KERNEL, .context = 1,
					 .stream = 7 + i % STREAMS, .correlation = i + 1,
					 .shape = 1, .peer = UINT32_MAX } };
	int err = session_builder_add(b, &call);

	return err ? err : session_builder_add(b, &work);
}

/* Seconds of session_builder_finish(), with works or without. */
static int build(uint32_t count, bool works, double *seconds, struct session **out)
{
	struct session_builder *b;
	double begin;
	int err = session_builder_new(&b);

	if (err)
		return err;
	err = prepare(b);
	for (uint32_t i = 0; i < count && !err; i++) {
		uint32_t tid = PID + i % THREADS;
		int64_t at = 1000 + (int64_t)(i / THREADS) * 8000 + i % THREADS * 500;

		err = add_launch(b, tid, at);
		if (!err && works)
			err = add_work(b, tid, at, i);
	}
	if (!err)
		err = note(b, 20000 + (int64_t)(count / THREADS) * 8000, RECORD_SIDECAR_ENDED);
	begin = cpu_seconds();
	if (!err)
		err = session_builder_finish(b, READER_END_WHOLE, 0, out);
	*seconds = cpu_seconds() - begin;
	session_builder_free(b);
	return err;
}

static int measure(const struct session *s, double *times_s, double *gaps_s)
{
	struct work_times *times;
	struct gap *gaps = NULL;
	size_t count;
	double begin = cpu_seconds();
	int err = work_times(s, &times);

	*times_s = cpu_seconds() - begin;
	begin = cpu_seconds();
	if (!err) {
		free(times);
		err = device_gaps(s, 0, &gaps, &count);
	}
	*gaps_s = cpu_seconds() - begin;
	free(gaps);
	return err;
}

int main(int argc, char **argv)
{
	uint32_t count = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 10000000;
	struct session *s = NULL;
	struct rusage usage;
	double calls_s, all_s, times_s, gaps_s;
	int err = build(count, false, &calls_s, &s);

	session_free(s);
	s = NULL;
	if (!err)
		err = build(count, true, &all_s, &s);
	if (!err)
		err = measure(s, &times_s, &gaps_s);
	if (err)
		return bench_fail("bench_join", err);
	getrusage(RUSAGE_SELF, &usage);
	printf("{\"works\": %" PRIu64 ", \"matched\": %" PRIu64 ", \"calls_s\": %.3f, "
	       "\"join_s\": %.3f, \"times_s\": %.3f, \"gaps_s\": %.3f, \"rss_mib\": %ld}\n",
	       s->join.works, s->join.matched, calls_s, all_s - calls_s, times_s, gaps_s,
	       usage.ru_maxrss / 1024);
	session_free(s);
	return 0;
}
