// SPDX-License-Identifier: BSD-2-Clause
/* Names that user space finds: unreadable ones, the driver's layout, host functions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/mman.h>

#include "record/reader.h"
#include "rig.h"
#include "trace/private.h"

#define GONE_PID 4194300u /* not given out: the kernel's numbers end below */

struct book {
	struct tracer t;
	struct rig *g;
	struct selection *selection;
	char path[64];
	char told[256];
};

static void on_tell(void *ctx, const char *text)
{
	struct book *b = ctx;

	snprintf(b->told, sizeof(b->told), "%s", text);
}

static int open_book(void **state)
{
	struct book *b = calloc(1, sizeof(*b));
	struct images_options o = {.dry = true};
	int fd;

	if (!b)
		return -1;
	*state = b;
	snprintf(b->path, sizeof(b->path), "/tmp/gbpf-names-XXXXXX");
	fd = mkstemp(b->path);
	b->selection = calloc(1, sizeof(*b->selection));
	o.selection = b->selection;
	b->g = rig_new(RUNG_AUTO);
	b->t.probes = b->g->p;
	b->t.layout.offset = 8;
	b->t.options.tell = on_tell;
	b->t.options.tell_ctx = b;
	return writer_new(&b->t.writer, fd, 1) || images_new(&b->t.images, b->g->p, &o);
}

static int close_book(void **state)
{
	struct book *b = *state;

	writer_close(b->t.writer);
	images_free(b->t.images);
	names_close(&b->t);
	rig_free(b->g);
	unlink(b->path);
	free(b->selection);
	free(b);
	return 0;
}

/* The file's only name, as text; NULL if it has none. The writer is gone then. */
static const char *written(struct book *b, unsigned *source, char *text, size_t size)
{
	struct reader *r = NULL;
	struct record record;
	size_t names = 0;

	assert_int_equal(writer_close(b->t.writer), 0);
	b->t.writer = NULL;
	assert_int_equal(reader_open(&r, b->path), 0);
	while (reader_next(r, &record) == 1) {
		if (record.kind != RECORD_NAME)
			continue;
		names++;
		*source = record.name.source;
		assert_int_equal(record.name.pid, getpid());
		assert_int_equal(record.name.ts, 42);
		assert_true(record.name.len < size);
		memcpy(text, record.name.name, record.name.len);
		text[record.name.len] = '\0';
	}
	reader_close(r);
	assert_true(names <= 1);
	return names ? text : NULL;
}

static void expect_written(struct book *b, unsigned source, const char *expected)
{
	char text[GBPF_NAME_LONG + 1];
	unsigned is = 0;
	const char *got = written(b, &is, text, sizeof(text));

	if (!expected) {
		assert_null(got);
		return;
	}
	assert_non_null(got);
	assert_string_equal(got, expected);
	assert_int_equal(is, source);
}

static struct gbpf_name fault_of(uint64_t handle, uint64_t where)
{
	return (struct gbpf_name){.hdr = {.ts = 42, .pid = (uint32_t)getpid()},
				  .handle = handle, .where = where, .len = -EFAULT,
				  .source = GBPF_NAME_FAULT};
}

/* Two pages, of which the second may not be read; text ends with the first. */
static char *at_the_edge(const char *text, size_t len)
{
	char *pages = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);

	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(mprotect(pages + 2 * 4096, 4096, PROT_NONE), 0);
	memcpy(pages + 2 * 4096 - len, text, len);
	return pages + 2 * 4096 - len;
}

static void pages_are_faulted_in(void **state)
{
	struct gbpf_name n = fault_of(0x1000, (uintptr_t)at_the_edge("_Z4edgev", 9));

	assert_int_equal(names_add(&((struct book *)*state)->t, &n), 0);
	expect_written(*state, GBPF_NAME_LAYOUT, "_Z4edgev");
}

static void strings_over_a_page(void **state)
{
	char text[4200];
	struct gbpf_name n;

	memset(text, 'n', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	n = fault_of(0x1000, (uintptr_t)at_the_edge(text, sizeof(text)));
	assert_int_equal(names_add(&((struct book *)*state)->t, &n), 0);
	expect_written(*state, GBPF_NAME_LAYOUT, text);
}

static void strings_without_end_are_cut(void **state)
{
	static char text[GBPF_NAME_LONG + 100];
	char expected[GBPF_NAME_LONG];
	struct gbpf_name n = fault_of(0x1000, (uintptr_t)text);

	memset(text, 'l', sizeof(text) - 1);
	memcpy(expected, text, sizeof(expected) - 1);
	expected[sizeof(expected) - 1] = '\0';
	assert_int_equal(names_add(&((struct book *)*state)->t, &n), 0);
	expect_written(*state, GBPF_NAME_LAYOUT, expected);
}

static void through_the_handle(void **state)
{
	struct book *b = *state;
	const char *object[4] = {NULL, "at eight", "at sixteen", NULL};
	struct gbpf_name n = fault_of((uintptr_t)object, 0);

	b->t.layout.offset = 16;
	assert_int_equal(names_add(&b->t, &n), 0);
	expect_written(b, GBPF_NAME_LAYOUT, "at sixteen");
}

/* Nothing there to be read: counted, and no reason to end the recording. */
static void what_cannot_be_had_is_counted(void **state)
{
	struct book *b = *state;
	const char *nowhere[4] = {NULL};
	struct gbpf_name bad[] = {
		fault_of(0x10, 0),		       /* the handle leads nowhere */
		fault_of((uintptr_t)nowhere, 0),       /* what it holds does */
		fault_of(0x1000, 0x20),		       /* the name does */
		fault_of(0x1000, UINT64_MAX - 3),
		fault_of(0x1000, (uintptr_t)at_the_edge("no end", 6)),
		fault_of(0x1000, (uintptr_t)""),       /* a name of nothing is none */
		fault_of(0x1000, (uintptr_t)"gone"),
	};

	bad[6].hdr.pid = GONE_PID;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(names_add(&b->t, &bad[i]), 0);
		assert_int_equal(b->t.names_lost, i + 1);
	}
	expect_written(b, 0, NULL);
}

/* ---- the layout of handles ---- */

struct getter {
	struct gbpf_name n;
	char text[GBPF_NAME_SHORT];
};

static struct getter getter_of(const void *handle, const char *name)
{
	struct getter r = {.n = {.hdr = {.ts = 42, .pid = (uint32_t)getpid()},
				 .handle = (uintptr_t)handle, .len = (int32_t)strlen(name) + 1,
				 .source = GBPF_NAME_GETTER}};

	memcpy(r.text, name, strlen(name) + 1);
	return r;
}

static void the_layout_is_learnt(void **state)
{
	struct book *b = *state;
	const char *object[12] = {"_Z1a", "_Z4gemmvPf", NULL, "_Z4gemmv", [11] = "_Z4last"};
	struct getter third = getter_of(object, "_Z4gemmv"), last = getter_of(object, "_Z4last");

	assert_int_equal(names_add(&b->t, &third.n), 0);
	assert_int_equal(b->t.layout.offset, 24);
	assert_int_equal(b->t.layout.confirmed, 1);
	assert_int_equal(names_add(&b->t, &last.n), 0);
	assert_int_equal(b->t.layout.offset, 88);
	for (int i = 0; i < 4; i++)
		assert_int_equal(names_add(&b->t, &last.n), 0);
	assert_int_equal(b->t.layout.confirmed, 4);
	assert_int_equal(names_add(&b->t, &third.n), 0); /* settled */
	assert_int_equal(b->t.layout.offset, 88);
	assert_string_equal(b->told, "");
}

/* What does not fit the search is compared as far as it does. */
static void the_layout_is_learnt_from_long_names(void **state)
{
	struct book *b = *state;
	static char name[GBPF_NAME_SHORT + 50];
	const char *object[12] = {"_Z1a", "_Z1b", name};
	struct { struct gbpf_name n; char text[sizeof(name)]; } long_one;

	memset(name, 'k', sizeof(name) - 1);
	long_one.n = getter_of(object, "").n;
	long_one.n.len = sizeof(name);
	memcpy(long_one.text, name, sizeof(name));
	assert_int_equal(names_add(&b->t, &long_one.n), 0);
	assert_int_equal(b->t.layout.offset, 16);
}

static void handles_that_contradict_end_it(void **state)
{
	struct book *b = *state;
	const char *object[13] = {"_Z1a", "_Z1b", [12] = "_Z4gemmv"};
	struct getter g = getter_of(object, "_Z4gemmv"), gone = getter_of((void *)0x10, "_Z1a");

	for (int i = 0; i < 10; i++) /* a handle that is gone teaches nothing */
		assert_int_equal(names_add(&b->t, &gone.n), 0);
	assert_int_equal(b->t.layout.contradicted, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(names_add(&b->t, &g.n), 0);
	assert_int_equal(b->t.layout.offset, 8);
	assert_string_equal(b->told, "");
	assert_int_equal(names_add(&b->t, &g.n), 0);
	assert_int_equal(b->t.layout.offset, GBPF_NO_NAMES);
	assert_non_null(strstr(b->told, "keeps kernel names elsewhere"));
}

/* ---- host functions ---- */

static struct gbpf_name stub_of(uint64_t address)
{
	struct gbpf_name n = fault_of(address, address);

	n.source = GBPF_NAME_STUB;
	n.len = 0;
	return n;
}

static void host_functions_by_their_symbol(void **state)
{
	struct book *b = *state;
	struct gbpf_name n = stub_of((uintptr_t)rig_other);

	assert_int_equal(names_add(&b->t, &n), 0);
	expect_written(b, GBPF_NAME_STUB, "rig_other");
}

static void addresses_of_nothing(void **state)
{
	struct book *b = *state;
	static const uint64_t bad[] = {0, 16, UINT64_MAX};
	size_t before = rig_descriptors();
	int local;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct gbpf_name n = stub_of(bad[i]);

		assert_int_equal(names_add(&b->t, &n), 0);
	}
	for (int i = 0; i < 20; i++) {
		struct gbpf_name n = stub_of((uintptr_t)&local), gone = stub_of(0x400000);

		gone.hdr.pid = GONE_PID;
		assert_int_equal(names_add(&b->t, &n), 0);
		assert_int_equal(names_add(&b->t, &gone), 0);
	}
	names_close(&b->t);
	assert_int_equal(rig_descriptors(), before);
	expect_written(b, 0, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(pages_are_faulted_in, open_book, close_book),
		cmocka_unit_test_setup_teardown(strings_over_a_page, open_book, close_book),
		cmocka_unit_test_setup_teardown(strings_without_end_are_cut, open_book,
						close_book),
		cmocka_unit_test_setup_teardown(through_the_handle, open_book, close_book),
		cmocka_unit_test_setup_teardown(what_cannot_be_had_is_counted, open_book,
						close_book),
		cmocka_unit_test_setup_teardown(the_layout_is_learnt, open_book, close_book),
		cmocka_unit_test_setup_teardown(the_layout_is_learnt_from_long_names, open_book,
						close_book),
		cmocka_unit_test_setup_teardown(handles_that_contradict_end_it, open_book,
						close_book),
		cmocka_unit_test_setup_teardown(host_functions_by_their_symbol, open_book,
						close_book),
		cmocka_unit_test_setup_teardown(addresses_of_nothing, open_book, close_book),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
