/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads of a process, from its own numbers for them to the host's. */
#ifndef GBPF_SIDECAR_TIDS_H
#define GBPF_SIDECAR_TIDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TIDS_MOST 4096

struct tids {
	uint32_t pid;	/* the host's */
	bool same;	/* it is in our pid namespace: nothing is to be mapped */
	struct tids_pair {
		uint32_t inner, outer;
	} *pairs;	/* sorted by inner; outer 0: looked for in vain */
	size_t count, room;
	int64_t looked; /* at /proc, CLOCK_MONOTONIC ns */
};

void tids_init(struct tids *t, uint32_t pid);
void tids_free(struct tids *t);
/*
 * The host's number of its thread, 0 where that is not known: it ended before anybody
 * asked, or there is none. now: CLOCK_MONOTONIC ns; /proc is looked at ten times a
 * second at most.
 */
uint32_t tids_outer(struct tids *t, uint32_t inner, int64_t now);

#endif
