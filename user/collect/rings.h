/* SPDX-License-Identifier: BSD-2-Clause */
/* Empties the rings: decodes, batches, and counts what was lost. */
#ifndef GBPF_COLLECT_RINGS_H
#define GBPF_COLLECT_RINGS_H

#include <stddef.h>
#include <stdint.h>

#include "collect/decode.h"
#include "probe/probes.h"

struct gbpf_name;
struct gbpf_process;

/* Where things go. A non-zero return ends the round and is handed back. */
struct collect_sink {
	int (*events)(void *ctx, const struct event *events, size_t count);
	int (*name)(void *ctx, const struct gbpf_name *name);
	int (*process)(void *ctx, const struct gbpf_process *process);
	void *ctx;
};

struct collect_stats {
	uint64_t records;   /* taken out of the rings */
	uint64_t events;    /* of them, handed to the sink */
	uint64_t malformed; /* made no sense */
	uint64_t bytes;
};

struct rings;

#define RINGS_ROUND_MOST 1000000 /* records in a round: no ring may be left for long */

int rings_new(struct rings **out, struct probes *p, const struct collect_sink *sink);
void rings_free(struct rings *r); /* NULL is accepted */

/*
 * One round over all rings. Returns how many records, or what a sink returned, or -errno.
 * Fewer than RINGS_ROUND_MOST: what had been written when it began was taken.
 */
int rings_consume(struct rings *r);

/* Hands over the polls that are still going on in the kernel. Once, after detaching. */
int rings_finish(struct rings *r);

const struct collect_stats *rings_stats(const struct rings *r);

/*
 * How long to sleep until the next round, ns: so long that the rings are at
 * most an eighth full at the rate seen last, and that a burst out of nothing
 * still finds room.
 */
int64_t rings_pause(const struct rings *r, int64_t round_ns, uint64_t round_bytes);

#endif
