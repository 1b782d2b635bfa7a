/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What trace files are made of, by libFuzzer: the input is a list of records with small
 * numbers, so that they refer to each other, and now and then any number. They go into two
 * recordings, which are merged; what comes out is loaded and written as kineto and sqlite.
 * Every file of our own making must be readable.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "export/trace.h"
#include "merge/merge.h"
#include "record/writer.h"

#define RECORDS 200

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *at;
	size_t left;
	char text[4][24];
	unsigned texts;
};

static uint64_t take(struct input *in, size_t bytes)
{
	uint64_t v = 0;

	while (bytes-- && in->left) {
		v = v << 8 | *in->at++;
		in->left--;
	}
	return v;
}

/* Mostly below 4, so that ids meet. */
static uint32_t few(struct input *in)
{
	uint8_t v = (uint8_t)take(in, 1);

	return v == 0xff ? (uint32_t)take(in, 4) : v & 3;
}

static int64_t when(struct input *in)
{
	uint8_t v = (uint8_t)take(in, 1);

	return v == 0xff ? (int64_t)take(in, 8) : (int64_t)v * 16 + 100000;
}

static const char *text(struct input *in)
{
	static const char *const words[] = {"_Z1kPf", "ncclDevKernel_AllReduce", "rank", "7", "",
					    "host_pid", "host_boot_id", "cudaLaunchKernel"};
	char *to = in->text[in->texts++ % 4];
	size_t n = take(in, 1);

	if (n & 0x80)
		return words[n % (sizeof(words) / sizeof(*words))];
	n %= sizeof(in->text[0]) - 1;
	for (size_t i = 0; i < n; i++)
		to[i] = (char)take(in, 1);
	to[n] = '\0';
	return to;
}

static void take_event(struct input *in, struct writer *w)
{
	struct event e = {.ts = when(in), .sp = 0x7000 - (few(in) << 4), .image = 1};

	e.pid = 1 + few(in);
	e.tid = 1 + few(in);
	e.api = (uint16_t)(1 + few(in));
	e.kind = (uint8_t)(1 + take(in, 1) % 3);
	if (e.kind == EVENT_BEGIN) {
		e.args = (uint8_t)(take(in, 1) % 3);
		e.launch.func = few(in);
		e.launch.stream = few(in);
		e.launch.grid[0] = few(in);
	} else if (e.kind == EVENT_POLL) {
		e.poll.last_end = when(in);
		e.poll.count = few(in);
	} else {
		e.end.ret = few(in);
	}
	writer_events(w, &e, 1);
}

static void take_work(struct input *in, struct record *r)
{
	r->work = (struct record_work){.begin = when(in), .peer = UINT32_MAX};
	r->work.duration = few(in) * 100;
	r->work.pid = 1 + few(in);
	r->work.kind = 1 + (uint32_t)take(in, 1) % 3;
	r->work.device = few(in);
	r->work.context = few(in);
	r->work.stream = few(in);
	r->work.correlation = few(in);
	r->work.shape = few(in);
	r->work.graph = few(in);
	r->work.bytes = take(in, 2);
	r->work.direction = few(in) * 3;
	r->work.source = few(in) * 2;
	r->work.target = few(in);
}

static void take_gpu(struct input *in, struct record *r)
{
	if (r->kind == RECORD_DEVICE) {
		r->device = (struct record_device){1 + few(in), few(in), text(in), text(in),
			few(in), 9, 0, (int32_t)few(in), 32, 1024, 2048, 32, 65536, 65536, 49152,
			232448, 233472, 1024};
	} else if (r->kind == RECORD_SHAPE) {
		r->shape = (struct record_shape){.pid = 1 + few(in), .id = few(in),
			.kernel = text(in), .grid = {few(in), few(in), 1},
			.block = {few(in) * 32, 1, 1}, .registers = few(in) * 40};
	} else if (r->kind == RECORD_WORK_CALL) {
		r->work_call = (struct record_work_call){.begin = when(in),
			.duration = few(in) * 8, .pid = 1 + few(in), .tid = 1 + few(in),
			.domain = few(in), .cbid = few(in), .correlation = few(in)};
	} else if (r->kind == RECORD_OVERHEAD) {
		r->overhead = (struct record_overhead){when(in), few(in) * 50, 1 + few(in), 1,
						       few(in) << 16};
	} else if (r->kind == RECORD_SIDECAR) {
		r->sidecar = (struct record_sidecar){when(in), 1 + few(in), few(in) * 3,
						     few(in), 130001, text(in)};
	} else {
		take_work(in, r);
	}
}

static void take_record(struct input *in, struct writer *w, unsigned kind)
{
	struct record r = {.kind = (enum record_kind)kind};

	if (kind == RECORD_PROCESS)
		r.process = (struct record_process){.ts = when(in), .event = 1 + few(in),
			.pid = 1 + few(in), .start = few(in), .comm = text(in), .cmdline = "",
			.exe = "", .container = ""};
	else if (kind == RECORD_THREAD)
		r.thread = (struct record_thread){1 + few(in), 1 + few(in), 0, text(in)};
	else if (kind == RECORD_API)
		r.api = (struct record_api){1 + few(in), text(in),
			take(in, 1) & 1 ? "runtime" : "driver",
			take(in, 1) & 1 ? "launch" : "sync"};
	else if (kind == RECORD_CLOCK)
		r.clock = (struct record_clock){when(in), (int64_t)((uint64_t)when(in) << 20), 5,
						few(in)};
	else if (kind == RECORD_LOSS)
		r.loss = (struct record_loss){when(in), few(in), take(in, 2)};
	else if (kind == RECORD_WINDOW || kind == RECORD_ACTIVE)
		r.window = (struct record_window){when(in), when(in)};
	else if (kind == RECORD_INFO)
		r.info = (struct record_info){text(in), text(in)};
	else if (kind == RECORD_LABEL)
		r.label = (struct record_label){when(in), 1 + few(in), text(in), text(in)};
	else if (kind == RECORD_TRIGGER)
		r.trigger = (struct record_trigger){when(in), few(in), text(in), when(in),
						    when(in), when(in), few(in), few(in)};
	else if (kind >= RECORD_DEVICE && kind <= RECORD_SIDECAR)
		take_gpu(in, &r);
	else
		return;
	writer_add(w, &r);
}

static void path_of(int fd, char *path, size_t size)
{
	snprintf(path, size, "/proc/self/fd/%d", fd);
}

static int recording(struct input *in)
{
	int fd = memfd_create("recording", MFD_CLOEXEC);
	struct writer *w;
	unsigned n = 1 + (unsigned)take(in, 1);

	if (fd < 0 || writer_new(&w, dup(fd), 1))
		abort();
	for (unsigned i = 0; i < n && i < RECORDS && in->left; i++) {
		unsigned kind = (unsigned)take(in, 1) % 32;

		if (kind >= RECORD_KINDS || kind <= RECORD_EVENTS)
			take_event(in, w);
		else
			take_record(in, w, kind);
	}
	if (writer_close(w))
		abort();
	return fd;
}

static void write_as(const struct session *s, const struct export_writer *w, uint32_t process)
{
	bool *only = calloc(s->processes_count + 1, sizeof(*only));
	struct export_options o = EXPORT_ALL;
	struct export_file *f;
	char path[64], why[256] = "";
	int err;

	if (!only)
		abort();
	if (w->one_process) {
		only[process] = true;
		o.processes = only;
	}
	snprintf(path, sizeof(path), "/dev/shm/gbpf-fuzz-%d%s", (int)getpid(), w->endings[0]);
	if (export_open(&f, path, 1))
		abort();
	err = w->write(s, &o, f, why, sizeof(why));
	if (err)
		abort();
	export_close(f); /* not committed: it is gone */
	free(only);
}

static void export_all(const char *path)
{
	struct reader *r;
	struct session *s;

	if (reader_open(&r, path) || session_load(&s, r) || reader_end(r) != READER_END_WHOLE)
		abort();
	for (uint32_t i = 0; i < s->processes_count; i++)
		write_as(s, &export_kineto, i);
	write_as(s, &export_sqlite, 0);
	session_free(s);
	reader_close(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {.at = data, .left = size};
	int fd[2] = {recording(&in), recording(&in)}, out = memfd_create("merged", MFD_CLOEXEC);
	char path[2][64], merged[64], why[512] = "";
	struct merge *m;
	int err;

	for (int i = 0; i < 2; i++) {
		path_of(fd[i], path[i], sizeof(path[i]));
		export_all(path[i]);
	}
	if (out < 0 || merge_new(&m))
		abort();
	err = merge_add(m, path[0]);
	if (!err)
		err = merge_add(m, path[1]);
	if (!err)
		err = merge_align(m, why, sizeof(why));
	if (!err)
		err = merge_write(m, dup(out), NULL, NULL, why, sizeof(why));
	if (err && err != -EINVAL && err != -EOVERFLOW)
		abort();
	path_of(out, merged, sizeof(merged));
	if (!err)
		export_all(merged);
	merge_free(m);
	close(fd[0]);
	close(fd[1]);
	close(out);
	return 0;
}
