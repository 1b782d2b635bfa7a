// SPDX-License-Identifier: BSD-2-Clause
#include "util/huffman.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A symbol, or two nodes put together. */
struct node {
	uint64_t often;
	uint16_t symbol, parent;
};

static int node_order(const void *a, const void *b)
{
	const struct node *x = a, *y = b;

	if (x->often != y->often)
		return x->often < y->often ? -1 : 1;
	return x->symbol - y->symbol;
}

/* Of the first unused symbol and the first unused pair, both in order, the rarer. */
static size_t rarest(const struct node *nodes, size_t *symbol, size_t symbols, size_t *pair,
		     size_t pairs)
{
	if (*pair == pairs || (*symbol < symbols && nodes[*symbol].often <= nodes[*pair].often))
		return (*symbol)++;
	return (*pair)++;
}

/* Depths in the tree of the nodes, which are in order; the longest comes back. */
static unsigned depths(struct node *nodes, size_t used, uint8_t *bits)
{
	size_t symbol = 0, pair = used, all = used;
	uint8_t depth[2 * HUFFMAN_SYMBOLS];
	unsigned longest = 0;

	for (; all < 2 * used - 1; all++) {
		size_t a = rarest(nodes, &symbol, used, &pair, all);
		size_t b = rarest(nodes, &symbol, used, &pair, all);

		nodes[all].often = nodes[a].often + nodes[b].often;
		nodes[a].parent = nodes[b].parent = (uint16_t)all;
	}
	depth[all - 1] = 0;
	for (size_t i = all - 1; i-- > 0;) {
		depth[i] = depth[nodes[i].parent] + 1;
		if (i >= used)
			continue;
		bits[nodes[i].symbol] = depth[i];
		longest = depth[i] > longest ? depth[i] : longest;
	}
	return longest;
}

/* RFC 1951, 3.2.2: shorter codes first, then by symbol. */
static void codes(struct huffman *h, size_t count)
{
	uint16_t next[HUFFMAN_BITS + 2] = {0}, of[HUFFMAN_BITS + 1] = {0};

	for (size_t i = 0; i < count; i++)
		of[h->bits[i]]++;
	of[0] = 0;
	for (unsigned i = 1; i <= HUFFMAN_BITS; i++)
		next[i] = (uint16_t)((next[i - 1] + of[i - 1]) << 1);
	for (size_t i = 0; i < count; i++) {
		uint16_t code = h->bits[i] ? next[h->bits[i]]++ : 0, turned = 0;

		for (unsigned bit = 0; bit < h->bits[i]; bit++)
			turned = (uint16_t)(turned << 1 | (code >> bit & 1));
		h->code[i] = turned;
	}
}

void huffman_make(struct huffman *h, const uint32_t *often, size_t count, unsigned limit)
{
	struct node nodes[2 * HUFFMAN_SYMBOLS];
	unsigned flatter = 0;
	size_t used;

	do {
		memset(h, 0, sizeof(*h));
		used = 0;
		for (size_t i = 0; i < count; i++)
			if (often[i])
				nodes[used++] = (struct node){(often[i] >> flatter) + 1,
							      (uint16_t)i, 0};
		for (size_t i = 0; used < 2; i++)
			if (!often[i])
				nodes[used++] = (struct node){1, (uint16_t)i, 0};
		qsort(nodes, used, sizeof(*nodes), node_order);
		flatter += 2; /* until no code is too long: what is rare costs a little more */
	} while (depths(nodes, used, h->bits) > limit);
	codes(h, count);
}
