/* SPDX-License-Identifier: BSD-2-Clause */
#include "probe/stop.h"

#include <errno.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>

#define POLL_NS 20000 /* a stop takes about as long */
#define LIMIT_NS 1000000000ULL

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

/* 0: it has stopped; -EAGAIN: not yet; -ESRCH: it has ended. */
static int stop_look(uint32_t tid, bool own)
{
	siginfo_t si;

	do {
		si.si_pid = 0;
		if (!waitid(P_PID, tid, &si, WSTOPPED | WEXITED | WNOWAIT | WNOHANG | __WALL))
			break;
		if (errno != EINTR)
			return -ESRCH;
	} while (true);
	if (!si.si_pid)
		return -EAGAIN;
	if (si.si_code == CLD_TRAPPED || si.si_code == CLD_STOPPED)
		return 0;
	bury(tid, own);
	return -ESRCH;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

int stop_wait(uint32_t tid, bool own)
{
	const struct timespec pause = {.tv_nsec = POLL_NS};
	uint64_t until = now_ns() + LIMIT_NS;
	int err;

	while ((err = stop_look(tid, own)) == -EAGAIN) {
		if (now_ns() >= until)
			return -ETIMEDOUT;
		nanosleep(&pause, NULL);
	}
	return err;
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

bool stop_late(uint32_t tid, bool own)
{
	int err = stop_look(tid, own);

	if (!err)
		stop_release(tid, own);
	return err != -EAGAIN;
}
