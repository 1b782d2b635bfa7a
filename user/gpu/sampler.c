// SPDX-License-Identifier: BSD-2-Clause
#include "gpu/sampler.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <time.h>

#include "gpu/private.h"
#include "util/thread.h"

#define SECOND 1000000000LL
#define END_NS SECOND /* that the end of the thread is waited for */

struct gpu_sampler {
	pthread_t thread;
	pthread_mutex_t lock; /* of all below, but for gpus */
	pthread_cond_t wake;  /* for the thread: there is something to do */
	pthread_cond_t told;  /* by the thread: a round, or its end */
	int64_t interval;
	bool stop, release, again; /* asked for */
	bool ended;		   /* the thread has, or will not touch this any more */
	bool left;		   /* nobody waits for it: it frees this itself */
	struct gpu_samples latest;
	uint64_t turns; /* that the thread took, also where there was no driver to ask */
	int64_t latest_at, begun; /* last sign of life; CLOCK_MONOTONIC ns */
	struct gpus *gpus;	  /* the thread's own */
};

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * SECOND + t.tv_nsec;
}

static struct timespec timespec_of(int64_t ns)
{
	return (struct timespec){.tv_sec = ns / SECOND, .tv_nsec = ns % SECOND};
}

/* What asks a library about GPUs from now on needs no right at all. */
static void rights_drop(void)
{
	cap_t none = cap_init();

	if (none)
		(void)cap_set_proc(none);
	cap_free(none);
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/* Replaces the samples; 0 or -ENOMEM. */
static int samples_set(struct gpu_samples *s, const struct gpu_sample *items, size_t count)
{
	struct gpu_sample *moved;

	if (count > s->cap) {
		moved = realloc(s->items, count * sizeof(*moved));
		if (!moved)
			return -ENOMEM;
		s->items = moved;
		s->cap = count;
	}
	if (count)
		memcpy(s->items, items, count * sizeof(*items));
	s->count = count;
	return 0;
}

void gpu_samples_free(struct gpu_samples *samples)
{
	free(samples->items);
	memset(samples, 0, sizeof(*samples));
}

/* With the lock held. */
static void turn_over(struct gpu_sampler *s)
{
	s->turns++;
	s->latest_at = now_ns();
	pthread_cond_broadcast(&s->told);
}

static void publish(struct gpu_sampler *s, const struct gpu_sample *items, int count,
		    const char *trouble)
{
	pthread_mutex_lock(&s->lock);
	if (samples_set(&s->latest, items, count > 0 ? (size_t)count : 0))
		s->latest.count = 0;
	snprintf(s->latest.trouble, sizeof(s->latest.trouble), "%s", trouble ? trouble : "");
	s->latest.round++;
	turn_over(s);
	pthread_mutex_unlock(&s->lock);
}

/* No round, but no silence of the driver either. */
static void no_round(struct gpu_sampler *s)
{
	pthread_mutex_lock(&s->lock);
	turn_over(s);
	pthread_mutex_unlock(&s->lock);
}

/* One round. Returns when the driver may be tried again, if it is not there. */
static int64_t round_take(struct gpu_sampler *s, int64_t retry_at)
{
	const struct gpu_sample *items = NULL;
	char why[256] = "";
	int count, err;

	if (!s->gpus) {
		if (now_ns() < retry_at) {
			no_round(s);
			return retry_at;
		}
		err = gpus_new(&s->gpus, why, sizeof(why));
		rights_drop();
		if (err) { /* no NVML at all is nothing to complain about */
			publish(s, NULL, 0, err == -ENOENT ? "" : why);
			return now_ns() + GPU_RETRY_NS;
		}
	}
	count = gpus_sample(s->gpus, &items);
	publish(s, items, count, count < 0 ? strerror(-count) : gpus_trouble(s->gpus));
	return 0;
}

/* Until the next round, or until something is asked for. False: that it ends. */
static bool pause_until(struct gpu_sampler *s, int64_t until)
{
	struct timespec t = timespec_of(until);
	bool release, go;

	pthread_mutex_lock(&s->lock);
	while (!s->stop && !s->release && !s->again &&
	       pthread_cond_timedwait(&s->wake, &s->lock, &t) != ETIMEDOUT)
		;
	release = s->release;
	s->release = s->again = false;
	go = !s->stop;
	pthread_mutex_unlock(&s->lock);
	if (release && s->gpus)
		gpus_release(s->gpus);
	return go;
}

static void sampler_destroy(struct gpu_sampler *s)
{
	pthread_cond_destroy(&s->wake);
	pthread_cond_destroy(&s->told);
	pthread_mutex_destroy(&s->lock);
	gpu_samples_free(&s->latest);
	free(s);
}

static void end(struct gpu_sampler *s)
{
	bool left;

	gpus_free(s->gpus);
	pthread_mutex_lock(&s->lock);
	s->ended = true;
	left = s->left;
	pthread_cond_broadcast(&s->told);
	pthread_mutex_unlock(&s->lock);
	if (left)
		sampler_destroy(s);
}

static void *loop(void *arg)
{
	struct gpu_sampler *s = arg;
	int64_t next = now_ns(), retry_at = 0, now;

	prctl(PR_SET_NAME, "gbpf-gpu");
	do {
		retry_at = round_take(s, retry_at);
		now = now_ns();
		if (next <= now)
			next += s->interval;
		if (next < now) /* rounds that were missed are not made up for */
			next = now;
	} while (pause_until(s, next));
	end(s);
	return NULL;
}

/* Signals are for the threads that wait for them. */
int gpu_sampler_new(struct gpu_sampler **out, int64_t interval_ns)
{
	struct gpu_sampler *s = calloc(1, sizeof(*s));
	pthread_condattr_t attr;
	int err;

	*out = NULL;
	if (!s)
		return -ENOMEM;
	s->interval = interval_ns;
	s->begun = now_ns();
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->wake, &attr);
	pthread_cond_init(&s->told, &attr);
	pthread_condattr_destroy(&attr);
	err = thread_quiet(&s->thread, loop, s);
	if (err)
		sampler_destroy(s);
	else
		*out = s;
	return err;
}

/* For how many ns nothing came, if that is longer than it ever takes; else 0. */
static int64_t silence(const struct gpu_sampler *s)
{
	int64_t since = now_ns() - (s->latest_at ? s->latest_at : s->begun);

	return since > 3 * s->interval + 2 * SECOND ? since : 0;
}

int gpu_sampler_latest(struct gpu_sampler *s, struct gpu_samples *into)
{
	int64_t silent;
	int result = 0;

	pthread_mutex_lock(&s->lock);
	silent = silence(s);
	if (silent) {
		into->count = 0;
		snprintf(into->trouble, sizeof(into->trouble),
			 "the NVIDIA driver has not answered for %d s", (int)(silent / SECOND));
	} else if (into->round != s->latest.round) {
		result = samples_set(into, s->latest.items, s->latest.count);
		memcpy(into->trouble, s->latest.trouble, sizeof(into->trouble));
		into->round = s->latest.round;
		result = result ? result : 1;
	}
	pthread_mutex_unlock(&s->lock);
	return result;
}

bool gpu_sampler_now(struct gpu_sampler *s, int64_t ns)
{
	struct timespec until = timespec_of(now_ns() + ns);
	uint64_t before;
	bool came;

	pthread_mutex_lock(&s->lock);
	before = s->turns;
	s->again = true;
	pthread_cond_signal(&s->wake);
	while (s->turns == before &&
	       pthread_cond_timedwait(&s->told, &s->lock, &until) != ETIMEDOUT)
		;
	came = s->turns != before;
	pthread_mutex_unlock(&s->lock);
	return came;
}

void gpu_sampler_release(struct gpu_sampler *s)
{
	pthread_mutex_lock(&s->lock);
	s->release = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
}

void gpu_sampler_free(struct gpu_sampler *s)
{
	struct timespec until = timespec_of(now_ns() + END_NS);
	pthread_t thread;
	bool ended;

	if (!s)
		return;
	thread = s->thread;
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_signal(&s->wake);
	while (!s->ended && pthread_cond_timedwait(&s->told, &s->lock, &until) != ETIMEDOUT)
		;
	ended = s->ended;
	s->left = !ended;
	pthread_mutex_unlock(&s->lock);
	if (!ended) {
		pthread_detach(thread);
		return;
	}
	pthread_join(thread, NULL);
	sampler_destroy(s);
}
