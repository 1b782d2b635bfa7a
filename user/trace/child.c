/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace/child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* sudo made us root: the command is to run as who called it, with that user's home. */
static int become(const struct invoker *who)
{
	const struct passwd *pw;

	if (geteuid() || who->uid == geteuid())
		return 0;
	pw = getpwuid(who->uid);
	if (pw ? initgroups(pw->pw_name, who->gid) : setgroups(1, &who->gid))
		return -errno;
	if (setresgid(who->gid, who->gid, who->gid) || setresuid(who->uid, who->uid, who->uid))
		return -errno;
	if (pw) {
		setenv("HOME", pw->pw_dir, 1);
		setenv("USER", pw->pw_name, 1);
		setenv("LOGNAME", pw->pw_name, 1);
	}
	return 0;
}

static void in_child(int go, int failed, char *const argv[], const struct invoker *who)
{
	sigset_t none;
	char byte;
	int err;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	if (read(go, &byte, 1) != 1)
		_exit(125); /* gbpf gave up */
	err = become(who);
	if (!err) {
		execvp(argv[0], argv);
		err = -errno;
	}
	if (write(failed, &err, sizeof(err)) != sizeof(err))
		_exit(125);
	_exit(err == -ENOENT ? 127 : 126);
}

int child_start(struct child *c, char *const argv[], const struct invoker *who)
{
	int go[2], failed[2];

	memset(c, 0, sizeof(*c));
	c->go = c->failed = c->pidfd = -1;
	if (pipe2(go, O_CLOEXEC))
		return -errno;
	if (pipe2(failed, O_CLOEXEC)) {
		close(go[0]);
		close(go[1]);
		return -errno;
	}
	c->go = go[1];
	c->failed = failed[0];
	c->pid = fork();
	if (!c->pid) {
		close(go[1]);
		in_child(go[0], failed[1], argv, who);
	}
	close(go[0]);
	close(failed[1]);
	if (c->pid < 0) {
		child_free(c);
		return -EAGAIN;
	}
	c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	return 0;
}

int child_go(struct child *c)
{
	int err = 0;
	ssize_t n;

	n = write(c->go, "", 1);
	close(c->go);
	c->go = -1;
	if (n != 1) { /* a signal ended it while it waited, as it would have the command */
		while (!child_ended(c))
			usleep(1000);
		return 0;
	}
	do
		n = read(c->failed, &err, sizeof(err));
	while (n < 0 && errno == EINTR);
	close(c->failed);
	c->failed = -1;
	if (n != sizeof(err))
		return 0; /* closed by the exec that succeeded */
	while (!child_ended(c))
		usleep(1000);
	return err;
}

bool child_ended(struct child *c)
{
	siginfo_t si = {0};

	if (c->reaped || c->pid <= 0)
		return true;
	/* stops are others' business (hold.h): only look, and take nothing but its end */
	if (waitid(P_PID, (id_t)c->pid, &si, WEXITED | WNOHANG | WNOWAIT) || !si.si_pid ||
	    (si.si_code != CLD_EXITED && si.si_code != CLD_KILLED && si.si_code != CLD_DUMPED))
		return false;
	c->reaped = waitpid(c->pid, &c->status, WNOHANG) == c->pid;
	return c->reaped;
}

int child_exit_status(const struct child *c)
{
	if (WIFSIGNALED(c->status))
		return 128 + WTERMSIG(c->status);
	return WEXITSTATUS(c->status);
}

void child_free(struct child *c)
{
	bool waiting = c->go >= 0;

	if (c->go >= 0)
		close(c->go); /* it reads the end and leaves */
	if (c->failed >= 0)
		close(c->failed);
	if (c->pidfd >= 0)
		close(c->pidfd);
	c->go = c->failed = c->pidfd = -1;
	if (waiting && c->pid > 0 && !c->reaped) {
		while (waitpid(c->pid, &c->status, 0) < 0 && errno == EINTR)
			;
		c->reaped = true;
	}
}
