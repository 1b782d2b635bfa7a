/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loader's side of one process's sidecar: speaks wire.h over a connected
 * SOCK_SEQPACKET socket, and hands what comes as records of a file to a sink. The target
 * is taken for hostile. Nothing here waits.
 */
#ifndef GBPF_SIDECAR_CLIENT_H
#define GBPF_SIDECAR_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "record/record.h"

struct sidecar;

enum sidecar_state {
	SIDECAR_GREETED = 1, /* HELLO was sent */
	SIDECAR_READY,	     /* may be started, also after a window where that was asked */
	SIDECAR_STARTED,
	SIDECAR_RECORDING,
	SIDECAR_STOPPING,
	SIDECAR_OVER,	     /* the socket is closed; nothing more comes */
};

struct sidecar_options {
	uint32_t pid;	   /* the host's */
	uint32_t flags;	   /* WIRE_ALL_API, WIRE_OVERHEAD, WIRE_CALLS */
	bool again;	   /* SIDECAR_READY after a window, for another one */
	const char *cupti; /* libcupti to use, as the target names it; NULL: its choice */
	/* Takes each record; other than 0 ends the step, which returns it. */
	int (*sink)(void *ctx, const struct record *r);
	void *ctx;
};

struct sidecar_stats {
	uint64_t works, calls; /* handed to the sink */
	uint64_t dropped, bad;
	uint64_t running; /* works that still ran when the window ended */
	int64_t clock_error; /* the worst bound of a time so far, ns; 0: no times yet */
	uint32_t cupti;	     /* cuptiGetVersion(), 0 before READY */
};

/* Owns fd from here on, also when it fails; makes the ring and says HELLO. 0 or -errno. */
int sidecar_new(struct sidecar **out, int fd, const struct sidecar_options *o);
/* Closes the socket: a sidecar that still records disables itself. NULL is accepted. */
void sidecar_free(struct sidecar *s);

int sidecar_fd(const struct sidecar *s); /* readable when there is something to do; -1: over */
uint32_t sidecar_pid(const struct sidecar *s);
enum sidecar_state sidecar_state(const struct sidecar *s);
/* Records for this long at the most, ns. Only when SIDECAR_READY. */
void sidecar_start(struct sidecar *s, int64_t window);
/*
 * Asks it to stop; its last records come with later steps. why: NULL, or that somebody else
 * has begun to use CUPTI, in a few words.
 */
void sidecar_stop(struct sidecar *s, const char *why);
/* Ends it with this reason in the file: event is RECORD_SIDECAR_REFUSED or …_FAILED. */
int sidecar_end(struct sidecar *s, uint32_t event, const char *why);
/* Reads messages and the ring. 0, what the sink returned, or -ENOMEM. */
int sidecar_step(struct sidecar *s);
void sidecar_stats(const struct sidecar *s, struct sidecar_stats *out);

#endif
