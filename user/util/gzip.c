// SPDX-License-Identifier: BSD-2-Clause
/* RFC 1951 (DEFLATE) and RFC 1952 (gzip). */
#include "util/gzip.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "util/huffman.h"

#define WINDOW 32768 /* as far back as a match may be */
#define CHUNK (256 * 1024)
#define PADDING 8 /* behind the input: read by whole words */
#define HASH_BITS 14
#define MATCH_MIN 4
#define MATCH_MAX 258
#define TOKENS 32768 /* a block */
#define LITERALS 286
#define DISTANCES 30
#define END_OF_BLOCK 256
#define OUT (64 * 1024)
#define OUT_ROOM 1024 /* what is put between two looks at the room that is left */

/* A literal, or a match. */
struct token {
	uint16_t length; /* 0: a literal */
	uint16_t value;	 /* the byte, or the distance - 1 */
};

struct gzip {
	gzip_put *put;
	void *context;
	int err;
	uint32_t crc, total;
	size_t history, filled; /* bytes of in: known from before, and all */
	uint32_t base;		/* of in[0]: how much was there before it, modulo 2^32 */
	uint32_t last[1 << HASH_BITS];
	struct token tokens[TOKENS];
	size_t count;
	uint32_t literals[LITERALS], distances[DISTANCES]; /* how often */
	uint64_t bits;
	unsigned bits_count;
	size_t out_size;
	uint8_t length_symbol[MATCH_MAX + 1]; /* minus 257 */
	uint8_t distance_symbol[512];	      /* as zlib's: the last 256 for distance >> 7 */
	unsigned char in[WINDOW + CHUNK + PADDING], out[OUT];
};

/* RFC 1951, 3.2.5 */
static const uint16_t length_first[] = {3,  4,	5,  6,	7,  8,	9,  10, 11,  13,  15,  17,  19,	 23,
					27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227,
					258};
static const uint8_t length_extra[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
				       2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
static const uint16_t distance_first[] = {
	1,   2,	  3,   4,   5,	 7,   9,    13,	  17,	25,   33,   49,	  65,	97,    129,
	193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
static const uint8_t distance_extra[] = {0, 0, 0, 0, 1, 1, 2, 2,  3,  3,  4,  4,  5,  5,  6,
					 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13};

static void symbols_init(struct gzip *z)
{
	for (unsigned s = 0; s < sizeof(length_extra); s++)
		for (unsigned i = length_first[s]; i <= MATCH_MAX; i++)
			z->length_symbol[i] = (uint8_t)s;
	for (unsigned s = 0; s < DISTANCES; s++) {
		for (unsigned i = distance_first[s] - 1u; i < 256; i++)
			z->distance_symbol[i] = (uint8_t)s;
		for (unsigned i = (distance_first[s] - 1u) >> 7; i < 256; i++)
			z->distance_symbol[256 + i] = (uint8_t)s;
	}
}

static unsigned distance_symbol(const struct gzip *z, unsigned less_one)
{
	return less_one < 256 ? z->distance_symbol[less_one]
			      : z->distance_symbol[256 + (less_one >> 7)];
}

/* ---- bits ---- */

static void out_flush(struct gzip *z)
{
	if (!z->err && z->out_size)
		z->err = z->put(z->context, z->out, z->out_size);
	z->out_size = 0;
}

/* At most 48 bits at once. */
static inline void put_bits(struct gzip *z, uint64_t value, unsigned count)
{
	z->bits |= value << z->bits_count;
	z->bits_count += count;
	while (z->bits_count >= 16) {
		z->out[z->out_size++] = (unsigned char)z->bits;
		z->out[z->out_size++] = (unsigned char)(z->bits >> 8);
		z->bits >>= 16;
		z->bits_count -= 16;
	}
}

static void put_symbol(struct gzip *z, const struct huffman *h, unsigned symbol)
{
	put_bits(z, h->code[symbol], h->bits[symbol]);
}

static void put_match(struct gzip *z, const struct huffman *literal,
		      const struct huffman *distance, struct token t)
{
	unsigned l = z->length_symbol[t.length], d = distance_symbol(z, t.value);
	uint64_t value = literal->code[257 + l];
	unsigned count = literal->bits[257 + l];

	value |= (uint64_t)(t.length - length_first[l]) << count;
	count += length_extra[l];
	value |= (uint64_t)distance->code[d] << count;
	count += distance->bits[d];
	value |= (uint64_t)(t.value + 1u - distance_first[d]) << count;
	put_bits(z, value, count + distance_extra[d]);
}

/* ---- blocks ---- */

/* How the codes are told (3.2.7): lengths, repeated ones shortened. */
struct told {
	uint8_t symbol[LITERALS + DISTANCES], extra[LITERALS + DISTANCES];
	size_t count;
};

static size_t run_length(const uint8_t *bits, size_t left, size_t most)
{
	size_t run = 1;

	while (run < left && run < most && bits[run] == bits[0])
		run++;
	return run;
}

static void told_make(struct told *t, const uint8_t *bits, size_t count)
{
	t->count = 0;
	for (size_t i = 0; i < count;) {
		bool zero = !bits[i], again = i && bits[i] == bits[i - 1];
		size_t run = run_length(bits + i, count - i, zero ? 138 : 6);

		t->symbol[t->count] = bits[i];
		t->extra[t->count] = 0;
		if (run >= 3 && zero) {
			t->symbol[t->count] = run < 11 ? 17 : 18;
			t->extra[t->count] = (uint8_t)(run - (run < 11 ? 3 : 11));
		} else if (run >= 3 && again) {
			t->symbol[t->count] = 16;
			t->extra[t->count] = (uint8_t)(run - 3);
		} else {
			run = 1;
		}
		t->count++;
		i += run;
	}
}

static void put_codes(struct gzip *z, const struct huffman *literal,
		      const struct huffman *distance)
{
	static const uint8_t order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5,
					  11, 4,  12, 3, 13, 2, 14, 1, 15};
	static const uint8_t extra_bits[19] = {[16] = 2, [17] = 3, [18] = 7};
	uint8_t bits[LITERALS + DISTANCES];
	uint32_t often[19] = {0};
	struct huffman lengths;
	struct told t;

	memcpy(bits, literal->bits, LITERALS);
	memcpy(bits + LITERALS, distance->bits, DISTANCES);
	told_make(&t, bits, sizeof(bits));
	for (size_t i = 0; i < t.count; i++)
		often[t.symbol[i]]++;
	huffman_make(&lengths, often, 19, 7);
	put_bits(z, LITERALS - 257, 5);
	put_bits(z, DISTANCES - 1, 5);
	put_bits(z, 19 - 4, 4);
	for (int i = 0; i < 19; i++)
		put_bits(z, lengths.bits[order[i]], 3);
	for (size_t i = 0; i < t.count; i++) {
		put_symbol(z, &lengths, t.symbol[i]);
		put_bits(z, t.extra[i], extra_bits[t.symbol[i]]);
	}
}

static void block_put(struct gzip *z, bool last)
{
	struct huffman literal, distance;

	z->literals[END_OF_BLOCK] = 1;
	huffman_make(&literal, z->literals, LITERALS, HUFFMAN_BITS);
	huffman_make(&distance, z->distances, DISTANCES, HUFFMAN_BITS);
	put_bits(z, last, 1);
	put_bits(z, 2, 2); /* with codes of its own */
	put_codes(z, &literal, &distance);
	for (size_t i = 0; i < z->count; i++) {
		if (z->out_size > OUT - OUT_ROOM)
			out_flush(z);
		if (z->tokens[i].length)
			put_match(z, &literal, &distance, z->tokens[i]);
		else
			put_symbol(z, &literal, z->tokens[i].value);
	}
	put_symbol(z, &literal, END_OF_BLOCK);
	out_flush(z);
	memset(z->literals, 0, sizeof(z->literals));
	memset(z->distances, 0, sizeof(z->distances));
	z->count = 0;
}

/* ---- matches ---- */

static uint32_t word(const unsigned char *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

static uint64_t long_word(const unsigned char *at)
{
	uint64_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

/* How many bytes are the same, at most this many; both may be read 8 further. */
static size_t same(const unsigned char *a, const unsigned char *b, size_t most)
{
	size_t n = 0;

	for (; n < most; n += 8) {
		uint64_t differ = long_word(a + n) ^ long_word(b + n);

		if (differ) {
			n += (size_t)__builtin_ctzll(differ) / 8;
			break;
		}
	}
	return n < most ? n : most;
}

static uint32_t *last_at(struct gzip *z, uint32_t bytes)
{
	return &z->last[bytes * 2654435761u >> (32 - HASH_BITS)];
}

/* The length of a match with what the same bytes were last at, 0: none. */
static size_t find(struct gzip *z, size_t at, size_t *distance)
{
	uint32_t bytes = word(z->in + at), *last = last_at(z, bytes);
	uint32_t here = z->base + (uint32_t)at, back = here - *last;
	size_t left = z->filled - at;

	*last = here;
	*distance = back;
	if (!back || back > WINDOW || back > at || word(z->in + at - back) != bytes)
		return 0;
	return same(z->in + at, z->in + at - back, left < MATCH_MAX ? left : MATCH_MAX);
}

static void token_add(struct gzip *z, struct token t)
{
	z->tokens[z->count++] = t;
	if (t.length) {
		z->literals[257 + z->length_symbol[t.length]]++;
		z->distances[distance_symbol(z, t.value)]++;
	} else {
		z->literals[t.value]++;
	}
	if (z->count == TOKENS)
		block_put(z, false);
}

static void chunk_compress(struct gzip *z)
{
	size_t at = z->history, distance = 0;

	while (at < z->filled) {
		size_t length = z->filled - at >= MATCH_MIN ? find(z, at, &distance) : 0;

		if (!length) {
			token_add(z, (struct token){0, z->in[at++]});
			continue;
		}
		token_add(z, (struct token){(uint16_t)length, (uint16_t)(distance - 1)});
		at += length;
	}
	z->crc = (uint32_t)crc32(z->crc, z->in + z->history, (unsigned)(z->filled - z->history));
	z->total += (uint32_t)(z->filled - z->history);
}

/* Only what a match may go back to stays. */
static void chunk_forget(struct gzip *z)
{
	size_t gone = z->filled > WINDOW ? z->filled - WINDOW : 0;

	memmove(z->in, z->in + gone, z->filled - gone);
	z->base += (uint32_t)gone;
	z->filled -= gone;
	z->history = z->filled;
}

struct gzip *gzip_new(gzip_put *put, void *context)
{
	/* Deflated, nothing else told; of an unknown system. */
	static const unsigned char header[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255};
	struct gzip *z = calloc(1, sizeof(*z));

	if (!z)
		return NULL;
	z->put = put;
	z->context = context;
	z->base = 2 * WINDOW; /* so that what was never seen is too far back */
	symbols_init(z);
	memcpy(z->out, header, sizeof(header));
	z->out_size = sizeof(header);
	return z;
}

int gzip_write(struct gzip *z, const void *bytes, size_t size)
{
	const unsigned char *from = bytes;

	while (size && !z->err) {
		size_t room = WINDOW + CHUNK - z->filled, take = size < room ? size : room;

		memcpy(z->in + z->filled, from, take);
		z->filled += take;
		from += take;
		size -= take;
		if (z->filled < WINDOW + CHUNK)
			break;
		chunk_compress(z);
		chunk_forget(z);
	}
	return z->err;
}

int gzip_end(struct gzip *z)
{
	uint64_t rest;

	chunk_compress(z);
	block_put(z, true);
	put_bits(z, 0, -z->bits_count & 7);
	rest = (uint64_t)z->total << 32 | z->crc;
	for (int i = 0; i < 4; i++, rest >>= 16)
		put_bits(z, rest & 0xffff, 16);
	if (z->bits_count)
		z->out[z->out_size++] = (unsigned char)z->bits;
	out_flush(z);
	return z->err;
}

void gzip_free(struct gzip *z)
{
	free(z);
}
