/* SPDX-License-Identifier: BSD-2-Clause */
/* The command of `trace -- CMD`: started, held until the probes are there, let go. */
#ifndef GBPF_TRACE_CHILD_H
#define GBPF_TRACE_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "trace/output.h"

struct child {
	pid_t pid;
	int go;	    /* write end: a byte lets it run */
	int failed; /* read end: errno of an exec that failed */
	int pidfd;
	bool reaped;
	int status; /* wait status once reaped */
};

/* Forks; the child waits. Returns 0 or -errno. */
int child_start(struct child *c, char *const argv[], const struct invoker *who);
/* Lets it run. 0 once the command executes, or -errno of execve(2): then it is gone. */
int child_go(struct child *c);
/* Has it ended? Fills status. */
bool child_ended(struct child *c);
/* Exit status as a shell gives it: 128+n for a signal. */
int child_exit_status(const struct child *c);
/* Ends it if it still waits to be let go; a running one is left alone. */
void child_free(struct child *c);

#endif
