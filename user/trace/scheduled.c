// SPDX-License-Identifier: BSD-2-Clause
/* A recording in windows: what marks steps, and the probes that come and go. */
#include "trace/scheduled_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "bpf/switches.h"
#include "probe/catalogue.h"
#include "util/text.h"

/*
 * bool torch::autograd::Engine::execute(…), once a backward pass; its argument types, which
 * follow in the mangled name, differ between versions. Python's engine calls this one.
 */
#define AUTOGRAD_LIBRARY "libtorch_cpu"
#define AUTOGRAD_SYMBOL "_ZN5torch8autograd6Engine7executeE"
#define KERNEL_PREFIX "kernel:"
#define LINKS_PAUSE_NS 5000000 /* between looks whether the last window's links are gone */

/* ---- what marks a step ---- */

/* cuGraphLaunch means its twins as well: cuGraphLaunch_ptsz. */
static bool api_named(const char *name, const char *marker)
{
	static const char *const twins[] = {"", "_v2", "_ptsz", "_ptds", "_v2_ptsz", "_v2_ptds"};
	size_t len = strlen(marker), i;

	if (strncmp(name, marker, len))
		return false;
	for (i = 0; i < sizeof(twins) / sizeof(*twins); i++)
		if (!strcmp(name + len, twins[i]))
			return true;
	return false;
}

static bool launches_kernel(const struct api *api)
{
	return api->library == API_DRIVER && api->kind == API_LAUNCH &&
	       (api->shape == GBPF_SHAPE_LAUNCH || api->shape == GBPF_SHAPE_CONFIG);
}

static void always_add(struct scheduled *s, const struct selection *wanted, const char *marker)
{
	size_t i;

	for (i = 1; i <= catalogue_count(); i++) {
		const struct api *api = catalogue_get((uint16_t)i);

		if (!wanted->wanted[i] ||
		    (marker ? !api_named(api->name, marker) : !launches_kernel(api)))
			continue;
		s->always[i] = 1;
		s->apis = true;
	}
}

bool schedule_marker_ok(const char *marker, char *why, size_t size)
{
	const char *symbol = strrchr(marker, ':');
	regex_t regex;
	int err;

	symbol = symbol ? symbol + 1 : marker;
	if (!*symbol || *marker == ':' || strlen(marker) > SCHEDULE_MARKER_MAX) {
		snprintf(why, size, "'%.64s' names no step marker: give SYMBOL, LIBRARY:SYMBOL, a "
				    "CUDA function, or kernel:REGEX", marker);
		return false;
	}
	if (strncmp(marker, KERNEL_PREFIX, strlen(KERNEL_PREFIX)))
		return true;
	err = regcomp(&regex, marker + strlen(KERNEL_PREFIX), REG_EXTENDED | REG_NOSUB);
	if (!err) {
		regfree(&regex);
		return true;
	}
	snprintf(why, size, "the step marker is no regular expression: ");
	regerror(err, &regex, why + strlen(why), size - strlen(why));
	return false;
}

static int marker_named(struct scheduled *s, const struct selection *wanted)
{
	const char *marker = s->options.marker;
	char *colon;

	if (!strncmp(marker, KERNEL_PREFIX, strlen(KERNEL_PREFIX))) {
		if (regcomp(&s->kernel, marker + strlen(KERNEL_PREFIX),
			    REG_EXTENDED | REG_NOSUB))
			return -EINVAL;
		s->kernels = true;
		always_add(s, wanted, NULL);
		return 0;
	}
	always_add(s, wanted, marker);
	if (s->apis)
		return 0;
	s->text = strdup(marker);
	if (!s->text)
		return -ENOMEM;
	/* the symbol holds no colon: it is mangled */
	colon = strrchr(s->text, ':');
	if (colon)
		*colon = '\0';
	s->names[s->names_count++] = (struct marker_name){
		.library = colon ? s->text : NULL,
		.symbol = colon ? colon + 1 : s->text,
	};
	return 0;
}

static int marker_choose(struct scheduled *s, const struct selection *wanted)
{
	if (s->options.marker)
		return marker_named(s, wanted);
	s->names[s->names_count++] = (struct marker_name){
		.library = AUTOGRAD_LIBRARY, .symbol = AUTOGRAD_SYMBOL, .prefix = true,
	};
	always_add(s, wanted, "cuGraphLaunch");
	return 0;
}

int scheduled_new(struct tracer *t, struct images_options *io)
{
	const struct schedule_options *o = t->options.schedule;
	struct scheduled *s = o ? calloc(1, sizeof(*s)) : NULL;
	int err;

	if (!o)
		return 0;
	if (!s)
		return -ENOMEM;
	t->scheduled = s;
	s->options = *o;
	s->learn.fd = -1;
	s->shared = probes_steps(t->probes);
	err = closer_new(&s->closer);
	if (!err && o->unit != SCHEDULE_TIME)
		err = marker_choose(s, t->options.selection);
	if (!err && o->unit != SCHEDULE_TIME)
		err = markers_new(&s->markers, t->probes, s->names, s->names_count);
	if (err)
		return err;
	s->shared->kernels = s->kernels;
	s->shared->through = t->options.gpu_time && !t->options.gpu_time->why_not;
	io->windows = true;
	io->always = s->always;
	io->always_flags = GBPF_COOKIE_STEP;
	return 0;
}

void scheduled_free(struct tracer *t)
{
	struct scheduled *s = t->scheduled;

	if (!s)
		return;
	learning_end(s);
	markers_free(s->markers);
	closer_free(s->closer);
	if (s->kernels)
		regfree(&s->kernel);
	free(s->text);
	free(s);
	t->scheduled = NULL;
}

/* ---- where it is looked for ---- */

bool scheduled_wants_path(const struct tracer *t, const char *path)
{
	return t->scheduled && t->scheduled->markers && markers_wants(t->scheduled->markers, path);
}

int scheduled_mapping(struct tracer *t, uint32_t pid, const struct mapping *m)
{
	int fd, n;

	if (!scheduled_wants_path(t, m->path) ||
	    markers_known(t->scheduled->markers, m->dev, m->ino))
		return 0;
	fd = maps_open(pid, m);
	if (fd < 0)
		return 0; /* it went away meanwhile, or the one about images says so */
	n = markers_file(t->scheduled->markers, fd);
	close(fd);
	return n < 0 ? n : 0;
}

int scheduled_name(struct tracer *t, const struct gbpf_name *n, const char *name)
{
	struct scheduled *s = t->scheduled;
	char *readable;
	bool is;

	if (!s || !s->kernels)
		return 0;
	is = !regexec(&s->kernel, name, 0, NULL, 0);
	readable = is ? NULL : text_demangle(name);
	is = is || (readable && !regexec(&s->kernel, readable, 0, NULL, 0));
	free(readable);
	return markers_kernel(s->markers, n->hdr.pid, n->handle, is);
}

/* ---- probes come and go ---- */

static int image_open(struct tracer *t, struct image *image)
{
	int err;

	if (!image->slot || image->same_as || image->trouble || image->fd < 0)
		return 0;
	err = image_window_open(image, t->probes);
	return err == -ENOMEM ? err : 0;
}

int scheduled_image(struct tracer *t, struct image *image)
{
	if (!t->scheduled || !t->scheduled->attached)
		return 0;
	return image_open(t, image);
}

int scheduled_attach(struct tracer *t)
{
	struct scheduled *s = t->scheduled;
	int err = 0;
	size_t i;

	if (s->attached)
		return 0;
	/* modules may have gone meanwhile, and their handles be others' */
	probes_forget_all_names(t->probes);
	s->attached = true;
	for (i = 0; !err && i < images_count(t->images); i++)
		err = image_open(t, images_get(t->images, i));
	return err;
}

/* On the last rung it would take seconds: there the gate alone is shut. */
void scheduled_detach(struct tracer *t)
{
	struct scheduled *s = t->scheduled;
	size_t i;

	if (!s->attached || probes_rung(t->probes) == RUNG_SINGLE)
		return;
	s->attached = false;
	for (i = 0; i < images_count(t->images); i++)
		closer_give(s->closer, image_window_take(images_get(t->images, i)));
}

/* ---- in the course of the recording ---- */

static int wait_for(struct tracer *t, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN};

	return epoll_ctl(t->epoll, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

int scheduled_start(struct tracer *t)
{
	struct scheduled *s = t->scheduled;
	int err;

	if (!s)
		return 0;
	if (probes_rung(t->probes) == RUNG_SINGLE)
		tracer_tell(t, "this kernel takes probes away one by one, in seconds: between "
			       "windows they stay, and do nothing");
	probes_switches(t->probes)->gate = GBPF_GATE_SHUT;
	if (!s->markers)
		return 0;
	err = wait_for(t, markers_fd(s->markers));
	return err ? err : learning_begin(t);
}

/* Whoever fires next leads: the process that did has ended. */
static int lead(struct tracer *t, const struct gbpf_mark *mark)
{
	struct scheduled *s = t->scheduled;

	if (mark->class != s->shared->class || !probes_wanted(t->probes, mark->pid))
		return 0;
	s->lost_leader = false;
	s->shared->tell = 0;
	s->shared->fired = mark->number + 1;
	__atomic_store_n(&s->shared->leader, mark->pid, __ATOMIC_SEQ_CST);
	return phases_begin(t, true);
}

/* Its window ends with it; whoever fires next begins a cycle. */
static int leader_ended(struct tracer *t)
{
	struct scheduled *s = t->scheduled;
	int err = phases_stop(t);

	s->leader_ended = false;
	s->shared->leader = 0;
	if (s->options.steps.repeat && s->s.windows >= s->options.steps.repeat) {
		s->s.phase = SCHEDULE_DONE;
		return err;
	}
	s->s.phase = SCHEDULE_WAIT;
	s->s.until = INT64_MAX;
	s->lost_leader = true;
	s->shared->tell = 1;
	phases_rest(t);
	return err;
}

static int on_mark(void *ctx, const struct gbpf_mark *mark)
{
	struct tracer *t = ctx;
	struct scheduled *s = t->scheduled;

	if (s->learn.on)
		return learning_mark(t, mark);
	if (s->lost_leader)
		return mark->event == GBPF_MARK_FIRED ? lead(t, mark) : 0;
	return phases_mark(t, mark);
}

int scheduled_step(struct tracer *t)
{
	struct scheduled *s = t->scheduled;
	int err = 0;

	if (!s || s->s.phase == SCHEDULE_DONE)
		return 0;
	if (s->markers)
		err = markers_consume(s->markers, on_mark, t);
	if (!err && s->leader_ended)
		err = leader_ended(t);
	if (!err && s->learn.on)
		err = learning_step(t);
	/* time runs from the first moment at which something could be recorded */
	if (!err && !s->begun && !s->learn.on && !s->failed && (t->cuda_seen || t->options.command))
		err = phases_begin(t, false);
	return err || !s->begun ? err : phases_tick(t);
}

int64_t scheduled_pause(const struct tracer *t)
{
	const struct scheduled *s = t->scheduled;
	int64_t left;

	if (!s || !s->begun || s->s.phase == SCHEDULE_DONE)
		return INT64_MAX;
	if (s->pending || s->cooling)
		return LINKS_PAUSE_NS;
	if (s->steps)
		return INT64_MAX;
	left = s->s.until - tracer_now();
	return left > 0 ? left : 0;
}

/* What was on its way when a window ended, or before one began, is of none. */
static bool within(int64_t begin, int64_t end, int64_t ts)
{
	return ts >= begin && (begin > end || ts <= end);
}

bool scheduled_covers(const struct tracer *t, int64_t ts)
{
	const struct scheduled *s = t->scheduled;

	return !s || (s->opened && within(s->window_begin, s->window_end, ts));
}

int scheduled_events(struct tracer *t, const struct event *events, size_t count)
{
	struct scheduled *s = t->scheduled;
	int64_t begin = (int64_t)probes_switches(t->probes)->gate_begin;
	size_t i, from = 0;
	int err = 0;

	if (s->learn.on)
		return learning_events(t, events, count);
	for (i = 0; !err && i <= count; i++) {
		if (i < count && within(begin, s->kept_end, events[i].ts))
			continue;
		s->kept += i - from;
		if (i > from)
			err = writer_events(t->writer, events + from, i - from);
		from = i + 1;
	}
	return err;
}

/* Said while rings are read: what follows reads them, too, and waits for the next step. */
void scheduled_ended(struct tracer *t, uint32_t pid)
{
	struct scheduled *s = t->scheduled;

	if (s && !s->learn.on && s->begun && s->steps && pid == s->shared->leader)
		s->leader_ended = true;
}

int scheduled_stop(struct tracer *t)
{
	return t->scheduled ? phases_stop(t) : 0;
}

int scheduled_end(struct tracer *t)
{
	return t->scheduled ? stretch_end(t) : 0;
}

/* ---- what is said of it ---- */

static int info(struct tracer *t, const char *key, const char *value)
{
	struct record r = {.kind = RECORD_INFO, .info = {.key = key, .value = value}};

	return writer_add(t->writer, &r);
}

static int info_steps(struct tracer *t)
{
	const struct scheduled *s = t->scheduled;
	const char *marker = s->options.marker;
	char text[32];
	int err;

	if (!marker)
		marker = s->shared->class == GBPF_STEP_API ? "cuGraphLaunch"
							   : "torch::autograd::Engine::execute";
	err = info(t, "schedule_marker", marker);
	snprintf(text, sizeof(text), "%" PRIu64, s->learnt.per_step);
	if (!err)
		err = info(t, "schedule_marker_per_step", text);
	return err ? err : info(t, "schedule_window_steps", s->windows);
}

int scheduled_meta(struct tracer *t)
{
	const struct scheduled *s = t->scheduled;
	const struct schedule_plan *plan;
	char text[160];
	int err;

	if (!s)
		return 0;
	plan = s->steps ? &s->options.steps : &s->options.time;
	snprintf(text, sizeof(text),
		 "unit=%s wait=%" PRId64 " warmup=%" PRId64 " active=%" PRId64 " repeat=%" PRIu64,
		 s->steps ? "step" : "ns", plan->wait, plan->warmup, plan->active, plan->repeat);
	err = info(t, "schedule", text);
	return err || !s->steps ? err : info_steps(t);
}

void scheduled_stats(const struct tracer *t, struct schedule_stats *out)
{
	const struct scheduled *s = t->scheduled;
	uint64_t fired;

	*out = (struct schedule_stats){0};
	if (!s)
		return;
	*out = (struct schedule_stats){
		.asked = true, .looking = s->learn.on, .steps = s->steps, .failed = s->failed,
		.opened = s->opened, .phase = s->s.phase, .windows = s->s.windows,
		.until = s->s.until - s->origin,
	};
	fired = s->shared->fired;
	if (s->steps && fired > s->learnt.base)
		out->at = (int64_t)((fired - 1 - s->learnt.base) / s->learnt.per_step) - s->origin;
	else if (s->begun && !s->steps)
		out->at = tracer_now() - s->origin;
}

uint64_t scheduled_kept(const struct tracer *t)
{
	return t->scheduled->kept;
}
