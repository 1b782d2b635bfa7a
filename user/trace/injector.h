/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that load the sidecar into processes, so that whoever empties rings need not wait
 * for that.
 */
#ifndef GBPF_TRACE_INJECTOR_H
#define GBPF_TRACE_INJECTOR_H

#include <stdint.h>

#include "inject/inject.h"

struct injector;

struct injected {
	uint32_t pid;
	int err; /* of inject(), or -EBUSY: another profiler is there; result.why says it */
	struct inject_result result;
};

/* 0 or -errno. library (size bytes) must outlive it. */
int injector_new(struct injector **out, const void *library, size_t size);
/* Waits for the processes it is at, if any; sockets nobody took are closed. NULL is accepted. */
void injector_free(struct injector *i);
int injector_fd(const struct injector *i); /* readable when a result is there */
int injector_add(struct injector *i, uint32_t pid); /* 0 or -errno */
/* 1: a result, whose socket is the caller's now; 0: none. */
int injector_take(struct injector *i, struct injected *out);

#endif
