/* SPDX-License-Identifier: BSD-2-Clause */
/* CUPTI's own thread: makes records of what has ended, delivers full buffers. */
#include <signal.h>
#include <time.h>

#include "cupti.h"

#define TURN_NS 2000000

static struct timespec later(int64_t ns)
{
	int64_t until = truth_now() + ns;

	return (struct timespec){ until / 1000000000, until % 1000000000 };
}

static void *work(void *user)
{
	int64_t flushed = truth_now(), period, now;
	struct timespec until;
	bool stop = false;

	while (!stop) {
		until = later(TURN_NS);
		pthread_mutex_lock(&cupti.lock);
		if (!cupti.stopping && !cupti.full)
			pthread_cond_timedwait(&cupti.wake, &cupti.lock, &until);
		stop = cupti.stopping;
		period = cupti.period_ms * 1000000ll;
		pthread_mutex_unlock(&cupti.lock);
		now = truth_now();
		if (stop)
			break;
		if (period && now - flushed >= period) {
			cupti_deliver(true, false);
			flushed = now;
		} else {
			cupti_deliver(false, false);
		}
	}
	return NULL;
}

/* lock is held. No signal of the program is for this thread. */
void cupti_worker_begin(void)
{
	sigset_t all, before;

	if (cupti.worker)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	cupti.stopping = false;
	cupti.worker = !pthread_create(&cupti.thread, NULL, work, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* No lock is held. */
void cupti_worker_end(void)
{
	bool there;

	pthread_mutex_lock(&cupti.lock);
	there = cupti.worker;
	cupti.worker = false;
	cupti.stopping = true;
	pthread_cond_signal(&cupti.wake);
	pthread_mutex_unlock(&cupti.lock);
	if (there && !pthread_equal(cupti.thread, pthread_self()))
		pthread_join(cupti.thread, NULL);
}
