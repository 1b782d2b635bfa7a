/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints what a sidecar brought into a recording, as it is in the file: a JSON object a line. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "record/reader.h"
#include "util/json.h"

static void number(struct json *j, const char *key, int64_t value)
{
	json_key(j, key);
	json_int(j, value);
}

static void text(struct json *j, const char *key, const char *value)
{
	json_key(j, key);
	json_string(j, value);
}

static void three(struct json *j, const char *key, const uint32_t v[3])
{
	json_key(j, key);
	json_begin_array(j);
	for (int i = 0; i < 3; i++)
		json_int(j, v[i]);
	json_end_array(j);
}

static void work(struct json *j, const struct record_work *w)
{
	text(j, "is", "work");
	number(j, "begin", w->begin);
	number(j, "duration", (int64_t)w->duration);
	number(j, "pid", w->pid);
	number(j, "kind", w->kind);
	number(j, "device", w->device);
	number(j, "context", w->context);
	number(j, "stream", w->stream);
	number(j, "correlation", w->correlation);
	number(j, "shape", w->shape);
	number(j, "graph", w->graph);
	number(j, "node", (int64_t)w->graph_node);
	number(j, "bytes", (int64_t)w->bytes);
	number(j, "direction", w->direction);
	number(j, "source", w->source);
	number(j, "target", w->target);
}

static void call(struct json *j, const struct record_work_call *c)
{
	text(j, "is", "call");
	number(j, "begin", c->begin);
	number(j, "duration", (int64_t)c->duration);
	number(j, "pid", c->pid);
	number(j, "tid", c->tid);
	number(j, "domain", c->domain);
	number(j, "cbid", c->cbid);
	number(j, "correlation", c->correlation);
	number(j, "ret", c->ret);
}

static void shape(struct json *j, const struct record_shape *s)
{
	text(j, "is", "shape");
	number(j, "pid", s->pid);
	number(j, "id", s->id);
	text(j, "kernel", s->kernel);
	three(j, "grid", s->grid);
	three(j, "block", s->block);
	number(j, "registers", s->registers);
	number(j, "smem", (int64_t)s->smem_static + s->smem_dynamic);
}

static void device(struct json *j, const struct record_device *d)
{
	text(j, "is", "device");
	number(j, "pid", d->pid);
	number(j, "ordinal", d->ordinal);
	text(j, "uuid", d->uuid);
	text(j, "name", d->name);
	number(j, "sms", d->sms);
	number(j, "memory", d->memory);
}

static void sidecar(struct json *j, const struct record_sidecar *s)
{
	static const char *const events[] = {
		"?", "attached", "began", "ended", "refused", "withdrew", "failed", "dropped",
		"bad", "clock", "gone", "running",
	};

	text(j, "is", "sidecar");
	number(j, "ts", s->ts);
	number(j, "pid", s->pid);
	text(j, "event", s->event < sizeof(events) / sizeof(*events) ? events[s->event] : "?");
	number(j, "count", (int64_t)s->count);
	number(j, "cupti", s->cupti);
	text(j, "text", s->text);
}

static bool print(struct json *j, const struct record *r)
{
	json_begin_object(j);
	if (r->kind == RECORD_WORK)
		work(j, &r->work);
	else if (r->kind == RECORD_WORK_CALL)
		call(j, &r->work_call);
	else if (r->kind == RECORD_SHAPE)
		shape(j, &r->shape);
	else if (r->kind == RECORD_DEVICE)
		device(j, &r->device);
	else
		sidecar(j, &r->sidecar);
	json_end_object(j);
	return putchar('\n') != EOF;
}

static bool ours(enum record_kind kind)
{
	return kind == RECORD_WORK || kind == RECORD_WORK_CALL || kind == RECORD_SHAPE ||
	       kind == RECORD_DEVICE || kind == RECORD_SIDECAR;
}

int main(int argc, char **argv)
{
	struct reader *r;
	struct record record;
	struct json j;
	int got;

	if (argc != 2 || reader_open(&r, argv[1]))
		return 2;
	while ((got = reader_next(r, &record)) == 1) {
		json_init(&j, stdout);
		if (ours(record.kind) && !print(&j, &record))
			return 1;
	}
	reader_close(r);
	return got ? 1 : 0;
}
