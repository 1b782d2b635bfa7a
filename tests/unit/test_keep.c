// SPDX-License-Identifier: BSD-2-Clause
/* The last part of a recording: what is kept, what is written of it, and what it takes. */
#include "record_any.h"

#include <errno.h>
#include <fcntl.h>

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

static void file_free(struct file *f)
{
	for (size_t i = 0; i < RECORD_KINDS; i++)
		log_free(&f->log[i]);
}

static void file_parse(struct file *f, int fd)
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
static int64_t write_part(struct keep *k, int64_t begin, int64_t end, struct file *f)
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

static struct keep *make(int64_t ns, uint64_t bytes)
{
	struct keep_options o = {ns, bytes};
	struct keep *k;

	assert_int_equal(keep_new(&k, &o), 0);
	return k;
}

static struct event event_at(int64_t ts)
{
	return (struct event){.ts = ts, .pid = 1, .tid = 2, .sp = 3, .api = 4, .kind = EVENT_BEGIN};
}

/* An event a millisecond, and its like before and after; a round every 100 ms. */
static void fill(struct keep *k, int64_t from, int64_t to)
{
	for (int64_t ts = from; ts < to; ts += MS) {
		struct event e = event_at(ts);

		assert_int_equal(keep_events(k, &e, 1), 0);
		if (!((ts - START) % (100 * MS)))
			assert_int_equal(keep_round(k, ts), 0);
	}
}

static void expect(struct keep *k, int64_t begin, int64_t end, int64_t from, size_t events)
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
	for (int i = 0; i < 4; i++) { /* 4 times 8 MB or so */
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
	int64_t begin = START, end = START + 262144 * 1000;
	struct keep_stats stats;
	struct writer *w;
	struct file f;
	struct data d;
	int fd = file_new();

	(void)state;
	data_begin(&d, 4, 1, false);
	random_events(k, &d, START, 262144);
	assert_int_equal(writer_new(&w, dup(fd), 7), 0);
	assert_int_equal(keep_write(k, w, &begin, end), 0);
	assert_int_equal(begin, START);
	assert_int_equal(keep_write_step(k), 1);
	random_events(k, &d, end, 3 * 262144);
	keep_stats(k, &stats);
	assert_true(stats.complete > end); /* all of it is gone */
	assert_int_equal(keep_write_step(k), 0);
	keep_write_stop(k);
	assert_int_equal(writer_close(w), 0);
	file_parse(&f, fd);
	assert_int_equal(f.events, 262144);
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

static void add_name(struct keep *k, int64_t ts, uint32_t pid, uint64_t handle, const char *name)
{
	struct record r = {.kind = RECORD_NAME,
			   .name = {ts, pid, 1, handle, name, strlen(name)}};

	assert_int_equal(keep_add(k, &r), 0);
}

static void add_process(struct keep *k, int64_t ts, uint32_t pid, uint32_t event, const char *comm)
{
	struct record r = {.kind = RECORD_PROCESS, .process = {.ts = ts, .event = event,
		.pid = pid, .start = 5, .comm = comm, .cmdline = "", .exe = "", .container = ""}};

	assert_int_equal(keep_add(k, &r), 0);
}

static void add_thread(struct keep *k, uint32_t pid, uint32_t tid, const char *comm)
{
	struct record r = {.kind = RECORD_THREAD, .thread = {pid, tid, 0, comm}};

	assert_int_equal(keep_add(k, &r), 0);
}

static void add_loss(struct keep *k, int64_t ts, uint64_t count)
{
	struct record r = {.kind = RECORD_LOSS, .loss = {ts, RECORD_LOSS_RING_FULL, count}};

	assert_int_equal(keep_add(k, &r), 0);
}

static bool says(struct file *f, enum record_kind kind, const char *text)
{
	char hex[128], *at = hex;

	for (at += sprintf(at, " %zu:", strlen(text)); *text; text++)
		at += sprintf(at, "%02x", (unsigned char)*text);
	return strstr(log_text(&f->log[kind]), hex);
}

static size_t times(struct file *f, enum record_kind kind, const char *text)
{
	const char *at = log_text(&f->log[kind]);
	size_t n = 0;

	while ((at = strstr(at, text))) {
		at += strlen(text);
		n++;
	}
	return n;
}

static void test_names_of_long_ago(void **state)
{
	struct keep *k = make(2 * S, KEEP_BYTES_MIN);
	int64_t now = START + 20 * S, begin = now - 2 * S;
	char line[64];
	struct file f;

	(void)state;
	add_process(k, START, 1, RECORD_PROCESS_SEEN, "first");
	add_name(k, START, 1, 0x10, "before_exec");
	add_process(k, START + S, 1, RECORD_PROCESS_EXEC, "second");
	add_name(k, START + 2 * S, 1, 0x20, "old_name");
	add_name(k, START + 3 * S, 1, 0x30, "unloaded");
	add_name(k, START + 4 * S, 1, 0x30, "loaded_instead");
	add_thread(k, 1, 11, "worker");
	add_process(k, START + S, 2, RECORD_PROCESS_FORK, "short_lived");
	add_name(k, START + S, 2, 0x20, "of_the_dead");
	add_thread(k, 2, 22, "dead_thread");
	add_process(k, START + 5 * S, 2, RECORD_PROCESS_EXIT, "short_lived");
	fill(k, START, now - S);
	add_thread(k, 1, 11, "worker"); /* said again: nothing new */
	add_name(k, now - S - 5, 1, 0x30, "loaded_instead");
	add_name(k, now - S, 1, 0x20, "new_name");
	add_process(k, now - S, 3, RECORD_PROCESS_FORK, "newcomer");
	fill(k, now - S, now);
	add_process(k, now + 5, 4, RECORD_PROCESS_FORK, "too_late");
	write_part(k, begin, now, &f);
	assert_false(says(&f, RECORD_PROCESS, "first"));
	assert_true(says(&f, RECORD_PROCESS, "second"));
	/* what came before the part is said at its begin; a process was there then */
	snprintf(line, sizeof(line), "process %ld %u 1 ", (long)begin, RECORD_PROCESS_SEEN);
	assert_non_null(strstr(log_text(&f.log[RECORD_PROCESS]), line));
	snprintf(line, sizeof(line), "process %ld %u 3 ", (long)(now - S), RECORD_PROCESS_FORK);
	assert_non_null(strstr(log_text(&f.log[RECORD_PROCESS]), line));
	assert_false(says(&f, RECORD_PROCESS, "short_lived"));
	assert_false(says(&f, RECORD_PROCESS, "too_late"));
	assert_false(says(&f, RECORD_NAME, "before_exec"));
	assert_false(says(&f, RECORD_NAME, "unloaded"));
	assert_false(says(&f, RECORD_NAME, "of_the_dead"));
	snprintf(line, sizeof(line), "name %ld 1 1 20 ", (long)begin);
	assert_non_null(strstr(log_text(&f.log[RECORD_NAME]), line));
	assert_true(says(&f, RECORD_NAME, "old_name"));
	snprintf(line, sizeof(line), "name %ld 1 1 20 ", (long)(now - S));
	assert_non_null(strstr(log_text(&f.log[RECORD_NAME]), line));
	assert_true(says(&f, RECORD_NAME, "new_name"));
	assert_true(says(&f, RECORD_NAME, "loaded_instead"));
	assert_int_equal(times(&f, RECORD_NAME, "name "), 3);
	assert_true(says(&f, RECORD_THREAD, "worker"));
	assert_int_equal(times(&f, RECORD_THREAD, "thread 1 11 "), 1);
	assert_false(says(&f, RECORD_THREAD, "dead_thread"));
	file_free(&f);
	/* a part that begins after the new name has only that */
	write_part(k, now - S / 2, now, &f);
	assert_false(says(&f, RECORD_NAME, "old_name"));
	assert_true(says(&f, RECORD_NAME, "new_name"));
	file_free(&f);
	keep_free(k);
}

static void test_losses_of_the_part(void **state)
{
	struct keep *k = make(5 * S, KEEP_BYTES_MIN);
	int64_t now = START + 10 * S;
	struct file f;

	(void)state;
	fill(k, START, START + 6 * S);
	add_loss(k, START + 6 * S - MS, 1); /* in one chunk with the next */
	add_loss(k, START + 6 * S, 10);
	fill(k, START + 6 * S, now);
	add_loss(k, now + MS, 100); /* noticed after the part, lost within it perhaps */
	write_part(k, START + 6 * S, now, &f);
	assert_null(strstr(log_text(&f.log[RECORD_LOSS]), " 1 1\n"));
	assert_non_null(strstr(log_text(&f.log[RECORD_LOSS]), " 1 10\n"));
	assert_non_null(strstr(log_text(&f.log[RECORD_LOSS]), " 1 100\n"));
	file_free(&f);
	keep_free(k);
}

/* Hours of processes that come and go, threads that are told again and names that change. */
static void test_names_are_bounded(void **state)
{
	struct keep *k = make(2 * S, KEEP_BYTES_MIN);
	struct keep_stats stats;
	uint64_t most = 0;
	char name[400];
	struct file f;

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	add_process(k, START, 1, RECORD_PROCESS_SEEN, "lives");
	for (uint32_t i = 0; i < 8000; i++) {
		int64_t now = START + i * 100 * MS;
		uint32_t pid = 1000 + i % 3000;

		snprintf(name, 16, "k%u", i);
		name[strlen(name)] = '_';
		add_process(k, now, pid, RECORD_PROCESS_FORK, "child");
		add_name(k, now, pid, 0x10, name);
		add_name(k, now, 1, 0x10 + i % 7, name); /* another module, the same handle */
		add_thread(k, 1, 5, "again");
		add_process(k, now + 50 * MS, pid, RECORD_PROCESS_EXIT, "child");
		add_name(k, now + 40 * MS, pid, 0x20, name); /* read after its end was */
		assert_int_equal(keep_round(k, now), 0);
		keep_stats(k, &stats);
		if (i < 1000)
			most = stats.bytes > most ? stats.bytes : most;
	}
	assert_true(stats.bytes <= most + most / 2);
	assert_int_equal(stats.refused, 0);
	write_part(k, START + 8000 * 100 * MS - 2 * S, INT64_MAX, &f);
	assert_true(says(&f, RECORD_PROCESS, "lives"));
	assert_true(says(&f, RECORD_THREAD, "again"));
	file_free(&f);
	keep_free(k);
}

static void test_too_many_names(void **state)
{
	struct keep *k = make(3600 * S, KEEP_BYTES_MIN);
	struct keep_stats stats;
	char name[4000];

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (uint64_t i = 0; i < 10000; i++)
		add_name(k, START, 1, i, name);
	fill(k, START, START + S);
	keep_stats(k, &stats);
	assert_true(stats.bytes <= KEEP_BYTES_MIN);
	assert_true(stats.refused > 5000 && stats.refused < 10000);
	expect(k, START, START + S, START, 1000); /* and events have their half */
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
		cmocka_unit_test(test_names_of_long_ago),
		cmocka_unit_test(test_losses_of_the_part),
		cmocka_unit_test(test_names_are_bounded),
		cmocka_unit_test(test_too_many_names),
		cmocka_unit_test(test_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
