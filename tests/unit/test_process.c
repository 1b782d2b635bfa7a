// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include "children.h"
#include "target/target.h"

static int64_t boot_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void plain_child(int fd)
{
	child_ready(fd, 0);
	child_wait();
}

static void reads_a_child(void **state)
{
	int64_t tick = 1000000000 / sysconf(_SC_CLK_TCK), before = boot_ns();
	pid_t pid = child_start(plain_child, NULL);
	int64_t after = boot_ns();
	struct process_info info;
	char exe[512] = "";

	assert_true(pid > 0);
	assert_int_equal(process_read((uint32_t)pid, &info), 0);
	assert_int_equal(info.pid, pid);
	assert_int_equal(info.ppid, getpid());
	assert_int_equal(info.uid, getuid());
	assert_int_equal(info.ns_pid, pid);
	assert_true(info.start >= before - tick && info.start <= after);
	assert_true(process_start((uint32_t)pid) == info.start);
	assert_false(info.seccomp);
	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	assert_string_equal(info.exe, exe);
	child_stop(pid);
	assert_int_equal(process_read((uint32_t)pid, &info), -ESRCH);
	assert_int_equal(process_start((uint32_t)pid), -ESRCH);
}

static void nasty_child(int fd)
{
	static char long_arg[4000];

	memset(long_arg, 'x', sizeof(long_arg) - 1);
	if (setuid(4321))
		_exit(1);
	dup2(fd, 9);
	/* The shell tells that it runs with the four bytes that are waited for. */
	execl("/bin/sh", "a\nb) R 1", "-c", "printf 1234 >&9; kill -STOP $$", "c\033[2J",
	      long_arg, NULL);
}

static void keeps_raw_bytes_of_arguments(void **state)
{
	pid_t pid = child_start(nasty_child, NULL);
	struct process_info info;

	assert_true(pid > 0);
	assert_int_equal(process_read((uint32_t)pid, &info), 0);
	assert_int_equal(info.uid, 4321);
	assert_int_equal(strlen(info.cmdline), sizeof(info.cmdline) - 1);
	assert_memory_equal(info.cmdline, "a\nb) R 1 -c printf", 18);
	assert_non_null(strstr(info.cmdline, "$$ c\033[2J xxx"));
	child_stop(pid);
}

static void named_child(int fd)
{
	prctl(PR_SET_NAME, ") R 9\n(\xff x");
	child_ready(fd, 0);
	child_wait();
}

static void takes_any_comm(void **state)
{
	pid_t pid = child_start(named_child, NULL);
	struct process_info info;
	char comm[16];

	assert_true(pid > 0);
	assert_int_equal(process_read((uint32_t)pid, &info), 0);
	assert_string_equal(info.comm, ") R 9\n(\xff x");
	assert_int_equal(info.ppid, getpid());
	process_thread_comm((uint32_t)pid, (uint32_t)pid, comm);
	assert_string_equal(comm, ") R 9\n(\xff x");
	child_stop(pid);
	process_thread_comm((uint32_t)pid, (uint32_t)pid, comm);
	assert_string_equal(comm, "");
}

static void filtered_child(int fd)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { .len = 1, .filter = &allow };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(1);
	child_ready(fd, 0);
	child_wait();
}

static void sees_seccomp_filters(void **state)
{
	pid_t pid = child_start(filtered_child, NULL);
	struct process_info info;

	assert_true(pid > 0);
	assert_int_equal(process_read((uint32_t)pid, &info), 0);
	assert_true(info.seccomp);
	child_stop(pid);
}

static void refuses_numbers_of_nothing(void **state)
{
	static const uint32_t numbers[] = { 0, UINT32_MAX, INT32_MAX, 0x80000001u };
	struct process_info info;
	uint32_t *pids;
	size_t count;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		assert_int_equal(process_read(numbers[i], &info), -ESRCH);
		assert_int_equal(process_start(numbers[i]), -ESRCH);
		assert_int_equal(process_tree(numbers[i], &pids, &count), -ESRCH);
		assert_null(pids);
		assert_int_equal(process_thread_ns_tid(numbers[i], numbers[i]), 0);
	}
}

static void zombies_are_gone(void **state)
{
	pid_t pid = child_start(plain_child, NULL);
	struct process_info info;
	siginfo_t si;

	assert_true(pid > 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT), 0);
	assert_int_equal(process_read((uint32_t)pid, &info), -ESRCH);
	child_stop(pid);
}

static void *surviving_thread(void *arg)
{
	prctl(PR_SET_NAME, "worker (\n) 1");
	pthread_join(*(pthread_t *)arg, NULL);
	child_ready(9, (uint32_t)gettid());
	child_wait();
	return NULL;
}

static void leaderless_child(int fd)
{
	static pthread_t main_thread;
	pthread_t thread;

	dup2(fd, 9);
	main_thread = pthread_self();
	pthread_create(&thread, NULL, surviving_thread, &main_thread);
	pthread_exit(NULL);
}

static int count_threads(uint32_t tid, void *ctx)
{
	++*(int *)ctx;
	return 0;
}

static void threads_outlive_their_leader(void **state)
{
	uint32_t tid = 0;
	pid_t pid = child_start(leaderless_child, &tid);
	struct process_info info;
	char comm[16];
	int threads = 0;

	assert_true(pid > 0);
	assert_int_not_equal(tid, pid);
	assert_int_equal(process_read((uint32_t)pid, &info), 0);
	/* The thread's own number is not a process's. */
	assert_int_equal(process_read(tid, &info), -ESRCH);
	process_thread_comm((uint32_t)pid, tid, comm);
	assert_string_equal(comm, "worker (\n) 1");
	assert_int_equal(process_thread_ns_tid((uint32_t)pid, tid), tid);
	assert_int_equal(process_each_thread((uint32_t)pid, count_threads, &threads), 0);
	assert_int_equal(threads, 2);
	child_stop(pid);
	assert_int_equal(process_each_thread((uint32_t)pid, count_threads, &threads), -ESRCH);
}

/* Children that die while they are read: nothing but "it is there" and "it is gone". */
static void survives_deaths_while_reading(void **state)
{
	unsigned alive = 0, gone = 0;

	for (int i = 0; i < 300; i++) {
		pid_t pid = fork();
		struct process_info info;
		int ret;

		if (!pid) {
			for (volatile int spin = i * 300; spin > 0; spin--)
				;
			_exit(0);
		}
		assert_true(pid > 0);
		do {
			ret = process_read((uint32_t)pid, &info);
			if (!ret) {
				alive++;
				assert_int_equal(info.pid, pid);
				assert_int_equal(info.ppid, getpid());
			}
		} while (!ret);
		assert_int_equal(ret, -ESRCH);
		gone++;
		waitpid(pid, NULL, 0);
	}
	assert_int_equal(gone, 300);
	assert_true(alive > 0);
}

static uint32_t unused_number(void)
{
	uint32_t n = 31999;

	while (!kill((pid_t)n, 0) || errno != ESRCH)
		n--;
	return n;
}

/* Two levels: number 1 of a new pid namespace, and its child with a number of our choice. */
static void namespaced_child(int fd)
{
	uint64_t tid = unused_number();
	struct {
		uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls,
			set_tid, set_tid_size, cgroup;
	} args = { .exit_signal = SIGCHLD, .set_tid = (uintptr_t)&tid, .set_tid_size = 1 };

	if (unshare(CLONE_NEWPID))
		_exit(1);
	if (fork())
		child_wait();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (syscall(SYS_clone3, &args, sizeof(args)) < 0)
		_exit(1);
	if (getpid() != 1)
		child_ready(fd, (uint32_t)getpid());
	child_wait();
}

static void resolves_a_container_s_numbers(void **state)
{
	uint32_t number = 0, out[4] = { 0 }, *pids;
	pid_t pid = child_start(namespaced_child, &number);
	struct process_info info;
	size_t count;

	assert_true(pid > 0);
	assert_int_equal(process_tree((uint32_t)pid, &pids, &count), 0);
	assert_int_equal(count, 3);
	assert_int_equal(pids[0], pid);
	assert_int_equal(process_read(pids[1], &info), 0);
	assert_int_equal(info.ns_pid, 1);
	assert_int_equal(process_read(pids[2], &info), 0);
	assert_int_equal(info.ns_pid, number);
	assert_int_equal(process_thread_ns_tid(pids[2], pids[2]), number);

	assert_int_equal(process_resolve(number, out, 4), 1);
	assert_int_equal(out[0], pids[2]);
	out[0] = 0;
	assert_int_equal(process_resolve(number, out, 0), 1);
	assert_int_equal(out[0], 0);
	/* Our own number is the host's, whatever the containers have. */
	assert_int_equal(process_resolve((uint32_t)getpid(), out, 4), 1);
	assert_int_equal(out[0], getpid());
	free(pids);
	child_stop(pid);
	while (process_resolve(number, out, 4))
		sched_yield();
}

static int not_in_host_namespace(void *ctx)
{
	CHECK(process_host_namespace());
	CHECK(!unshare(CLONE_NEWPID));

	pid_t pid = fork();
	int status;

	if (!pid) {
		/* /proc still is the host's: only its own mount shows the namespace. */
		_exit(unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		      mount("proc", "/proc", "proc", 0, NULL) || process_host_namespace());
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	return 0;
}

static void knows_the_host_namespace(void **state)
{
	assert_int_equal(child_run(not_in_host_namespace, NULL), 0);
}

static int with_hidepid(void *ctx)
{
	struct process_info info;

	CHECK(!unshare(CLONE_NEWNS) && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL));
	CHECK(!mount("proc", "/proc", "proc", 0, ctx));
	CHECK(process_read((uint32_t)getppid(), &info) == 0);
	CHECK(!become_nobody());
	CHECK(process_read((uint32_t)getppid(), &info) == -EACCES);
	CHECK(process_start((uint32_t)getppid()) == -EACCES);
	CHECK(process_read((uint32_t)getpid(), &info) == 0);
	CHECK(info.uid == 65534);
	CHECK(process_read(INT32_MAX, &info) == -ESRCH);
	return 0;
}

static void says_when_proc_hides(void **state)
{
	assert_int_equal(child_run(with_hidepid, "hidepid=1"), 0);
	assert_int_equal(child_run(with_hidepid, "hidepid=2"), 0);
}

static int without_rights(void *ctx)
{
	struct process_info info;

	CHECK(!become_nobody());
	CHECK(process_read(1, &info) == 0);
	CHECK(info.uid == 0);
	CHECK(info.exe[0] == '\0');
	CHECK(info.start > 0);
	return 0;
}

static void reads_others_without_rights(void **state)
{
	assert_int_equal(child_run(without_rights, NULL), 0);
}

static int stop_at(uint32_t pid, void *ctx)
{
	return pid == (uint32_t)getpid() ? 77 : 0;
}

static void each_stops_when_told(void **state)
{
	assert_int_equal(process_each(stop_at, NULL), 77);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_child),
		cmocka_unit_test(keeps_raw_bytes_of_arguments),
		cmocka_unit_test(takes_any_comm),
		cmocka_unit_test(sees_seccomp_filters),
		cmocka_unit_test(refuses_numbers_of_nothing),
		cmocka_unit_test(zombies_are_gone),
		cmocka_unit_test(threads_outlive_their_leader),
		cmocka_unit_test(survives_deaths_while_reading),
		cmocka_unit_test(resolves_a_container_s_numbers),
		cmocka_unit_test(knows_the_host_namespace),
		cmocka_unit_test(says_when_proc_hides),
		cmocka_unit_test(reads_others_without_rights),
		cmocka_unit_test(each_stops_when_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
