// SPDX-License-Identifier: BSD-2-Clause
/* CPU time and I/O: texts of /proc, and real processes against rusage and clocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <sys/resource.h>
#include <time.h>

#include "children.h"
#include "target/parse.h"
#include "target/usage.h"

#define MS 1000000

static void io_takes_storage_only(void **state)
{
	static const char text[] = "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 8192\n"
				   "write_bytes: 18446744073709551615\ncancelled_write_bytes: 7\n";
	static const char *const bad[] = { "", "read_bytes: 1\n", "read_bytes: 1\nwrite_bytes: \n",
					   "read_bytes: 1\nwrite_bytes: x\n",
					   "read_bytes: 1\nwrite_bytes: 2 3\n",
					   "read_bytes: 1\nxwrite_bytes: 2\n",
					   "read_bytes: 1\nwrite_bytes: 18446744073709551616\n" };
	struct parsed_io io;

	assert_int_equal(parse_io(text, sizeof(text) - 1, &io), 0);
	assert_int_equal(io.read_bytes, 8192);
	assert_true(io.write_bytes == UINT64_MAX);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(parse_io(bad[i], strlen(bad[i]), &io), -EINVAL);
}

static void schedstat_takes_two_numbers(void **state)
{
	static const char *const bad[] = { "", "1", "1 ", "1 2", " 1 2 3", "1  2 3", "-1 2 3",
					   "1 x 3" };
	uint64_t run, delay;

	assert_int_equal(parse_schedstat("12345678901 42 7\n", 17, &run, &delay), 0);
	assert_true(run == 12345678901 && delay == 42);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(parse_schedstat(bad[i], strlen(bad[i]), &run, &delay), -EINVAL);
}

/* ---- real processes ---- */

static int64_t cpu_now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void burn(int64_t ns)
{
	int64_t end = cpu_now(CLOCK_PROCESS_CPUTIME_ID) + ns;

	while (cpu_now(CLOCK_PROCESS_CPUTIME_ID) < end)
		;
}

/* A child that used 60 ms and lives, one that used 90 and was waited for, and 30 of our own. */
static void family_child(int fd)
{
	int fds[2];
	char byte;
	pid_t pid;

	if (pipe(fds))
		_exit(1);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		burn(60 * MS);
		if (write(fds[1], "x", 1) != 1)
			_exit(1);
		child_wait();
	}
	pid = fork();
	if (!pid) {
		burn(90 * MS);
		_exit(0);
	}
	burn(30 * MS);
	if (waitpid(pid, NULL, 0) != pid || read(fds[0], &byte, 1) != 1)
		_exit(1);
	child_ready(fd, 0);
	child_wait();
}

static void sums_a_family(void **state)
{
	pid_t pid = child_start(family_child, NULL);
	uint32_t pids[] = { (uint32_t)pid, 0, (uint32_t)getpid(), UINT32_MAX };
	struct usage one, many[4];

	assert_true(pid > 0);
	assert_int_equal(usage_tree((uint32_t)pid, &one), 0);
	assert_int_equal(one.processes, 2);
	assert_true(one.io_known);
	/* 180 ms; three processes, each in whole ticks of 10 ms, utime and stime apart */
	assert_in_range(one.cpu_ns, 140 * MS, 300 * MS);
	assert_true(one.time_ns <= cpu_now(CLOCK_MONOTONIC) && one.time_ns > 0);

	assert_int_equal(usage_trees(pids, 4, many), 0);
	assert_int_equal(many[0].processes, 2);
	assert_true(many[0].cpu_ns == one.cpu_ns);
	assert_int_equal(many[3].processes, 0);
	/* trees may lie in each other: ours has that one in it */
	assert_int_equal(many[2].processes, 3);
	assert_true(many[2].cpu_ns >= many[0].cpu_ns);
	child_stop(pid);
	assert_int_equal(usage_tree((uint32_t)pid, &one), -ESRCH);
	assert_int_equal(usage_trees(NULL, 0, NULL), 0);
}

/* What a process reads of storage, as its own rusage has it in blocks of 512 bytes. */
static void writing_child(int fd)
{
	static char block[1 << 20];
	char name[] = "gbpf-test-usage-XXXXXX";
	struct rusage self;
	int file = mkstemp(name);

	if (file < 0 || unlink(name) || write(file, block, sizeof(block)) != sizeof(block) ||
	    fsync(file) || getrusage(RUSAGE_SELF, &self))
		_exit(1);
	child_ready(fd, (uint32_t)self.ru_oublock);
	child_wait();
}

static void counts_what_is_written(void **state)
{
	uint32_t blocks = 0;
	pid_t pid = child_start(writing_child, &blocks);
	struct usage u;

	assert_true(pid > 0);
	assert_int_equal(usage_tree((uint32_t)pid, &u), 0);
	assert_true(u.io_known);
	assert_int_equal(u.write_bytes / 512, blocks);
	child_stop(pid);
}

static int without_rights(void *ctx)
{
	struct usage u;

	CHECK(!become_nobody());
	CHECK(usage_tree(*(uint32_t *)ctx, &u) == 0);
	CHECK(u.processes == 2 && !u.io_known && u.cpu_ns >= 140 * MS);
	return 0;
}

static void says_when_io_is_hidden(void **state)
{
	pid_t pid = child_start(family_child, NULL);

	assert_true(pid > 0);
	assert_int_equal(child_run(without_rights, &pid), 0);
	child_stop(pid);
}

static struct usage reading(int64_t s, uint64_t cpu_ms, uint64_t bytes)
{
	return (struct usage){ .time_ns = s * 1000000000, .cpu_ns = cpu_ms * MS, .processes = 2,
			       .io_known = true, .read_bytes = bytes, .write_bytes = bytes };
}

static void rates_are_differences(void **state)
{
	struct usage last = { 0 }, now = reading(10, 5000, 100);
	struct usage_rate r = { -7, -7 };

	assert_false(usage_advance(&last, &now, &r)); /* nothing to compare it with */
	assert_false(usage_advance(&last, &now, &r)); /* no time passed */
	assert_true(r.cpu_pct == -7);
	now = reading(12, 5500, 1100);
	assert_true(usage_advance(&last, &now, &r));
	assert_true(r.cpu_pct > 24.99 && r.cpu_pct < 25.01);
	assert_true(r.io_bytes_per_s == 1000);
	now = reading(13, 6000, 1100);
	now.io_known = false;
	assert_true(usage_advance(&last, &now, &r));
	assert_true(r.io_bytes_per_s == -1);
	now = reading(14, 6000, 9100);
	assert_true(usage_advance(&last, &now, &r)); /* no difference to what was not known */
	assert_true(r.io_bytes_per_s == -1);
	now.processes = 0;
	now.time_ns++;
	assert_false(usage_advance(&last, &now, &r));
	now = reading(15, 7000, 0);
	assert_false(usage_advance(&last, &now, &r)); /* another process by then */
}

/* A worker with an hour of CPU time is missing from one reading, and is back in its parent's. */
static void what_was_missed_once_counts_once(void **state)
{
	struct usage last = reading(10, 3600000, 5000), now;
	struct usage_rate r;

	now = reading(11, 1000, 10);
	assert_true(usage_advance(&last, &now, &r));
	assert_true(r.cpu_pct == 0 && r.io_bytes_per_s == 0);
	now = reading(12, 3600500, 5250);
	assert_true(usage_advance(&last, &now, &r));
	assert_true(r.cpu_pct > 49.9 && r.cpu_pct < 50.1);
	assert_true(r.io_bytes_per_s == 500);
}

static void what_is_gone_for_good_is_forgotten(void **state)
{
	struct usage last = reading(10, 3600000, 5000), now;
	struct usage_rate r;

	for (int s = 11; s <= 12; s++) {
		now = reading(s, (uint64_t)s * 100, (uint64_t)s);
		assert_true(usage_advance(&last, &now, &r));
		assert_true(r.cpu_pct == 0 && r.io_bytes_per_s == 0);
	}
	now = reading(13, 1300, 13);
	assert_true(usage_advance(&last, &now, &r));
	assert_true(r.cpu_pct > 9.9 && r.cpu_pct < 10.1);
	assert_true(r.io_bytes_per_s == 2);
}

static void no_more_than_all_cpus(void **state)
{
	struct usage last = reading(10, 0, 0), now = reading(11, UINT32_MAX, 0);
	struct usage_rate r;

	assert_true(usage_advance(&last, &now, &r));
	assert_true(r.cpu_pct == 100.0 * (double)sysconf(_SC_NPROCESSORS_CONF));
}

static void threads_have_their_own(void **state)
{
	struct thread_usage before, after;
	int64_t start, used;
	uint32_t pid = (uint32_t)getpid();

	assert_int_equal(usage_thread(pid, pid, &before), 0);
	start = cpu_now(CLOCK_THREAD_CPUTIME_ID);
	burn(50 * MS);
	used = cpu_now(CLOCK_THREAD_CPUTIME_ID) - start;
	assert_int_equal(usage_thread(pid, pid, &after), 0);
	/* both count from the last tick or switch on, so they can differ by one */
	assert_in_range(after.run_ns - before.run_ns, used - 25 * MS, used + 25 * MS);
	assert_true(after.delay_ns >= before.delay_ns);
	assert_int_equal(usage_thread(pid, UINT32_MAX, &after), -ESRCH);
	assert_int_equal(usage_thread(UINT32_MAX, 1, &after), -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(io_takes_storage_only),
		cmocka_unit_test(schedstat_takes_two_numbers),
		cmocka_unit_test(sums_a_family),
		cmocka_unit_test(counts_what_is_written),
		cmocka_unit_test(says_when_io_is_hidden),
		cmocka_unit_test(rates_are_differences),
		cmocka_unit_test(what_was_missed_once_counts_once),
		cmocka_unit_test(what_is_gone_for_good_is_forgotten),
		cmocka_unit_test(no_more_than_all_cpus),
		cmocka_unit_test(threads_have_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
