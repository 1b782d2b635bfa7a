/* SPDX-License-Identifier: BSD-2-Clause */
/* What is written is what is read, and how writing fails. */
#include "record_any.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "record/chunk.h"

/* Records of different kinds may change places: one log a kind. */
struct logs {
	struct log kind[RECORD_KINDS];
};

static void logs_compare(struct logs *a, struct logs *b)
{
	for (size_t i = 0; i < RECORD_KINDS; i++) {
		const char *x = log_text(&a->kind[i]), *y = log_text(&b->kind[i]);

		/* Not assert_string_equal(), which would print megabytes. */
		if (strcmp(x, y))
			fail_msg("records of kind %zu differ", i);
		log_free(&a->kind[i]);
		log_free(&b->kind[i]);
	}
}

static void logs_new(struct logs *l)
{
	for (size_t i = 0; i < RECORD_KINDS; i++)
		log_new(&l->kind[i]);
}

/* Batches of events with records and flushes between them. */
static void write_anything(struct data *d, int fd, struct logs *l, size_t rounds)
{
	char (*buf)[STRING_SIZE] = calloc(4, sizeof(*buf));
	struct writer *w;

	assert_non_null(buf);
	assert_int_equal(writer_new(&w, dup(fd), -5), 0);
	for (size_t i = 0; i < rounds; i++) {
		struct event e[300];
		struct record r = {.kind = RECORD_EVENTS,
				   .events = {e, data_below(d, COUNT(e) + 1)}};

		for (size_t k = 0; k < r.events.count; k++)
			e[k] = any_event(d);
		assert_int_equal(writer_add(w, &r), 0);
		log_record(l->kind[RECORD_EVENTS].file, &r);
		for (uint64_t n = data_below(d, 8); n; n--) {
			any_record(d, &r, buf);
			assert_int_equal(writer_add(w, &r), 0);
			log_record(l->kind[r.kind].file, &r);
		}
		if (!data_below(d, 50))
			assert_int_equal(writer_flush(w), 0);
	}
	assert_int_equal(writer_close(w), 0);
	free(buf);
}

static void round_trip(uint64_t seed, size_t rounds)
{
	struct logs written, back;
	struct reader *r;
	struct record record;
	struct data d;
	int fd = file_new();

	data_begin(&d, seed, 1, false);
	logs_new(&written);
	logs_new(&back);
	write_anything(&d, fd, &written, rounds);
	assert_int_equal(file_open(&r, fd), 0);
	assert_int_equal(reader_realtime(r), -5);
	while (reader_next(r, &record) == 1)
		log_record(back.kind[record.kind].file, &record);
	assert_int_equal(reader_end(r), READER_END_WHOLE);
	assert_int_equal(reader_lost_bytes(r), 0);
	reader_close(r);
	logs_compare(&written, &back);
	close(fd);
}

static void round_trip_small(void **state)
{
	for (uint64_t seed = 1; seed <= 8; seed++)
		round_trip(seed, seed * 2);
}

#ifdef QUICK_TESTS /* the quick tests' build: 70 000 events, more than a chunk */
#define LARGE 450
#else /* 150 000 events, more than two chunks */
#define LARGE 1000
#endif

static void round_trip_large(void **state)
{
	round_trip(101, LARGE);
}

static void round_trip_job(void **state)
{
	struct log written, back;
	struct writer *w;
	struct data d;
	int fd = file_new();

	log_new(&written);
	log_new(&back);
	data_begin(&d, 7, 9, false);
	assert_int_equal(writer_new(&w, dup(fd), 0), 0);
	for (int i = 0; i < 30000; i++) {
		struct event e;

		data_next(&d, &e);
		log_event(written.file, &e);
		assert_int_equal(writer_events(w, &e, 1), 0);
	}
	assert_int_equal(writer_close(w), 0);
	assert_int_equal(file_read(fd, back.file).end, READER_END_WHOLE);
	assert_true(!strcmp(log_text(&written), log_text(&back)));
	log_free(&written);
	log_free(&back);
	close(fd);
}

/* As many threads as a chunk can have events. */
static void thread_each(void **state)
{
	struct event *e = calloc(CHUNK_RECORDS_MAX, sizeof(*e));
	struct writer *w;
	struct reader *r;
	struct record record;
	int fd = file_new();

	for (uint32_t i = 0; i < CHUNK_RECORDS_MAX; i++)
		e[i] = (struct event){.ts = i, .pid = i / 7, .tid = ~i, .kind = EVENT_BEGIN};
	assert_int_equal(writer_new(&w, dup(fd), 0), 0);
	assert_int_equal(writer_events(w, e, CHUNK_RECORDS_MAX), 0);
	assert_int_equal(writer_close(w), 0);
	assert_int_equal(file_open(&r, fd), 0);
	assert_int_equal(reader_next(r, &record), 1);
	assert_int_equal(record.events.count, CHUNK_RECORDS_MAX);
	assert_memory_equal(record.events.events, e, CHUNK_RECORDS_MAX * sizeof(*e));
	reader_close(r);
	close(fd);
	free(e);
}

/* Whatever describes an event has been read by the time the event is. */
static void order(void **state)
{
	struct writer *w;
	struct reader *r;
	struct record record = {.kind = RECORD_NAME, .name = {.name = "k", .len = 1}};
	struct data d;
	uint64_t seen = 0, names = 0;
	int fd = file_new();

	data_begin(&d, 3, 2, false);
	assert_int_equal(writer_new(&w, dup(fd), 0), 0);
	for (uint64_t i = 0; i < 200000; i++) {
		struct event e;

		if (!data_below(&d, 100)) {
			record.name.handle = i; /* events added before */
			assert_int_equal(writer_add(w, &record), 0);
		}
		data_next(&d, &e);
		assert_int_equal(writer_events(w, &e, 1), 0);
	}
	assert_int_equal(writer_close(w), 0);
	assert_int_equal(file_open(&r, fd), 0);
	while (reader_next(r, &record) == 1) {
		seen += record.kind == RECORD_EVENTS ? record.events.count : 0;
		names += record.kind == RECORD_NAME;
		if (record.kind == RECORD_NAME)
			assert_true(seen <= record.name.handle);
	}
	assert_int_equal(seen, 200000);
	assert_true(names > 1500);
	reader_close(r);
	close(fd);
}

static double bytes_per_event(unsigned int threads, bool shuffled)
{
	const size_t count = 4 * CHUNK_RECORDS_MAX;
	struct writer *w;
	struct data d;
	uint64_t size;

	data_begin(&d, 1, threads, shuffled);
	assert_int_equal(writer_new(&w, file_new(), 0), 0);
	for (size_t i = 0; i < count; i++) {
		struct event e;

		data_next(&d, &e);
		assert_int_equal(writer_events(w, &e, 1), 0);
	}
	assert_int_equal(writer_flush(w), 0);
	size = writer_size(w);
	assert_int_equal(writer_close(w), 0);
	return (double)size / (double)count;
}

static void stays_small(void **state)
{
	assert_true(bytes_per_event(1, false) < 2.5);
	assert_true(bytes_per_event(8, false) < 2.5);
	assert_true(bytes_per_event(8, true) < 4.5);
}

static void refused(void **state)
{
	struct event good = {.kind = EVENT_END, .tid = 9}, bad[2] = {good, {.kind = 4}};
	struct record record = {.kind = RECORD_KINDS};
	struct log log;
	struct writer *w;
	int fd = file_new();

	assert_int_equal(writer_new(&w, dup(fd), 0), 0);
	assert_int_equal(writer_events(w, bad, 2), -EINVAL);
	bad[1] = (struct event){.kind = EVENT_BEGIN, .args = 3};
	assert_int_equal(writer_events(w, bad, 2), -EINVAL);
	assert_int_equal(writer_add(w, &record), -EINVAL);
	assert_int_equal(writer_events(w, &good, 1), 0);
	assert_int_equal(writer_events(w, NULL, 0), 0);
	assert_int_equal(writer_close(w), 0);
	log_new(&log);
	assert_int_equal(file_read(fd, log.file).end, READER_END_WHOLE);
	assert_string_equal(log_text(&log), "event 0 0 9 0 0 0 2 end 0 0 0\n");
	log_free(&log);
	assert_int_equal(writer_new(&w, fd, 0), -EEXIST);
	assert_null(w);
	assert_int_equal(writer_close(NULL), 0);
}

/* Everything is in the file after a flush, though nobody closed it. */
static void flushed(void **state)
{
	struct event e = {.kind = EVENT_BEGIN, .ts = INT64_MIN};
	struct record info = {.kind = RECORD_INFO, .info = {"key", "value"}};
	struct outcome o;
	struct writer *w;
	struct log log;
	int fd = file_new();

	log_new(&log);
	assert_int_equal(writer_new(&w, dup(fd), 0), 0);
	assert_int_equal(writer_events(w, &e, 1), 0);
	assert_int_equal(writer_add(w, &info), 0);
	assert_int_equal(writer_flush(w), 0);
	assert_int_equal(writer_flush(w), 0);
	o = file_read(fd, log.file);
	assert_int_equal(o.end, READER_END_CUT);
	assert_int_equal(o.lost, 0);
	assert_string_equal(log_text(&log), "info 3:6b6579 5:76616c7565\n"
					    "event -9223372036854775808 0 0 0 0 0 1\n");
	assert_int_equal(writer_close(w), 0);
	log_free(&log);
	close(fd);
}

/* The file may not grow beyond some size: first a short write, then an error. */
static void file_full(void **state)
{
	struct rlimit whole, small;
	struct log written, back;
	struct writer *w;
	struct outcome o;
	struct data d;
	int fd = file_new(), err = 0;

	log_new(&written);
	log_new(&back);
	signal(SIGXFSZ, SIG_IGN);
	data_begin(&d, 5, 3, true);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &whole), 0);
	small = (struct rlimit){700001, whole.rlim_max};
	assert_int_equal(writer_new(&w, dup(fd), 0), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	for (int i = 0; !err && i < 1000000; i++) {
		struct event e;

		data_next(&d, &e);
		log_event(written.file, &e);
		err = writer_events(w, &e, 1);
	}
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &whole), 0);
	assert_int_equal(err, -EFBIG);
	assert_int_equal(writer_flush(w), -EFBIG); /* though there is room again */
	assert_int_equal(writer_add(w, &(struct record){.kind = RECORD_LOSS}), -EFBIG);
	assert_int_equal(writer_size(w), lseek(fd, 0, SEEK_END));
	assert_int_equal(writer_close(w), -EFBIG);
	o = file_read(fd, back.file);
	assert_int_equal(o.end, READER_END_CUT);
	assert_int_equal(o.lost, 0);
	log_text(&back);
	log_text(&written);
	assert_true(back.size > 1000000 && back.size < written.size);
	assert_memory_equal(back.text, written.text, back.size);
	log_free(&written);
	log_free(&back);
	close(fd);
}

static void no_space(void **state)
{
	struct writer *w;

	assert_int_equal(writer_new(&w, open("/dev/full", O_WRONLY | O_CLOEXEC), 0), -ENOSPC);
	assert_null(w);
	assert_int_equal(writer_new(&w, -1, 0), -EBADF);
}

static void on_alarm(int sig)
{
}

/* Takes from a pipe slowly, so that the writer waits in write(2). */
static void drain(int from, int to)
{
	char buf[3000];
	ssize_t n;

	while ((n = read(from, buf, sizeof(buf))) > 0) {
		if (write(to, buf, (size_t)n) != n)
			_exit(1);
		usleep(300);
	}
	_exit(n < 0);
}

/* Signals interrupt write(2) before and amid its work; nothing is lost or twice. */
static void interrupted(void **state)
{
	struct sigaction act = {.sa_handler = on_alarm};
	struct itimerval often = {{0, 700}, {0, 700}}, never = {0};
	struct log written, back;
	struct writer *w;
	struct data d;
	int fd = file_new(), p[2], status;
	pid_t child;

	log_new(&written);
	log_new(&back);
	assert_int_equal(pipe(p), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		close(p[1]);
		drain(p[0], fd);
	}
	close(p[0]);
	sigaction(SIGALRM, &act, NULL);
	data_begin(&d, 5, 3, true);
	assert_int_equal(writer_new(&w, p[1], 0), 0);
	setitimer(ITIMER_REAL, &often, NULL);
	for (size_t i = 0; i < 3 * CHUNK_RECORDS_MAX; i++) {
		struct event e;

		data_next(&d, &e);
		log_event(written.file, &e);
		assert_int_equal(writer_events(w, &e, 1), 0);
	}
	assert_int_equal(writer_close(w), 0);
	setitimer(ITIMER_REAL, &never, NULL);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(file_read(fd, back.file).end, READER_END_WHOLE);
	assert_true(!strcmp(log_text(&written), log_text(&back)));
	log_free(&written);
	log_free(&back);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip_small), cmocka_unit_test(round_trip_large),
		cmocka_unit_test(round_trip_job),   cmocka_unit_test(thread_each),
		cmocka_unit_test(order),	    cmocka_unit_test(stays_small),
		cmocka_unit_test(refused),	    cmocka_unit_test(flushed),
		cmocka_unit_test(file_full),	    cmocka_unit_test(no_space),
		cmocka_unit_test(interrupted),
	};

	return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
