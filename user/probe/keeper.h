/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread of ours that stops held threads at once, whatever the rest of gbpf is
 * busy with, and lets them go when they were looked at. Only hold.c includes this.
 */
#ifndef GBPF_PROBE_KEEPER_H
#define GBPF_PROBE_KEEPER_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/hold.h"

struct keeper;

/*
 * shared and the ring must outlive it. own_child: a process that somebody else of
 * gbpf waits for, 0 if none.
 */
int keeper_new(struct keeper **out, struct gbpf_hold_shared *shared, int ring, uint32_t own_child);
void keeper_free(struct keeper *k); /* NULL is accepted; lets everybody go */

int keeper_fd(const struct keeper *k); /* readable when somebody is held */
/* As hold_consume(). */
int keeper_consume(struct keeper *k, int (*look)(uint32_t pid, void *ctx), void *ctx);
uint64_t keeper_ns(struct keeper *k); /* that threads were held, all together */

#endif
