/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/beside.h"

#include <signal.h>
#include <stddef.h>

static void *thread_main(void *arg)
{
	struct beside *b = arg;

	b->result = b->run(b->ctx);
	return NULL;
}

static bool thread_start(struct beside *b)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&b->thread, NULL, thread_main, b);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return !err;
}

void beside_begin(struct beside *b, int (*run)(void *ctx), void *ctx, bool worth)
{
	*b = (struct beside){.run = run, .ctx = ctx};
	b->threaded = worth && thread_start(b);
	if (!b->threaded)
		thread_main(b);
}

int beside_end(struct beside *b)
{
	if (b->threaded)
		pthread_join(b->thread, NULL);
	b->threaded = false;
	return b->result;
}
