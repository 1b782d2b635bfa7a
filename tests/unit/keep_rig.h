/* SPDX-License-Identifier: BSD-2-Clause */
/* Recordings of which the last part is kept, and what files of it say. */
#ifndef TESTS_KEEP_RIG_H
#define TESTS_KEEP_RIG_H

#include "record_any.h"

#include "record/keep.h"

#define MS INT64_C(1000000)
#define S (1000 * MS)
#define START (100 * S)

/* What a file of the kept part says. */
struct file {
	struct log log[RECORD_KINDS];
	size_t events;
	int64_t first, last; /* of events, ns */
};

static inline void file_free(struct file *f)
{
	for (size_t i = 0; i < RECORD_KINDS; i++)
		log_free(&f->log[i]);
}

static inline void file_parse(struct file *f, int fd)
{
	struct record record;
	struct reader *r;

	*f = (struct file){.first = INT64_MAX, .last = INT64_MIN};
	for (size_t i = 0; i < RECORD_KINDS; i++)
		log_new(&f->log[i]);
	assert_int_equal(file_open(&r, fd), 0);
	while (reader_next(r, &record) == 1) {
		if (record.kind != RECORD_NAME || record.name.len < 1000)
			log_record(f->log[record.kind].file, &record);
		if (record.kind != RECORD_EVENTS)
			continue;
		f->events += record.events.count;
		for (size_t i = 0; i < record.events.count; i++) {
			int64_t ts = record.events.events[i].ts;

			f->first = ts < f->first ? ts : f->first;
			f->last = ts > f->last ? ts : f->last;
		}
	}
	assert_int_equal(reader_end(r), READER_END_WHOLE);
	reader_close(r);
}

/* The part as a file; its begin, ns. */
static inline int64_t write_part(struct keep *k, int64_t begin, int64_t end, struct file *f)
{
	struct writer *w;
	int fd = file_new();

	assert_int_equal(writer_new(&w, dup(fd), 7), 0);
	assert_int_equal(keep_write(k, w, &begin, end), 0);
	while (keep_write_step(k) == 1)
		;
	assert_int_equal(keep_write_step(k), 0);
	keep_write_stop(k);
	assert_int_equal(writer_close(w), 0);
	file_parse(f, fd);
	close(fd);
	return begin;
}

static inline struct keep *make(int64_t ns, uint64_t bytes)
{
	struct keep_options o = {ns, bytes};
	struct keep *k;

	assert_int_equal(keep_new(&k, &o), 0);
	return k;
}

static inline struct event event_at(int64_t ts)
{
	return (struct event){.ts = ts, .pid = 1, .tid = 2, .sp = 3, .api = 4, .kind = EVENT_BEGIN};
}

/* An event a millisecond, and its like before and after; a round every 100 ms. */
static inline void fill(struct keep *k, int64_t from, int64_t to)
{
	for (int64_t ts = from; ts < to; ts += MS) {
		struct event e = event_at(ts);

		assert_int_equal(keep_events(k, &e, 1), 0);
		if (!((ts - START) % (100 * MS)))
			assert_int_equal(keep_round(k, ts), 0);
	}
}

static inline void expect(struct keep *k, int64_t begin, int64_t end, int64_t from, size_t events)
{
	struct file f;

	assert_int_equal(write_part(k, begin, end, &f), from);
	assert_int_equal(f.events, events);
	if (events) {
		assert_true(f.first >= from && f.first < from + MS);
		assert_true(f.last < end && f.last >= end - MS);
	}
	file_free(&f);
}

#endif
