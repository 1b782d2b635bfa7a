// SPDX-License-Identifier: BSD-2-Clause
#include "trace/recorder_threads.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define LOOK_NS 30000000000LL

struct look {
	struct ended_threads *e;
	int err;
};

static bool look_at(uint64_t id, void *ctx)
{
	struct look *l = ctx;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/task/%u", (unsigned)(id >> 32), (unsigned)id);
	if (!l->err && access(path, F_OK) && errno == ENOENT && idset_add(&l->e->ids, id) < 0)
		l->err = -ENOMEM;
	return false; /* its last events may still be on their way */
}

static bool is_among(uint64_t id, void *ctx)
{
	return idset_has(ctx, id);
}

static bool has_ended(uint32_t pid, uint32_t tid, void *ctx)
{
	return idset_has(ctx, (uint64_t)pid << 32 | tid);
}

int ended_threads_round(struct ended_threads *e, struct tracer *t, struct keep *k, int64_t now)
{
	struct look l = {e, 0};

	if (e->ids.count) {
		keep_threads_ended(k, has_ended, &e->ids);
		idset_remove_if(&t->threads, is_among, &e->ids);
		t->last_thread = 0;
		idset_free(&e->ids);
	}
	if (now - e->looked < LOOK_NS)
		return 0;
	e->looked = now;
	idset_remove_if(&t->threads, look_at, &l);
	return l.err;
}

void ended_threads_free(struct ended_threads *e)
{
	idset_free(&e->ids);
}
