// SPDX-License-Identifier: BSD-2-Clause
/*
 * Recordings for benchmarks: prints JSON.
 *
 *   bench_file stat FILE
 *   bench_file grow FILE OUT EVENTS
 *
 * grow repeats what was recorded, later each time, until there are so many
 * events: a long recording of the same job.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>

#include "record/reader.h"
#include "record/writer.h"
#include "tools/bench/bench.h"

struct recording {
	struct event *events;
	size_t count, room;
	int64_t first, last;
};

static int events_take(struct recording *r, const struct record_events *e)
{
	struct event *grown;
	size_t i;

	if (r->count + e->count > r->room) {
		r->room = 2 * (r->count + e->count);
		grown = realloc(r->events, r->room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		r->events = grown;
	}
	memcpy(r->events + r->count, e->events, e->count * sizeof(*r->events));
	r->count += e->count;
	for (i = 0; i < e->count; i++) {
		r->first = e->events[i].ts < r->first ? e->events[i].ts : r->first;
		r->last = e->events[i].ts > r->last ? e->events[i].ts : r->last;
	}
	return 0;
}

/* Everything but events goes to the writer, if there is one. */
static int load(const char *path, struct recording *out, struct writer *w)
{
	struct record record;
	struct reader *in;
	int err, n;

	out->first = INT64_MAX;
	out->last = INT64_MIN;
	err = reader_open(&in, path);
	if (err)
		return err;
	while (!err && (n = reader_next(in, &record)) != 0) {
		if (n < 0)
			err = n;
		else if (record.kind == RECORD_EVENTS)
			err = events_take(out, &record.events);
		else if (w && record.kind != RECORD_WINDOW)
			err = writer_add(w, &record);
	}
	reader_close(in);
	return !err && w && !out->count ? -ENODATA : err;
}

static int shifted_write(struct writer *w, const struct recording *r, int64_t shift, size_t count)
{
	struct event batch[1024];
	size_t done = 0, n, i;
	int err = 0;

	while (!err && done < count) {
		n = count - done < 1024 ? count - done : 1024;
		memcpy(batch, r->events + done, n * sizeof(*batch));
		for (i = 0; i < n; i++) {
			batch[i].ts += shift;
			if (batch[i].kind == EVENT_POLL && batch[i].poll.last_end)
				batch[i].poll.last_end += shift;
		}
		err = writer_events(w, batch, n);
		done += n;
	}
	return err;
}

static int window_write(struct writer *w, const struct recording *r, uint64_t wanted)
{
	struct record record = {.kind = RECORD_WINDOW};
	int64_t span = r->last - r->first + 1000;

	record.window.begin = r->first - 1000;
	record.window.end = r->first + span * (int64_t)(wanted / r->count + 1);
	return writer_add(w, &record);
}

static int grow(const char *from, const char *to, uint64_t wanted)
{
	int fd = open(to, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct recording r = {0};
	struct writer *w = NULL;
	uint64_t done = 0;
	int64_t shift = 0;
	int err = fd < 0 ? -errno : writer_new(&w, fd, 0), last;

	if (!err)
		err = load(from, &r, w);
	if (!err)
		err = window_write(w, &r, wanted);
	while (!err && done < wanted) {
		size_t count = wanted - done < r.count ? (size_t)(wanted - done) : r.count;

		err = shifted_write(w, &r, shift, count);
		shift += r.last - r.first + 1000;
		done += count;
	}
	last = writer_close(w);
	free(r.events);
	if (!err && !last)
		printf("{\"events\": %" PRIu64 "}\n", done);
	return err ? err : last;
}

static int stat_print(const char *path)
{
	struct recording r = {0};
	int err = load(path, &r, NULL);

	free(r.events);
	if (!err)
		printf("{\"events\": %zu, \"first_ns\": %" PRId64 ", \"last_ns\": %" PRId64 "}\n",
		       r.count, r.first, r.last);
	return err;
}

int main(int argc, char **argv)
{
	int err;

	if (argc == 3 && !strcmp(argv[1], "stat")) {
		err = stat_print(argv[2]);
	} else if (argc == 5 && !strcmp(argv[1], "grow")) {
		err = grow(argv[2], argv[3], strtoull(argv[4], NULL, 10));
	} else {
		fprintf(stderr, "usage: bench_file stat FILE | grow FILE OUT EVENTS\n");
		return 2;
	}
	return err ? bench_fail("bench_file", err) : 0;
}
