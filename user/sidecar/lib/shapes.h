/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kernel shapes (struct wire_shape) that the loader was told, by number. A fixed table: when
 * it is full it forgets all, and what comes again is told again under a new number.
 */
#ifndef GBPF_SIDECAR_LIB_SHAPES_H
#define GBPF_SIDECAR_LIB_SHAPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring.h"

#define SHAPES_SLOTS 8192u
#define SHAPES_MAX (SHAPES_SLOTS / 4 * 3)
#define SHAPES_NAMES (4u << 20) /* bytes of names */

struct shape_slot {
	uint64_t address; /* of the name in the target */
	uint32_t name, name_size; /* in names; name_size 0: free */
	struct wire_shape shape;
};

struct shapes {
	struct shape_slot *slots; /* SHAPES_SLOTS, mapped */
	char *names;		  /* SHAPES_NAMES */
	uint32_t count, names_used, last_id;
};

/* 0, or -ENOMEM. */
int shapes_init(struct shapes *s);
/* Idempotent. */
void shapes_free(struct shapes *s);
/* For a loader that knows none. */
void shapes_forget(struct shapes *s);

/*
 * The number of this shape (its id and name_size are not looked at), whose name lies at
 * name and is what address stands for; told to the loader if it does not know it. At most
 * WIRE_NAME_MAX - 1 bytes of the name count; *cut: there were more. 0: the ring had no room.
 */
uint32_t shapes_id(struct shapes *s, struct ring *ring, const struct wire_shape *shape,
		   uint64_t address, const char *name, bool *cut);

#endif
