// SPDX-License-Identifier: BSD-2-Clause
/* Processes that are born, execute and end, as the kernel tells of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <time.h>

#include "children.h"
#include "rig.h"

#define MANY 40

static struct rig *rig_of_tasks(void)
{
	struct rig *g = rig_on(RUNG_AUTO, "rig_call", "cuInit");

	assert_int_equal(probes_attach_tasks(g->p), 0);
	probes_switches(g->p)->follow = 1;
	return g;
}

static const struct gbpf_process *find(const struct rig *g, uint32_t pid, uint32_t event)
{
	const struct gbpf_process *found = NULL;

	for (size_t i = 0; i < g->processes_count; i++) {
		if (g->processes[i].hdr.pid != pid || g->processes[i].event != event)
			continue;
		assert_null(found); /* once */
		found = &g->processes[i];
	}
	return found;
}

static int64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static pid_t run_and_reap(int (*body)(void *), void *ctx, int *status)
{
	pid_t pid = fork();

	if (!pid)
		_exit(body(ctx));
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, status, 0), pid);
	return pid;
}

static int exec_true(void *ctx)
{
	execlp("true", "true", NULL);
	return 99;
}

static int exit_with(void *ctx)
{
	return *(int *)ctx;
}

static int die_by_signal(void *ctx)
{
	kill(getpid(), *(int *)ctx);
	return 0;
}

static void fork_exec_and_exit(void **state)
{
	struct rig *g = rig_of_tasks();
	int64_t begin = clock_ns(CLOCK_MONOTONIC), boot = clock_ns(CLOCK_BOOTTIME);
	const struct gbpf_process *born, *became, *ended;
	int status;
	uint32_t pid;

	assert_int_equal(prctl(PR_SET_NAME, "before exec"), 0);
	pid = (uint32_t)run_and_reap(exec_true, NULL, &status);
	assert_int_equal(status, 0);
	rig_read(g);
	assert_int_equal(g->processes_count, 3);
	born = find(g, pid, GBPF_PROCESS_FORK);
	became = find(g, pid, GBPF_PROCESS_EXEC);
	ended = find(g, pid, GBPF_PROCESS_EXIT);
	assert_true(born && became && ended);
	assert_string_equal(born->comm, "before exec");
	assert_string_equal(became->comm, "true");
	assert_string_equal(ended->comm, "true");
	assert_int_equal(ended->exit_code, 0);
	for (size_t i = 0; i < 3; i++) {
		const struct gbpf_process *p = &g->processes[i];

		assert_int_equal(p->parent, getpid());
		assert_int_equal(p->hdr.tid, pid);
		assert_int_equal(p->start, born->start);
		assert_in_range(p->start, boot, clock_ns(CLOCK_BOOTTIME));
	}
	assert_true((int64_t)born->hdr.ts >= begin && born->hdr.ts < became->hdr.ts);
	assert_true(became->hdr.ts < ended->hdr.ts);
	rig_free(g);
}

static void how_it_ended(void **state)
{
	static int codes[] = {0, 1, 7, 255}, signals[] = {SIGKILL, SIGTERM};
	struct rig *g = rig_of_tasks();
	const struct gbpf_process *ended;
	int status;

	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
		pid_t pid = run_and_reap(exit_with, &codes[i], &status);

		rig_read(g);
		ended = find(g, (uint32_t)pid, GBPF_PROCESS_EXIT);
		assert_non_null(ended);
		assert_int_equal(ended->exit_code, codes[i] << 8);
		assert_int_equal(ended->exit_code, status);
	}
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
		pid_t pid = run_and_reap(die_by_signal, &signals[i], &status);

		rig_read(g);
		ended = find(g, (uint32_t)pid, GBPF_PROCESS_EXIT);
		assert_non_null(ended);
		assert_int_equal(ended->exit_code & 0x7f, signals[i]);
	}
	rig_free(g);
}

/* Wanted from its first instruction on, and no more once its number is free. */
static int calls_at_once(void *ctx)
{
	rig_fn volatile f = rig_call;

	f(NULL, 0, 3, 4, 5, 6, 7, 8, 9);
	return 0;
}

static void children_are_wanted_while_they_live(void **state)
{
	struct rig *g = rig_of_tasks();
	uint32_t pids[MANY];

	for (size_t i = 0; i < MANY / 2; i++) {
		int status;

		pids[i] = (uint32_t)run_and_reap(calls_at_once, NULL, &status);
		assert_false(probes_wanted(g->p, pids[i]));
	}
	assert_true(probes_wanted(g->p, (uint32_t)getpid()));
	rig_read(g);
	assert_int_equal(g->count, MANY);
	for (size_t i = 0; i < MANY / 2; i++) {
		assert_non_null(find(g, pids[i], GBPF_PROCESS_FORK));
		assert_non_null(find(g, pids[i], GBPF_PROCESS_EXIT));
		assert_int_equal(g->events[2 * i].pid, pids[i]);
		assert_int_equal(g->events[2 * i + 1].pid, pids[i]);
	}
	rig_free(g);
}

static int have_a_child(void *ctx)
{
	return child_run(calls_at_once, NULL);
}

static void grandchildren_have_their_own_parents(void **state)
{
	struct rig *g = rig_of_tasks();
	size_t born = 0;
	int status;
	uint32_t pid = (uint32_t)run_and_reap(have_a_child, NULL, &status);

	assert_int_equal(status, 0);
	rig_read(g);
	assert_int_equal(g->count, 2);
	for (size_t i = 0; i < g->processes_count; i++) {
		const struct gbpf_process *p = &g->processes[i];

		if (p->event != GBPF_PROCESS_FORK)
			continue;
		born++;
		assert_int_equal(p->parent, p->hdr.pid == pid ? (uint32_t)getpid() : pid);
	}
	assert_int_equal(born, 2);
	rig_free(g);
}

static void nobody_is_followed_unless_asked(void **state)
{
	struct rig *g = rig_of_tasks();
	int status;

	probes_switches(g->p)->follow = 0;
	run_and_reap(calls_at_once, NULL, &status);
	rig_read(g);
	assert_int_equal(g->count, 0);
	assert_int_equal(g->processes_count, 0);
	/* not a child of who is not wanted */
	probes_switches(g->p)->follow = 1;
	probes_want(g->p, (uint32_t)getpid(), false);
	run_and_reap(exec_true, NULL, &status);
	rig_read(g);
	assert_int_equal(g->processes_count, 0);
	rig_free(g);
}

static void *do_nothing(void *ctx)
{
	return ctx;
}

static int threads_come_and_go(void *ctx)
{
	pthread_t t;

	for (int i = 0; i < 5; i++)
		if (pthread_create(&t, NULL, do_nothing, NULL) || pthread_join(t, NULL))
			return 1;
	return 0;
}

static void threads_are_no_processes(void **state)
{
	struct rig *g = rig_of_tasks();
	uint32_t pid;
	int status;

	assert_int_equal(threads_come_and_go(NULL), 0);
	rig_read(g);
	assert_int_equal(g->processes_count, 0);
	pid = (uint32_t)run_and_reap(threads_come_and_go, NULL, &status);
	assert_int_equal(status, 0);
	rig_read(g);
	assert_int_equal(g->processes_count, 2);
	assert_non_null(find(g, pid, GBPF_PROCESS_FORK));
	assert_non_null(find(g, pid, GBPF_PROCESS_EXIT));
	rig_free(g);
}

static void attached_once(void **state)
{
	struct rig *g = rig_of_tasks();
	size_t before = rig_descriptors();
	int status;

	assert_int_equal(probes_attach_tasks(g->p), 0);
	assert_int_equal(rig_descriptors(), before);
	run_and_reap(exec_true, NULL, &status);
	rig_read(g);
	assert_int_equal(g->processes_count, 3);
	rig_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fork_exec_and_exit),
		cmocka_unit_test(how_it_ended),
		cmocka_unit_test(children_are_wanted_while_they_live),
		cmocka_unit_test(grandchildren_have_their_own_parents),
		cmocka_unit_test(nobody_is_followed_unless_asked),
		cmocka_unit_test(threads_are_no_processes),
		cmocka_unit_test(attached_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
