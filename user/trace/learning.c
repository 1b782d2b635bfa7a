// SPDX-License-Identifier: BSD-2-Clause
/*
 * Before the first cycle: does a marker fire, and how often a step? Calls are recorded for
 * a while, aside, and whoever knows how to find steps in recordings (schedule_options.learn)
 * is asked. So what counts live is the step that reports will find.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "probe/catalogue.h"
#include "trace/scheduled_private.h"

#define SECOND 1000000000LL
/* Enough, whichever comes first: many firings, or some for which there was time. */
#define MANY_FIRINGS 64
#define MANY_NS SECOND
#define SOME_FIRINGS 4
#define SOME_NS (10 * SECOND)
#define ANY_NS (30 * SECOND)
/* Without a firing while kernels are launched there is no marker: a while, with many of them. */
#define NONE_NS (10 * SECOND)
#define NONE_LONG_NS (60 * SECOND)
#define MANY_LAUNCHES 1000
#define EVENTS_MOST 2000000

static int64_t realtime_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * SECOND + ts.tv_nsec;
}

static int writer_begin(struct learning *l)
{
	int fd, err;

	l->fd = memfd_create("gbpf-learning", MFD_CLOEXEC);
	if (l->fd < 0)
		return -errno;
	fd = dup(l->fd);
	if (fd < 0)
		return -errno;
	err = writer_new(&l->writer, fd, realtime_now());
	return err ? err : meta_catalogue(l->writer);
}

int learning_begin(struct tracer *t)
{
	struct scheduled *s = t->scheduled;
	int err = writer_begin(&s->learn);

	if (err)
		return err;
	s->learn.on = true;
	s->shared->per_step = 1;
	s->shared->tell = 1;
	err = scheduled_attach(t);
	probes_switches(t->probes)->gate = GBPF_GATE_OPEN;
	return err;
}

void learning_end(struct scheduled *s)
{
	struct learning *l = &s->learn;

	l->on = false;
	if (l->writer)
		writer_close(l->writer);
	if (l->fd >= 0)
		close(l->fd);
	free(l->firings);
	*l = (struct learning){.fd = -1};
}

static bool is_launch(uint16_t api)
{
	const struct api *a = catalogue_get(api);

	return a && (a->kind == API_LAUNCH || a->kind == API_COLLECTIVE ||
		     (a->kind == API_GRAPH && strstr(a->name, "GraphLaunch")));
}

int learning_events(struct tracer *t, const struct event *events, size_t count)
{
	struct learning *l = &t->scheduled->learn;
	size_t i;

	for (i = 0; i < count && l->launches < MANY_LAUNCHES; i++)
		if (events[i].kind == EVENT_BEGIN && is_launch(events[i].api)) {
			l->since = l->since ? l->since : events[i].ts;
			l->launches++;
		}
	l->events += count;
	if (l->full)
		return 0;
	l->full = l->events >= EVENTS_MOST;
	return writer_events(l->writer, events, count);
}

int learning_mark(struct tracer *t, const struct gbpf_mark *mark)
{
	struct learning *l = &t->scheduled->learn;

	if (mark->event != GBPF_MARK_FIRED || l->count == LEARN_FIRINGS_MOST)
		return 0;
	if (l->count == l->room) {
		size_t room = l->room ? 2 * l->room : 256;
		struct schedule_firing *grown = realloc(l->firings, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		l->firings = grown;
		l->room = room;
	}
	l->since = l->since ? l->since : (int64_t)mark->ts;
	l->firings[l->count++] = (struct schedule_firing){
		(int64_t)mark->ts, mark->number, mark->pid, mark->class,
	};
	return 0;
}

/* Where most firings came from; functions before CUDA calls, as a backward pass is one step. */
static size_t most_fired(const struct learning *l, uint32_t *pid, uint32_t *class)
{
	size_t best = 0, i;
	uint64_t number = 0;

	*class = GBPF_STEP_API;
	for (i = 0; i < l->count; i++)
		if (l->firings[i].class == GBPF_STEP_FUNCTION)
			*class = GBPF_STEP_FUNCTION;
	for (i = 0; i < l->count; i++) {
		if (l->firings[i].class != *class || l->firings[i].number + 1 < number)
			continue;
		number = l->firings[i].number + 1;
		*pid = l->firings[i].pid;
	}
	for (i = 0; i < l->count; i++)
		best += l->firings[i].pid == *pid && l->firings[i].class == *class;
	return best;
}

static bool enough(const struct learning *l, size_t fired, int64_t ns)
{
	if (fired >= MANY_FIRINGS && (ns >= MANY_NS || l->full))
		return true;
	if (fired >= SOME_FIRINGS && ns >= SOME_NS)
		return true;
	return fired && ns >= ANY_NS;
}

/* Nothing more comes in: what was recorded is all there. */
static int recording_end(struct tracer *t)
{
	struct learning *l = &t->scheduled->learn;
	int err, n;

	probes_switches(t->probes)->gate = GBPF_GATE_SHUT;
	t->scheduled->shared->tell = 0;
	do
		n = rings_consume(t->rings);
	while (n > 0);
	err = writer_close(l->writer);
	l->writer = NULL;
	return n < 0 ? n : err;
}

/* Firings of one process and class, moved to the front. */
static size_t own_firings(struct learning *l, uint32_t pid, uint32_t class)
{
	size_t i, n = 0;

	for (i = 0; i < l->count; i++)
		if (l->firings[i].pid == pid && l->firings[i].class == class)
			l->firings[n++] = l->firings[i];
	return n;
}

static void say(const struct tracer *t, const struct schedule_learnt *v)
{
	if (v->uneven)
		tracer_tell(t, "steps do not fire the marker equally often: each firing is taken "
			       "for a step");
	else if (!v->steps)
		tracer_tell(t, "no steps were found around the marker's firings: each of them is "
			       "taken for a step");
	else if (v->per_step > 1)
		tracer_tell(t, "a step fires the marker %" PRIu64 " times, as seen in %" PRIu64
			    " steps", v->per_step, v->steps);
}

static int learn(struct tracer *t, uint32_t pid, uint32_t class)
{
	struct scheduled *s = t->scheduled;
	struct schedule_learnt v = {0};
	char path[40];
	size_t n = own_firings(&s->learn, pid, class);
	int err;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", s->learn.fd);
	err = s->options.learn(path, pid, s->learn.firings, n, &v);
	if (err)
		return err;
	if (!v.per_step || v.uneven)
		v.per_step = 1;
	v.base %= v.per_step;
	say(t, &v);
	s->learnt = v;
	s->shared->class = class;
	s->shared->per_step = (uint32_t)v.per_step;
	s->shared->base = (uint32_t)v.base;
	s->shared->fired = n ? s->learn.firings[n - 1].number + 1 : 0;
	__atomic_store_n(&s->shared->leader, pid, __ATOMIC_SEQ_CST);
	return 0;
}

static bool hopeless(const struct learning *l, int64_t ns)
{
	return ns >= NONE_LONG_NS || (ns >= NONE_NS && l->launches >= MANY_LAUNCHES);
}

static int none_fired(struct tracer *t)
{
	struct scheduled *s = t->scheduled;
	const char *marker = s->options.marker;
	int err = recording_end(t);

	if (!marker)
		marker = "torch::autograd::Engine::execute or cuGraphLaunch";
	learning_end(s);
	if (err)
		return err;
	if (s->options.unit == SCHEDULE_STEPS) {
		s->failed = true;
		s->s.phase = SCHEDULE_DONE;
		tracer_tell(t, "no step was seen: %s was not called while kernels were "
			    "launched (--step-marker names another, --seconds takes time)",
			    marker);
		return 0;
	}
	tracer_tell(t, "no step was seen: %s was not called while kernels were launched; "
		    "what was asked for is taken for seconds", marker);
	return phases_begin(t, false);
}

static int on_late_mark(void *ctx, const struct gbpf_mark *mark)
{
	return learning_mark(ctx, mark);
}

int learning_step(struct tracer *t)
{
	struct learning *l = &t->scheduled->learn;
	int64_t ns = l->since ? tracer_now() - l->since : 0;
	uint32_t pid = 0, class;
	size_t fired = most_fired(l, &pid, &class);
	int err;

	if (!fired && hopeless(l, ns))
		return none_fired(t);
	if (!enough(l, fired, ns))
		return 0;
	err = recording_end(t);
	if (!err)
		err = markers_consume(t->scheduled->markers, on_late_mark, t);
	if (!err)
		err = learn(t, pid, class);
	learning_end(t->scheduled);
	return err ? err : phases_begin(t, true);
}
