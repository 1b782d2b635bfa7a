/* SPDX-License-Identifier: BSD-2-Clause */
/* A piece of work beside the caller's own, for a machine with more than one CPU. */
#ifndef GBPF_UTIL_BESIDE_H
#define GBPF_UTIL_BESIDE_H

#include <pthread.h>
#include <stdbool.h>

#define BESIDE_WORKS 10000 /* works of a GPU, of which most that is done is worth a thread */

/* All zero: none was begun. Stays where it is until beside_end(). */
struct beside {
	int (*run)(void *ctx);
	void *ctx;
	int result;
	pthread_t thread;
	bool threaded;
};

/*
 * Has run(ctx) done by a thread of its own, which gets no signals. Until beside_end() the two
 * sides may read the same things, but neither anything that the other writes. Where it is not
 * worth a thread (some 50 us), or none can be had, it is done before this returns.
 */
void beside_begin(struct beside *b, int (*run)(void *ctx), void *ctx, bool worth);

/* Waits until it is done; what run() returned, and 0 if none was begun. May be repeated. */
int beside_end(struct beside *b);

/* Both are done when it returns, the other one beside; own's error, or the other's. */
int beside_both(int (*own)(void *ctx), void *own_ctx, int (*other)(void *ctx), void *other_ctx,
		bool worth);

#endif
