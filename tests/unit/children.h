/* SPDX-License-Identifier: BSD-2-Clause */
/* Real processes for tests: children that say when they are ready and are always reaped. */
#ifndef GBPF_TESTS_UNIT_CHILDREN_H
#define GBPF_TESTS_UNIT_CHILDREN_H

#include <grp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* In a child cmocka's assertions would go on with the parent's tests: return instead. */
#define CHECK(condition)                                                               \
	do {                                                                           \
		if (!(condition)) {                                                    \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			return 1;                                                      \
		}                                                                      \
	} while (0)

/* The child tells of itself with child_ready() and then waits to be killed. */
static inline void child_ready(int fd, uint32_t word)
{
	if (write(fd, &word, sizeof(word)) != sizeof(word))
		_exit(99);
}

static inline void child_wait(void)
{
	for (;;)
		pause();
}

/* Runs body(fd) in a child that dies with us; *word is what it was ready with. */
static inline pid_t child_start(void (*body)(int fd), uint32_t *word)
{
	uint32_t ready = 0;
	int fds[2];
	pid_t pid;

	if (pipe(fds))
		return -1;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fds[0]);
		body(fds[1]);
		_exit(0);
	}
	close(fds[1]);
	if (read(fds[0], &ready, sizeof(ready)) != sizeof(ready)) {
		close(fds[0]);
		return -1;
	}
	close(fds[0]);
	if (word)
		*word = ready;
	return pid;
}

static inline void child_stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Runs body in a child; 0 if it returned 0. */
static inline int child_run(int (*body)(void *ctx), void *ctx)
{
	pid_t pid = fork();
	int status = -1;

	if (!pid) {
		int ret = body(ctx);

		fflush(NULL);
		_exit(ret);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* No capability is left; the user id stays, so files of root remain ours. */
static inline int drop_capabilities(void)
{
	cap_t none = cap_init();
	int err = none ? cap_set_proc(none) : -1;

	cap_free(none);
	return err;
}

static inline int become_nobody(void)
{
	return setgroups(0, NULL) || setresgid(65534, 65534, 65534) ||
	       setresuid(65534, 65534, 65534);
}

#endif
