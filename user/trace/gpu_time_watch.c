// SPDX-License-Identifier: BSD-2-Clause
/*
 * Another profiler that begins while a sidecar records: its first calls of CUPTI are seen,
 * and the sidecar withdraws.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "probe/foreign.h"
#include "sidecar/client.h"
#include "sidecar/neighbour.h"
#include "target/target.h"
#include "trace/gpu_time_private.h"

struct look {
	struct gpu_process *p;
	struct foreign_range ranges[FOREIGN_RANGES];
	size_t count;
	bool cupti; /* there is one, and it has probes */
};

static int on_mapping(const struct mapping *m, void *ctx)
{
	struct look *l = ctx;
	bool cupti = neighbour_is_cupti(m->path);
	int fd, err;

	if (!cupti && !neighbour_is_ours(m->path))
		return 0;
	if (l->count == FOREIGN_RANGES)
		return -E2BIG;
	l->ranges[l->count++] = (struct foreign_range){m->start, m->end};
	if (!cupti)
		return 0;
	fd = maps_open(l->p->pid, m);
	if (fd < 0)
		return fd;
	err = foreign_file(l->p->t->gpu_time->foreign, fd);
	close(fd);
	l->cupti = l->cupti || !err;
	return err == -ENOENT ? 0 : err;
}

static int begin(struct tracer *t)
{
	struct gpu_time *g = t->gpu_time;
	int err = g->foreign ? 0 : foreign_new(&g->foreign, t->probes);

	return err || g->foreign_waited ? err : gpu_time_descriptor(t, foreign_fd(g->foreign));
}

int watch_others(struct gpu_process *p, char *why, size_t size)
{
	struct look l = {.p = p};
	int err = begin(p->t);

	p->t->gpu_time->foreign_waited = !err;
	if (!err)
		err = maps_each(p->pid, on_mapping, &l);
	if (!err && !l.cupti)
		err = -ENOENT;
	if (!err)
		err = foreign_watch(p->t->gpu_time->foreign, p->pid, l.ranges, l.count);
	if (!err)
		return 0;
	snprintf(why, size, "whether another profiler begins in it cannot be watched for: %s",
		 err == -ENOENT ? "its libcupti was not found" : strerror(-err));
	return 1;
}

static int on_call(const struct foreign_call *c, void *ctx)
{
	struct tracer *t = ctx;
	struct gpu_process *p = gpu_time_find(t->gpu_time, c->pid);
	char why[200], comm[16];

	foreign_forget(t->gpu_time->foreign, c->pid);
	if (!p || !p->sidecar || sidecar_state(p->sidecar) == SIDECAR_OVER)
		return 0;
	process_thread_comm(c->pid, c->tid, comm);
	snprintf(why, sizeof(why), "thread %u (%s) called %s", c->tid, comm, c->function);
	if (sidecar_state(p->sidecar) >= SIDECAR_STARTED) {
		sidecar_stop(p->sidecar, why);
		return 0;
	}
	return sidecar_end(p->sidecar, RECORD_SIDECAR_REFUSED,
			   "another profiler is beginning in it");
}

int watch_others_step(struct tracer *t)
{
	struct gpu_time *g = t->gpu_time;

	return g->foreign ? foreign_consume(g->foreign, on_call, t) : 0;
}

void watch_others_free(struct gpu_time *g)
{
	foreign_free(g->foreign);
	g->foreign = NULL;
}
