// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "target/watch_record.h"

#define RING 512

static _Alignas(8) unsigned char ring[RING];
static _Alignas(8) unsigned char scratch[WATCH_RECORD_MAX];
static struct watch_range range;

/* A record under construction: header, then words and strings, then the sample_id. */
struct builder {
	_Alignas(8) unsigned char bytes[4096];
	size_t size;
};

static void add(struct builder *b, const void *bytes, size_t n)
{
	memcpy(b->bytes + b->size, bytes, n);
	b->size += n;
}

static void add32(struct builder *b, uint32_t v)
{
	add(b, &v, 4);
}

static void add64(struct builder *b, uint64_t v)
{
	add(b, &v, 8);
}

static void add_string(struct builder *b, const char *s)
{
	add(b, s, strlen(s) + 1);
	while (b->size % 8)
		b->bytes[b->size++] = 0;
}

static void begin(struct builder *b)
{
	memset(b, 0, sizeof(*b));
	b->size = sizeof(struct perf_event_header);
}

static void end(struct builder *b, uint32_t type, uint16_t misc, uint64_t time)
{
	struct perf_event_header h = { .type = type, .misc = misc };

	add32(b, 70);
	add32(b, 71);
	add64(b, time);
	h.size = (uint16_t)b->size;
	memcpy(b->bytes, &h, sizeof(h));
}

/* Puts the record so that it begins at this position of the ring. */
static void place(const struct builder *b, uint64_t at)
{
	range = (struct watch_range){ ring, RING, at, at + b->size };
	for (size_t i = 0; i < b->size; i++)
		ring[(at + i) % RING] = b->bytes[i];
}

static void make_map(struct builder *b, const char *path, uint32_t prot)
{
	begin(b);
	add32(b, 70);
	add32(b, 71);
	add64(b, 0x7f0000001000);
	add64(b, 0x2000);
	add64(b, 0x3000);
	add32(b, 8);
	add32(b, 1);
	add64(b, 99);
	add64(b, 5);
	add32(b, prot);
	add32(b, 2);
	add_string(b, path);
	end(b, PERF_RECORD_MMAP2, 0, 1234);
}

static bool decode(struct watch_notice *n)
{
	uint64_t bytes;
	int64_t ts;

	assert_int_equal(watch_record_peek(&range, &bytes, &ts), 0);
	return watch_record_decode(&range, scratch, NULL, NULL, n);
}

static void maps_decode_wherever_they_wrap(void **state)
{
	static const char *const paths[] = { "/x/libcuda.so.1", "/x/libcuda.so.1 (deleted)" };
	struct watch_notice n;
	struct builder b;

	for (uint64_t at = 0; at < 2 * RING; at += 8) {
		for (int deleted = 0; deleted < 2; deleted++) {
			make_map(&b, paths[deleted], PROT_READ | PROT_EXEC);
			place(&b, at);
			assert_true(decode(&n));
			assert_int_equal(n.kind, WATCH_MAP);
			assert_int_equal(n.ts, 1234);
			assert_int_equal(n.pid, 70);
			assert_int_equal(n.tid, 71);
			assert_string_equal(n.map.path, "/x/libcuda.so.1");
			assert_int_equal(n.map.deleted, deleted);
			assert_true(n.map.start == 0x7f0000001000);
			assert_true(n.map.end == 0x7f0000003000);
			assert_true(n.map.offset == 0x3000 && n.map.ino == 99);
			assert_true(n.map.dev == makedev(8, 1));
		}
	}
}

static void other_mappings_are_no_notices(void **state)
{
	static const char *const paths[] = { "//anon", "//toolong", "[vdso]", "anon_inode:x", "" };
	struct watch_notice n;
	struct builder b;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		make_map(&b, paths[i], PROT_READ | PROT_EXEC);
		place(&b, 480);
		assert_false(decode(&n));
	}
	make_map(&b, "/x/libcuda.so.1", PROT_READ);
	place(&b, 0);
	assert_false(decode(&n));
	make_map(&b, "/x/libcuda.so.1", PROT_EXEC);
	memset(b.bytes + 16, 0xff, 8); /* address + length overflows */
	place(&b, 0);
	assert_false(decode(&n));
}

static bool only_cuda(const char *path, void *ctx)
{
	++*(int *)ctx;
	return image_hint(path) != HINT_NONE;
}

static void the_filter_decides(void **state)
{
	struct watch_notice n;
	struct builder b;
	int asked = 0;

	make_map(&b, "/x/libcuda.so.1 (deleted)", PROT_EXEC);
	place(&b, 400);
	assert_true(watch_record_decode(&range, scratch, only_cuda, &asked, &n));
	make_map(&b, "/x/libc.so.6", PROT_EXEC);
	place(&b, 400);
	assert_false(watch_record_decode(&range, scratch, only_cuda, &asked, &n));
	assert_int_equal(asked, 2);
}

static void make_task(struct builder *b, uint32_t type, uint32_t pid, uint32_t ppid, uint32_t tid)
{
	begin(b);
	add32(b, pid);
	add32(b, ppid);
	add32(b, tid);
	add32(b, ppid);
	add64(b, 55);
	end(b, type, 0, 56);
}

static bool task(uint32_t type, uint32_t pid, uint32_t ppid, uint32_t tid, struct watch_notice *n)
{
	struct builder b;

	make_task(&b, type, pid, ppid, tid);
	place(&b, 488);
	return decode(n);
}

static void only_processes_come_and_go(void **state)
{
	struct watch_notice n;

	assert_true(task(PERF_RECORD_FORK, 10, 9, 10, &n));
	assert_int_equal(n.kind, WATCH_FORK);
	assert_int_equal(n.pid, 10);
	assert_int_equal(n.ppid, 9);
	assert_int_equal(n.ts, 56);
	assert_false(task(PERF_RECORD_FORK, 10, 10, 11, &n));
	assert_true(task(PERF_RECORD_EXIT, 10, 9, 10, &n));
	assert_int_equal(n.kind, WATCH_EXIT);
	assert_false(task(PERF_RECORD_EXIT, 10, 9, 11, &n));
	/* Outside our pid namespace, and reaped already. */
	assert_false(task(PERF_RECORD_FORK, 0, 9, 0, &n));
	assert_false(task(PERF_RECORD_EXIT, UINT32_MAX, 9, UINT32_MAX, &n));
}

static void make_comm(struct builder *b, const char *comm, uint16_t misc)
{
	begin(b);
	add32(b, 10);
	add32(b, 12);
	add_string(b, comm);
	end(b, PERF_RECORD_COMM, misc, 3);
}

static void names_and_execs_differ(void **state)
{
	struct watch_notice n;
	struct builder b;

	make_comm(&b, "a\nb", 0);
	place(&b, 496);
	assert_true(decode(&n));
	assert_int_equal(n.kind, WATCH_COMM);
	assert_int_equal(n.tid, 12);
	assert_string_equal(n.comm, "a\nb");
	make_comm(&b, "", PERF_RECORD_MISC_COMM_EXEC);
	place(&b, 496);
	assert_true(decode(&n));
	assert_int_equal(n.kind, WATCH_EXEC);
	/* A string without an end must not be read into the sample_id. */
	make_comm(&b, "12345678", 0);
	memset(b.bytes + 16, 'x', b.size - 16 - 16);
	place(&b, 496);
	assert_false(decode(&n));
}

static void losses_are_notices(void **state)
{
	struct watch_notice n;
	struct builder b;

	begin(&b);
	add64(&b, 1);
	add64(&b, 4321);
	end(&b, PERF_RECORD_LOST, 0, 3);
	place(&b, 504);
	assert_true(decode(&n));
	assert_int_equal(n.kind, WATCH_LOST);
	assert_true(n.lost == 4321);
}

static void unknown_and_short_records_are_passed_over(void **state)
{
	static const uint32_t types[] = { 0, PERF_RECORD_MMAP2, PERF_RECORD_FORK, PERF_RECORD_EXIT,
					  PERF_RECORD_COMM, PERF_RECORD_LOST, 9999 };
	struct watch_notice n;
	struct builder b;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		begin(&b);
		end(&b, types[i], 0, 3);
		place(&b, 496);
		assert_false(decode(&n));
	}
}

static void peek_refuses_what_perf_never_writes(void **state)
{
	struct builder b;
	uint64_t bytes;
	int64_t ts;

	make_map(&b, "/x", PROT_EXEC);
	place(&b, 0);
	range.head = 0;
	assert_int_equal(watch_record_peek(&range, &bytes, &ts), -EAGAIN);
	range.head = b.size - 8;
	assert_int_equal(watch_record_peek(&range, &bytes, &ts), -EBADMSG);
	range.head = RING + 8;
	assert_int_equal(watch_record_peek(&range, &bytes, &ts), -EBADMSG);
	range.head = 4;
	assert_int_equal(watch_record_peek(&range, &bytes, &ts), -EBADMSG);
	for (uint16_t size = 0; size < 24; size++) {
		memcpy(ring + 6, &size, sizeof(size));
		range.head = 96;
		assert_int_equal(watch_record_peek(&range, &bytes, &ts), -EBADMSG);
	}
}

/* Any bytes at all: nothing is read outside of the ring (run with a sanitizer). */
static void survives_random_bytes(void **state)
{
	uint64_t bytes, seed = 88172645463325252u;
	struct watch_notice n;
	int64_t ts;

	for (int round = 0; round < 20000; round++) {
		unsigned char *heap = malloc(RING);

		for (size_t i = 0; i < RING; i += 8) {
			seed ^= seed << 13;
			seed ^= seed >> 7;
			seed ^= seed << 17;
			memcpy(heap + i, &seed, 8);
		}
		range = (struct watch_range){ heap, RING, (seed & 63) * 8, 0 };
		range.head = range.tail + (seed >> 32) % (RING + 1);

		/* A header that could be one, so that the bodies are reached. */
		struct perf_event_header h = { .type = seed >> 40 & 15,
					       .size = (uint16_t)((seed >> 50 & 31) * 8) };

		memcpy(heap + (range.tail & (RING - 1)), &h, sizeof(h));
		if (!watch_record_peek(&range, &bytes, &ts))
			(void)watch_record_decode(&range, scratch, NULL, NULL, &n);
		free(heap);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(maps_decode_wherever_they_wrap),
		cmocka_unit_test(other_mappings_are_no_notices),
		cmocka_unit_test(the_filter_decides),
		cmocka_unit_test(only_processes_come_and_go),
		cmocka_unit_test(names_and_execs_differ),
		cmocka_unit_test(losses_are_notices),
		cmocka_unit_test(unknown_and_short_records_are_passed_over),
		cmocka_unit_test(peek_refuses_what_perf_never_writes),
		cmocka_unit_test(survives_random_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
