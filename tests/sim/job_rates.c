/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls at known rates: steady, in bursts, in periods, from idle to full speed. */
#include "job.h"

#define BATCH 64
#define LAST_US 60 /* before its time a wait spins, for sleeping is not so exact */

void job_wait_until(int64_t ns)
{
	int64_t now;

	while (!job_stop && (now = truth_now()) < ns) {
		int64_t wake = ns - LAST_US * 1000;
		struct timespec t;

		if (now >= wake)
			continue;
		if (wake - now > 20000000)
			wake = now + 20000000;
		t = (struct timespec){ wake / 1000000000, wake % 1000000000 };
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
	}
}

/* Waits for the next of rate a second; what was missed by over 1 ms is not made up for. */
static void pace(struct worker *w, double rate)
{
	int64_t now;

	if (rate <= 0)
		return;
	now = truth_now();
	if (w->next < now - 1000000)
		w->next = now;
	job_wait_until(w->next);
	w->next += (int64_t)(1e9 / rate);
}

static void launch(struct worker *w, double rate)
{
	pace(w, rate);
	op_launch_as(w, 5, &job_shapes[5], LAUNCH_PLAIN);
}

static void launch_and_sync(struct worker *w, double every)
{
	double rate = w->job->opt.knobs.rate;

	for (unsigned i = 0; i < (rate > 0 ? 1 : BATCH); i++) {
		launch(w, rate);
		if (every > 0 && (double)++w->unsynced >= every) {
			op_stream_sync(w);
			w->unsynced = 0;
		}
	}
}

void step_steady(struct worker *w)
{
	launch_and_sync(w, w->job->opt.knobs.sync_every);
}

void step_nosync(struct worker *w)
{
	launch_and_sync(w, 0);
}

/* From 0 up to twice the mean, or the mean itself. (Marsaglia's xorshift64.) */
static double vary(struct worker *w, double mean)
{
	uint64_t seed = (w->job->opt.seed + 1) * 0x9e3779b97f4a7c15ull + w->index;
	uint64_t r = w->random ? w->random : seed;

	if (w->job->opt.knobs.random == 0)
		return mean;
	r ^= r << 13;
	r ^= r >> 7;
	r ^= r << 17;
	w->random = r;
	return mean * 2 * (double)(r >> 11) / (double)(1ull << 53);
}

static void launches_then_sync(struct worker *w, unsigned count)
{
	int64_t begin = truth_now();
	unsigned i;

	w->next = begin;
	for (i = 0; i < count && !job_stop; i++)
		launch(w, w->job->opt.knobs.rate);
	op_stream_sync(w);
	truth_note(TRUTH_WHAT_STEP, begin, truth_now(), i);
}

void step_burst(struct worker *w)
{
	const struct job_knobs *k = &w->job->opt.knobs;

	launches_then_sync(w, 1 + (unsigned)vary(w, k->launches - 1));
	job_wait_until(truth_now() + (int64_t)(vary(w, k->gap_us) * 1e3));
}

/* Whole periods from the first: a step that took longer than one makes it skip some. */
void step_periodic(struct worker *w)
{
	const struct job_knobs *k = &w->job->opt.knobs;
	int64_t period = (int64_t)(k->period_us * 1e3), begin = w->next ? w->next : truth_now();
	int64_t now;

	job_wait_until(begin);
	if (job_stop)
		return;
	launches_then_sync(w, (unsigned)k->launches);
	now = truth_now();
	w->next = begin + (period ? ((now - begin) / period + 1) * period : 0);
}

static bool is_time(struct worker *w)
{
	static const struct timespec tick = { .tv_nsec = 2000000 }, none = { 0 };
	const struct job_options *o = &w->job->opt;
	sigset_t usr1;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	if (o->knobs.jump_after > 0)
		return (double)truth_now() / 1e9 - w->began >= o->knobs.jump_after;
	return sigtimedwait(&usr1, NULL, o->knobs.rate > 0 ? &none : &tick) == SIGUSR1;
}

void step_idle_jump(struct worker *w)
{
	struct job *job = w->job;

	if (atomic_load_explicit(&job->jumped, memory_order_relaxed)) {
		for (unsigned i = 0; i < BATCH; i++)
			launch(w, 0);
	} else if (is_time(w)) {
		truth_note(TRUTH_WHAT_MARK, truth_now(), truth_now(), 0);
		atomic_store(&job->jumped, true);
	} else if (job->opt.knobs.rate > 0) {
		launch(w, job->opt.knobs.rate);
	} else if (job->opt.knobs.jump_after > 0) {
		job_wait_until(truth_now() + 2000000);
	}
}

#define CHECK(call) worker_check(w, call)

static void load_slow(struct worker *w)
{
	struct sim_kernel kernel = { "slow_kernel", (int64_t)(w->job->opt.knobs.wait_us * 1e3) };
	struct sim_image image = { SIM_IMAGE_MAGIC, 1, &kernel };

	CHECK(D_OUT(w, cuModuleLoadData, (&w->slow, &image), &w->slow));
	CHECK(D_OUT(w, cuModuleGetFunction, (&w->slow_kernel, w->slow, kernel.name),
		    &w->slow_kernel, .source = U(w->slow)));
}

void step_longsync(struct worker *w)
{
	static const struct shape one = { { 1, 1, 1 }, { 32, 1, 1 }, 0 };
	const struct job_knobs *k = &w->job->opt.knobs;

	if (!w->slow)
		load_slow(w);
	for (unsigned i = 0; i < (unsigned)k->launches && !job_stop; i++)
		launch(w, k->rate);
	op_launch_func(w, w->slow_kernel, 0, &one);
	op_stream_sync(w);
}

/* As steady, but for one slow sync at --jump-after, and one at each SIGUSR1: of thread 0. */
void step_hiccup(struct worker *w)
{
	static const struct shape one = { { 1, 1, 1 }, { 32, 1, 1 }, 0 };
	struct job *job = w->job;
	bool once = job->opt.knobs.jump_after > 0;

	if (!w->slow)
		load_slow(w);
	launch_and_sync(w, job->opt.knobs.sync_every);
	if (w->index || (once && atomic_load(&job->jumped)) || !is_time(w))
		return;
	truth_note(TRUTH_WHAT_MARK, truth_now(), truth_now(), 0);
	atomic_store(&job->jumped, true);
	op_launch_func(w, w->slow_kernel, 0, &one);
	op_stream_sync(w);
}

/* A piece of memory got and given back in three ways: six APIs. */
static void three_allocations(struct worker *w, size_t n)
{
	CUdeviceptr p = 0;
	void *host = NULL;

	CHECK(D_OUT(w, cuMemAlloc_v2, (&p, n), &p, .bytes = n));
	CHECK(D(w, cuMemFree_v2, (p), .pointer = p));
	CHECK(D_OUT(w, cuMemAllocAsync, (&p, n, w->stream), &p, .bytes = n,
		    .stream = U(w->stream)));
	CHECK(D(w, cuMemFreeAsync, (p, w->stream), .pointer = p, .stream = U(w->stream)));
	CHECK(D_OUT(w, cuMemHostAlloc, (&host, n, 0), &host, .bytes = n));
	CHECK(D(w, cuMemFreeHost, (host), .pointer = U(host)));
}

/* Twenty functions, each once. */
void step_many(struct worker *w)
{
	pace(w, w->job->opt.knobs.rate);
	op_launch_as(w, 5, &job_shapes[5], LAUNCH_PLAIN);
	op_launch_as(w, 1, &job_shapes[1], LAUNCH_EX);
	op_launch_as(w, 4, &job_shapes[4], LAUNCH_COOPERATIVE);
	op_event_record(w);
	CHECK(D(w, cuStreamWaitEvent, (w->stream, w->event, 0), .pointer = U(w->event),
		.stream = U(w->stream)));
	op_event_sync(w);
	(void)op_event_query(w);
	(void)op_stream_query(w);
	op_stream_sync(w);
	op_device_sync(w);
	op_htod(w, 4096);
	op_dtoh(w, 4096);
	op_dtod(w, 4096);
	op_set(w, 4096);
	three_allocations(w, 4096);
}

/* What is kept is the driver's for good, as with a leak. */
void step_leak(struct worker *w)
{
	const struct job_knobs *k = &w->job->opt.knobs;
	size_t n = (size_t)k->size;
	CUdeviceptr p = 0;

	pace(w, k->rate);
	CHECK(D_OUT(w, cuMemAlloc_v2, (&p, n), &p, .bytes = n));
	if (k->keep_every <= 0 || (w->steps + 1) % (uint64_t)k->keep_every)
		CHECK(D(w, cuMemFree_v2, (p), .pointer = p));
}
