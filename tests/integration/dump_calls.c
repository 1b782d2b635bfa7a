/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints every call of a recording as a line of JSON: what tests hold against the truth. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "model/session.h"
#include "util/json.h"

static void hex(struct json *j, const char *key, const char *bytes)
{
	char text[2 * 8192 + 1];
	size_t i;

	for (i = 0; bytes[i] && i < 8192; i++)
		snprintf(text + 2 * i, 3, "%02x", (unsigned char)bytes[i]);
	text[2 * i] = '\0';
	json_key(j, key);
	json_string(j, text);
}

static void number(struct json *j, const char *key, int64_t value)
{
	json_key(j, key);
	json_int(j, value);
}

static void unsigned_number(struct json *j, const char *key, uint64_t value)
{
	json_key(j, key);
	json_uint(j, value);
}

static void triple(struct json *j, const char *key, const uint32_t *v)
{
	int i;

	json_key(j, key);
	json_begin_array(j);
	for (i = 0; i < 3; i++)
		json_uint(j, v[i]);
	json_end_array(j);
}

static void launch(struct json *j, const struct launch_args *a)
{
	unsigned_number(j, "func", a->func);
	unsigned_number(j, "stream", a->stream);
	unsigned_number(j, "smem", a->smem);
	triple(j, "grid", a->grid);
	triple(j, "block", a->block);
}

static void transfer(struct json *j, const struct call_args *a)
{
	unsigned_number(j, "object", a->object);
	unsigned_number(j, "stream", a->stream);
	unsigned_number(j, "source", a->source);
	unsigned_number(j, "bytes", a->bytes);
	unsigned_number(j, "kind", a->kind);
	if (a->has_out)
		unsigned_number(j, "out", a->out);
}

static void poll(struct json *j, const struct poll_args *a)
{
	unsigned_number(j, "object", a->object);
	unsigned_number(j, "count", a->count);
	number(j, "inside", a->inside);
	unsigned_number(j, "min", a->min);
	unsigned_number(j, "max", a->max);
}

static void print_call(struct json *j, const struct session *s, uint32_t i)
{
	const struct call *c = &s->calls[i];
	const struct session_thread *t = &s->threads[c->thread];

	json_begin_object(j);
	number(j, "id", i);
	json_key(j, "api");
	json_string(j, s->apis[c->api].name);
	number(j, "pid", t->pid);
	number(j, "tid", t->tid);
	number(j, "process", t->process);
	number(j, "begin", c->begin);
	number(j, "end", c->end);
	number(j, "duration", call_duration(c));
	number(j, "self", call_self(s, c));
	number(j, "parent", c->parent == CALL_NONE ? -1 : (int64_t)c->parent);
	number(j, "ret", c->ret);
	unsigned_number(j, "flags", c->flags);
	if (c->kernel != UINT32_MAX)
		hex(j, "kernel", s->kernels[c->kernel].mangled);
	if (c->args != UINT32_MAX && (c->flags & CALL_ARGS_LAUNCH))
		launch(j, &s->launches[c->args]);
	else if (c->args != UINT32_MAX && (c->flags & CALL_ARGS_CALL))
		transfer(j, &s->transfers[c->args]);
	else if (c->args != UINT32_MAX && (c->flags & CALL_POLL))
		poll(j, &s->polls[c->args]);
	json_end_object(j);
	putchar('\n');
}

static void print_calls(const struct session *s)
{
	struct json j;
	uint32_t i;

	for (i = 0; i < s->calls_count; i++) {
		json_init(&j, stdout);
		print_call(&j, s, i);
	}
}

/* Names of hooked functions, a line each. */
static void print_sites(const struct session *s)
{
	size_t i;

	for (i = 0; i < s->sites_count; i++)
		if (s->sites[i].state != RECORD_SITE_REFUSED)
			puts(s->sites[i].api);
}

int main(int argc, char **argv)
{
	bool sites = argc == 3 && !strcmp(argv[1], "--sites");
	const char *path = argv[argc - 1];
	struct session *s = NULL;
	struct reader *r = NULL;
	int err;

	if (argc != 2 && !sites)
		return 2;
	err = reader_open(&r, path);
	if (!err)
		err = session_load(&s, r);
	if (err) {
		fprintf(stderr, "dump_calls: %s: %s\n", path, strerror(-err));
		reader_close(r);
		return 1;
	}
	if (sites)
		print_sites(s);
	else
		print_calls(s);
	session_free(s);
	reader_close(r);
	return 0;
}
