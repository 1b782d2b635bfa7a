/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Another client of CUPTI in the job, as torch.profiler is: what was already
 * there, or comes while a tracer records. It writes down what it received.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cupti_abi.h"
#include "job.h"

#define BUFFER_BYTES (1u << 20)
#define BUFFERS 4096 /* at once */

/* In the order of names[]. */
struct functions {
	int (*subscribe)(void **handle, cupti_callback_fn fn, void *user);
	int (*register_callbacks)(cupti_request_fn request, cupti_complete_fn complete);
	int (*enable)(uint32_t kind);
	int (*disable)(uint32_t kind);
	int (*flush)(uint32_t flags);
	int (*next_record)(uint8_t *buffer, size_t valid, uint8_t **record);
	void (*guard)(cupti_complete_fn complete); /* the stand-in's own: NULL elsewhere */
};

static const char *const names[] = {
	"cuptiSubscribe", "cuptiActivityRegisterCallbacks", "cuptiActivityEnable",
	"cuptiActivityDisable", "cuptiActivityFlushAll", "cuptiActivityGetNextRecord",
	"simCuptiGuard",
};

_Static_assert(sizeof(struct functions) == sizeof(names), "a name for each");

struct profiler {
	struct job *job;
	struct functions cupti;
	pthread_t thread;
	bool running;
	atomic_bool stop;
	atomic_uint records, strange;
	_Atomic(uint8_t *) lent[BUFFERS];
};

/* CUPTI's callbacks are told nothing of whose they are. */
static struct profiler profiler;

static const uint32_t kinds[] = { CUPTI_CONCURRENT_KERNEL, CUPTI_MEMCPY, CUPTI_MEMSET };
#define KINDS (sizeof(kinds) / sizeof(*kinds))

static void request(uint8_t **buffer, size_t *size, size_t *max_records)
{
	*buffer = aligned_alloc(8, BUFFER_BYTES);
	*size = *buffer ? BUFFER_BYTES : 0;
	*max_records = 0;
	for (unsigned i = 0; *buffer && i < BUFFERS; i++) {
		uint8_t *none = NULL;

		if (atomic_compare_exchange_strong(&profiler.lent[i], &none, *buffer))
			return;
	}
	*size = 0;
}

static bool take_back(uint8_t *buffer)
{
	for (unsigned i = 0; buffer && i < BUFFERS; i++) {
		uint8_t *its = buffer;

		if (atomic_compare_exchange_strong(&profiler.lent[i], &its, NULL))
			return true;
	}
	return false;
}

/* A buffer that it did not lend, it leaves alone. */
static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	uint8_t *record = NULL;

	if (!take_back(buffer)) {
		atomic_fetch_add(&profiler.strange, 1);
		return;
	}
	while (!profiler.cupti.next_record(buffer, valid, &record))
		atomic_fetch_add(&profiler.records, 1);
	free(buffer);
}

/* Until so many seconds after begin, or the job's end. */
static void wait_for(const struct profiler *p, int64_t begin, double seconds)
{
	while (!atomic_load(&p->stop) && !job_stop &&
	       truth_now() < begin + (int64_t)(seconds * 1e9))
		usleep(500);
}

static int start(struct profiler *p)
{
	int err = p->cupti.register_callbacks(request, complete);

	for (size_t i = 0; !err && i < KINDS; i++)
		err = p->cupti.enable(kinds[i]);
	return err;
}

/* It is sure to receive what lies between inner and last; and may, what lies after outer. */
static void record(struct profiler *p, int64_t begin)
{
	int64_t outer = truth_now(), inner, last;
	int err;

	if (p->cupti.guard)
		p->cupti.guard(complete);
	err = start(p);
	inner = truth_now();
	if (err) {
		truth_note(TRUTH_WHAT_REFUSED, outer, inner, (uint32_t)err);
		return;
	}
	wait_for(p, begin, p->job->opt.knobs.profiler_stop);
	last = truth_now();
	for (size_t i = 0; i < KINDS; i++)
		p->cupti.disable(kinds[i]);
	p->cupti.flush(CUPTI_FLUSH_FORCED);
	truth_note(TRUTH_WHAT_PROFILED, inner, last, atomic_load(&p->records));
	truth_note(TRUTH_WHAT_PROFILING, outer, truth_now(), atomic_load(&p->strange));
}

/* The slot, once tried and not had, is not tried again: the old one then never records. */
static bool hold_slot(struct profiler *p)
{
	void *handle = NULL;
	int64_t now = truth_now();
	int err = p->cupti.subscribe(&handle, NULL, NULL);

	if (err)
		truth_note(TRUTH_WHAT_REFUSED, now, truth_now(), (uint32_t)err);
	return !err;
}

static void *run(void *user)
{
	struct profiler *p = user;
	const char *how = p->job->opt.profiler;
	int64_t begin = truth_now();

	wait_for(p, begin, p->job->opt.knobs.profiler_start);
	if (atomic_load(&p->stop) || (strcmp(how, "new") != 0 && !hold_slot(p)))
		return NULL;
	if (strcmp(how, "slot") != 0)
		record(p, begin);
	return NULL;
}

bool job_profiler_known(const char *how)
{
	static const char *const known[] = { "none", "idle", "slot", "old", "new" };

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!strcmp(known[i], how))
			return true;
	return false;
}

int job_profiler_begin(struct job *job)
{
	struct profiler *p = &profiler;
	void *handle;

	if (!strcmp(job->opt.profiler, "none"))
		return 0;
	handle = job_open_library(&job->opt, job->opt.cupti);
	if (!handle)
		return -1;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		((void **)&p->cupti)[i] = dlsym(handle, names[i]);
	p->job = job;
	if (!strcmp(job->opt.profiler, "idle"))
		return 0;
	p->running = !pthread_create(&p->thread, NULL, run, p);
	return p->running ? 0 : -1;
}

void job_profiler_end(void)
{
	if (!profiler.running)
		return;
	atomic_store(&profiler.stop, true);
	pthread_join(profiler.thread, NULL);
	profiler.running = false;
}
