/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loader's end of the ring of wire.h. The target can write into it at any time, so
 * nothing in it is believed: what is taken is copied first and looked at afterwards.
 */
#ifndef GBPF_SIDECAR_DRAIN_H
#define GBPF_SIDECAR_DRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sidecar/wire.h"

struct drain {
	int fd; /* of the memfd, sealed at its size; -1: none */
	struct wire_ring *shared;
	const uint8_t *data;
	uint64_t tail;
	uint64_t malformed; /* records of a size or type that cannot be */
	bool broken;	    /* head or a size made no sense: nothing more is read */
};

/* A record by itself, aligned; its size was checked against its type. */
union drain_record {
	struct wire_record r;
	struct wire_work work;
	struct wire_call call;
	struct wire_shape shape;
	struct wire_device device;
	struct wire_overhead overhead;
	uint8_t bytes[sizeof(struct wire_shape) + WIRE_NAME_MAX + 8];
};

/* 0 or -errno. */
int drain_new(struct drain *r);
void drain_free(struct drain *r); /* idempotent */
size_t drain_bytes(void);	/* of the memfd */
/* Its descriptor has been sent: the mapping is enough from here on. */
void drain_sent(struct drain *r);
/* 1: a record is in out, its text terminated; 0: there is none (or the ring is broken). */
int drain_next(struct drain *r, union drain_record *out);
/* Gives the room of what was taken back to the target. */
void drain_release(struct drain *r);

#endif
