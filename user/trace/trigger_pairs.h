/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which begin belongs to which end, while events come in: in memory of a fixed size. A call
 * is known by its thread, the place of its stack and its function. Rings are read one after
 * the other, so a thread that changed its CPU comes out of order: events wait until all
 * before them are there.
 */
#ifndef GBPF_TRACE_TRIGGER_PAIRS_H
#define GBPF_TRACE_TRIGGER_PAIRS_H

#include "collect/event.h"

struct pairs;

/* A whole call; times in ns. */
typedef void (*pairs_call)(void *ctx, uint16_t api, int64_t begin, int64_t end);

struct pairs *pairs_new(pairs_call call, void *ctx); /* NULL: no memory */
void pairs_free(struct pairs *p);		      /* NULL is accepted */

/* Takes a begin or an end. Beyond 65 536 of them between two settlings, order is not waited for. */
void pairs_add(struct pairs *p, const struct event *e);
/* All events before this time (ns) were added: tells of calls that ended by then. NULL: nothing. */
void pairs_settle(struct pairs *p, int64_t upto);

#endif
