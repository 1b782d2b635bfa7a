/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a command that we start finds the sidecar: a private directory of the user who runs
 * it, with the library and a socket. It goes away with the command, even if gbpf is killed.
 */
#ifndef GBPF_TRACE_PLACE_H
#define GBPF_TRACE_PLACE_H

#include <stddef.h>
#include <sys/types.h>

#include "trace/output.h"

struct place {
	char path[64];	  /* "": none */
	int directory;
	int listener;	  /* SOCK_SEQPACKET, non-blocking; -1: none */
	int guard;	  /* write end: closed when we end, however that is */
	pid_t guard_pid;
};

/* Sets up what place_free() may undo at any time. */
void place_init(struct place *p);
/*
 * Makes the directory where libraries may be executed: $TMPDIR, /tmp, /dev/shm, or the
 * user's own. why gets a sentence on failure; then nothing is left. -EEXIST: the command's
 * environment names an injection library already, which is somebody else's.
 */
int place_make(struct place *p, const struct invoker *who, const void *library, size_t size,
	       char *why, size_t why_size);
/* CUDA_INJECTION64_PATH and GBPF_SIDECAR_SOCKET, for the children made from here on. */
int place_enter(const struct place *p);
void place_leave(const struct place *p); /* and not for those made later */
/*
 * Forks a process that removes the directory when both gbpf and the command have ended.
 * 0 or -errno.
 */
int place_guard(struct place *p, const struct invoker *who, int command_pidfd);
/* The recording is over: whoever comes now is turned away at once, and does not wait. */
void place_close(struct place *p);
/* Idempotent. Without a guard, it removes the directory itself. */
void place_free(struct place *p);

#endif
