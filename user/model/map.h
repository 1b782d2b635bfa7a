/* SPDX-License-Identifier: BSD-2-Clause */
/* A hash map from two words to an index. All zero bytes is an empty map. */
#ifndef GBPF_MODEL_MAP_H
#define GBPF_MODEL_MAP_H

#include <stddef.h>
#include <stdint.h>

#define MAP_NONE UINT32_MAX

struct map_slot {
	uint64_t a, b;
	uint32_t value; /* MAP_NONE: free */
};

struct map {
	struct map_slot *slots;
	size_t mask, count;
};

static inline uint64_t map_mix(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	x ^= x >> 29;
	x *= 0x9e3779b97f4a7c15u;
	return x ^ x >> 32;
}

static inline uint64_t map_hash(uint64_t a, uint64_t b)
{
	return map_mix(a * 0x9fb21c651e98df25u + map_mix(b + 0x632be59bd9b4e019u));
}

uint32_t map_get(const struct map *m, uint64_t a, uint64_t b); /* MAP_NONE if absent */
/* Adds or replaces; value must not be MAP_NONE. 0 or -ENOMEM. */
int map_put(struct map *m, uint64_t a, uint64_t b, uint32_t value);
void map_free(struct map *m);

/* Of a few words; the products do not wait for each other. */
static inline uint64_t map_hash_words(const uint64_t *words, size_t count)
{
	uint64_t h = 0x9e3779b97f4a7c15u, odd = 0xd6e8feb86659fd93u;

	for (size_t i = 0; i < count; i++, odd += 0x632be59bd9b4e01au)
		h += (words[i] ^ words[i] >> 32) * odd;
	return map_mix(h);
}

uint64_t map_hash_bytes(const void *data, size_t len);

#endif
