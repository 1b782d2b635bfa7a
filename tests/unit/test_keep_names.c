// SPDX-License-Identifier: BSD-2-Clause
/* What kept events refer to: names, threads, processes and losses, however old. */
#include "keep_rig.h"

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

static bool is_odd(uint32_t pid, uint32_t tid, void *ctx)
{
	(void)ctx;
	return pid == 1 && tid % 2;
}

/* Threads that ended are named as long as their calls are there, and no longer. */
static void test_threads_that_ended(void **state)
{
	struct keep *k = make(2 * S, KEEP_BYTES_MIN);
	struct file f;

	(void)state;
	add_thread(k, 1, 11, "ended");
	add_thread(k, 1, 12, "lives");
	add_thread(k, 2, 11, "of another process");
	fill(k, START, START + S + MS);
	keep_threads_ended(k, is_odd, NULL);
	add_thread(k, 1, 11, "the same number");
	write_part(k, START, START + S, &f);
	assert_true(says(&f, RECORD_THREAD, "ended"));
	file_free(&f);
	fill(k, START + S, START + 5 * S);
	write_part(k, START + 3 * S, START + 5 * S, &f);
	assert_false(says(&f, RECORD_THREAD, "ended"));
	assert_true(says(&f, RECORD_THREAD, "lives"));
	assert_true(says(&f, RECORD_THREAD, "of another process"));
	assert_true(says(&f, RECORD_THREAD, "the same number"));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_of_long_ago),
		cmocka_unit_test(test_losses_of_the_part),
		cmocka_unit_test(test_names_are_bounded),
		cmocka_unit_test(test_threads_that_ended),
		cmocka_unit_test(test_too_many_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
