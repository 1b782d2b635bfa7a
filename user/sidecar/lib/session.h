/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One loader's visit to this process. There is one session at a time, and one struct
 * session: CUPTI's functions for buffers are not told whose they are.
 */
#ifndef GBPF_SIDECAR_LIB_SESSION_H
#define GBPF_SIDECAR_LIB_SESSION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cupti.h"
#include "layout.h"
#include "neighbour.h"
#include "ring.h"
#include "shapes.h"
#include "sidecar/wire.h"

#define POOL_BUFFERS 32u
#define POOL_BYTES (1u << 20)

enum buffer_state {
	BUFFER_NONE, /* not allocated */
	BUFFER_FREE,
	BUFFER_OUT, /* CUPTI has it */
	BUFFER_LOST, /* may be somebody else's by now: never touched again */
};

struct pool {
	pthread_mutex_t lock;
	uint8_t *at[POOL_BUFFERS];
	enum buffer_state state[POOL_BUFFERS];
};

/* What is on, so that exactly that is switched off. */
struct window {
	bool on;	 /* between BEGAN and ENDED */
	bool withdrew;	 /* somebody else has begun: nothing of CUPTI is ours to end */
	uint64_t kinds;	 /* bits by enum cupti_kind that we enabled */
	uint32_t flags;	 /* WIRE_ALL_API, WIRE_OVERHEAD, WIRE_CALLS */
	uint32_t thread_type; /* as it was before */
	int64_t until;	      /* CLOCK_MONOTONIC ns */
};

/* Moments of recording calls, see anchors.h. */
struct anchors {
	int64_t due;	      /* CLOCK_MONOTONIC ns: a flush, its end, or the next one */
	int64_t until;	      /* it ends whatever was seen */
	_Atomic int64_t from; /* by CUPTI's clock */
	atomic_uint seen;     /* a call that launches */
	unsigned wanted;      /* of those, until it is over */
};

struct session {
	/* Whoever calls CUPTI or changes what follows: the control thread, exit(). */
	pthread_mutex_t control;
	pid_t pid;    /* a forked child is not it */
	int fd;	      /* the socket; -1: none */
	uint32_t flags; /* of HELLO */
	struct cupti cupti;
	const struct layout *layout;
	struct neighbour neighbour;
	struct window window;
	struct anchors anchors;
	bool devices_told;
	/* Producers of records, held while one is copied. */
	pthread_mutex_t lock;
	bool taking;	/* records go to the ring; else nowhere */
	struct ring ring;
	struct shapes shapes;
	uint64_t dropped; /* by CUPTI in this window */
	struct pool pool;
	atomic_bool strange;   /* a buffer that is not ours came back: somebody else records */
	atomic_bool forced;    /* what CUPTI gives now has no end if it still runs */
	atomic_int completing; /* threads in buffers_complete() */
};

extern struct session session;

int64_t now_ns(void); /* CLOCK_MONOTONIC */
/* Is this the process that the session is of? */
bool session_here(void);
/*
 * From now on exit() ends a window. To be called once libcupti is loaded: what is registered
 * last runs first, and CUPTI must still be whole then. 0, or -ENOMEM.
 */
int session_watch_exit(void);

#endif
