/* SPDX-License-Identifier: BSD-2-Clause */
/* Prefix codes of limited length, as DEFLATE has them. */
#ifndef GBPF_UTIL_HUFFMAN_H
#define GBPF_UTIL_HUFFMAN_H

#include <stddef.h>
#include <stdint.h>

#define HUFFMAN_SYMBOLS 288
#define HUFFMAN_BITS 15

struct huffman {
	uint8_t bits[HUFFMAN_SYMBOLS];	/* of each symbol's code; 0: it does not occur */
	uint16_t code[HUFFMAN_SYMBOLS]; /* its lowest bit goes first */
};

/*
 * Codes for count symbols (2 to HUFFMAN_SYMBOLS) that occur so often, none longer than limit bits:
 * HUFFMAN_BITS, or at least 7 for at most 19 symbols. Two get a code even if fewer occur: some
 * readers take an incomplete one for damage (RFC 1951, 3.2.7).
 */
void huffman_make(struct huffman *h, const uint32_t *often, size_t count, unsigned limit);

#endif
