// SPDX-License-Identifier: BSD-2-Clause
#include "trace/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/keep.h"
#include "record/trigger_text.h"
#include "trace/private.h"
#include "trace/recorder_threads.h"
#include "util/text.h"

#define SECOND 1000000000LL
#define GRACE_NS 100000000LL /* that events of a part may come late */
#define SLICE_NS 20000000LL  /* of writing, between two looks into the rings */
#define FILES_MOST 1000000u

enum state {
	WATCHING,
	WAITING, /* for the end of the part that is to be written */
	WRITING,
};

struct recorder {
	struct recorder_options options;
	struct keep *keep;
	enum state state;
	struct record_trigger cause; /* of the part */
	int64_t begin, end;	     /* of the part, ns */
	int64_t rest;		     /* no trigger counts until then, ns; 0: they do */
	bool asked;		     /* for one more part */
	bool told_short;
	uint32_t number; /* of the last file */
	uint64_t refused;
	char *path;
	struct output *output;
	struct writer *writer;
	struct ended_threads ended;
	struct recorder_stats stats;
};

int recorder_new(struct tracer *t, char *why, size_t size)
{
	const struct recorder_options *o = t->options.recorder;
	/* what comes after, and while the file before is still being written */
	struct keep_options keep = {o->keep + o->after + 2 * SECOND, o->bytes};
	struct recorder *r;
	int err;

	if (o->triggers && !probes_returns(t->probes) && triggers_need_returns(o->triggers)) {
		snprintf(why, size, "these triggers need to know when calls return, and return "
				    "probes cannot be used here; count, rate and bytes do without");
		return -EINVAL;
	}
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	t->recorder = r;
	r->options = *o;
	r->stats.asked = true;
	err = keep_new(&r->keep, &keep);
	return err;
}

void recorder_free(struct tracer *t)
{
	struct recorder *r = t->recorder;

	if (!r)
		return;
	ended_threads_free(&r->ended);
	keep_free(r->keep);
	writer_close(r->writer);
	output_free(r->output);
	free(r->path);
	free(r);
	t->recorder = NULL;
}

int recorder_add(struct tracer *t, const struct record *record)
{
	return keep_add(t->recorder->keep, record);
}

int recorder_events(struct tracer *t, const struct event *events, size_t count)
{
	struct recorder *r = t->recorder;

	if (r->options.triggers)
		triggers_events(r->options.triggers, events, count);
	return keep_events(r->keep, events, count);
}

void recorder_ended(struct tracer *t)
{
	if (t->recorder && t->recorder->options.triggers)
		triggers_ended(t->recorder->options.triggers);
}

/* PATH, or PATH with the first number from the last one on that no file has. */
static int path_make(struct recorder *r)
{
	const char *path = r->options.path;
	size_t len = strlen(path);
	int stem = (int)(len > 5 && !strcmp(path + len - 5, ".gbpf") ? len - 5 : len);

	free(r->path);
	r->path = NULL;
	if (r->cause.cause == RECORD_TRIGGER_END) {
		r->path = strdup(path);
		return r->path ? 0 : -ENOMEM;
	}
	while (r->number < FILES_MOST) {
		r->number++;
		if (asprintf(&r->path, "%.*s.%u%s", stem, path, r->number, path + stem) < 0) {
			r->path = NULL;
			return -ENOMEM;
		}
		if (faccessat(AT_FDCWD, r->path, F_OK, AT_SYMLINK_NOFOLLOW))
			return 0;
		free(r->path);
		r->path = NULL;
	}
	return -EEXIST;
}

/* The file, as it ended: nothing of it stays if it is not whole. */
static void close_all(struct recorder *r)
{
	keep_write_stop(r->keep);
	writer_close(r->writer);
	r->writer = NULL;
	output_free(r->output);
	r->output = NULL;
}

/* Watches on; the same trouble, which may last, is not to fill the disk. */
static void part_over(struct recorder *r)
{
	r->state = WATCHING;
	if (r->cause.cause != RECORD_TRIGGER_FIRED)
		return;
	r->rest = r->end + r->options.keep;
	r->stats.over = r->stats.by_triggers >= r->options.most;
}

static void part_failed(struct tracer *t, const char *why)
{
	struct recorder *r = t->recorder;

	close_all(r);
	r->stats.failed++;
	tracer_tell(t, "%s was not written: %s", r->path ? r->path : r->options.path, why);
	part_over(r);
}

/* Once: why there is less than was asked for. */
static void tell_short(struct tracer *t, int64_t asked)
{
	struct recorder *r = t->recorder;
	char size[32], span[32];
	struct keep_stats stats;

	keep_stats(r->keep, &stats);
	if (r->told_short || r->begin <= asked || r->begin >= r->end || !stats.short_of)
		return;
	r->told_short = true;
	tracer_tell(t, "only the last %s fit into %s: --keep-size gives more",
		    text_duration(r->end - r->begin, span, sizeof(span)),
		    text_bytes(r->options.bytes, size, sizeof(size)));
}

static void part_begin(struct tracer *t)
{
	struct recorder *r = t->recorder;
	int64_t asked = r->begin;
	struct record cause = {.kind = RECORD_TRIGGER, .trigger = r->cause};
	char why[512] = "";
	int fd, err = path_make(r);

	if (!err)
		err = output_open(&r->output, r->path, r->options.who, why, sizeof(why));
	if (!err) {
		fd = output_fd(r->output);
		err = fd < 0 ? fd : writer_new(&r->writer, fd, tracer_realtime() - tracer_now() +
								       r->begin);
	}
	if (!err)
		err = meta_tick(t); /* what was lost until now */
	if (!err)
		err = meta_catalogue(r->writer);
	if (!err)
		err = keep_write(r->keep, r->writer, &r->begin, r->end);
	if (!err)
		err = writer_add(r->writer, &cause);
	if (!err && r->begin >= r->end)
		snprintf(why, sizeof(why), "all of it had to make room, with more than --keep-size "
					   "holds");
	r->state = WRITING;
	tell_short(t, asked);
	if (err || *why)
		part_failed(t, *why ? why : strerror(-err));
}

static void tell_written(struct tracer *t, uint64_t bytes, uint64_t events)
{
	struct recorder *r = t->recorder;
	char span[32], count[32], size[32];

	r->stats.files++;
	r->stats.by_triggers += r->cause.cause == RECORD_TRIGGER_FIRED;
	r->stats.at_end = r->cause.cause == RECORD_TRIGGER_END;
	r->stats.last_bytes = bytes;
	r->stats.last_events = events;
	if (r->options.quiet || r->stats.at_end) /* of that there is a summary */
		return;
	tracer_tell(t, "%s holds %s, %s events (%s)", r->path,
		    text_duration(r->end - r->begin, span, sizeof(span)),
		    text_count(events, count, sizeof(count)),
		    text_bytes(bytes, size, sizeof(size)));
}

static int part_end(struct tracer *t)
{
	struct recorder *r = t->recorder;
	int err = meta_part(t, r->writer, r->begin, r->end), closed;
	uint64_t bytes, events;

	if (!err)
		err = writer_flush(r->writer);
	keep_write_stop(r->keep);
	bytes = writer_size(r->writer);
	events = writer_written(r->writer);
	closed = writer_close(r->writer);
	r->writer = NULL;
	if (!err)
		err = closed;
	if (!err)
		err = output_commit(r->output);
	if (err)
		return err;
	close_all(r);
	tell_written(t, bytes, events);
	part_over(r);
	return 0;
}

static void part_step(struct tracer *t, int64_t until)
{
	struct recorder *r = t->recorder;
	int more;

	do
		more = keep_write_step(r->keep);
	while (more == 1 && tracer_now() < until);
	if (!more)
		more = part_end(t);
	if (more < 0)
		part_failed(t, strerror(-more));
}

static void part_ask(struct recorder *r, const struct record_trigger *cause, int64_t begin,
		     int64_t end)
{
	r->cause = *cause;
	r->begin = begin;
	r->end = end;
	r->state = WAITING;
}

static void fired(struct tracer *t, const struct trigger_fired *f)
{
	struct recorder *r = t->recorder;
	struct record_trigger cause = {
		.ts = f->end,
		.cause = RECORD_TRIGGER_FIRED,
		.text = f->trigger->text,
		.begin = f->begin,
		.value = f->value,
		.threshold = f->trigger->threshold,
		.unit = trigger_unit(f->trigger),
		.samples = f->samples,
	};
	char text[512];

	r->stats.fired++;
	part_ask(r, &cause, f->end - r->options.keep, f->end + r->options.after);
	if (!r->options.quiet)
		tracer_tell(t, "%s", trigger_text(&cause, text, sizeof(text)));
}

static void look_at_triggers(struct tracer *t, int64_t upto)
{
	struct recorder *r = t->recorder;
	struct trigger_fired f;
	bool any = triggers_advance(r->options.triggers, upto, &f);

	if (r->state != WATCHING || r->stats.over)
		return;
	if (r->rest && upto >= r->rest) {
		triggers_reset(r->options.triggers);
		r->rest = 0;
	} else if (any && !r->rest) {
		fired(t, &f);
	}
}

static void look_at_signals(struct recorder *r, int64_t now)
{
	struct record_trigger cause = {.ts = now, .cause = RECORD_TRIGGER_ASKED, .text = ""};

	if (r->state != WATCHING || !r->asked)
		return;
	r->asked = false;
	part_ask(r, &cause, now - r->options.keep, now);
}

/* A part that reaches back to before the recording began is shorter. */
static void part_clip(const struct tracer *t, struct recorder *r)
{
	if (r->begin < t->begin)
		r->begin = t->begin;
	if (t->end && r->end > t->end)
		r->end = t->end;
}

int recorder_round(struct tracer *t, int64_t upto)
{
	struct recorder *r = t->recorder;
	struct keep_stats stats;
	int err = keep_round(r->keep, upto);

	if (!err)
		err = ended_threads_round(&r->ended, t, r->keep, upto);
	if (err)
		return err;
	if (r->options.triggers)
		look_at_triggers(t, upto);
	look_at_signals(r, upto);
	if (r->state == WAITING && upto >= r->end + GRACE_NS) {
		part_clip(t, r);
		part_begin(t);
	}
	keep_stats(r->keep, &stats);
	t->names_lost += stats.refused - r->refused;
	r->refused = stats.refused;
	r->stats.bytes = stats.bytes;
	return 0;
}

void recorder_step(struct tracer *t)
{
	if (t->recorder && t->recorder->state == WRITING)
		part_step(t, tracer_now() + SLICE_NS);
}

int64_t recorder_pause(const struct tracer *t)
{
	return t->recorder && t->recorder->state == WRITING ? 0 : INT64_MAX;
}

void tracer_write_now(struct tracer *t)
{
	if (t && t->recorder)
		t->recorder->asked = true;
}

/* All events are there: no part waits for more. */
static void finish_part(struct tracer *t)
{
	struct recorder *r = t->recorder;

	if (r->state == WAITING) {
		part_clip(t, r);
		part_begin(t);
	}
	while (r->state == WRITING)
		part_step(t, INT64_MAX);
}

void recorder_finish(struct tracer *t)
{
	struct recorder *r = t->recorder;
	struct record_trigger cause = {.ts = t->end, .cause = RECORD_TRIGGER_END, .text = ""};
	struct trigger_fired f;

	if (!r || (!t->cuda_seen && !rings_stats(t->rings)->events))
		return;
	finish_part(t);
	if (r->options.triggers && !r->rest && !r->stats.over &&
	    triggers_finish(r->options.triggers, t->end, &f))
		fired(t, &f);
	finish_part(t);
	look_at_signals(r, t->end);
	finish_part(t);
	if (!r->options.at_end)
		return;
	part_ask(r, &cause, t->end - r->options.keep, t->end);
	finish_part(t);
}

void recorder_stats(const struct tracer *t, struct recorder_stats *out)
{
	memset(out, 0, sizeof(*out));
	if (!t->recorder)
		return;
	*out = t->recorder->stats;
}
