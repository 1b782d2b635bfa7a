// SPDX-License-Identifier: BSD-2-Clause
/* What our gzip writes, read by zlib. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <zlib.h>

#include "tests/record_data.h"
#include "util/gzip.h"
#include "util/huffman.h"

struct packed {
	unsigned char *bytes;
	size_t size, cap;
	int err; /* what putting answers */
};

static int put(void *context, const void *bytes, size_t size)
{
	struct packed *p = context;

	if (p->err)
		return p->err;
	while (p->size + size > p->cap) {
		p->cap = 2 * p->cap + 4096;
		p->bytes = realloc(p->bytes, p->cap);
		assert_non_null(p->bytes);
	}
	memcpy(p->bytes + p->size, bytes, size);
	p->size += size;
	return 0;
}

/* Compressed in pieces of up to most bytes; how much came out. */
static size_t round_trip(const unsigned char *bytes, size_t size, size_t most, uint64_t seed)
{
	unsigned char *back = malloc(size + 1);
	z_stream s = {0};
	struct packed p = {0};
	struct gzip *z = gzip_new(put, &p);
	struct data d;

	data_begin(&d, seed, 1, false);
	assert_non_null(back);
	assert_non_null(z);
	for (size_t at = 0; at < size;) {
		size_t n = 1 + data_below(&d, most);

		n = n < size - at ? n : size - at;
		assert_int_equal(gzip_write(z, bytes + at, n), 0);
		at += n;
	}
	assert_int_equal(gzip_end(z), 0);
	gzip_free(z);
	assert_int_equal(inflateInit2(&s, 15 + 16), Z_OK);
	s.next_in = p.bytes;
	s.avail_in = (unsigned)p.size;
	s.next_out = back;
	s.avail_out = (unsigned)size + 1;
	assert_int_equal(inflate(&s, Z_FINISH), Z_STREAM_END); /* checks length and CRC, too */
	assert_int_equal(s.avail_in, 0);
	assert_int_equal(s.total_out, size);
	assert_memory_equal(back, bytes, size);
	inflateEnd(&s);
	free(back);
	free(p.bytes);
	return p.size;
}

static void little(void **state)
{
	unsigned char bytes[600] = {0};

	assert_true(round_trip(bytes, 0, 1, 1) < 64);
	memset(bytes, 'a', sizeof(bytes));
	for (size_t size = 1; size <= 16; size++)
		round_trip(bytes, size, 3, size);
	for (size_t size = 255; size <= sizeof(bytes); size++)
		round_trip(bytes, size, 100, size); /* around the longest match */
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * i);
	round_trip(bytes, sizeof(bytes), 7, 1);
}

/* What a writer of JSON gives; longer than several chunks, and blocks. */
static void text(void **state)
{
	const size_t room = 3 << 20;
	char *bytes = malloc(room + 256);
	size_t size = 0;
	struct data d;

	assert_non_null(bytes);
	data_begin(&d, 3, 1, false);
	while (size < room)
		size += (size_t)sprintf(bytes + size,
			"{\"ph\":\"X\",\"name\":\"kernel %u\",\"ts\":%u,\"grid\":[16,1,1]},\n",
			(unsigned)data_below(&d, 40), (unsigned)data_random(&d));
	assert_true(round_trip((unsigned char *)bytes, size, 262144, 5) < size / 5);
	round_trip((unsigned char *)bytes, 400000, 999, 6);
	free(bytes);
}

/* As far back as a match may be, and farther; bytes that no match helps. */
static void far_and_wide(void **state)
{
	const size_t size = 700000;
	unsigned char *bytes = malloc(size);
	struct data d;

	assert_non_null(bytes);
	data_begin(&d, 9, 1, false);
	for (size_t i = 0; i < size; i++)
		bytes[i] = (unsigned char)data_below(&d, 256);
	assert_true(round_trip(bytes, size, 65536, 7) < size + size / 100);
	for (size_t period = 32766; period <= 32770; period++) {
		for (size_t i = period; i < 200000; i++)
			bytes[i] = bytes[i - period];
		assert_true((round_trip(bytes, 200000, 4096, period) < 60000) == (period <= 32768));
	}
	memset(bytes, 0, size);
	assert_true(round_trip(bytes, size, size, 8) < 4096);
	free(bytes);
}

/* Each symbol twice as often as the next: codes would be longer than allowed. */
static void codes_are_limited(void **state)
{
	uint32_t often[HUFFMAN_SYMBOLS] = {0};
	struct huffman h;

	for (unsigned limit = 7; limit <= HUFFMAN_BITS; limit += HUFFMAN_BITS - 7) {
		uint64_t sum = 0;

		for (int i = 0; i < 19; i++)
			often[i] = 1u << i;
		huffman_make(&h, often, 19, limit);
		for (int i = 0; i < 19; i++) {
			assert_in_range(h.bits[i], 1, limit);
			assert_true(!i || h.bits[i] <= h.bits[i - 1]);
			sum += 1u << (limit - h.bits[i]);
		}
		assert_int_equal(sum, 1u << limit); /* every pattern of bits means something */
	}
	memset(often, 0, sizeof(often));
	often[5] = 1;
	huffman_make(&h, often, 30, HUFFMAN_BITS);
	assert_int_equal(h.bits[5], 1);
	assert_int_equal(h.bits[0], 1);
}

static void rare_bytes(void **state)
{
	unsigned char *bytes = malloc(1 << 17);
	size_t size = 0;

	assert_non_null(bytes);
	for (unsigned c = 0; c < 16; c++)
		for (unsigned i = 0; i < 1u << c; i++)
			bytes[size++] = (unsigned char)(c * 16 + (i * 2654435761u >> 28));
	round_trip(bytes, size, 5000, 4);
	free(bytes);
}

static void failures_are_told(void **state)
{
	struct packed p = {.err = -ENOSPC};
	struct gzip *z = gzip_new(put, &p);
	unsigned char *bytes = calloc(1, 1 << 20);

	assert_non_null(z);
	assert_non_null(bytes);
	for (size_t i = 0; i < 1 << 20; i++)
		bytes[i] = (unsigned char)(i * i >> 7);
	assert_int_equal(gzip_write(z, bytes, 1 << 20), -ENOSPC);
	assert_int_equal(gzip_write(z, bytes, 1), -ENOSPC);
	assert_int_equal(gzip_end(z), -ENOSPC);
	gzip_free(z);
	gzip_free(NULL);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(little),	     cmocka_unit_test(text),
		cmocka_unit_test(far_and_wide),	     cmocka_unit_test(codes_are_limited),
		cmocka_unit_test(rare_bytes),	     cmocka_unit_test(failures_are_told),
	};

	return cmocka_run_group_tests_name("gzip", tests, NULL, NULL);
}
