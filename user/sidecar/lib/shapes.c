// SPDX-License-Identifier: BSD-2-Clause
#include "shapes.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define SHAPES_BYTES (SHAPES_SLOTS * sizeof(struct shape_slot) + SHAPES_NAMES)

int shapes_init(struct shapes *s)
{
	void *at = mmap(NULL, SHAPES_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);

	if (at == MAP_FAILED)
		return -ENOMEM;
	memset(s, 0, sizeof(*s));
	s->slots = at;
	s->names = (char *)(s->slots + SHAPES_SLOTS);
	return 0;
}

void shapes_free(struct shapes *s)
{
	if (s->slots)
		munmap(s->slots, SHAPES_BYTES);
	memset(s, 0, sizeof(*s));
}

/* Numbers go on, so that none means two shapes. */
void shapes_forget(struct shapes *s)
{
	memset(s->slots, 0, SHAPES_SLOTS * sizeof(*s->slots));
	s->count = 0;
	s->names_used = 0;
}

static bool same_shape(const struct wire_shape *a, const struct wire_shape *b)
{
	return a->registers == b->registers && !memcmp(a->grid, b->grid, sizeof(a->grid)) &&
	       !memcmp(a->block, b->block, sizeof(a->block)) && a->smem_static == b->smem_static &&
	       a->smem_dynamic == b->smem_dynamic && a->local == b->local;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ (h >> 29);
}

static uint64_t hash_of(const struct wire_shape *p, uint64_t address)
{
	uint64_t h = mix(0, address);

	h = mix(h, (uint64_t)p->grid[0] << 32 | p->grid[1]);
	h = mix(h, (uint64_t)p->grid[2] << 32 | p->block[0]);
	h = mix(h, (uint64_t)p->block[1] << 32 | p->block[2]);
	h = mix(h, (uint64_t)p->registers << 32 | p->local);
	return mix(h, (uint64_t)p->smem_static << 32 | p->smem_dynamic);
}

/*
 * The slot of this shape, or the free one where it belongs. A name's memory can be given
 * back with its module and hold another name later: the text decides.
 */
static struct shape_slot *look_up(struct shapes *s, const struct wire_shape *shape,
				  uint64_t address, const char *name, size_t length)
{
	for (uint64_t i = hash_of(shape, address);; i++) {
		struct shape_slot *slot = &s->slots[i % SHAPES_SLOTS];

		if (!slot->name_size)
			return slot;
		if (slot->address == address && slot->name_size == length + 1 &&
		    same_shape(&slot->shape, shape) && !memcmp(s->names + slot->name, name, length))
			return slot;
	}
}

uint32_t shapes_id(struct shapes *s, struct ring *ring, const struct wire_shape *shape,
		   uint64_t address, const char *name, bool *cut)
{
	size_t length = strnlen(name, WIRE_NAME_MAX);
	struct shape_slot *slot;
	size_t padded;
	char *text;

	*cut = length == WIRE_NAME_MAX;
	length -= *cut;
	slot = look_up(s, shape, address, name, length);
	if (slot->name_size)
		return slot->shape.id;
	padded = (length + 1 + 7) & ~(size_t)7;
	if (s->count >= SHAPES_MAX || s->names_used + padded > SHAPES_NAMES) {
		shapes_forget(s);
		slot = look_up(s, shape, address, name, length);
	}
	text = s->names + s->names_used;
	memcpy(text, name, length);
	memset(text + length, 0, padded - length);
	slot->shape = *shape;
	slot->shape.id = ++s->last_id ? s->last_id : ++s->last_id;
	slot->shape.name_size = (uint32_t)length + 1;
	slot->shape.r.type = WIRE_SHAPE;
	slot->shape.r.size = (uint32_t)(sizeof(slot->shape) + padded);
	if (ring_put(ring, &slot->shape, sizeof(slot->shape), text, padded))
		return 0;
	slot->address = address;
	slot->name = s->names_used;
	slot->name_size = (uint32_t)length + 1;
	s->names_used += (uint32_t)padded;
	s->count++;
	return slot->shape.id;
}
