/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads of wanted processes wait, after mapping a CUDA library that nobody
 * knew, until it is probed, without anything of theirs being changed: first they
 * spin in bpf/hold.bpf.c, then they are stopped. Should gbpf die, they go on.
 */
#ifndef GBPF_PROBE_HOLD_H
#define GBPF_PROBE_HOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probe/images.h"
#include "probe/probes.h"

struct hold;

struct hold_stats {
	uint64_t holds, timeouts; /* times a thread waited; of these, in vain */
	uint64_t ns;		  /* waited, all together */
};

/*
 * kinds: GBPF_HOLD_* of bpf/hold.h, for which libraries to wait. p must outlive
 * it. own_child: the command, if somebody of gbpf waits for its end; 0 if not.
 * -EOPNOTSUPP: this kernel cannot (before 6.0 or so); or -ENOMEM.
 */
int hold_new(struct hold **out, struct probes *p, uint32_t kinds, uint32_t own_child);
void hold_free(struct hold *h); /* NULL is accepted; whoever waits goes on */

/*
 * Waits in programs that use this dynamic linker, the file behind fd (the
 * caller's). 0, also when it was known; -ENOENT: no dynamic linker of glibc's.
 */
int hold_attach(struct hold *h, int fd);
/* Did it wait already at this time (CLOCK_MONOTONIC, ns) in programs with this linker? */
bool hold_covers(struct hold *h, int fd, int64_t when);
/* The dynamic linkers of this machine, and of a command (as execvp() finds it; may be NULL). */
void hold_attach_installed(struct hold *h, const char *command);

/* Nobody waits any more for this image, the file behind fd: its probes are there. */
int hold_publish(struct hold *h, const struct image *i, int fd);

int hold_fd(const struct hold *h); /* readable when somebody waits */
/*
 * Hands each waiting process to look(), and lets it go on afterwards. Returns
 * how many, or what look() returned if that was negative.
 */
int hold_consume(struct hold *h, int (*look)(uint32_t pid, void *ctx), void *ctx);

void hold_stats(const struct hold *h, struct hold_stats *out);

#endif
