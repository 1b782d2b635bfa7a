/* SPDX-License-Identifier: BSD-2-Clause */
/* A child that counts tells whether it runs. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include <sys/mman.h>
#include <sys/prctl.h>
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

/* [0] counts when its parent has come back, [1] is what it waits for, [2] that it is there. */
static int vforked(void *arg)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* should a test fail, it is not for ever */
	shared[2] = 1;
	while (!shared[1])
		;
	return 0;
}

/* Who called vfork() is in the kernel until the child ends, and no stop reaches it. */
static pid_t forker_start(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	pid_t pid;

	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal((void *)shared, MAP_FAILED);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		clone(vforked, stack + sizeof(stack), CLONE_VM | CLONE_VFORK, NULL);
		for (;;)
			shared[0]++;
	}
	while (!shared[2])
		usleep(100);
	return pid;
}

static bool is_traced(pid_t pid)
{
	char path[64], line[128];
	unsigned tracer = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "TracerPid: %u", &tracer) == 1)
			break;
	fclose(file);
	return tracer;
}

static void test_who_does_not_stop_is_let_go_when_it_does(void **state)
{
	pid_t pid = forker_start();

	(void)state;
	assert_int_equal(stop_request((uint32_t)pid, true), 0);
	assert_int_equal(stop_wait((uint32_t)pid, true), -ETIMEDOUT);
	assert_false(stop_late((uint32_t)pid, true));
	shared[1] = 1;
	while (!stop_late((uint32_t)pid, true))
		usleep(100);
	assert_runs();
	assert_false(is_traced(pid));
	end(pid);
}

static void *stop_in_vain(void *arg)
{
	uint32_t pid = *(pid_t *)arg;

	return !stop_request(pid, true) && stop_wait(pid, true) == -ETIMEDOUT ? arg : NULL;
}

static void test_who_does_not_stop_outlives_the_thread_that_asked(void **state)
{
	pid_t pid = forker_start();
	pthread_t thread;
	void *timed_out;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, stop_in_vain, &pid), 0);
	pthread_join(thread, &timed_out);
	assert_non_null(timed_out);
	while (is_traced(pid)) /* joined, it is not quite gone */
		usleep(100);
	shared[1] = 1;
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
		cmocka_unit_test(test_who_does_not_stop_is_let_go_when_it_does),
		cmocka_unit_test(test_who_does_not_stop_outlives_the_thread_that_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
