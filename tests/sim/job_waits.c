/* SPDX-License-Identifier: BSD-2-Clause */
/* What a launching thread does between its calls, each kind for a known share of the time. */
#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum asked { NOTHING, WORK, SLEEP, LEAVE };

/* The other thread; it waits to be asked, and while it is at it the worker waits for it. */
struct helper {
	pthread_t id;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	enum asked asked;
	int64_t ns; /* of what it is asked to do */
	int pipe[2]; /* through which it says that it has slept */
	bool started;
	int file; /* of --what disk */
	void *block;
	atomic_bool spin;
};

#define BLOCK 4096

static void spin_until(int64_t ns)
{
	while (!job_stop && truth_now() < ns)
		;
}

static enum asked wait_asked(struct helper *h)
{
	enum asked asked;

	pthread_mutex_lock(&h->lock);
	while (h->asked == NOTHING)
		pthread_cond_wait(&h->changed, &h->lock);
	asked = h->asked;
	pthread_mutex_unlock(&h->lock);
	return asked;
}

static void answer(struct helper *h)
{
	pthread_mutex_lock(&h->lock);
	if (h->asked != LEAVE)
		h->asked = NOTHING;
	pthread_cond_broadcast(&h->changed);
	pthread_mutex_unlock(&h->lock);
}

static void *helper_main(void *user)
{
	struct helper *h = user;
	int64_t begin;
	enum asked asked;

	pthread_setname_np(pthread_self(), "sibling");
	while (atomic_load(&h->spin))
		;
	while ((asked = wait_asked(h)) != LEAVE) {
		begin = truth_now();
		if (asked == WORK) {
			spin_until(begin + h->ns);
			truth_note(TRUTH_WHAT_RUNNING, begin, truth_now(), 0);
		} else {
			job_wait_until(begin + h->ns);
		}
		answer(h);
		if (asked == SLEEP && write(h->pipe[1], "", 1) != 1)
			abort();
	}
	return NULL;
}

static void ask(struct helper *h, enum asked what, int64_t ns)
{
	pthread_mutex_lock(&h->lock);
	h->asked = what;
	h->ns = ns;
	pthread_cond_broadcast(&h->changed);
	pthread_mutex_unlock(&h->lock);
}

static void wait_answer(struct helper *h)
{
	pthread_mutex_lock(&h->lock);
	while (h->asked != NOTHING)
		pthread_cond_wait(&h->changed, &h->lock);
	pthread_mutex_unlock(&h->lock);
}

void helper_free(struct helper *h)
{
	if (!h)
		return;
	atomic_store(&h->spin, false);
	ask(h, LEAVE, 0);
	if (h->started)
		pthread_join(h->id, NULL);
	close(h->pipe[0]);
	close(h->pipe[1]);
	if (h->file >= 0)
		close(h->file);
	free(h->block);
	free(h);
}

static int temporary_file(void)
{
	const char *dir = getenv("TMPDIR");
	int fd = open(dir ? dir : "/tmp", O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600);

	if (fd < 0) {
		perror("simjob: a file for --what disk, in TMPDIR");
		_exit(1);
	}
	return fd;
}

static struct helper *helper_new(bool spin, bool disk)
{
	struct helper *h = calloc(1, sizeof(*h));

	if (!h || pipe(h->pipe) || posix_memalign(&h->block, BLOCK, BLOCK))
		abort();
	memset(h->block, 0, BLOCK);
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->changed, NULL);
	atomic_init(&h->spin, spin);
	h->file = disk ? temporary_file() : -1;
	if (pthread_create(&h->id, NULL, helper_main, h))
		abort();
	h->started = true;
	return h;
}

/* With its helper on one CPU, so that each wants it while the other has it. */
static void share_cpu(struct helper *h)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
	pthread_setaffinity_np(h->id, sizeof(one), &one);
}

/* ns for which this thread wanted a CPU and had none, since it began. */
static uint64_t run_delay(void)
{
	unsigned long long delay = 0;
	FILE *f = fopen("/proc/thread-self/schedstat", "re");

	if (f) {
		if (fscanf(f, "%*u %llu", &delay) != 1)
			delay = 0;
		fclose(f);
	}
	return delay;
}

static uint32_t wait_lock(struct worker *w, int64_t begin, int64_t ns)
{
	ask(w->helper, WORK, ns);
	wait_answer(w->helper);
	return 0;
}

static uint32_t wait_pipe(struct worker *w, int64_t begin, int64_t ns)
{
	char byte;

	ask(w->helper, SLEEP, ns);
	while (read(w->helper->pipe[0], &byte, 1) < 0 && errno == EINTR)
		;
	return 0;
}

static uint32_t wait_poll(struct worker *w, int64_t begin, int64_t ns)
{
	struct pollfd p = { .fd = w->helper->pipe[0], .events = POLLIN };
	char byte;

	ask(w->helper, SLEEP, ns);
	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
	while (read(p.fd, &byte, 1) < 0 && errno == EINTR)
		;
	return 0;
}

static uint32_t wait_disk(struct worker *w, int64_t begin, int64_t ns)
{
	uint32_t writes = 0;

	for (; !job_stop && truth_now() < begin + ns; writes++)
		if (pwrite(w->helper->file, w->helper->block, BLOCK, 0) != BLOCK ||
		    fdatasync(w->helper->file))
			abort();
	return writes;
}

static uint32_t wait_sleep(struct worker *w, int64_t begin, int64_t ns)
{
	job_wait_until(begin + ns);
	return 0;
}

static uint32_t wait_running(struct worker *w, int64_t begin, int64_t ns)
{
	spin_until(begin + ns);
	return 0;
}

/* us of it that it had no CPU. */
static uint32_t wait_runnable(struct worker *w, int64_t begin, int64_t ns)
{
	uint64_t before = run_delay();

	spin_until(begin + ns);
	return (uint32_t)((run_delay() - before) / 1000);
}

static const struct wait {
	const char *name;
	enum truth_what what;
	uint32_t (*wait)(struct worker *w, int64_t begin, int64_t ns);
} waits[] = {
	{ "lock", TRUTH_WHAT_LOCK, wait_lock },	   { "pipe", TRUTH_WHAT_PIPE, wait_pipe },
	{ "poll", TRUTH_WHAT_PIPE, wait_poll },	   { "disk", TRUTH_WHAT_DISK, wait_disk },
	{ "sleep", TRUTH_WHAT_SLEEP, wait_sleep }, { "running", TRUTH_WHAT_RUNNING, wait_running },
	{ "runnable", TRUTH_WHAT_RUNNABLE, wait_runnable },
};

static const struct wait *find(const char *name)
{
	for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++)
		if (!strcmp(waits[i].name, name))
			return &waits[i];
	return NULL;
}

int job_what(const char *name)
{
	return find(name) != NULL;
}

void step_waits(struct worker *w)
{
	const struct job_knobs *k = &w->job->opt.knobs;
	const struct wait *how = find(w->job->opt.what);
	int64_t begin;
	uint32_t value;

	if (!w->helper) {
		bool both = how->what == TRUTH_WHAT_RUNNABLE;

		w->helper = helper_new(both, how->what == TRUTH_WHAT_DISK);
		if (both)
			share_cpu(w->helper);
	}
	begin = truth_now();
	while (!job_stop && truth_now() < begin + (int64_t)(k->work_us * 1e3))
		op_launch_as(w, 5, &job_shapes[5], LAUNCH_PLAIN);
	op_stream_sync(w);
	begin = truth_now();
	value = how->wait(w, begin, (int64_t)(k->wait_us * 1e3));
	truth_note(how->what, begin, truth_now(), value);
}
