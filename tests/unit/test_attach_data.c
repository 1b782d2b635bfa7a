// SPDX-License-Identifier: BSD-2-Clause
/* What programs in the kernel read of a target: names, arguments, what calls give back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/mman.h>

#include "rig.h"

#define NAME_OFFSET 8

/* As a driver keeps it: a pointer to the name somewhere in the object of the handle. */
struct handle {
	void *other;
	const char *name;
	uint64_t more[10];
};

/* Programs in the kernel fault nothing in: its page must have been looked at. */
static const char *touched(const char *text)
{
	for (const volatile char *c = text; *c; c++)
		;
	return text;
}

static struct rig *rig_of(const char *api)
{
	struct rig *g = rig_on(RUNG_AUTO, "rig_call", api);

	probes_name_offset(g->p, RIG_IMAGE, NAME_OFFSET);
	return g;
}

static void call(rig_fn function, const void *first, long second)
{
	rig_fn volatile f = function;

	f((void *)(uintptr_t)first, second, 3, 4, 5, 6, 7, 8, 9);
}

static const struct rig_name *only_name(struct rig *g, unsigned source)
{
	rig_read(g);
	assert_int_equal(g->names_count, 1);
	assert_int_equal(g->names[0].head.source, source);
	assert_int_equal(g->names[0].head.hdr.pid, getpid());
	assert_int_equal(GBPF_TAG_IMAGE(g->names[0].head.hdr.tag), RIG_IMAGE);
	return &g->names[0];
}

/* ---- names ---- */

static void names_of_every_length(void **state)
{
	static const size_t lengths[] = {1, 2, 253, 254, 255, 256,
					 257, 4095, 8190, 8191, 8192, 9000};
	struct rig *g = rig_of("cuLaunchKernel");

	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		size_t len = lengths[i], kept = len < 8191 ? len : 8191;
		char *text = malloc(len + 1);
		struct handle h = {.name = text};
		const struct rig_name *n;

		assert_non_null(text);
		for (size_t k = 0; k < len; k++)
			text[k] = (char)('a' + k % 26);
		text[len] = '\0';
		probes_forget_names(g->p, (uint32_t)getpid()); /* handles are at one address */
		call(rig_call, &h, 0);
		n = only_name(g, GBPF_NAME_LAYOUT);
		assert_int_equal(n->head.handle, (uintptr_t)&h);
		assert_int_equal(n->head.where, (uintptr_t)text);
		assert_int_equal(n->head.len, kept + 1);
		assert_int_equal(strlen(n->text), kept);
		assert_memory_equal(n->text, text, kept);
		assert_int_equal(g->count, 2); /* and the launch itself */
		free(text);
	}
	rig_free(g);
}

static void once_a_handle(void **state)
{
	struct rig *g = rig_of("cuLaunchKernel");
	struct handle one = {.name = touched("one")}, two = {.name = touched("two")};

	for (int i = 0; i < 10; i++) {
		call(rig_call, &one, 0);
		call(rig_call, &two, 0);
	}
	rig_read(g);
	assert_int_equal(g->names_count, 2);
	assert_int_equal(g->count, 40);
	call(rig_call, &one, 0);
	rig_read(g);
	assert_int_equal(g->names_count, 0);
	one.name = touched("three"); /* as after a module was unloaded and another loaded */
	probes_forget_names(g->p, (uint32_t)getpid());
	call(rig_call, &one, 0);
	assert_string_equal(only_name(g, GBPF_NAME_LAYOUT)->text, "three");
	rig_free(g);
}

static void unloading_forgets(void **state)
{
	struct rig *g = rig_new(RUNG_AUTO);
	struct handle h = {.name = touched("before")};
	struct probe_site sites[] = {rig_site(g, "rig_call", "cuLaunchKernel"),
				     rig_site(g, "rig_other", "cuModuleUnload")};

	rig_attach(g, sites, 2);
	probes_name_offset(g->p, RIG_IMAGE, NAME_OFFSET);
	call(rig_call, &h, 0);
	assert_string_equal(only_name(g, GBPF_NAME_LAYOUT)->text, "before");
	h.name = touched("after");
	call(rig_other, (void *)0x1234, 0);
	call(rig_call, &h, 0);
	assert_string_equal(only_name(g, GBPF_NAME_LAYOUT)->text, "after");
	rig_free(g);
}

/* Pages that are not there: said, with where to look, so that user space can try. */
static void names_that_cannot_be_read(void **state)
{
	char *none = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rig *g = rig_of("cuLaunchKernel");
	struct handle h = {.name = none + 16};
	const struct rig_name *n;

	assert_ptr_not_equal(none, MAP_FAILED);
	call(rig_call, &h, 0);
	n = only_name(g, GBPF_NAME_FAULT);
	assert_int_equal(n->head.len, -EFAULT);
	assert_int_equal(n->head.where, (uintptr_t)none + 16);
	assert_int_equal(n->head.handle, (uintptr_t)&h);
	call(rig_call, none, 0); /* the handle itself */
	n = only_name(g, GBPF_NAME_FAULT);
	assert_int_equal(n->head.handle, (uintptr_t)none);
	assert_int_equal(n->head.where, 0);
	assert_int_equal(g->count, 2);
	call(rig_call, NULL, 0);
	only_name(g, GBPF_NAME_FAULT);
	h.name = touched(""); /* readable, and no name */
	probes_forget_names(g->p, (uint32_t)getpid());
	call(rig_call, &h, 0);
	assert_int_equal(only_name(g, GBPF_NAME_LAYOUT)->head.len, 1);
	munmap(none, 4096);
	rig_free(g);
}

static void no_names_where_the_layout_is_unknown(void **state)
{
	struct rig *g = rig_on(RUNG_AUTO, "rig_call", "cuLaunchKernel");
	struct handle h = {.name = "nobody asks"};

	call(rig_call, &h, 0);
	rig_read(g);
	assert_int_equal(g->names_count, 0);
	assert_int_equal(g->count, 2);
	probes_name_offset(g->p, RIG_IMAGE, 16);
	h.more[0] = (uintptr_t)touched("at sixteen");
	call(rig_call, &h, 0);
	assert_string_equal(only_name(g, GBPF_NAME_LAYOUT)->text, "at sixteen");
	probes_name_offset(g->p, RIG_IMAGE, GBPF_NO_NAMES);
	probes_forget_names(g->p, (uint32_t)getpid());
	call(rig_call, &h, 0);
	rig_read(g);
	assert_int_equal(g->names_count, 0);
	rig_free(g);
}

/* The runtime launches host functions: asked for once, by address. */
static void host_functions_are_asked_for(void **state)
{
	struct rig *g = rig_of("cudaLaunchKernel");
	const struct rig_name *n;

	call(rig_call, (void *)(uintptr_t)rig_other, 0);
	n = only_name(g, GBPF_NAME_STUB);
	assert_int_equal(n->head.handle, (uintptr_t)rig_other);
	assert_int_equal(n->head.len, 0);
	call(rig_call, (void *)(uintptr_t)rig_other, 0);
	rig_read(g);
	assert_int_equal(g->names_count, 0);
	rig_free(g);
}

/* cuModuleGetFunction(CUfunction *out, CUmodule, const char *name): handle and name together. */
static void named_getters_tell_both(void **state)
{
	struct rig *g = rig_new(RUNG_AUTO);
	uint64_t out = 0xfeed0000;
	const struct rig_name *n;
	struct probe_site site = rig_site(g, "rig_call", "cuModuleGetFunction");
	rig_fn volatile f = rig_call;

	rig_attach(g, &site, 1);
	f(&out, 0, (long)(uintptr_t)touched("_Z4gemmPf"), 4, 5, 6, 7, 8, 9);
	n = only_name(g, GBPF_NAME_GETTER);
	assert_string_equal(n->text, "_Z4gemmPf");
	assert_int_equal(n->head.handle, 0xfeed0000);
	assert_int_equal(g->count, 2);
	assert_int_equal(g->events[1].has_out, 1);
	assert_int_equal(g->events[1].end.out, 0xfeed0000);
	f(&out, 500, (long)(uintptr_t)touched("missing"), 4, 5, 6, 7, 8, 9); /* not found */
	rig_read(g);
	assert_int_equal(g->names_count, 0);
	assert_int_equal(g->events[1].end.ret, 500);
	rig_free(g);
}

/* ---- arguments ---- */

static void launches_by_register_and_stack(void **state)
{
	struct rig *g = rig_of("cuLaunchKernel");
	struct handle h = {.name = touched("k")};
	rig_fn volatile f = rig_call;
	const struct event *e;

	f(&h, 2147483647, 65535, 64, 1024, 3, 0x7bad00000002, 0x7bad00018c00, 0x7fffcafe0000);
	rig_read(g);
	assert_int_equal(g->count, 2);
	e = &g->events[0];
	assert_int_equal(e->args, EVENT_ARGS_LAUNCH);
	assert_int_equal(e->launch.func, (uintptr_t)&h);
	assert_memory_equal(e->launch.grid, ((uint32_t[]){2147483647, 65535, 64}), 12);
	assert_memory_equal(e->launch.block, ((uint32_t[]){1024, 3, 2}), 12);
	assert_int_equal(e->launch.smem, 0x18c00);
	assert_int_equal(e->launch.stream, 0x7fffcafe0000);
	rig_free(g);
}

static void runtime_launches_pack_their_dimensions(void **state)
{
	struct rig *g = rig_of("cudaLaunchKernel");
	rig_fn volatile f = rig_call;
	const struct event *e;

	f((void *)0x401000, 2L << 32 | 1, 3, 5L << 32 | 4, 6, 0, 1L << 33, 0x5555, 0);
	rig_read(g);
	assert_int_equal(g->count, 2);
	e = &g->events[0];
	assert_int_equal(e->launch.func, 0x401000);
	assert_memory_equal(e->launch.grid, ((uint32_t[]){1, 2, 3}), 12);
	assert_memory_equal(e->launch.block, ((uint32_t[]){4, 5, 6}), 12);
	assert_int_equal(e->launch.smem, 1LL << 33);
	assert_int_equal(e->launch.stream, 0x5555);
	rig_free(g);
}

/* CUDA_MEMCPY2D of cuda.h: host memory at 24, device memory at 32, an array at 40 … */
static void described_copies(void **state)
{
	uint64_t desc[16] = {
		[2] = 0xabad1dea00000001, /* srcMemoryType: host; the rest is padding */
		[3] = 0x100, [4] = 0x200, [5] = 0x300,
		[9] = 0xabad1dea00000002, /* dstMemoryType: device */
		[10] = 0x400, [11] = 0x500, [12] = 0x600,
		[14] = 4096, [15] = 3,
	};
	struct rig *g = rig_of("cuMemcpy2DAsync_v2");

	call(rig_call, desc, 0x77);
	desc[2] = 3; /* array to host */
	desc[9] = 1;
	call(rig_call, desc, 0x77);
	rig_read(g);
	assert_int_equal(g->count, 4);
	assert_int_equal(g->events[0].call.source, 0x100);
	assert_int_equal(g->events[0].call.object, 0x500);
	assert_int_equal(g->events[0].call.kind, 1);
	assert_int_equal(g->events[2].call.source, 0x300);
	assert_int_equal(g->events[2].call.object, 0x400);
	assert_int_equal(g->events[2].call.kind, 2);
	for (size_t i = 0; i < 4; i += 2) {
		assert_int_equal(g->events[i].call.bytes, 3 * 4096);
		assert_int_equal(g->events[i].call.stream, 0x77);
	}
	call(rig_call, (void *)8, 0x77); /* unreadable: the call is there, and says nothing */
	rig_read(g);
	assert_int_equal(g->count, 2);
	assert_int_equal(g->events[0].call.bytes, 0);
	rig_free(g);
}

/* cuMemAlloc(CUdeviceptr *, size_t): what is at the pointer when it returns. */
static void what_calls_give_back(void **state)
{
	struct rig *g = rig_of("cuMemAlloc_v2");
	uint64_t out = 0x7f1234500000;

	call(rig_call, &out, 4096);
	call(rig_call, NULL, 4096);
	rig_read(g);
	assert_int_equal(g->count, 4);
	assert_int_equal(g->events[0].call.bytes, 4096);
	assert_int_equal(g->events[1].has_out, 1);
	assert_int_equal(g->events[1].end.out, 0x7f1234500000);
	assert_int_equal(g->events[1].end.ret, 4096);
	assert_int_equal(g->events[3].end.out, 0);
	rig_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_every_length),
		cmocka_unit_test(once_a_handle),
		cmocka_unit_test(unloading_forgets),
		cmocka_unit_test(names_that_cannot_be_read),
		cmocka_unit_test(no_names_where_the_layout_is_unknown),
		cmocka_unit_test(host_functions_are_asked_for),
		cmocka_unit_test(named_getters_tell_both),
		cmocka_unit_test(launches_by_register_and_stack),
		cmocka_unit_test(runtime_launches_pack_their_dimensions),
		cmocka_unit_test(described_copies),
		cmocka_unit_test(what_calls_give_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
