/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes a recording out of lines on stdin, a record each: "kind field field …", fields in
 * the order of docs/format.md, strings as hexadecimal digits after an x. Tests thereby know
 * what is in a recording without having to trust what made it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/writer.h"

#define TEXTS 4
#define TEXT_SIZE 70000

static char texts[TEXTS][TEXT_SIZE];
static unsigned texts_used;

static void fail(const char *what, const char *where)
{
	fprintf(stderr, "write_recording: %s: '%.60s'\n", what, where);
	exit(1);
}

static char *word(char **at)
{
	char *w = strtok_r(*at, " \n", at);

	if (!w)
		fail("a field is missing", "");
	return w;
}

static uint64_t number(char **at)
{
	char *w = word(at), *end;
	uint64_t value = *w == '-' ? (uint64_t)strtoll(w, &end, 10) : strtoull(w, &end, 10);

	if (*end)
		fail("not a number", w);
	return value;
}

static const char *text(char **at)
{
	const char *w = word(at);
	char *out = texts[texts_used++ % TEXTS];
	size_t len = strlen(w) / 2;

	if (*w++ != 'x' || len >= TEXT_SIZE)
		fail("not a string", w);
	for (size_t i = 0; i < len; i++) {
		unsigned byte;

		if (sscanf(w + 2 * i, "%2x", &byte) != 1)
			fail("not hexadecimal", w);
		out[i] = (char)byte;
	}
	out[len] = '\0';
	return out;
}

#define N number(&at)
#define N32 (uint32_t)number(&at)
#define S text(&at)

static void events_line(struct writer *w, const char *kind, char *at)
{
	struct event e = {.image = 1, .kind = EVENT_BEGIN};

	e.ts = (int64_t)N;
	e.pid = N32;
	e.tid = N32;
	e.sp = N32;
	e.api = (uint16_t)N;
	if (!strcmp(kind, "end")) {
		e.kind = EVENT_END;
		e.end.ret = (int64_t)N;
	} else if (!strcmp(kind, "launch")) {
		e.args = EVENT_ARGS_LAUNCH;
		e.launch.func = N;
		e.launch.stream = N;
		e.launch.smem = N;
		for (int i = 0; i < 3; i++)
			e.launch.grid[i] = N32;
		for (int i = 0; i < 3; i++)
			e.launch.block[i] = N32;
	} else if (!strcmp(kind, "call")) {
		e.args = EVENT_ARGS_CALL;
		e.call.object = N;
		e.call.stream = N;
		e.call.source = N;
		e.call.bytes = N;
		e.call.kind = N;
	} else if (!strcmp(kind, "poll")) {
		e.kind = EVENT_POLL;
		e.poll.object = N;
		e.poll.last_end = (int64_t)N;
		e.poll.inside = (int64_t)N;
		e.poll.min = N32;
		e.poll.max = N32;
		e.poll.count = N32;
		e.poll.ret = (int32_t)N;
	}
	if (writer_events(w, &e, 1))
		fail("cannot write", kind);
}

static void device_line(struct record *r, char *at)
{
	struct record_device *d = &r->device;
	int32_t *const properties[] = {
		&d->major, &d->minor, &d->sms, &d->warp, &d->block_threads, &d->sm_threads,
		&d->sm_blocks, &d->block_registers, &d->sm_registers, &d->block_smem,
		&d->block_smem_optin, &d->sm_smem, &d->reserved_smem,
	};

	d->pid = N32;
	d->ordinal = N32;
	d->uuid = S;
	d->name = S;
	d->memory = (int64_t)N;
	for (size_t i = 0; i < sizeof(properties) / sizeof(*properties); i++)
		*properties[i] = (int32_t)N;
}

static void shape_line(struct record *r, char *at)
{
	struct record_shape *s = &r->shape;

	s->pid = N32;
	s->id = N32;
	s->kernel = S;
	for (int i = 0; i < 3; i++)
		s->grid[i] = N32;
	for (int i = 0; i < 3; i++)
		s->block[i] = N32;
	s->registers = N32;
	s->smem_static = N32;
	s->smem_dynamic = N32;
	s->local = N32;
}

static void work_line(struct record *r, char *at)
{
	struct record_work *w = &r->work;
	uint32_t *const rest[] = {&w->direction, &w->source, &w->target, &w->channel,
				  &w->channel_type};
	uint32_t *const first[] = {&w->pid, &w->kind, &w->device, &w->context, &w->stream,
				   &w->correlation, &w->shape, &w->graph};

	w->begin = (int64_t)N;
	w->duration = N;
	for (size_t i = 0; i < sizeof(first) / sizeof(*first); i++)
		*first[i] = N32;
	w->graph_node = N;
	w->bytes = N;
	for (size_t i = 0; i < sizeof(rest) / sizeof(*rest); i++)
		*rest[i] = N32;
	w->priority = (int32_t)N;
	w->peer = N32;
}

static void work_call_line(struct record *r, char *at)
{
	struct record_work_call *c = &r->work_call;

	c->begin = (int64_t)N;
	c->duration = N;
	c->pid = N32;
	c->tid = N32;
	c->domain = N32;
	c->cbid = N32;
	c->correlation = N32;
	c->ret = (int32_t)N;
}

static void process_line(struct record *r, char *at)
{
	struct record_process *p = &r->process;

	p->ts = (int64_t)N;
	p->event = N32;
	p->pid = N32;
	p->ppid = N32;
	p->ns_pid = N32;
	p->uid = N32;
	p->exit_code = (int32_t)N;
	p->flags = N32;
	p->start = (int64_t)N;
	p->comm = S;
	p->cmdline = S;
	p->exe = S;
	p->container = S;
}

static void name_line(struct record *r, char *at)
{
	struct record_name *n = &r->name;

	n->ts = (int64_t)N;
	n->pid = N32;
	n->source = N32;
	n->handle = N;
	n->name = S;
	n->len = strlen(n->name);
}

static void gpu_line(struct record *r, char *at)
{
	struct record_gpu *g = &r->gpu;

	g->id = N32;
	g->index = N32;
	g->uuid = S;
	g->name = S;
	g->pci = S;
	g->mig_parent = "";
}

/* The numbers that tests look at; has says which count. */
static void gpu_sample_line(struct record *r, char *at)
{
	struct record_gpu_sample *g = &r->gpu_sample;

	g->ts = (int64_t)N;
	g->gpu = N32;
	g->has = N32;
	g->clock_sm_mhz = N32;
	g->power_mw = N32;
	g->temperature_c = N32;
	g->memory_used = N;
	g->xid_count = N;
	g->xid_last = N32;
	g->pids = "";
}

static void trigger_line(struct record *r, char *at)
{
	r->trigger.ts = (int64_t)N;
	r->trigger.cause = N32;
	r->trigger.text = S;
	r->trigger.begin = (int64_t)N;
	r->trigger.value = (int64_t)N;
	r->trigger.threshold = (int64_t)N;
	r->trigger.unit = N32;
	r->trigger.samples = N;
}

static bool other_line(struct record *r, char *at)
{
	switch (r->kind) {
	case RECORD_OVERHEAD:
		r->overhead.begin = (int64_t)N;
		r->overhead.duration = N;
		r->overhead.pid = N32;
		r->overhead.tid = N32;
		r->overhead.kind = N32;
		return true;
	case RECORD_SIDECAR:
		r->sidecar.ts = (int64_t)N;
		r->sidecar.pid = N32;
		r->sidecar.event = N32;
		r->sidecar.count = N;
		r->sidecar.cupti = N32;
		r->sidecar.text = S;
		return true;
	case RECORD_LABEL:
		r->label.ts = (int64_t)N;
		r->label.pid = N32;
		r->label.key = S;
		r->label.value = S;
		return true;
	default:
		return false;
	}
}

static bool small_line(struct record *r, char *at)
{
	switch (r->kind) {
	case RECORD_THREAD:
		r->thread.pid = N32;
		r->thread.tid = N32;
		r->thread.ns_tid = N32;
		r->thread.comm = S;
		return true;
	case RECORD_API:
		r->api.id = N32;
		r->api.name = S;
		r->api.library = S;
		r->api.kind = S;
		return true;
	case RECORD_CLOCK:
		r->clock.monotonic = (int64_t)N;
		r->clock.realtime = (int64_t)N;
		r->clock.boottime = (int64_t)N;
		r->clock.error = (int64_t)N;
		return true;
	case RECORD_LOSS:
		r->loss.ts = (int64_t)N;
		r->loss.cause = N32;
		r->loss.count = N;
		return true;
	case RECORD_WINDOW:
	case RECORD_ACTIVE:
		r->window.begin = (int64_t)N;
		r->window.end = (int64_t)N;
		return true;
	case RECORD_INFO:
		r->info.key = S;
		r->info.value = S;
		return true;
	default:
		return other_line(r, at);
	}
}

static bool record_line(struct record *r, const char *kind, char *at)
{
	static const char *const words[RECORD_KINDS] = {
		[RECORD_NAME] = "name", [RECORD_PROCESS] = "process", [RECORD_THREAD] = "thread",
		[RECORD_API] = "api", [RECORD_CLOCK] = "clock", [RECORD_LOSS] = "loss",
		[RECORD_WINDOW] = "window", [RECORD_INFO] = "info", [RECORD_DEVICE] = "device",
		[RECORD_SHAPE] = "shape", [RECORD_WORK] = "work", [RECORD_GPU] = "gpu",
		[RECORD_GPU_SAMPLE] = "gpu_sample",
		[RECORD_WORK_CALL] = "work_call", [RECORD_OVERHEAD] = "overhead",
		[RECORD_SIDECAR] = "sidecar", [RECORD_LABEL] = "label",
		[RECORD_TRIGGER] = "trigger", [RECORD_ACTIVE] = "active",
	};
	unsigned k = RECORD_NAME;

	while (k < RECORD_KINDS && (!words[k] || strcmp(words[k], kind)))
		k++;
	r->kind = (enum record_kind)k;
	if (k == RECORD_NAME)
		name_line(r, at);
	else if (k == RECORD_PROCESS)
		process_line(r, at);
	else if (k == RECORD_DEVICE)
		device_line(r, at);
	else if (k == RECORD_SHAPE)
		shape_line(r, at);
	else if (k == RECORD_WORK)
		work_line(r, at);
	else if (k == RECORD_WORK_CALL)
		work_call_line(r, at);
	else if (k == RECORD_TRIGGER)
		trigger_line(r, at);
	else if (k == RECORD_GPU)
		gpu_line(r, at);
	else if (k == RECORD_GPU_SAMPLE)
		gpu_sample_line(r, at);
	else
		return small_line(r, at);
	return true;
}

static bool is_event(const char *kind)
{
	return !strcmp(kind, "begin") || !strcmp(kind, "end") || !strcmp(kind, "launch") ||
	       !strcmp(kind, "call") || !strcmp(kind, "poll");
}

int main(int argc, char **argv)
{
	struct writer *w;
	char *line = NULL;
	size_t room = 0;
	int fd;

	if (argc != 3)
		return 2;
	fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || writer_new(&w, fd, strtoll(argv[2], NULL, 10)))
		fail("cannot open", argv[1]);
	while (getline(&line, &room, stdin) > 0) {
		char *at = line, *kind = word(&at);
		struct record r = {0};

		if (is_event(kind))
			events_line(w, kind, at);
		else if (!record_line(&r, kind, at))
			fail("no such kind", kind);
		else if (writer_add(w, &r))
			fail("cannot write", kind);
	}
	free(line);
	return writer_close(w) ? 1 : 0;
}
