/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frees links on a thread of its own: the kernel takes the probes away at once,
 * but lets whoever closes a link wait some 40 ms until nobody can be in them.
 */
#ifndef GBPF_PROBE_CLOSER_H
#define GBPF_PROBE_CLOSER_H

#include <stddef.h>

#include "probe/probes.h"

struct closer;

int closer_new(struct closer **out); /* 0 or -errno */
void closer_free(struct closer *c);  /* waits for all; NULL is accepted */
/* The link is the closer's from here on. NULL is accepted. */
void closer_give(struct closer *c, struct probe_link *l);
size_t closer_waiting(struct closer *c); /* given and not freed yet */

#endif
