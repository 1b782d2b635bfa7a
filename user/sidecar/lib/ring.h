/* SPDX-License-Identifier: BSD-2-Clause */
/* The sidecar's end of the ring (wire.h). Nothing here blocks, allocates or calls the kernel. */
#ifndef GBPF_SIDECAR_LIB_RING_H
#define GBPF_SIDECAR_LIB_RING_H

#include <stddef.h>
#include <stdint.h>

#include "sidecar/wire.h"

struct ring {
	struct wire_ring *shared; /* NULL: none */
	uint8_t *data;
	uint64_t size; /* of data; a power of two */
	uint64_t head; /* ours: what the loader wrote over it is not believed */
};

/*
 * Maps the memfd, whose size the loader says is size bytes. -EINVAL: it is not; else
 * -errno. The descriptor is not kept. Not in children.
 */
int ring_map(struct ring *r, int fd, uint64_t size);
/* Idempotent. */
void ring_unmap(struct ring *r);

/*
 * One record, of size bytes (a multiple of 8), as two parts of which the second may be
 * empty. -ENOSPC: there was no room; it is counted. One caller at a time.
 */
int ring_put(struct ring *r, const void *record, size_t size, const void *rest, size_t rest_size);
void ring_bad(struct ring *r, enum wire_bad how);
/* A work had not ended when its record was taken. */
void ring_running(struct ring *r);
/* count records more were lost before they got here. */
void ring_dropped(struct ring *r, uint64_t count);

#endif
