// SPDX-License-Identifier: BSD-2-Clause
/* CUPTI's records, decoded; the ring and the shapes that go through it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record/record.h"
#include "sidecar/lib/layout.h"
#include "sidecar/lib/ring.h"
#include "sidecar/lib/shapes.h"
#include "tests/sim/cupti_abi.h"

#define DATA 4096u

/* What cuptiGetVersion() says in CUDA 11.8 and so on. */
enum {
	CUPTI_11_8 = 18,
	CUPTI_12_4 = 22,
	CUPTI_12_5 = 23,
	CUPTI_12_6 = 24,
	CUPTI_12_8 = 26,
	CUPTI_13_0 = 130000,
	CUPTI_13_1 = 130100,
	CUPTI_13_2 = 130200,
	CUPTI_13_3 = 130300,
	CUPTI_13_4 = 130400,
	CUPTI_14_0 = 140000,
};

static const uint32_t versions[] = {
	CUPTI_11_8, CUPTI_12_4, CUPTI_12_5, CUPTI_12_6, CUPTI_12_8, 28, CUPTI_13_0, CUPTI_13_0 + 1,
	CUPTI_13_1, CUPTI_13_2, CUPTI_13_3, CUPTI_13_4, 139999,
};
#define VERSIONS (sizeof(versions) / sizeof(*versions))

static void versions_that_are_known(void **state)
{
	static const uint32_t unknown[] = { 0, 17, CUPTI_14_0, 150000, UINT32_MAX };

	for (size_t i = 0; i < VERSIONS; i++)
		assert_non_null(layout_of(versions[i]));
	for (size_t i = 0; i < sizeof(unknown) / sizeof(*unknown); i++)
		assert_null(layout_of(unknown[i]));
	assert_int_equal(layout_of(CUPTI_11_8)->kernel, 200);
	assert_int_equal(layout_of(28)->kernel, 208);
	assert_int_equal(layout_of(CUPTI_13_0 + 1)->kernel, 216);
	assert_int_equal(layout_of(CUPTI_13_2)->kernel, 224);
	assert_int_equal(layout_of(CUPTI_13_3)->kernel, 232);
	assert_false(layout_of(CUPTI_13_0)->priority);
	assert_true(layout_of(CUPTI_13_1)->priority);
	assert_false(layout_of(CUPTI_13_4)->later);
}

/* The stand-in's own structs, held against the real headers by its authors. */
static struct cupti_kernel a_kernel(void)
{
	return (struct cupti_kernel){
		.kind = CUPTI_CONCURRENT_KERNEL,
		.registers = 65535,
		.start = 1795994897450091103ull,
		.end = 1795994897450093104ull,
		.device = 1,
		.context = 2,
		.stream = 3,
		.grid = { 4, 5, 6 },
		.block = { 7, 8, 9 },
		.static_shared = 10,
		.dynamic_shared = 11,
		.local_thread = 12,
		.correlation = UINT32_MAX,
		.name = "_Z1kv",
		.graph_node = 0x100000002ull,
		.graph = 14,
		.channel = 15,
		.channel_type = 16,
		.priority = -5,
	};
}

static void kernels(void **state)
{
	struct cupti_kernel k = a_kernel();

	for (size_t i = 0; i < VERSIONS; i++) {
		const struct layout *l = layout_of(versions[i]);
		uint8_t record[240] = { 0 };
		struct decoded d;

		memcpy(record, &k, sizeof(k));
		layout_decode(l, record, l->kernel, &d);
		assert_int_equal(d.what, DECODED_WORK);
		assert_int_equal(d.work.r.type, WIRE_WORK);
		assert_int_equal(d.work.r.size, sizeof(d.work));
		assert_int_equal(d.work.kind, RECORD_WORK_KERNEL);
		assert_int_equal(d.work.begin, 1795994897450091103);
		assert_int_equal(d.work.end, 1795994897450093104);
		assert_int_equal(d.work.device, 1);
		assert_int_equal(d.work.context, 2);
		assert_int_equal(d.work.stream, 3);
		assert_int_equal(d.work.correlation, UINT32_MAX);
		assert_int_equal(d.work.peer, UINT32_MAX);
		assert_int_equal(d.work.graph_node, l->later ? 0x100000002ull : 0);
		assert_int_equal(d.work.graph, l->later ? 14 : 0);
		assert_int_equal(d.work.channel, l->later ? 15 : 0);
		assert_int_equal(d.work.channel_type, l->later ? 16 : 0);
		assert_int_equal(d.work.priority, l->priority ? -5 : 0);
		assert_memory_equal(d.shape.grid, k.grid, sizeof(k.grid));
		assert_memory_equal(d.shape.block, k.block, sizeof(k.block));
		assert_int_equal(d.shape.registers, 65535);
		assert_int_equal(d.shape.smem_static, 10);
		assert_int_equal(d.shape.smem_dynamic, 11);
		assert_int_equal(d.shape.local, 12);
		assert_ptr_equal((void *)d.name, k.name);
		layout_decode(l, record, l->kernel - 1u, &d);
		assert_int_equal(d.what, DECODED_BAD);
		assert_int_equal(d.bad, WIRE_BAD_FORM);
	}
}

static void copies_and_sets(void **state)
{
	const struct layout *l = layout_of(CUPTI_13_0);
	struct cupti_copy c = {
		.kind = CUPTI_MEMCPY, .copy = RECORD_COPY_HTOD, .from = RECORD_MEMORY_PAGEABLE,
		.to = RECORD_MEMORY_DEVICE, .bytes = 1ull << 40, .start = 100, .end = 200,
		.device = 1, .context = 2, .stream = 3, .correlation = 4, .graph_node = 5,
		.graph = 6, .channel = 7, .channel_type = 8,
	};
	struct cupti_set s = {
		.kind = CUPTI_MEMSET, .value = 9, .bytes = 10, .start = 11, .end = 12, .device = 13,
		.context = 14, .stream = 15, .correlation = 16, .flags = 0xffff,
		.memory = RECORD_MEMORY_MANAGED, .graph_node = 17, .graph = 18, .channel = 19,
		.channel_type = 20,
	};
	struct decoded d;

	layout_decode(l, &c, sizeof(c), &d);
	assert_int_equal(d.what, DECODED_WORK);
	assert_int_equal(d.work.kind, RECORD_WORK_COPY);
	assert_int_equal(d.work.direction, RECORD_COPY_HTOD);
	assert_int_equal(d.work.source, RECORD_MEMORY_PAGEABLE);
	assert_int_equal(d.work.target, RECORD_MEMORY_DEVICE);
	assert_int_equal(d.work.bytes, 1ull << 40);
	assert_int_equal(d.work.begin, 100);
	assert_int_equal(d.work.end, 200);
	assert_int_equal(d.work.correlation, 4);
	assert_int_equal(d.work.graph_node, 5);
	assert_int_equal(d.work.channel_type, 8);
	layout_decode(l, &s, sizeof(s), &d);
	assert_int_equal(d.what, DECODED_WORK);
	assert_int_equal(d.work.kind, RECORD_WORK_SET);
	assert_int_equal(d.work.bytes, 10);
	assert_int_equal(d.work.source, RECORD_MEMORY_UNKNOWN);
	assert_int_equal(d.work.target, RECORD_MEMORY_MANAGED);
	assert_int_equal(d.work.correlation, 16);
	assert_int_equal(d.work.stream, 15);
	assert_int_equal(d.work.graph, 18);
	assert_int_equal(d.work.channel, 19);
}

static void put32(uint8_t *record, size_t at, uint32_t v)
{
	memcpy(record + at, &v, sizeof(v));
}

static void put64(uint8_t *record, size_t at, uint64_t v)
{
	memcpy(record + at, &v, sizeof(v));
}

/* CUpti_ActivityMemcpyPtoP4, which the stand-in does not write. */
static void copies_between_devices(void **state)
{
	const struct layout *l = layout_of(CUPTI_12_4);
	uint8_t r[96] = { 0 };
	struct decoded d;

	put32(r, 0, CUPTI_MEMCPY_PEER);
	r[4] = RECORD_COPY_PTOP;
	r[5] = r[6] = RECORD_MEMORY_DEVICE;
	put64(r, 8, 4096);
	put64(r, 16, 100);
	put64(r, 24, 200);
	put32(r, 32, 1); /* device */
	put32(r, 44, 0); /* from */
	put32(r, 52, 1); /* to */
	put32(r, 60, 77);
	put64(r, 72, 5);
	put32(r, 80, 6);
	layout_decode(l, r, sizeof(r), &d);
	assert_int_equal(d.what, DECODED_WORK);
	assert_int_equal(d.work.kind, RECORD_WORK_COPY);
	assert_int_equal(d.work.direction, RECORD_COPY_PTOP);
	assert_int_equal(d.work.correlation, 77);
	assert_int_equal(d.work.peer, 0);
	assert_int_equal(d.work.graph_node, 5);
	assert_int_equal(d.work.graph, 6);
	put32(r, 32, 0);
	layout_decode(l, r, sizeof(r), &d);
	assert_int_equal(d.work.peer, 1);
}

static void calls_and_overhead(void **state)
{
	const struct layout *l = layout_of(CUPTI_12_4);
	struct cupti_api a = {
		.kind = CUPTI_DRIVER, .cbid = 307, .start = 5, .end = 6, .process = 7,
		.thread = UINT32_MAX, .correlation = 9, .ret = -1,
	};
	uint8_t o[56] = { 0 };
	struct decoded d;

	layout_decode(l, &a, sizeof(a), &d);
	assert_int_equal(d.what, DECODED_CALL);
	assert_int_equal(d.call.cbid, 307);
	assert_int_equal(d.call.domain, 1);
	assert_int_equal(d.call.tid, UINT32_MAX);
	assert_int_equal(d.call.correlation, 9);
	assert_int_equal(d.call.ret, -1);
	a.kind = CUPTI_RUNTIME;
	layout_decode(l, &a, sizeof(a), &d);
	assert_int_equal(d.call.domain, 2);
	put32(o, 0, CUPTI_OVERHEAD);
	put32(o, 4, 65536);
	put32(o, 8, CUPTI_OBJECT_THREAD);
	put32(o, 12, 1);
	put32(o, 16, 4242);
	put64(o, 24, 10);
	put64(o, 32, 20);
	layout_decode(l, o, sizeof(o), &d);
	assert_int_equal(d.what, DECODED_OVERHEAD);
	assert_int_equal(d.overhead.tid, 4242);
	assert_int_equal(d.overhead.kind, 65536);
	put32(o, 8, 3);
	layout_decode(l, o, sizeof(o), &d);
	assert_int_equal(d.overhead.tid, 0);
}

static void times_that_cannot_be(void **state)
{
	static const struct {
		uint64_t start, end;
		enum wire_bad bad;
	} cases[] = {
		{ 0, 5, WIRE_BAD_ZERO },     { 5, 0, WIRE_BAD_ZERO },
		{ 0, 0, WIRE_BAD_ZERO },     { 6, 5, WIRE_BAD_NEGATIVE },
		{ 5, UINT64_MAX, WIRE_BAD_FORM },
	};
	struct cupti_kernel k = a_kernel();
	struct decoded d;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		k.start = cases[i].start;
		k.end = cases[i].end;
		layout_decode(layout_of(CUPTI_13_1), &k, sizeof(k), &d);
		assert_int_equal(d.what, DECODED_BAD);
		assert_int_equal(d.bad, cases[i].bad);
	}
	k.start = k.end = 7;
	layout_decode(layout_of(CUPTI_13_1), &k, sizeof(k), &d);
	assert_int_equal(d.what, DECODED_WORK);
}

static void kinds_nobody_asked_for(void **state)
{
	uint8_t r[256] = { 0 };
	struct decoded d;

	for (uint32_t kind = 0; kind < 70; kind++) {
		if (kind == CUPTI_MEMCPY || kind == CUPTI_MEMSET || kind == CUPTI_KERNEL ||
		    kind == CUPTI_DRIVER || kind == CUPTI_RUNTIME || kind == CUPTI_OVERHEAD ||
		    kind == CUPTI_CONCURRENT_KERNEL || kind == CUPTI_MEMCPY_PEER)
			continue;
		put32(r, 0, kind);
		layout_decode(layout_of(CUPTI_13_1), r, sizeof(r), &d);
		assert_int_equal(d.what, DECODED_NOTHING);
	}
	layout_decode(layout_of(CUPTI_13_1), r, 3, &d);
	assert_int_equal(d.what, DECODED_BAD);
}

static void launches(void **state)
{
	assert_true(layout_launches(307)); /* cuLaunchKernel */
	assert_true(layout_launches(652)); /* cuLaunchKernelEx */
	assert_true(layout_launches(514)); /* cuGraphLaunch */
	assert_true(layout_launches(277)); /* cuMemcpyHtoDAsync_v2 */
	assert_false(layout_launches(0));
	assert_false(layout_launches(17)); /* cuCtxSynchronize */
	assert_false(layout_launches(527)); /* cuLaunchHostFunc */
}

static void launches_of_the_runtime(void **state)
{
	static const uint32_t yes[] = {
		13, 31, 41, 51, 52, 142, 145, 160, 211, 214, 225, 236, 246, 250, 270, 311, 312, 430,
		431, 482, 506, 512, 557, 567, UINT32_MAX,
	};
	static const uint32_t no[] = { 0, 12, 30, 53, 131, 135, 165, 212, 237, 271, 284, 313, 566 };

	for (size_t i = 0; i < sizeof(yes) / sizeof(*yes); i++)
		assert_true(layout_runtime_launches(yes[i]));
	for (size_t i = 0; i < sizeof(no) / sizeof(*no); i++)
		assert_false(layout_runtime_launches(no[i]));
}

/* ---- the ring ---- */

static void ring_new(struct ring *r)
{
	int fd = memfd_create("ring", MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, WIRE_RING_HEADER + DATA), 0);
	assert_int_equal(ring_map(r, fd, WIRE_RING_HEADER + DATA), 0);
	close(fd);
}

static void rings_that_cannot_be(void **state)
{
	static const uint64_t sizes[] = {
		0, 1, WIRE_RING_HEADER, WIRE_RING_HEADER + 1, WIRE_RING_HEADER + DATA + 8,
		WIRE_RING_HEADER + 2048, WIRE_RING_HEADER + 2 * DATA, 1ull << 40, UINT64_MAX,
	};
	int fd = memfd_create("ring", MFD_CLOEXEC);
	struct ring r = { 0 };
	int ends[2];

	assert_int_equal(ftruncate(fd, WIRE_RING_HEADER + DATA), 0);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		assert_int_equal(ring_map(&r, fd, sizes[i]), -EINVAL);
	close(fd);
	assert_int_equal(ring_map(&r, fd, WIRE_RING_HEADER + DATA), -EBADF);
	assert_int_equal(pipe(ends), 0);
	assert_true(ring_map(&r, ends[0], WIRE_RING_HEADER + DATA) < 0);
	assert_null(r.shared);
	ring_unmap(&r);
	close(ends[0]);
	close(ends[1]);
}

/* Takes all there is, as the loader does; how many of WIRE_CALL, each holding its number. */
static unsigned take(struct ring *r, uint64_t *expect)
{
	unsigned taken = 0;

	while (r->shared->tail != r->shared->head) {
		uint64_t at = r->shared->tail % DATA;
		struct wire_call c;

		memcpy(&c.r, r->data + at, sizeof(c.r));
		assert_true(c.r.size >= sizeof(c.r) && c.r.size % 8 == 0 && at + c.r.size <= DATA);
		if (c.r.type == WIRE_CALL) {
			memcpy(&c, r->data + at, sizeof(c));
			assert_int_equal(c.begin, (*expect)++);
			taken++;
		}
		r->shared->tail += c.r.size;
	}
	return taken;
}

static void the_ring_wraps_fills_and_counts(void **state)
{
	uint64_t put = 0, taken = 0, got = 0;
	struct ring r;

	ring_new(&r);
	for (int round = 0; round < 200; round++) {
		for (int i = 0; i < round; i++) {
			struct wire_call c = { .r = { sizeof(c), WIRE_CALL } };
			uint8_t more[136] = { 0 };

			c.begin = (int64_t)put;
			c.r.size += (uint32_t)(i % 18 * 8);
			if (!ring_put(&r, &c, sizeof(c), more, (size_t)(i % 18) * 8))
				put++;
		}
		got += take(&r, &taken);
	}
	assert_int_equal(got, put);
	assert_true(r.shared->dropped > 0);
	assert_int_equal(put + r.shared->dropped, 199 * 200 / 2);
	ring_unmap(&r);
	ring_unmap(&r);
}

static void a_loader_that_lies(void **state)
{
	struct wire_call c = { .r = { sizeof(c), WIRE_CALL } };
	static const uint64_t tails[] = { 8, DATA, 1ull << 63, -(uint64_t)DATA };
	struct ring r;

	ring_new(&r);
	for (size_t i = 0; i < sizeof(tails) / sizeof(*tails); i++) {
		r.shared->tail = tails[i];
		assert_int_equal(ring_put(&r, &c, sizeof(c), NULL, 0), -ENOSPC);
	}
	r.shared->tail = 0;
	r.shared->head = UINT64_MAX / 2; /* ours is believed, not this */
	assert_int_equal(ring_put(&r, &c, sizeof(c), NULL, 0), 0);
	assert_int_equal(r.shared->head, sizeof(c));
	assert_int_equal(ring_put(&r, &c, sizeof(c), &r, DATA), -ENOSPC);
	ring_unmap(&r);
}

/* ---- shapes ---- */

static void shapes_once_each(void **state)
{
	char again[] = "_Z1kv", longest[WIRE_NAME_MAX + 10];
	struct wire_shape a = { .grid = { 1, 1, 1 } }, b = { .grid = { 2, 1, 1 } };
	struct shapes s;
	struct ring r;
	uint32_t first;
	bool cut;
	int fd = memfd_create("ring", MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, WIRE_RING_HEADER + 65536), 0);
	assert_int_equal(ring_map(&r, fd, WIRE_RING_HEADER + 65536), 0);
	close(fd);
	assert_int_equal(shapes_init(&s), 0);
	first = shapes_id(&s, &r, &a, 1000, again, &cut);
	assert_true(first && !cut);
	assert_int_equal(shapes_id(&s, &r, &a, 1000, again, &cut), first);
	assert_int_not_equal(shapes_id(&s, &r, &b, 1000, again, &cut), first);
	assert_int_not_equal(shapes_id(&s, &r, &a, 1008, again, &cut), first);
	again[2] = '2';
	assert_int_not_equal(shapes_id(&s, &r, &a, 1000, again, &cut), first);
	again[2] = '1';
	assert_int_equal(shapes_id(&s, &r, &a, 1000, again, &cut), first);
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	assert_int_not_equal(shapes_id(&s, &r, &a, 5, longest, &cut), 0);
	assert_true(cut);
	longest[WIRE_NAME_MAX - 1] = '\0';
	assert_int_not_equal(shapes_id(&s, &r, &a, 6, longest, &cut), 0);
	assert_false(cut);
	r.shared->tail = r.shared->head - 65536; /* full */
	assert_int_equal(shapes_id(&s, &r, &b, 7, again, &cut), 0);
	r.shared->tail = r.shared->head;
	assert_int_not_equal(shapes_id(&s, &r, &b, 7, again, &cut), 0);
	shapes_free(&s);
	shapes_free(&s);
	ring_unmap(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions_that_are_known),
		cmocka_unit_test(kernels),
		cmocka_unit_test(copies_and_sets),
		cmocka_unit_test(copies_between_devices),
		cmocka_unit_test(calls_and_overhead),
		cmocka_unit_test(times_that_cannot_be),
		cmocka_unit_test(kinds_nobody_asked_for),
		cmocka_unit_test(launches),
		cmocka_unit_test(launches_of_the_runtime),
		cmocka_unit_test(rings_that_cannot_be),
		cmocka_unit_test(the_ring_wraps_fills_and_counts),
		cmocka_unit_test(a_loader_that_lies),
		cmocka_unit_test(shapes_once_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
