/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/beside.h"

#include <stddef.h>

#include "util/thread.h"

static void *thread_main(void *arg)
{
	struct beside *b = arg;

	b->result = b->run(b->ctx);
	return NULL;
}

void beside_begin(struct beside *b, int (*run)(void *ctx), void *ctx, bool worth)
{
	*b = (struct beside){.run = run, .ctx = ctx};
	b->threaded = worth && !thread_quiet(&b->thread, thread_main, b);
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

int beside_both(int (*own)(void *ctx), void *own_ctx, int (*other)(void *ctx), void *other_ctx,
		bool worth)
{
	struct beside b;
	int err, other_err;

	beside_begin(&b, other, other_ctx, worth);
	err = own(own_ctx);
	other_err = beside_end(&b);
	return err ? err : other_err;
}
