// SPDX-License-Identifier: BSD-2-Clause
#include "model/map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct map_slot *map_slot(const struct map *m, uint64_t a, uint64_t b)
{
	size_t i = map_hash(a, b) & m->mask;

	while (m->slots[i].value != MAP_NONE && (m->slots[i].a != a || m->slots[i].b != b))
		i = (i + 1) & m->mask;
	return &m->slots[i];
}

uint32_t map_get(const struct map *m, uint64_t a, uint64_t b)
{
	return m->slots ? map_slot(m, a, b)->value : MAP_NONE;
}

static int map_enlarge(struct map *m)
{
	size_t size = m->slots ? (m->mask + 1) * 2 : 64;
	struct map bigger = { .mask = size - 1, .count = m->count };

	bigger.slots = malloc(size * sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < size; i++)
		bigger.slots[i] = (struct map_slot){ .value = MAP_NONE };
	for (size_t i = 0; m->slots && i <= m->mask; i++)
		if (m->slots[i].value != MAP_NONE)
			*map_slot(&bigger, m->slots[i].a, m->slots[i].b) = m->slots[i];
	free(m->slots);
	*m = bigger;
	return 0;
}

int map_put(struct map *m, uint64_t a, uint64_t b, uint32_t value)
{
	struct map_slot *slot;
	int err;

	if (!m->slots || m->count >= (m->mask + 1) / 2) {
		err = map_enlarge(m);
		if (err)
			return err;
	}
	slot = map_slot(m, a, b);
	m->count += slot->value == MAP_NONE;
	*slot = (struct map_slot){ a, b, value };
	return 0;
}

void map_free(struct map *m)
{
	free(m->slots);
	memset(m, 0, sizeof(*m));
}

uint64_t map_hash_bytes(const void *data, size_t len)
{
	const unsigned char *p = data;
	uint64_t h = 0x9e3779b97f4a7c15u ^ len;
	uint64_t word;

	for (; len >= 8; len -= 8, p += 8) {
		memcpy(&word, p, 8);
		h = map_mix(h ^ word) + 0x632be59bd9b4e019u;
	}
	word = 0;
	if (len)
		memcpy(&word, p, len);
	return map_mix(h ^ word);
}
