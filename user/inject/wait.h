/* SPDX-License-Identifier: BSD-2-Clause */
/* The stops of a thread that this thread of ours traces. */
#ifndef GBPF_INJECT_WAIT_H
#define GBPF_INJECT_WAIT_H

#include <stdint.h>

enum stop_kind {
	STOP_TRAP = 1, /* as asked for */
	STOP_GROUP,    /* the whole process is stopped */
	STOP_SYSCALL,
	STOP_SIGNAL, /* about to be delivered */
	STOP_FAULT,  /* likewise, raised by what the thread just did */
};

struct stop {
	enum stop_kind kind;
	int signal;
};

/* 1: it has stopped; 0: not; -ESRCH: it has ended. */
int stop_peek(uint32_t tid, struct stop *out);
/* Until it stops; -ETIMEDOUT (until: CLOCK_MONOTONIC, ns), -ESRCH. */
int stop_await(uint32_t tid, int64_t until, struct stop *out);
/*
 * Goes on after a stop that is none of our making: signals are delivered, a group
 * stop is for afterwards. request: PTRACE_CONT or PTRACE_SYSCALL.
 */
int stop_pass(uint32_t tid, int request, const struct stop *s);
/* Runs it to the next beginning or end of a system call; -EFAULT: it crashed. */
int stop_at_syscall(uint32_t tid, int64_t until);

#endif
