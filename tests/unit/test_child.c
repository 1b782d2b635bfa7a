// SPDX-License-Identifier: BSD-2-Clause
/* The command of `trace -- CMD`: when it runs, as whom, with what, and how it ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "trace/child.h"

static struct invoker myself(void)
{
	return (struct invoker){.uid = getuid(), .gid = getgid()};
}

static void must_start(struct child *c, char *const argv[], const struct invoker *who)
{
	assert_int_equal(child_start(c, argv, who), 0);
	assert_true(c->pid > 0);
	assert_false(c->reaped);
}

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Waits until it has ended, however long that takes. */
static int ended_with(struct child *c)
{
	while (!child_ended(c))
		nap();
	assert_true(c->reaped);
	return child_exit_status(c);
}

static bool is_zombie_or_alive(pid_t pid)
{
	return !kill(pid, 0);
}

static size_t open_descriptors(void)
{
	size_t n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Runs a shell's script to its end, as who; its output into text. */
static int shell(const char *script, const struct invoker *who, char *text, size_t size)
{
	char *argv[] = {"sh", "-c", (char *)script, NULL};
	int saved = fcntl(1, F_DUPFD_CLOEXEC, 3), out[2], status;
	struct child c;
	ssize_t n;

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	fflush(stdout);
	assert_int_equal(dup2(out[1], 1), 1);
	must_start(&c, argv, who);
	assert_int_equal(dup2(saved, 1), 1);
	close(saved);
	close(out[1]);
	assert_int_equal(child_go(&c), 0);
	text[0] = '\0';
	for (size_t have = 0; have + 1 < size; have += (size_t)n) {
		n = read(out[0], text + have, size - 1 - have);
		if (n <= 0)
			break;
		text[have + (size_t)n] = '\0';
	}
	close(out[0]);
	status = ended_with(&c);
	child_free(&c);
	return status;
}

/* What it would do first is to make a file. */
static void held_until_let_go(void **state)
{
	char file[] = "/tmp/gbpf-child-XXXXXX", exe[64], is[256], own[256];
	char *argv[] = {"rm", "-f", file, NULL};
	struct invoker who = myself();
	struct child c;
	ssize_t n, m;

	close(mkstemp(file));
	must_start(&c, argv, &who);
	for (int i = 0; i < 50; i++) {
		nap();
		assert_false(child_ended(&c));
	}
	snprintf(exe, sizeof(exe), "/proc/%d/exe", c.pid);
	n = readlink(exe, is, sizeof(is));
	m = readlink("/proc/self/exe", own, sizeof(own));
	assert_true(n > 0 && n == m && !memcmp(is, own, (size_t)n)); /* not yet the command */
	assert_int_equal(access(file, F_OK), 0);
	assert_int_equal(child_go(&c), 0);
	assert_int_equal(ended_with(&c), 0);
	assert_int_equal(access(file, F_OK), -1);
	child_free(&c);
}

static void its_exit_status(void **state)
{
	struct invoker who = myself();
	char text[16];

	assert_int_equal(shell("exit 0", &who, text, sizeof(text)), 0);
	assert_int_equal(shell("exit 7", &who, text, sizeof(text)), 7);
	assert_int_equal(shell("exit 255", &who, text, sizeof(text)), 255);
	assert_int_equal(shell("kill -KILL $$", &who, text, sizeof(text)), 128 + SIGKILL);
	assert_int_equal(shell("kill -TERM $$", &who, text, sizeof(text)), 128 + SIGTERM);
	assert_int_equal(shell("ulimit -c 0; kill -SEGV $$", &who, text, sizeof(text)),
			 128 + SIGSEGV);
}

/* A stopped command has not ended. */
static void stops_are_no_ends(void **state)
{
	char *argv[] = {"sleep", "1000", NULL};
	struct invoker who = myself();
	struct child c;
	siginfo_t si;

	must_start(&c, argv, &who);
	assert_int_equal(child_go(&c), 0);
	assert_int_equal(kill(c.pid, SIGSTOP), 0);
	assert_int_equal(waitid(P_PID, (id_t)c.pid, &si, WSTOPPED | WNOWAIT), 0);
	assert_false(child_ended(&c));
	assert_int_equal(kill(c.pid, SIGCONT), 0);
	assert_false(child_ended(&c));
	assert_int_equal(kill(c.pid, SIGKILL), 0);
	assert_int_equal(ended_with(&c), 128 + SIGKILL);
	assert_true(child_ended(&c)); /* asked again */
	assert_int_equal(child_exit_status(&c), 128 + SIGKILL);
	child_free(&c);
}

static void its_end_can_be_waited_for(void **state)
{
	char *argv[] = {"true", NULL};
	struct invoker who = myself();
	struct pollfd p = {.events = POLLIN};
	struct child c;

	must_start(&c, argv, &who);
	p.fd = c.pidfd;
	assert_true(c.pidfd >= 0);
	assert_int_equal(poll(&p, 1, 20), 0);
	assert_int_equal(child_go(&c), 0);
	assert_int_equal(poll(&p, 1, -1), 1);
	assert_true(child_ended(&c));
	child_free(&c);
}

static void expect_no_exec(const char *file, int err, int status)
{
	char *argv[] = {(char *)file, NULL};
	struct invoker who = myself();
	size_t before = open_descriptors();
	struct child c;

	must_start(&c, argv, &who);
	assert_int_equal(child_go(&c), err);
	assert_true(c.reaped);
	assert_int_equal(child_exit_status(&c), status);
	assert_false(is_zombie_or_alive(c.pid));
	child_free(&c);
	assert_int_equal(open_descriptors(), before);
}

static void commands_that_cannot_be_run(void **state)
{
	char file[] = "/tmp/gbpf-child-XXXXXX";
	int fd = mkstemp(file);

	expect_no_exec("gbpf-there-is-no-such-command", -ENOENT, 127);
	expect_no_exec("/gbpf/no/such/file", -ENOENT, 127);
	expect_no_exec("/tmp", -EACCES, 126);
	assert_int_equal(fchmod(fd, 0644), 0);
	expect_no_exec(file, -EACCES, 126);
	close(fd);
	unlink(file);
}

static void never_runs_if_given_up(void **state)
{
	char file[] = "/tmp/gbpf-child-XXXXXX";
	char *argv[] = {"rm", "-f", file, NULL};
	size_t before = open_descriptors();
	struct invoker who = myself();
	struct child c;

	close(mkstemp(file));
	must_start(&c, argv, &who);
	child_free(&c);
	assert_true(c.reaped);
	assert_int_equal(child_exit_status(&c), 125);
	assert_false(is_zombie_or_alive(c.pid));
	assert_int_equal(access(file, F_OK), 0);
	child_free(&c); /* twice is once */
	unlink(file);
	assert_int_equal(open_descriptors(), before);
}

/* Freeing one that runs leaves it running, and its end ours to see. */
static void a_running_one_is_left_alone(void **state)
{
	char *argv[] = {"sleep", "1000", NULL};
	struct invoker who = myself();
	struct child c;

	must_start(&c, argv, &who);
	assert_int_equal(child_go(&c), 0);
	child_free(&c);
	assert_false(c.reaped);
	assert_int_equal(waitpid(c.pid, NULL, WNOHANG), 0);
	assert_int_equal(kill(c.pid, SIGKILL), 0);
	assert_int_equal(ended_with(&c), 128 + SIGKILL);
}

/* Ctrl-C goes to the whole group: it may be gone before it is let go. */
static void killed_while_it_waits(void **state)
{
	char *argv[] = {"true", NULL};
	struct invoker who = myself();
	struct child c;
	siginfo_t si;
	void (*old)(int) = signal(SIGPIPE, SIG_IGN); /* as gbpf does */

	must_start(&c, argv, &who);
	assert_int_equal(kill(c.pid, SIGINT), 0);
	assert_int_equal(waitid(P_PID, (id_t)c.pid, &si, WEXITED | WNOWAIT), 0);
	assert_int_equal(child_go(&c), 0);
	assert_int_equal(ended_with(&c), 128 + SIGINT);
	child_free(&c);
	signal(SIGPIPE, old);
}

/* Of ours only what any program would inherit. */
static void no_descriptor_is_passed_on(void **state)
{
	struct invoker who = myself();
	size_t inherited = 0, has = 0;
	char text[4096];

	for (int fd = 0, flags; fd < 1024; fd++) {
		flags = fcntl(fd, F_GETFD);
		inherited += flags >= 0 && !(flags & FD_CLOEXEC);
	}
	assert_true(inherited >= 3);
	assert_int_equal(shell("exec ls /proc/self/fd", &who, text, sizeof(text)), 0);
	for (const char *line = text; *line; line++)
		has += *line == '\n';
	if (has != inherited + 1) /* by which ls reads the directory */
		fail_msg("%zu are inherited, and it has\n%s", inherited, text);
}

static void signals_are_as_for_any_program(void **state)
{
	static const char masks[] = "exec grep -E '^Sig(Blk|Ign):' /proc/self/status";
	void (*pipe_old)(int) = signal(SIGPIPE, SIG_IGN);
	void (*size_old)(int) = signal(SIGXFSZ, SIG_IGN);
	struct invoker who = myself();
	sigset_t all, old;
	unsigned long long blocked = 1, ignored = 1;
	char text[256];
	int status;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	status = shell(masks, &who, text, sizeof(text));
	sigprocmask(SIG_SETMASK, &old, NULL);
	signal(SIGPIPE, pipe_old);
	signal(SIGXFSZ, size_old);
	assert_int_equal(status, 0);
	assert_int_equal(sscanf(text, "SigBlk: %llx SigIgn: %llx", &blocked, &ignored), 2);
	assert_int_equal(blocked, 0);
	assert_int_equal(ignored & (1ULL << (SIGPIPE - 1) | 1ULL << (SIGXFSZ - 1)), 0);
}

static void runs_as_who_called_sudo(void **state)
{
	struct invoker who = {.uid = 65534, .gid = 65534, .name = "nobody"};
	gid_t had[64], groups[] = {0, 4, 12346};
	int count = getgroups(64, had);
	char text[256];

	if (geteuid())
		skip();
	assert_true(count >= 0);
	assert_int_equal(setgroups(3, groups), 0); /* root's own are not to be inherited */
	assert_int_equal(shell("id -u; id -g; id -G; grep -E '^(Uid|CapEff):' /proc/self/status;"
			       "echo $HOME $USER $LOGNAME",
			       &who, text, sizeof(text)), 0);
	assert_string_equal(text, "65534\n65534\n65534\nUid:\t65534\t65534\t65534\t65534\n"
				  "CapEff:\t0000000000000000\n/nonexistent nobody nobody\n");
	/* a number of no name: its only group, and the home it had */
	who = (struct invoker){.uid = 12345, .gid = 12346};
	setenv("HOME", "/somewhere", 1);
	assert_int_equal(shell("id -u; id -g; id -G; echo $HOME", &who, text, sizeof(text)), 0);
	assert_string_equal(text, "12345\n12346\n12346\n/somewhere\n");
	assert_int_equal(setgroups((size_t)count, had), 0);
}

/* A file that root may run and the invoker may not. */
static void rights_are_the_invokers_at_exec(void **state)
{
	struct invoker who = {.uid = 12345, .gid = 12345};
	char dir[] = "/tmp/gbpf-child-XXXXXX", file[64];
	char *argv[] = {file, NULL};
	struct child c;
	int fd;

	if (geteuid())
		skip();
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chmod(dir, 0755), 0);
	snprintf(file, sizeof(file), "%s/run", dir);
	fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	assert_int_equal(write(fd, "#!/bin/true\n", 12), 12);
	close(fd);
	must_start(&c, argv, &who);
	assert_int_equal(child_go(&c), -EACCES);
	child_free(&c);
	unlink(file);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(held_until_let_go),
		cmocka_unit_test(its_exit_status),
		cmocka_unit_test(stops_are_no_ends),
		cmocka_unit_test(its_end_can_be_waited_for),
		cmocka_unit_test(commands_that_cannot_be_run),
		cmocka_unit_test(never_runs_if_given_up),
		cmocka_unit_test(a_running_one_is_left_alone),
		cmocka_unit_test(killed_while_it_waits),
		cmocka_unit_test(no_descriptor_is_passed_on),
		cmocka_unit_test(signals_are_as_for_any_program),
		cmocka_unit_test(runs_as_who_called_sudo),
		cmocka_unit_test(rights_are_the_invokers_at_exec),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
