// SPDX-License-Identifier: BSD-2-Clause
/* Compressed streams of either library, read back by zlib. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "export/gzip.h"

#define NO_ISAL "/nowhere/libisal.so.2"

struct packed {
	unsigned char *bytes;
	size_t size, room;
	int puts, fail_at; /* of the sink; 0: never */
};

static int on_bytes(void *ctx, const void *bytes, size_t size)
{
	struct packed *p = ctx;

	if (++p->puts == p->fail_at)
		return -ENOSPC;
	if (p->size + size > p->room) {
		p->room = 2 * (p->size + size);
		p->bytes = realloc(p->bytes, p->room);
		assert_non_null(p->bytes);
	}
	memcpy(p->bytes + p->size, bytes, size);
	p->size += size;
	return 0;
}

/* One stream, whole, and nothing after it. */
static void comes_back(const struct packed *p, const char *text, size_t size)
{
	unsigned char *back = malloc(size + 1);
	z_stream z = {.next_in = p->bytes, .avail_in = (uInt)p->size, .next_out = back,
		      .avail_out = (uInt)size + 1};

	assert_non_null(back);
	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.avail_in, 0);
	assert_int_equal(z.total_out, size);
	assert_memory_equal(back, text, size);
	inflateEnd(&z);
	free(back);
}

static size_t pack(bool quick, const char *isal, const char *text, size_t size, size_t piece)
{
	struct packed p = {0};
	struct gzip *g;
	size_t at = 0, n, packed;

	assert_int_equal(gzip_new(&g, quick, isal, on_bytes, &p), 0);
	do {
		n = size - at < piece ? size - at : piece;
		assert_int_equal(gzip_put(g, text + at, n, at + n == size), 0);
		at += n;
	} while (at < size);
	gzip_free(g);
	comes_back(&p, text, size);
	packed = p.size;
	free(p.bytes);
	return packed;
}

static void everything(bool quick, const char *isal)
{
	const size_t sizes[] = {0, 1, 1000, 262144, 262145, 3000000};
	char *text = malloc(3000000);
	uint32_t random = 1;

	assert_non_null(text);
	for (size_t i = 0; i < 3000000; i++) {
		random = random * 1664525 + 1013904223;
		text[i] = i < 1500000 ? "{\"ph\": \"X\"},\n"[i % 12] : (char)(random >> 24);
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		pack(quick, isal, text, sizes[i], 262144);
		pack(quick, isal, text, sizes[i], 7777777);
		pack(quick, isal, text + 3000000 - sizes[i], sizes[i], 4099);
	}
	assert_true(pack(quick, isal, text, 1500000, 65536) < 30000);
	free(text);
}

static void test_small(void **state)
{
	everything(false, NULL);
}

static void test_quick(void **state)
{
	everything(true, NULL);
}

static void test_quick_without_isal(void **state)
{
	everything(true, NO_ISAL);
}

static void test_which(void **state)
{
	struct packed p = {0};
	struct gzip *g;

	assert_int_equal(gzip_new(&g, true, NULL, on_bytes, &p), 0);
	assert_true(gzip_is_isal(g)); /* tools/install-deps installs it */
	gzip_free(g);
	assert_int_equal(gzip_new(&g, true, NO_ISAL, on_bytes, &p), 0);
	assert_false(gzip_is_isal(g));
	gzip_free(g);
	assert_int_equal(gzip_new(&g, true, "libz.so.1", on_bytes, &p), 0); /* another library */
	assert_false(gzip_is_isal(g));
	gzip_free(g);
	assert_int_equal(gzip_new(&g, false, NULL, on_bytes, &p), 0);
	assert_false(gzip_is_isal(g));
	gzip_free(g);
	gzip_free(NULL);
	assert_int_equal(p.puts, 0);
}

static void test_a_full_disk(void **state)
{
	const char *const libraries[] = {NULL, NO_ISAL};
	static char text[2000000];

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)(i * i >> 7 ^ i);
	for (size_t i = 0; i < 2; i++) {
		struct packed p = {.fail_at = 1};
		struct gzip *g;

		assert_int_equal(gzip_new(&g, true, libraries[i], on_bytes, &p), 0);
		assert_int_equal(gzip_put(g, text, sizeof(text), true), -ENOSPC);
		gzip_free(g);
		free(p.bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_quick),
		cmocka_unit_test(test_quick_without_isal),
		cmocka_unit_test(test_which),
		cmocka_unit_test(test_a_full_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
