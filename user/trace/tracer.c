/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "probe/catalogue.h"
#include "trace/private.h"

#define TICK_NS 1000000000LL

int64_t tracer_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

void tracer_tell(const struct tracer *t, const char *format, ...)
{
	char text[1024];
	va_list args;

	if (!t->options.tell)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	t->options.tell(t->options.tell_ctx, text);
}

int tracer_add(struct tracer *t, const struct record *record)
{
	return t->writer ? writer_add(t->writer, record) : recorder_add(t, record);
}

static int on_events(void *ctx, const struct event *events, size_t count)
{
	struct tracer *t = ctx;
	int err = processes_threads(t, events, count);

	if (err < 0)
		return err;
	if (t->recorder)
		return recorder_events(t, events, count);
	return t->scheduled ? scheduled_events(t, events, count)
			    : writer_events(t->writer, events, count);
}

static int on_name(void *ctx, const struct gbpf_name *name)
{
	return names_add(ctx, name);
}

static int on_process(void *ctx, const struct gbpf_process *process)
{
	return processes_event(ctx, process);
}

static void explain(int err, char *why, size_t size)
{
	switch (err) {
	case -EPERM:
	case -EACCES:
		snprintf(why, size, "not permitted: run it with sudo (gbpf doctor says which "
				    "rights are missing)");
		break;
	case -EOPNOTSUPP:
		snprintf(why, size, "this kernel offers no way to attach: 5.15 or later with BTF "
				    "and uprobes is needed (gbpf doctor says what was tried)");
		break;
	default:
		snprintf(why, size, "loading the kernel programs failed: %s", strerror(-err));
	}
}

/* Return probes can kill filtered processes on some kernels: then there are none at all. */
static int returns_check(struct tracer *t)
{
	int unsafe;

	if (!probes_returns(t->probes))
		return 0;
	unsafe = calibrate_seccomp(t->probes);
	if (unsafe < 0)
		return unsafe;
	if (unsafe) {
		probes_entry_only(t->probes);
		tracer_tell(t, "return probes would kill processes with a seccomp filter on this "
			       "kernel: calls are counted, their durations are not known");
	}
	return 0;
}

static int tracer_open(struct tracer *t, char *why, size_t size)
{
	struct collect_sink sink = {on_events, on_name, on_process, t};
	struct images_options io = {
		.selection = t->options.selection,
		.allow_slow = t->options.allow_slow,
		.static_runtime = selection_wants_library(t->options.selection, API_RUNTIME),
	};
	struct epoll_event ev = {.events = EPOLLIN};
	int err;

	err = probes_new(&t->probes, &t->options.probes, NULL);
	if (!err)
		err = returns_check(t);
	if (!err)
		err = watch_new(&t->watch);
	if (err) {
		explain(err, why, size);
		return err;
	}
	io.few = t->options.default_selection && probes_rung(t->probes) == RUNG_SINGLE;
	watch_filter(t->watch, follow_wants_path, t);
	err = scheduled_new(t, &io);
	if (!err)
		err = images_new(&t->images, t->probes, &io);
	if (!err)
		err = rings_new(&t->rings, t->probes, &sink);
	if (!err)
		err = held_new(t);
	t->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!err && (t->epoll < 0 || epoll_ctl(t->epoll, EPOLL_CTL_ADD, watch_fd(t->watch), &ev)))
		err = -errno;
	if (!err && t->hold && epoll_ctl(t->epoll, EPOLL_CTL_ADD, hold_fd(t->hold), &ev))
		err = -errno;
	if (err)
		snprintf(why, size, "setting up failed: %s", strerror(-err));
	return err;
}

int tracer_new(struct tracer **out, const struct tracer_options *o, char *why, size_t size)
{
	struct tracer *t = calloc(1, sizeof(*t));
	int err;

	if (!t) {
		snprintf(why, size, "out of memory");
		return -ENOMEM;
	}
	t->options = *o;
	t->epoll = -1;
	t->layout.offset = 8;
	err = tracer_open(t, why, size);
	if (err) {
		tracer_free(t);
		return err;
	}
	*out = t;
	return 0;
}

void tracer_free(struct tracer *t)
{
	if (!t)
		return;
	hold_free(t->hold); /* nobody waits for us any more */
	gpus_stop(t);
	gpu_time_free(t);
	scheduled_free(t);
	recorder_free(t);
	images_free(t->images);
	rings_free(t->rings);
	watch_free(t->watch);
	probes_free(t->probes);
	writer_close(t->writer);
	names_close(t);
	processes_close(t);
	if (t->epoll >= 0)
		close(t->epoll);
	free(t);
}

int64_t tracer_realtime(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}


static int rings_round(struct tracer *t)
{
	const struct collect_stats *stats = rings_stats(t->rings);
	uint64_t before = stats->bytes;
	int64_t now = tracer_now(), upto = now;
	int n = rings_consume(t->rings);

	processes_round(t);
	if (t->recorder && n >= 0 && n < RINGS_ROUND_MOST) {
		int err = recorder_round(t, upto);

		n = err ? err : n;
	}
	now = tracer_now();
	t->pause = rings_pause(t->rings, now - t->round_at, stats->bytes - before);
	t->round_at = now;
	return n < 0 ? n : 0;
}

/* The targets do not wait while we set up: their rings would run over. */
static int between(void *ctx)
{
	return rings_round(ctx);
}

static int tracer_attach(struct tracer *t, char *why, size_t size)
{
	int err = probes_attach_tasks(t->probes);

	if (!err)
		err = follow_targets(t, why, size);
	t->begin = t->round_at = tracer_now();
	t->next_tick = t->begin + TICK_NS;
	if (!err)
		err = follow_installed(t);
	if (t->denied && !err)
		tracer_tell(t, FOLLOW_DENIED, t->denied);
	if (!err)
		err = rings_round(t);
	return err;
}

int tracer_start(struct tracer *t, int fd, char *why, size_t size)
{
	int err;

	snprintf(why, size, "%s", "");
	err = t->options.recorder ? recorder_new(t, why, size) :
				    writer_new(&t->writer, fd, tracer_realtime());
	if (!err)
		err = meta_begin(t);
	if (!err) /* who calls CUDA is seen from the first probe on */
		err = gpu_time_start(t);
	if (!err)
		err = tracer_attach(t, why, size);
	if (!err)
		err = calibrate(t->probes, &t->cost, between, t);
	if (!err)
		err = scheduled_start(t);
	if (!err)
		gpus_start(t);
	if (err && !*why)
		snprintf(why, size, "starting the recording failed: %s", strerror(-err));
	return err;
}

static void wait_for_work(struct tracer *t, int64_t max_ns, int extra_fd)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int64_t ns = t->round_at + t->pause - tracer_now(), pause = gpu_time_pause(t);

	if (pause > scheduled_pause(t))
		pause = scheduled_pause(t);
	if (pause > recorder_pause(t))
		pause = recorder_pause(t);
	if (ns > max_ns)
		ns = max_ns;
	if (ns > pause)
		ns = pause;
	if (ns <= 0)
		return;
	if (extra_fd >= 0)
		epoll_ctl(t->epoll, EPOLL_CTL_ADD, extra_fd, &ev);
	epoll_wait(t->epoll, &ev, 1, (int)((ns + 999999) / 1000000));
	if (extra_fd >= 0)
		epoll_ctl(t->epoll, EPOLL_CTL_DEL, extra_fd, &ev);
}

int tracer_step(struct tracer *t, int64_t max_ns, int extra_fd)
{
	int err;

	wait_for_work(t, max_ns, extra_fd);
	err = follow_notices(t);
	if (!err)
		err = held_release(t);
	if (!err && tracer_now() >= t->round_at + t->pause)
		err = rings_round(t);
	if (!err)
		err = scheduled_step(t);
	if (!err)
		err = gpu_time_step(t);
	if (!err && tracer_now() >= t->next_tick) {
		t->next_tick = tracer_now() + TICK_NS;
		err = meta_tick(t);
		if (!err)
			err = gpus_tick(t);
		if (!err && t->writer)
			err = writer_flush(t->writer);
	}
	recorder_step(t);
	if (err && !t->error)
		t->error = err;
	return err;
}

int tracer_stop(struct tracer *t)
{
	int err = t->error, n, closed;

	if (!err)
		err = scheduled_stop(t);
	n = gpu_time_stop(t);
	err = err ? err : n;
	t->end = tracer_now();
	if (!t->cuda_seen)
		follow_notices(t); /* by one that has ended since, perhaps */
	if (!err)
		err = scheduled_end(t);
	/* the recording ends here; taking probes away can take long on the last rung */
	probes_switches(t->probes)->mode = GBPF_MODE_OFF;
	held_stop(t);
	do
		n = rings_consume(t->rings);
	while (n > 0);
	if (!err)
		err = n < 0 || t->scheduled ? n : rings_finish(t->rings);
	if (!err)
		err = gpu_time_finish(t);
	if (!err && !t->recorder) /* whose files have each its own end */
		err = meta_end(t);
	if (!err)
		err = gpus_finish(t);
	recorder_finish(t);
	if (t->writer) {
		t->bytes_written = writer_size(t->writer);
		t->events_written = writer_written(t->writer);
	}
	closed = writer_close(t->writer);
	t->writer = NULL;
	return err ? err : closed;
}

void tracer_stats(const struct tracer *t, struct tracer_stats *out)
{
	const volatile struct gbpf_counters *c = probes_counters(t->probes);
	size_t i;

	memset(out, 0, sizeof(*out));
	out->events = t->scheduled ? scheduled_kept(t) : rings_stats(t->rings)->events;
	scheduled_stats(t, &out->schedule);
	recorder_stats(t, &out->recorder);
	out->bytes_written = t->writer ? writer_size(t->writer) : t->bytes_written;
	out->events_written = t->writer ? writer_written(t->writer) : t->events_written;
	if (t->recorder) {
		out->bytes_written = out->recorder.last_bytes;
		out->events_written = out->recorder.last_events;
	}
	out->lost = c->ring_full + c->state_full + rings_stats(t->rings)->malformed;
	for (i = 0; i < images_count(t->images); i++) {
		const struct image *image = images_get(t->images, i);

		bool hooked = image->link || (t->scheduled && image->slot && !image->trouble);

		out->images_hooked += hooked;
		out->functions_hooked += hooked ? image->hooked : 0;
	}
	/* measured: 87 ms an event on the last rung, 32 ms a link on the others */
	if (probes_rung(t->probes) == RUNG_SINGLE)
		out->detach_s = 0.174 * (double)out->functions_hooked;
	else
		out->detach_s = 0.032 * (double)out->images_hooked;
	out->targets = t->targets;
	out->targets_alive = probes_any_wanted(t->probes);
	out->cuda_seen = t->cuda_seen;
	out->begin = t->begin;
	out->cost = t->cost;
	out->gpu_time_asked = t->options.gpu_time != NULL;
	gpu_time_stats(t, &out->gpu_time);
}

const struct images *tracer_images(const struct tracer *t)
{
	return t->images;
}

struct probes *tracer_probes(struct tracer *t)
{
	return t->probes;
}
