// SPDX-License-Identifier: BSD-2-Clause
/* Ring records made by hand, with what each must be read as worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/gbpf.h"
#include "collect/decode.h"
#include "probe/catalogue.h"

#define GARBAGE 0xdeadbeef00000000ULL
#define NCCL_TYPES 12

static uint16_t api(const char *name)
{
	uint16_t id = catalogue_find(name);

	if (!id)
		fail_msg("%s is not in the catalogue", name);
	return id;
}

static struct gbpf_hdr header(const char *name, unsigned type)
{
	return (struct gbpf_hdr){.ts = 123456789012345, .pid = 4194303, .tid = 77,
				 .sp = 0xfffffff8, .tag = GBPF_TAG(api(name), type, 0xfffe)};
}

/* The record ends where its memory ends, so that sanitizers see a read beyond. */
static enum decoded decode_exact(const void *record, size_t size, struct event *e)
{
	void *copy = malloc(size ? size : 1);
	enum decoded result;

	assert_non_null(copy);
	memcpy(copy, record, size);
	memset(e, 0xa5, sizeof(*e));
	result = decode(copy, size, e);
	free(copy);
	return result;
}

/* Decodes a whole record, and checks what every record has. */
static struct event event_of(const void *record, size_t size, enum event_kind kind)
{
	const struct gbpf_hdr *h = record;
	struct event e;

	assert_int_equal(decode_exact(record, size, &e), DECODED_EVENT);
	assert_int_equal(e.kind, kind);
	assert_int_equal(e.ts, 123456789012345);
	assert_int_equal(e.pid, 4194303);
	assert_int_equal(e.tid, 77);
	assert_int_equal(e.sp, 0xfffffff8);
	assert_int_equal(e.api, h->tag & 0xfff);
	assert_int_equal(e.image, 0xfffe);
	for (size_t i = 0; i < sizeof(e.pad); i++)
		assert_int_equal(e.pad[i], 0);
	return e;
}

static void expect_launch(const struct event *e, uint64_t func, uint64_t stream, uint64_t smem,
			  const uint32_t grid[3], const uint32_t block[3])
{
	assert_int_equal(e->args, EVENT_ARGS_LAUNCH);
	assert_int_equal(e->has_out, 0);
	assert_int_equal(e->launch.func, func);
	assert_int_equal(e->launch.stream, stream);
	assert_int_equal(e->launch.smem, smem);
	assert_memory_equal(e->launch.grid, grid, 3 * sizeof(*grid));
	assert_memory_equal(e->launch.block, block, 3 * sizeof(*block));
}

static void bare_calls(void **state)
{
	struct gbpf_hdr h = header("cuCtxSynchronize", GBPF_REC_BEGIN_BARE);
	struct event e = event_of(&h, sizeof(h), EVENT_BEGIN);

	assert_int_equal(e.args, EVENT_ARGS_NONE);
	assert_int_equal(e.has_out, 0);
	assert_int_equal(e.call.object, 0);
}

static void an_object_may_be_a_stream(void **state)
{
	struct gbpf_begin_object r = {header("cuStreamSynchronize", GBPF_REC_BEGIN_OBJECT),
				      0x7fff12345678};
	struct event e = event_of(&r, sizeof(r), EVENT_BEGIN);

	assert_int_equal(e.args, EVENT_ARGS_CALL);
	assert_int_equal(e.call.object, 0x7fff12345678);
	assert_int_equal(e.call.stream, 0x7fff12345678);

	r.hdr = header("cuEventSynchronize", GBPF_REC_BEGIN_OBJECT);
	e = event_of(&r, sizeof(r), EVENT_BEGIN);
	assert_int_equal(e.call.object, 0x7fff12345678);
	assert_int_equal(e.call.stream, 0);
}

static void driver_launches(void **state)
{
	struct gbpf_begin_launch r = {
		.hdr = header("cuLaunchKernel", GBPF_REC_BEGIN_LAUNCH),
		.func = 0xffff800000001234,
		.grid = {2147483647, 65535, 1},
		.block_x = 1024,
		.block_y = 2,
		.pad = 0xffffffff,
		.block_z = GARBAGE | 64,
		.smem = GARBAGE | 101376,
		.stream = 0xabcdef0123456789,
	};
	struct event e = event_of(&r, sizeof(r), EVENT_BEGIN);

	expect_launch(&e, 0xffff800000001234, 0xabcdef0123456789, 101376,
		      (uint32_t[]){2147483647, 65535, 1}, (uint32_t[]){1024, 2, 64});
}

static void launches_by_configuration(void **state)
{
	struct gbpf_begin_config r = {
		.hdr = header("cuLaunchKernelEx", GBPF_REC_BEGIN_CONFIG),
		.func = 0x5555,
		.grid = {4294967295, 7, 6},
		.block = {5, 4, 3},
		.smem = GARBAGE | 2,
		.stream = 1,
	};
	struct event e = event_of(&r, sizeof(r), EVENT_BEGIN);

	expect_launch(&e, 0x5555, 1, 2, (uint32_t[]){4294967295, 7, 6}, (uint32_t[]){5, 4, 3});
	r.hdr = header("cudaLaunchKernelExC", GBPF_REC_BEGIN_CONFIG);
	e = event_of(&r, sizeof(r), EVENT_BEGIN);
	expect_launch(&e, 0x5555, 1, 2, (uint32_t[]){4294967295, 7, 6}, (uint32_t[]){5, 4, 3});
}

/* dim3 by value: {x, y} share a register, z has half of the next. */
static void runtime_launches(void **state)
{
	struct gbpf_begin_rt_launch r = {
		.hdr = header("cudaLaunchKernel", GBPF_REC_BEGIN_RT_LAUNCH),
		.func = 0x401000,
		.grid_xy = 0x0000000200000001,
		.grid_z = GARBAGE | 3,
		.block_xy = 0x00000005ffffffff,
		.block_z = GARBAGE | 6,
		.smem = 0x10000000f, /* size_t: all of it counts */
		.stream = 2,
	};
	struct event e = event_of(&r, sizeof(r), EVENT_BEGIN);

	expect_launch(&e, 0x401000, 2, 0x10000000f, (uint32_t[]){1, 2, 3},
		      (uint32_t[]){4294967295, 5, 6});
}

static struct gbpf_begin_call call_of(const char *name)
{
	return (struct gbpf_begin_call){
		.hdr = header(name, GBPF_REC_BEGIN_CALL),
		.arg = {[GBPF_ARG_OBJECT] = 0x7f0000001000, [GBPF_ARG_BYTES] = 3,
			[GBPF_ARG_BYTES2] = 5, [GBPF_ARG_STREAM] = 0x11,
			[GBPF_ARG_SOURCE] = 0x7f0000002000},
	};
}

static void expect_call(const struct gbpf_begin_call *r, uint64_t bytes, uint64_t kind)
{
	struct event e = event_of(r, sizeof(*r), EVENT_BEGIN);

	assert_int_equal(e.args, EVENT_ARGS_CALL);
	assert_int_equal(e.call.object, 0x7f0000001000);
	assert_int_equal(e.call.stream, 0x11);
	assert_int_equal(e.call.source, 0x7f0000002000);
	assert_int_equal(e.call.bytes, bytes);
	assert_int_equal(e.call.kind, kind);
}

/* 3 wide and 5 high, in elements. */
static void bytes_are_multiplied_out(void **state)
{
	static const struct { const char *name; uint64_t bytes; } calls[] = {
		{"cuMemcpyHtoD_v2", 3},	    {"cuMemsetD8_v2", 3},     {"cuMemsetD16_v2", 6},
		{"cuMemsetD32_v2", 12},	    {"cuMemsetD32Async", 12}, {"cuMemsetD2D8_v2", 15},
		{"cuMemsetD2D16_v2", 30},   {"cuMemsetD2D32_v2", 60}, {"cuMemcpy2D_v2", 15},
		{"cuMemcpy3DAsync_v2", 15}, {"cudaMemcpy3D", 15},     {"cudaMemcpy2D", 15},
		{"cudaMemset", 3},	    {"cuMemAlloc_v2", 3},
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		struct gbpf_begin_call r = call_of(calls[i].name);
		struct event e = event_of(&r, sizeof(r), EVENT_BEGIN);

		if (e.call.bytes != calls[i].bytes)
			fail_msg("%s: %llu bytes", calls[i].name,
				 (unsigned long long)e.call.bytes);
	}
}

static void sizes_keep_all_their_bits(void **state)
{
	struct gbpf_begin_call r = call_of("cuMemcpyHtoD_v2");

	r.arg[GBPF_ARG_BYTES] = 0xfedcba9876543210;
	expect_call(&r, 0xfedcba9876543210, 0);
	r = call_of("cuMemsetD2D32_v2");
	r.arg[GBPF_ARG_BYTES] = 1ULL << 33;
	r.arg[GBPF_ARG_BYTES2] = 1ULL << 20;
	expect_call(&r, 1ULL << 55, 0);
}

static void kinds_are_enums(void **state)
{
	struct gbpf_begin_call r = call_of("cudaMemcpy");

	for (uint64_t kind = 0; kind < 5; kind++) {
		r.arg[GBPF_ARG_KIND] = GARBAGE | kind;
		expect_call(&r, 3, kind);
	}
	/* a structure's field: the kernel reads four bytes of it, and clears the rest */
	r = call_of("cudaMemcpy3D");
	r.arg[GBPF_ARG_KIND] = 2;
	expect_call(&r, 15, 2);
}

/* CUmemorytype of both ends: host 1, device 2, array 3, unified 4; rows are sources. */
static void memory_types_tell_the_direction(void **state)
{
	enum { HH, HD, DH, DD, ASK };
	static const uint8_t expected[6][6] = {
		{ASK, ASK, ASK, ASK, ASK, ASK}, {ASK, HH, HD, HD, ASK, ASK},
		{ASK, DH, DD, DD, ASK, ASK},	{ASK, DH, DD, DD, ASK, ASK},
		{ASK, ASK, ASK, ASK, ASK, ASK}, {ASK, ASK, ASK, ASK, ASK, ASK},
	};
	static const char *const names[] = {"cuMemcpy2D_v2", "cuMemcpy2DUnaligned_v2",
					    "cuMemcpy2DAsync_v2", "cuMemcpy3D_v2",
					    "cuMemcpy3DAsync_v2_ptsz"};

	for (size_t n = 0; n < sizeof(names) / sizeof(*names); n++) {
		struct gbpf_begin_call r = call_of(names[n]);

		for (uint64_t from = 0; from < 6; from++)
			for (uint64_t to = 0; to < 6; to++) {
				r.arg[GBPF_ARG_KIND] = to << 32 | from;
				expect_call(&r, 15, expected[from][to]);
			}
		r.arg[GBPF_ARG_KIND] = 0xffffffffffffffff;
		expect_call(&r, 15, ASK);
	}
}

static void nccl_counts_are_of_their_type(void **state)
{
	/* nccl.h: int8 uint8 int32 uint32 int64 uint64 half float double bfloat16 and two float8 */
	static const uint64_t size[NCCL_TYPES] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
	struct gbpf_begin_call r = call_of("ncclAllReduce");

	for (uint64_t type = 0; type < NCCL_TYPES; type++) {
		r.arg[GBPF_ARG_KIND] = GARBAGE | type;
		expect_call(&r, 3 * size[type], type);
	}
	r.arg[GBPF_ARG_KIND] = NCCL_TYPES;
	expect_call(&r, 0, NCCL_TYPES);
	r.arg[GBPF_ARG_KIND] = 0xffffffff;
	expect_call(&r, 0, 0xffffffff);
}

/* The catalogue of another build may be longer: nothing is known of its APIs. */
static void an_unknown_api_is_left_as_it_came(void **state)
{
	struct gbpf_begin_call r = call_of("cuMemsetD32_v2");

	r.hdr.tag = GBPF_TAG(GBPF_MAX_API - 1, GBPF_REC_BEGIN_CALL, 0xfffe);
	r.arg[GBPF_ARG_KIND] = GARBAGE | 4;
	expect_call(&r, 3, 4);
	r.hdr.tag = GBPF_TAG(0, GBPF_REC_BEGIN_CALL, 0xfffe);
	expect_call(&r, 3, 4);
}

static void ends_and_what_they_bring(void **state)
{
	struct gbpf_end r = {header("cuMemAlloc_v2", GBPF_REC_END), -1, 0xffffffff};
	struct gbpf_end_out out = {header("cuMemAlloc_v2", GBPF_REC_END_OUT), 2, 0xffffffff,
				   0x7f1234500000};
	struct event e = event_of(&r, sizeof(r), EVENT_END);

	assert_int_equal(e.end.ret, -1);
	assert_int_equal(e.has_out, 0);
	assert_int_equal(e.end.out, 0);
	assert_int_equal(e.args, EVENT_ARGS_NONE);
	e = event_of(&out, sizeof(out), EVENT_END);
	assert_int_equal(e.end.ret, 2);
	assert_int_equal(e.has_out, 1);
	assert_int_equal(e.end.out, 0x7f1234500000);
}

static void expect_poll(const struct event *e, int64_t last_end, int64_t inside, uint32_t min,
			uint32_t max, uint32_t count, int32_t ret)
{
	assert_int_equal(e->args, EVENT_ARGS_NONE);
	assert_int_equal(e->poll.last_end, last_end);
	assert_int_equal(e->poll.inside, inside);
	assert_int_equal(e->poll.min, min);
	assert_int_equal(e->poll.max, max);
	assert_int_equal(e->poll.count, count);
	assert_int_equal(e->poll.ret, ret);
}

static void runs_of_queries(void **state)
{
	struct gbpf_poll r = {
		.hdr = header("cuEventQuery", GBPF_REC_POLL),
		.object = 0x1122334455667788,
		.last_end = 123456789099999,
		.inside = 5000000000,
		.min = 200,
		.max = 4294967295,
		.count = 4000000000,
		.ret = 600,
	};
	struct event e = event_of(&r, sizeof(r), EVENT_POLL);

	assert_int_equal(e.poll.object, 0x1122334455667788);
	expect_poll(&e, 123456789099999, 5000000000, 200, 4294967295, 4000000000, 600);
}

static void queries_still_going_on(void **state)
{
	struct gbpf_poll_state s = {
		.object = 0xaa, .first = 1000, .last_end = 9000, .inside = 700,
		.entered = 9500, .entered_object = 0xbb, .min = 100, .max = 300, .count = 4,
		.ret = 600, .tag = GBPF_TAG(api("cuEventQuery"), GBPF_REC_POLL, 3),
		.sp = 0xf0, .pid = 12, .tid = 13,
	};
	struct event e;

	memset(&e, 0xa5, sizeof(e));
	decode_open_poll(&s, &e);
	assert_int_equal(e.ts, 1000);
	assert_int_equal(e.pid, 12);
	assert_int_equal(e.tid, 13);
	assert_int_equal(e.sp, 0xf0);
	assert_int_equal(e.api, api("cuEventQuery"));
	assert_int_equal(e.image, 3);
	assert_int_equal(e.kind, EVENT_POLL);
	assert_int_equal(e.poll.object, 0xaa);
	expect_poll(&e, 9000, 700, 100, 300, 4, 600);

	/* what an earlier run left in the state says nothing of the query that is inside now */
	s.count = 0;
	decode_open_poll(&s, &e);
	assert_int_equal(e.ts, 9500);
	assert_int_equal(e.poll.object, 0xbb);
	expect_poll(&e, 0, 0, 0, 0, 1, 600);
}

struct named {
	struct gbpf_name n;
	char text[GBPF_NAME_SHORT];
};

static struct named name_of(int32_t len, uint32_t source)
{
	struct named r = {.n = {.hdr = header("cuLaunchKernel", GBPF_REC_NAME), .handle = 1,
				.len = len, .source = source}};

	return r;
}

static enum decoded decode_name(const struct named *r, size_t size)
{
	struct event e;

	return decode_exact(r, size, &e);
}

static void names_end_within_their_record(void **state)
{
	struct named r = name_of(6, GBPF_NAME_LAYOUT);
	const size_t whole = sizeof(r.n) + 6;

	memcpy(r.text, "_Z1kv", 6);
	assert_int_equal(decode_name(&r, sizeof(r)), DECODED_NAME);
	assert_int_equal(decode_name(&r, whole), DECODED_NAME);
	assert_int_equal(decode_name(&r, whole - 1), DECODED_MALFORMED);
	assert_int_equal(decode_name(&r, sizeof(r.n)), DECODED_MALFORMED);
	r.n.len = 5; /* its NUL is not where len says */
	assert_int_equal(decode_name(&r, sizeof(r)), DECODED_MALFORMED);
	r.n.len = INT32_MAX;
	assert_int_equal(decode_name(&r, sizeof(r)), DECODED_MALFORMED);
	r.n.len = GBPF_NAME_SHORT;
	memset(r.text, 'k', sizeof(r.text));
	assert_int_equal(decode_name(&r, sizeof(r)), DECODED_MALFORMED);
	r.text[GBPF_NAME_SHORT - 1] = '\0';
	assert_int_equal(decode_name(&r, sizeof(r)), DECODED_NAME);
}

static void names_that_hold_nothing(void **state)
{
	static const int32_t lens[] = {0, -14, INT32_MIN};

	for (size_t i = 0; i < sizeof(lens) / sizeof(*lens); i++) {
		for (uint32_t source = 0; source < 6; source++) {
			struct named r = name_of(lens[i], source);
			bool empty = source == GBPF_NAME_FAULT || source == GBPF_NAME_STUB;

			assert_int_equal(decode_name(&r, sizeof(r)),
					 empty ? DECODED_NAME : DECODED_MALFORMED);
		}
	}
}

static void processes_have_no_image(void **state)
{
	struct gbpf_process r = {.hdr = header("cuInit", GBPF_REC_PROCESS), .event = 1};
	struct event e;

	r.hdr.tag = GBPF_TAG(0, GBPF_REC_PROCESS, 0);
	assert_int_equal(decode_exact(&r, sizeof(r), &e), DECODED_PROCESS);
}

/* Every type at every length that its record cannot have, and types that there are not. */
static void records_that_are_short_or_of_no_type(void **state)
{
	static const uint16_t size[16] = {0, 24, 32, 72, 80, 72, 80, 32, 40, 64, 48, 64};
	_Alignas(8) uint8_t data[128];
	struct gbpf_hdr h;
	struct event e;

	for (unsigned type = 0; type < 16; type++) {
		memset(data, 0, sizeof(data));
		h = header("cuLaunchKernel", type);
		memcpy(data, &h, sizeof(h));
		if (type == GBPF_REC_NAME)
			data[44] = GBPF_NAME_FAULT;
		for (size_t n = 0; n <= sizeof(data); n++) {
			enum decoded got = decode_exact(data, n, &e);

			if ((got == DECODED_MALFORMED) != (!size[type] || n < size[type]))
				fail_msg("type %u with %zu bytes: %d", type, n, got);
		}
	}
}

/* Image 0 is gbpf's own function: its calls are nobody's. */
static void calibration_is_dropped(void **state)
{
	_Alignas(8) uint8_t data[128] = {0};
	struct gbpf_hdr h;
	struct event e;

	for (unsigned type = GBPF_REC_BEGIN_BARE; type < GBPF_REC_PROCESS; type++) {
		h = header("cuLaunchKernel", type);
		h.tag &= 0xffff;
		memcpy(data, &h, sizeof(h));
		assert_int_equal(decode_exact(data, sizeof(data), &e), DECODED_NOTHING);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bare_calls),
		cmocka_unit_test(an_object_may_be_a_stream),
		cmocka_unit_test(driver_launches),
		cmocka_unit_test(launches_by_configuration),
		cmocka_unit_test(runtime_launches),
		cmocka_unit_test(bytes_are_multiplied_out),
		cmocka_unit_test(sizes_keep_all_their_bits),
		cmocka_unit_test(kinds_are_enums),
		cmocka_unit_test(memory_types_tell_the_direction),
		cmocka_unit_test(nccl_counts_are_of_their_type),
		cmocka_unit_test(an_unknown_api_is_left_as_it_came),
		cmocka_unit_test(ends_and_what_they_bring),
		cmocka_unit_test(runs_of_queries),
		cmocka_unit_test(queries_still_going_on),
		cmocka_unit_test(names_end_within_their_record),
		cmocka_unit_test(names_that_hold_nothing),
		cmocka_unit_test(processes_have_no_image),
		cmocka_unit_test(records_that_are_short_or_of_no_type),
		cmocka_unit_test(calibration_is_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
