/* SPDX-License-Identifier: BSD-2-Clause */
/* A child that counts tells whether it runs. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probe/stop.h"

static volatile uint64_t *shared; /* [0] the child's count, [1] signals it took */

static void on_signal(int number)
{
	(void)number;
	shared[1]++;
}

static pid_t counter_start(void)
{
	pid_t pid;

	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal((void *)shared, MAP_FAILED);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		signal(SIGUSR1, on_signal);
		for (;;)
			shared[0]++;
	}
	while (!shared[0])
		usleep(100);
	return pid;
}

static void end(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	munmap((void *)shared, 4096);
}

/* Waits for as long as it takes to see it count. */
static void assert_runs(void)
{
	uint64_t before = shared[0];

	while (shared[0] == before)
		usleep(100);
}

static void test_stops_and_goes_on(void **state)
{
	pid_t pid = counter_start();
	uint64_t before;

	(void)state;
	assert_int_equal(stop_request((uint32_t)pid, true), 0);
	assert_int_equal(stop_wait((uint32_t)pid, true), 0);
	before = shared[0];
	usleep(20000);
	assert_int_equal(shared[0], before);
	stop_release((uint32_t)pid, true);
	assert_runs();
	end(pid);
}

static void test_signal_meanwhile_is_not_lost(void **state)
{
	pid_t pid = counter_start();

	(void)state;
	assert_int_equal(stop_request((uint32_t)pid, true), 0);
	assert_int_equal(stop_wait((uint32_t)pid, true), 0);
	kill(pid, SIGUSR1);
	stop_release((uint32_t)pid, true);
	while (!shared[1])
		usleep(100);
	assert_runs();
	assert_int_equal(shared[1], 1);
	end(pid);
}

static void test_own_child_that_ends_stays_to_be_waited_for(void **state)
{
	pid_t pid = counter_start();

	(void)state;
	assert_int_equal(stop_request((uint32_t)pid, true), 0);
	kill(pid, SIGKILL);
	/* it may have stopped before it was killed */
	if (!stop_wait((uint32_t)pid, true))
		stop_release((uint32_t)pid, true);
	end(pid);
}

static void test_nobody(void **state)
{
	pid_t pid = fork();

	(void)state;
	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(stop_request((uint32_t)pid, false), -ESRCH);
}

static void test_who_has_a_tracer_is_left_alone(void **state)
{
	pid_t pid = counter_start(), other;
	int status;

	(void)state;
	assert_int_equal(stop_request((uint32_t)pid, true), 0);
	assert_int_equal(stop_wait((uint32_t)pid, true), 0);
	other = fork();
	if (!other)
		_exit(stop_request((uint32_t)pid, false) == -EPERM ? 0 : 1);
	assert_int_equal(waitpid(other, &status, 0), other);
	assert_int_equal(status, 0);
	stop_release((uint32_t)pid, true);
	assert_runs();
	end(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stops_and_goes_on),
		cmocka_unit_test(test_signal_meanwhile_is_not_lost),
		cmocka_unit_test(test_own_child_that_ends_stays_to_be_waited_for),
		cmocka_unit_test(test_nobody),
		cmocka_unit_test(test_who_has_a_tracer_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
