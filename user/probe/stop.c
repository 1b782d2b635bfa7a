/* SPDX-License-Identifier: BSD-2-Clause */
#include "probe/stop.h"

#include <errno.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>

#define POLL_NS 20000 /* a stop takes about as long */

/* A thread that ended while we had it waits for us to know. */
static void bury(uint32_t tid, bool own)
{
	siginfo_t si;

	if (!own)
		waitid(P_PID, tid, &si, WEXITED | WNOHANG | __WALL);
}

int stop_request(uint32_t tid, bool own)
{
	if (ptrace(PTRACE_SEIZE, (pid_t)tid, NULL, NULL))
		return -errno;
	if (!ptrace(PTRACE_INTERRUPT, (pid_t)tid, NULL, NULL))
		return 0;
	stop_wait(tid, own); /* it is ending */
	return -ESRCH;
}

int stop_wait(uint32_t tid, bool own)
{
	struct timespec pause = {.tv_nsec = POLL_NS};
	siginfo_t si;

	for (;;) {
		si.si_pid = 0;
		if (waitid(P_PID, tid, &si,
			   WSTOPPED | WEXITED | WNOWAIT | WNOHANG | __WALL)) {
			if (errno != EINTR)
				return -ESRCH;
			continue;
		}
		if (si.si_pid && (si.si_code == CLD_TRAPPED || si.si_code == CLD_STOPPED))
			return 0;
		if (si.si_pid) {
			bury(tid, own);
			return -ESRCH;
		}
		nanosleep(&pause, NULL);
	}
}

/* The signal whose delivery is the stop, if it is: detaching hands it on. */
static long signal_stopped_for(uint32_t tid)
{
	siginfo_t si = {0};

	if (waitid(P_PID, tid, &si, WSTOPPED | WNOHANG | __WALL) || !si.si_pid)
		return 0;
	return si.si_status >> 8 ? 0 : si.si_status; /* above: PTRACE_EVENT_STOP */
}

void stop_release(uint32_t tid, bool own)
{
	long signal = signal_stopped_for(tid);

	if (ptrace(PTRACE_DETACH, (pid_t)tid, NULL, signal) && errno == ESRCH)
		bury(tid, own);
}
