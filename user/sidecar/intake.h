/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What one process's sidecar puts into its ring, as records of a file: checked, with the
 * host's thread ids, and with times of CLOCK_MONOTONIC. Records with times wait in memory
 * until the clock was read after them; when too many wait they stay in the ring, and the
 * sidecar counts what it has no room for.
 */
#ifndef GBPF_SIDECAR_INTAKE_H
#define GBPF_SIDECAR_INTAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/record.h"
#include "sidecar/clock.h"
#include "sidecar/drain.h"
#include "sidecar/tids.h"

#define INTAKE_WAITING_MOST (1u << 20)

enum intake_bad { /* why records are not written; the first four are the sidecar's own count */
	INTAKE_BAD_ZERO, INTAKE_BAD_NEGATIVE, INTAKE_BAD_FORM, INTAKE_BAD_NAME,
	INTAKE_BAD_TIME,
	INTAKE_BADS,
};

struct intake_waiting;

struct intake {
	uint32_t pid; /* the host's */
	struct drain drain;
	struct tids tids;
	struct cupti_clock clock;
	struct intake_waiting *waiting; /* a ring of room places, room a power of two */
	size_t room, head, count;
	int (*sink)(void *ctx, const struct record *r);
	void *ctx;
	int64_t error_worst; /* of the times since it was last taken, ns; 0: there were none */
	uint64_t works, calls, overheads; /* handed over */
	uint64_t bad[INTAKE_BADS]; /* counted here, and not yet taken */
	uint64_t told[INTAKE_BAD_TIME], dropped, running; /* its own counts, taken already */
};

/* 0 or -errno; intake_free() is right after either. */
int intake_init(struct intake *in, uint32_t pid,
		int (*sink)(void *ctx, const struct record *r), void *ctx);
void intake_free(struct intake *in);

/* Takes what is in the ring. What the sink returned, -ENOMEM, or 0. */
int intake_drain(struct intake *in);
/*
 * Hands over some of what the clock has been read after; with all, everything. The same
 * returns.
 */
int intake_deliver(struct intake *in, bool all);
/* What was counted since the last time, of each kind. */
uint64_t intake_take_dropped(struct intake *in);
uint64_t intake_take_running(struct intake *in);
uint64_t intake_take_bad(struct intake *in, enum intake_bad kind);
const char *intake_bad_name(enum intake_bad kind);

#endif
