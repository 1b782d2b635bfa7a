/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A random session with GPU work, exported: export_random DIR SEED PROCESSES THREADS STREAMS
 * DEVICES CALLS HOSTILE [FROM TO]. Writes a file of each format that holds several processes
 * into DIR and prints what is in the session, a line of JSON each. Without processes it is
 * the small session of the unit tests.
 */
#include <inttypes.h>

#include "../unit/gpu_session.h"
#include "export/trace.h"
#include "util/json.h"

static void number(struct json *j, const char *key, int64_t v)
{
	json_key(j, key);
	json_int(j, v);
}

static void print_call(const struct session *s, const struct export_options *o, uint32_t i)
{
	const struct call *c = &s->calls[i];
	const struct session_thread *t = &s->threads[c->thread];
	struct json j;
	int64_t end;

	json_init(&j, stdout);
	json_begin_object(&j);
	number(&j, "call", i);
	number(&j, "pid", t->pid);
	number(&j, "tid", t->tid);
	number(&j, "begin", c->begin);
	number(&j, "how", export_call_end(s, c, &end));
	number(&j, "end", end);
	number(&j, "wanted", export_wants_call(s, o, i));
	json_key(&j, "name");
	json_string(&j, s->apis[c->api].display);
	json_end_object(&j);
	putchar('\n');
}

static void print_work(const struct session *s, const struct export_options *o, uint32_t i)
{
	const struct work *w = &s->works[i];
	const struct session_stream *st = &s->streams[w->stream];
	uint32_t call = w->call;
	struct json j;

	/* Said again, not asked of what is tested. */
	if (call != CALL_NONE && !(export_wants_call(s, o, call) && export_wants_work(s, o, i)))
		call = CALL_NONE;
	json_init(&j, stdout);
	json_begin_object(&j);
	number(&j, "work", i);
	number(&j, "pid", s->processes[st->process].pid);
	number(&j, "stream", st->id);
	number(&j, "context", st->context);
	number(&j, "begin", w->begin);
	number(&j, "end", w->end);
	number(&j, "kind", w->kind);
	number(&j, "wanted", export_wants_work(s, o, i));
	number(&j, "cause", call == CALL_NONE ? -1 : (int64_t)call);
	json_key(&j, "name");
	json_string(&j, w->kernel == UINT32_MAX ? "" : s->kernels[w->kernel].short_name);
	json_end_object(&j);
	putchar('\n');
}

static void write_file(const struct session *s, const struct export_options *o, const char *format,
		       const char *dir, const char *name)
{
	const struct export_writer *w = export_writer_named(format);
	struct export_file *f;
	char path[4096], why[512] = "";

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (export_open(&f, path, w->quick) || w->write(s, o, f, why, sizeof(why)) ||
	    export_commit(f)) {
		fprintf(stderr, "%s: %s\n", path, why);
		exit(1);
	}
	export_close(f);
}

int main(int argc, char **argv)
{
	struct gpu_random_options random;
	struct export_options o = EXPORT_ALL;
	struct session *s;
	struct feed f = {0};
	uint64_t v[7];

	if (argc < 9)
		return 2;
	for (int i = 0; i < 7; i++)
		v[i] = strtoull(argv[i + 2], NULL, 10);
	random = (struct gpu_random_options){
		.seed = v[0], .processes = (unsigned)v[1], .threads = (unsigned)v[2],
		.streams = (unsigned)v[3], .devices = (unsigned)v[4], .calls = (unsigned)v[5],
		.hostile = v[6]};
	if (argc == 11) {
		o.from = strtoll(argv[9], NULL, 10);
		o.to = strtoll(argv[10], NULL, 10);
	}
	s = random.processes ? gpu_random(&f, &random, NULL, NULL) : gpu_small(&f);
	for (uint32_t i = 0; i < s->calls_count; i++)
		print_call(s, &o, i);
	for (uint32_t i = 0; i < s->works_count; i++)
		print_work(s, &o, i);
	write_file(s, &o, "csv", argv[1], "all.csv");
	write_file(s, &o, "perfetto", argv[1], "native.pftrace.gz");
	o.compat = true;
	write_file(s, &o, "perfetto", argv[1], "compat.pftrace");
	feed_stop(&f);
	return 0;
}
