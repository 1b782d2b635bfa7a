// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which processes get a sidecar, and what becomes of it: they connect to us, or it is
 * injected into those that call CUDA. It is told to start only when probes are in place,
 * so that the launches of whatever it records are seen.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sidecar/client.h"
#include "sidecar/wire.h"
#include "trace/gpu_time_private.h"

#define MS 1000000LL
#define COME_NS (3000 * MS)  /* for a process that calls CUDA to have connected by then */
#define PAUSE_NS (20 * MS)   /* the rings to us hold some 75 000 records */
#define FINISH_NS (8000 * MS)
#define STOP_NS (700 * MS)   /* for windows to end, for which work is waited for 300 ms */
#define VISITS_MOST 64 /* of one process that turns into other programs; and at a time */

#define LATE "the recording ended before the sidecar could begin"

int gpu_time_descriptor(struct tracer *t, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN};

	return epoll_ctl(t->epoll, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

static int on_record(void *ctx, const struct record *r)
{
	struct gpu_process *p = ctx;
	struct record own = *r;

	if (r->kind != RECORD_SIDECAR)
		return writer_add(p->t->writer, r);
	if (r->sidecar.event == RECORD_SIDECAR_ATTACHED)
		own.sidecar.count = (uint64_t)p->stopped_ns;
	if (r->sidecar.event == RECORD_SIDECAR_BEGAN) {
		p->t->gpu_time->stats.processes += !p->began;
		p->began = true;
	}
	gpu_time_tell(p, &own.sidecar);
	return writer_add(p->t->writer, &own);
}

/* A connected socket, which becomes the sidecar's. */
static int connected(struct gpu_process *p, int fd)
{
	struct tracer *t = p->t;
	struct sidecar_options o = {
		.pid = p->pid,
		.cupti = t->gpu_time->options.cupti,
		.flags = t->gpu_time->options.calls ? WIRE_CALLS : 0,
		.again = t->options.schedule != NULL,
		.sink = on_record,
		.ctx = p,
	};
	int err = processes_seen(t, p->pid, tracer_now(), RECORD_PROCESS_SEEN);

	if (err < 0) {
		close(fd);
		return err;
	}
	err = sidecar_new(&p->sidecar, fd, &o);
	if (!err)
		err = gpu_time_descriptor(t, sidecar_fd(p->sidecar));
	if (!err)
		return 0;
	sidecar_free(p->sidecar);
	p->sidecar = NULL;
	return gpu_time_event(p, RECORD_SIDECAR_FAILED, (uint64_t)(int64_t)err,
			      "the connection to its sidecar failed");
}

/* Whoever connects is known by the kernel's word, not its own. */
static int come(struct tracer *t, int fd)
{
	struct ucred peer = {0};
	socklen_t size = sizeof(peer);
	struct gpu_process *p;
	uint32_t visits = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) || peer.pid <= 0 ||
	    !probes_wanted(t->probes, (uint32_t)peer.pid)) {
		close(fd);
		return 0;
	}
	p = gpu_time_find(t->gpu_time, (uint32_t)peer.pid);
	if (p && p->over && p->visits < VISITS_MOST) {
		visits = p->visits + 1;
		p->gone = true; /* another program runs there by now */
		p = NULL;
	}
	if (!p)
		p = gpu_time_add(t, (uint32_t)peer.pid, tracer_now());
	if (p && !p->sidecar && !p->over)
		p->visits = visits;
	if (!p || p->sidecar || p->over || p->t->gpu_time->stopping) {
		close(fd);
		return p ? 0 : gpu_time_too_many(t->gpu_time);
	}
	return connected(p, fd);
}

static int take_connections(struct tracer *t)
{
	int fd, err = 0, i;

	for (i = 0; !err && i < VISITS_MOST && t->gpu_time->options.listener >= 0; i++) {
		fd = accept4(t->gpu_time->options.listener, NULL, NULL,
			     SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0)
			return errno == ENOMEM ? -ENOMEM : 0;
		err = come(t, fd);
	}
	return err;
}

static int take_injected(struct tracer *t)
{
	struct gpu_process *p;
	struct injected in;
	int err = 0;

	while (!err && t->gpu_time->injector && injector_take(t->gpu_time->injector, &in) == 1) {
		p = gpu_time_find(t->gpu_time, in.pid);
		if (!p || p->sidecar || p->over || t->gpu_time->stopping) {
			if (in.result.socket >= 0)
				close(in.result.socket);
			continue;
		}
		if (in.result.left)
			tracer_tell(t, "of injecting into process %u, which went on by itself "
				       "while gbpf got no CPU, %u KiB of memory stay in it",
				    p->pid, in.result.left * INJECT_LEFT_KIB);
		p->stopped_ns = in.result.stopped_ns;
		if (p->stopped_ns > t->gpu_time->stats.stopped_ns)
			t->gpu_time->stats.stopped_ns = p->stopped_ns;
		if (in.err && in.err != -ESRCH)
			err = gpu_time_event(p, RECORD_SIDECAR_REFUSED, 0, in.result.why);
		else if (!in.err)
			err = connected(p, in.result.socket);
	}
	return err;
}

/* Calls CUDA, and did not come: the command's environment is not its own, perhaps. */
static int absent(struct gpu_process *p, int64_t now)
{
	if (p->sidecar || p->over || p->told || p->gone || p->t->gpu_time->options.listener < 0 ||
	    p->t->gpu_time->stopping || now - p->seen < COME_NS)
		return 0;
	return gpu_time_event(p, RECORD_SIDECAR_REFUSED, 0, GPU_TIME_ABSENT);
}

/* Its sidecar waits to be started: nobody else may begin unseen from then on. */
static int start(struct gpu_process *p)
{
	char why[256];

	if (!p->watched && watch_others(p, why, sizeof(why)))
		return sidecar_end(p->sidecar, RECORD_SIDECAR_REFUSED, why);
	p->watched = true;
	p->turn = p->t->gpu_time->turn;
	sidecar_start(p->sidecar, p->t->gpu_time->options.window);
	return 0;
}

/* In a step, not when it is first seen: by then rights that nobody needs have been given up. */
static int ask_for(struct gpu_process *p)
{
	if (p->asked || p->gone || !p->t->gpu_time->injector || p->t->gpu_time->stopping)
		return 0;
	p->asked = true;
	return injector_add(p->t->gpu_time->injector, p->pid);
}

static bool wanted(const struct gpu_process *p)
{
	const struct gpu_time *g = p->t->gpu_time;

	return !g->stopping && !g->resting && p->turn != g->turn;
}

static int process_step(struct gpu_process *p, int64_t now)
{
	int err = ask_for(p);

	if (!err)
		err = p->sidecar ? sidecar_step(p->sidecar) : absent(p, now);
	if (!err && p->sidecar && sidecar_state(p->sidecar) == SIDECAR_READY && wanted(p))
		err = start(p);
	if (p->sidecar && sidecar_state(p->sidecar) == SIDECAR_OVER)
		gpu_time_retire(p);
	return err;
}

int gpu_time_step(struct tracer *t)
{
	struct gpu_time *g = t->gpu_time;
	int64_t now = tracer_now();
	int err = 0;
	size_t i;

	if (!g)
		return 0;
	err = take_connections(t);
	if (!err)
		err = take_injected(t);
	if (!err)
		err = watch_others_step(t);
	for (i = 0; !err && i < g->count; i++)
		err = process_step(g->items[i], now);
	return err;
}

int64_t gpu_time_pause(const struct tracer *t)
{
	const struct gpu_time *g = t->gpu_time;
	size_t i;

	for (i = 0; g && i < g->count; i++)
		if (g->items[i]->sidecar)
			return PAUSE_NS;
	return INT64_MAX;
}

static int info_write(struct tracer *t)
{
	struct record r = {.kind = RECORD_INFO};
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, t->gpu_time->options.window);
	r.info = (struct record_info){"gpu_time_window_ns", text};
	return writer_add(t->writer, &r);
}

int gpu_time_start(struct tracer *t)
{
	const struct gpu_time_options *o = t->options.gpu_time;
	struct gpu_time *g = o ? calloc(1, sizeof(*g)) : NULL;
	int err = 0;

	if (!o)
		return 0;
	if (!g)
		return -ENOMEM;
	t->gpu_time = g;
	g->options = *o;
	g->resting = t->options.schedule;
	g->turn = !g->resting;
	g->whole = (struct gpu_process){.t = t};
	if (o->why_not)
		err = gpu_time_event(&g->whole, RECORD_SIDECAR_REFUSED, 0, o->why_not);
	else if (o->listener >= 0)
		err = gpu_time_descriptor(t, o->listener);
	else
		err = injector_new(&g->injector, o->library, o->library_size);
	if (!err && g->injector)
		err = gpu_time_descriptor(t, injector_fd(g->injector));
	return err ? err : info_write(t);
}

static bool all_over(const struct gpu_time *g)
{
	size_t i;

	for (i = 0; i < g->count; i++)
		if (g->items[i]->sidecar &&
		    sidecar_state(g->items[i]->sidecar) > SIDECAR_READY)
			return false;
	return true;
}

/* The calls of the last works are recorded, too: windows end before the recording does. */
static int windows_end(struct tracer *t)
{
	int64_t until = tracer_now() + STOP_NS;
	struct epoll_event ev;
	int err = 0;

	while (!err && !all_over(t->gpu_time) && tracer_now() < until) {
		epoll_wait(t->epoll, &ev, 1, (int)(PAUSE_NS / MS));
		err = gpu_time_step(t);
	}
	return err;
}

static void sidecars_stop(const struct gpu_time *g)
{
	size_t i;

	for (i = 0; i < g->count; i++)
		if (g->items[i]->sidecar && sidecar_state(g->items[i]->sidecar) > SIDECAR_READY)
			sidecar_stop(g->items[i]->sidecar, NULL);
}

void gpu_time_turn(struct tracer *t)
{
	if (!t->gpu_time)
		return;
	t->gpu_time->turn++;
	t->gpu_time->resting = false;
}

void gpu_time_rest(struct tracer *t)
{
	if (!t->gpu_time)
		return;
	t->gpu_time->resting = true;
	sidecars_stop(t->gpu_time);
}

/* A sidecar that is to come, or to begin. */
static bool awaited(const struct gpu_process *p)
{
	if (p->over || p->told || p->gone)
		return false;
	return !p->sidecar || sidecar_state(p->sidecar) < SIDECAR_READY ||
	       sidecar_state(p->sidecar) == SIDECAR_STARTED ||
	       (sidecar_state(p->sidecar) == SIDECAR_READY && wanted(p));
}

bool gpu_time_ready(const struct tracer *t)
{
	const struct gpu_time *g = t->gpu_time;
	size_t i;

	for (i = 0; g && i < g->count; i++)
		if (awaited(g->items[i]))
			return false;
	return true;
}

bool gpu_time_rests(const struct tracer *t)
{
	return !t->gpu_time || all_over(t->gpu_time);
}

int gpu_time_stop(struct tracer *t)
{
	if (!t->gpu_time)
		return 0;
	t->gpu_time->stopping = true;
	sidecars_stop(t->gpu_time);
	return windows_end(t);
}

/* Those that nobody had got around to. */
static int tell_late(struct gpu_time *g)
{
	struct gpu_process *p;
	size_t i;
	int err = 0;

	for (i = 0; !err && i < g->count; i++) {
		p = g->items[i];
		if (!p->told && !p->began && !p->over && !p->gone)
			err = gpu_time_event(p, RECORD_SIDECAR_REFUSED, 0,
					     g->injector || p->sidecar ? LATE : GPU_TIME_ABSENT);
	}
	return err;
}

int gpu_time_finish(struct tracer *t)
{
	struct gpu_time *g = t->gpu_time;
	int64_t until = tracer_now() + FINISH_NS;
	struct epoll_event ev;
	int err = 0;

	if (!g)
		return 0;
	while (!err && !all_over(g) && tracer_now() < until) {
		epoll_wait(t->epoll, &ev, 1, (int)(PAUSE_NS / MS));
		err = gpu_time_step(t);
	}
	if (!err)
		err = take_injected(t);
	if (!err)
		err = tell_late(g);
	if (!err && !g->any && !g->options.why_not)
		err = gpu_time_event(&g->whole, RECORD_SIDECAR_REFUSED, 0,
				     "no process called CUDA while it was recorded");
	gpu_time_free(t);
	return err;
}

void gpu_time_free(struct tracer *t)
{
	struct gpu_time *g = t->gpu_time;
	size_t i;

	if (!g)
		return;
	injector_free(g->injector);
	watch_others_free(g);
	for (i = 0; i < g->count; i++) {
		if (g->items[i]->sidecar)
			gpu_time_retire(g->items[i]);
		free(g->items[i]);
	}
	t->gpu_time_stats = g->stats;
	free(g);
	t->gpu_time = NULL;
}
