// SPDX-License-Identifier: BSD-2-Clause
/* The last part of a recording: what is kept, what is written of it, and what it takes. */
#include "keep_rig.h"

#include <errno.h>
#include <fcntl.h>

static void test_exactly_the_part(void **state)
{
	struct keep *k = make(5 * S, KEEP_BYTES_MIN);
	int64_t now = START + 20 * S + 300 * MS;
	struct keep_stats stats;

	(void)state;
	expect(k, 0, START, 0, 0); /* nothing was added yet */
	fill(k, START, now);
	expect(k, now - 5 * S, now, now - 5 * S, 5000);
	expect(k, now - 5 * S + 1, now, now - 5 * S + 1, 4999);	  /* the edges are exact */
	expect(k, now - 5 * S, now - MS, now - 5 * S, 4999);
	expect(k, now - 5 * S, now - MS + 1, now - 5 * S, 5000);
	expect(k, now - 3 * S - 7, now - 2 * S - 7, now - 3 * S - 7, 1000);
	expect(k, now, now + S, now, 0);
	keep_stats(k, &stats);
	assert_false(stats.short_of);
	/* what is long gone is not pretended to be there */
	assert_true(stats.complete > now - 7 * S && stats.complete <= now - 5 * S);
	expect(k, START, now, stats.complete, (size_t)((now - stats.complete) / MS));
	fill(k, now, now + S); /* and it goes on */
	expect(k, now - 4 * S, now + S, now - 4 * S, 5000);
	keep_free(k);
	keep_free(NULL);
}

/* Young recordings have what there is. */
static void test_less_than_asked(void **state)
{
	struct keep *k = make(30 * S, KEEP_BYTES_MIN);
	struct file f;

	(void)state;
	fill(k, START, START + 2 * S);
	assert_int_equal(write_part(k, START - 28 * S, START + 2 * S, &f), START - 28 * S);
	assert_int_equal(f.events, 2000);
	assert_int_equal(f.first, START);
	file_free(&f);
	keep_free(k);
}

/* Events that no compression helps against. */
static void random_events(struct keep *k, struct data *d, int64_t from, size_t count)
{
	struct event e[256];

	for (size_t i = 0; i < count; i += COUNT(e)) {
		for (size_t n = 0; n < COUNT(e); n++) {
			e[n] = event_at(from + (int64_t)(i + n) * 1000);
			e[n].sp = (uint32_t)data_random(d);
			e[n].args = EVENT_ARGS_CALL;
			e[n].call.object = data_random(d);
			e[n].call.source = data_random(d);
			e[n].call.bytes = data_random(d);
		}
		assert_int_equal(keep_events(k, e, COUNT(e)), 0);
	}
}

static void test_bytes_are_bounded(void **state)
{
	struct keep *k = make(3600 * S, KEEP_BYTES_MIN);
	struct keep_stats stats;
	struct file f;
	struct data d;
	int64_t now = START;

	(void)state;
	data_begin(&d, 3, 1, false);
	for (int i = 0; i < 3; i++) { /* 3 times 8 MB or so */
		random_events(k, &d, now, 262144);
		now += 262144 * 1000;
		assert_int_equal(keep_round(k, now), 0);
		keep_stats(k, &stats);
		assert_true(stats.bytes <= KEEP_BYTES_MIN);
	}
	assert_true(stats.short_of);
	assert_true(stats.bytes > KEEP_BYTES_MIN / 2);
	assert_true(stats.complete > START && stats.complete < now);
	/* it begins where it can be whole, and is */
	assert_int_equal(write_part(k, START, now, &f), stats.complete);
	assert_int_equal(f.events, (now - stats.complete) / 1000);
	file_free(&f);
	keep_free(k);
}

/* What makes room meanwhile is written first. */
static void test_writing_while_more_comes(void **state)
{
	struct keep *k = make(3600 * S, KEEP_BYTES_MIN);
	int64_t begin = START, end = START + 131072 * 1000;
	struct keep_stats stats;
	struct writer *w;
	struct file f;
	struct data d;
	int fd = file_new();

	(void)state;
	data_begin(&d, 4, 1, false);
	random_events(k, &d, START, 131072);
	assert_int_equal(writer_new(&w, dup(fd), 7), 0);
	assert_int_equal(keep_write(k, w, &begin, end), 0);
	assert_int_equal(begin, START);
	assert_int_equal(keep_write_step(k), 1);
	random_events(k, &d, end, 655360);
	keep_stats(k, &stats);
	assert_true(stats.complete > end); /* all of it is gone */
	assert_int_equal(keep_write_step(k), 0);
	keep_write_stop(k);
	assert_int_equal(writer_close(w), 0);
	file_parse(&f, fd);
	assert_int_equal(f.events, 131072);
	assert_true(f.last < end);
	file_free(&f);
	close(fd);
	keep_free(k);
}

/* A full disk is the file's trouble and nobody else's. */
static void test_write_fails(void **state)
{
	struct keep *k = make(60 * S, KEEP_BYTES_MIN);
	int fd = open("/dev/full", O_RDWR | O_CLOEXEC);
	int64_t begin = START;
	struct writer *w;
	struct data d;

	(void)state;
	data_begin(&d, 4, 1, false);
	random_events(k, &d, START, 65536);
	assert_int_equal(writer_new(&w, fd, 7), -ENOSPC);
	assert_int_equal(writer_new(&w, file_new(), 7), 0);
	assert_int_equal(keep_write(k, w, &begin, INT64_MAX), 0);
	keep_write_stop(k); /* given up */
	writer_close(w);
	assert_int_equal(keep_write_step(k), 0);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC); /* not to be written to */
	assert_int_equal(writer_new(&w, fd, 7), -EBADF);
	expect(k, START, START + 65536 * 1000, START, 65536);
	keep_free(k);
}

/* Anything goes in; what comes out can be read. */
static void test_anything(void **state)
{
	char (*buf)[STRING_SIZE] = calloc(4, sizeof(*buf));
	struct keep *k = make(INT64_C(1) << 40, KEEP_BYTES_MIN);
	struct keep_stats stats;
	struct file f;
	struct data d;

	(void)state;
	assert_non_null(buf);
	data_begin(&d, 9, 1, false);
	for (int i = 0; i < 800; i++) {
		struct event e[40];
		struct record r;

		for (size_t n = 0; n < COUNT(e); n++)
			e[n] = any_event(&d);
		assert_int_equal(keep_events(k, e, COUNT(e)), 0);
		any_record(&d, &r, buf);
		assert_int_equal(keep_add(k, &r), 0);
		assert_int_equal(keep_round(k, (int64_t)(data_random(&d) >> 2)), 0);
		keep_stats(k, &stats);
		assert_true(stats.bytes <= KEEP_BYTES_MIN + 512 * 1024);
		if (i % 200 == 199) {
			write_part(k, (int64_t)(any(&d) >> 1), (int64_t)(any(&d) >> 1), &f);
			file_free(&f);
		}
	}
	keep_free(k);
	free(buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exactly_the_part),
		cmocka_unit_test(test_less_than_asked),
		cmocka_unit_test(test_bytes_are_bounded),
		cmocka_unit_test(test_writing_while_more_comes),
		cmocka_unit_test(test_write_fails),
		cmocka_unit_test(test_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
