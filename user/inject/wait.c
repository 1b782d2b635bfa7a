/* SPDX-License-Identifier: BSD-2-Clause */
#include "inject/wait.h"

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>

#include "inject/private.h"

#define SPIN_NS 200000 /* a stop takes microseconds; sleeping takes longer */
#define PAUSE_NS 20000
#define TRAP_SYSCALL (SIGTRAP | 0x80) /* PTRACE_O_TRACESYSGOOD */
#define EVENT_STOP 128                /* PTRACE_EVENT_STOP */

static void classify(int status, struct stop *out)
{
	*out = (struct stop){STOP_SIGNAL, status & 0xff};
	if (status == TRAP_SYSCALL)
		out->kind = STOP_SYSCALL;
	else if (status >> 8 == EVENT_STOP)
		out->kind = out->signal == SIGTRAP ? STOP_TRAP : STOP_GROUP;
}

int stop_peek(uint32_t tid, struct stop *out)
{
	siginfo_t si;

	do {
		si.si_pid = 0;
		if (!waitid(P_PID, tid, &si, WSTOPPED | WEXITED | WNOWAIT | WNOHANG | __WALL))
			break;
		if (errno != EINTR)
			return -ESRCH;
	} while (1);
	if (!si.si_pid)
		return 0;
	/* Its end is for its parent to see; we stop tracing by ending. */
	if (si.si_code != CLD_TRAPPED && si.si_code != CLD_STOPPED)
		return -ESRCH;
	si.si_pid = 0;
	if (waitid(P_PID, tid, &si, WSTOPPED | WNOHANG | __WALL) || !si.si_pid)
		return 0;
	classify(si.si_status, out);
	if (out->kind == STOP_SIGNAL && !ptrace(PTRACE_GETSIGINFO, (pid_t)tid, NULL, &si) &&
	    si.si_code > 0 &&
	    (out->signal == SIGSEGV || out->signal == SIGBUS || out->signal == SIGILL ||
	     out->signal == SIGFPE || out->signal == SIGSYS))
		out->kind = STOP_FAULT;
	return 1;
}

int stop_await(uint32_t tid, int64_t until, struct stop *out)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	int64_t begin = inject_now(), now;
	int ret;

	while (!(ret = stop_peek(tid, out))) {
		now = inject_now();
		if (now >= until)
			return -ETIMEDOUT;
		if (now - begin > SPIN_NS)
			nanosleep(&pause, NULL);
	}
	return ret < 0 ? ret : 0;
}

int stop_pass(uint32_t tid, int request, const struct stop *s)
{
	long signal = s->kind == STOP_SIGNAL ? s->signal : 0;

	return ptrace((enum __ptrace_request)request, (pid_t)tid, NULL, signal) ? -errno : 0;
}

int stop_at_syscall(uint32_t tid, int64_t until)
{
	struct stop s = {0};
	int err = stop_pass(tid, PTRACE_SYSCALL, &s);

	while (!err && !(err = stop_await(tid, until, &s))) {
		if (s.kind == STOP_SYSCALL)
			return 0;
		if (s.kind == STOP_FAULT)
			return -EFAULT;
		err = stop_pass(tid, PTRACE_SYSCALL, &s);
	}
	return err;
}
