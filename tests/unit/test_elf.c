/* SPDX-License-Identifier: BSD-2-Clause */
/* Images made by hand, whole and bent in every way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include <cmocka.h>

#include "probe/elf.h"
#include "tests/unit/elf_image.h"

struct seen {
	char names[16][16];
	struct elf_symbol symbols[16];
	unsigned count;
	int stop_at; /* callback returns 77 at this one; -1: never */
};

static int note(const struct elf_symbol *s, void *ctx)
{
	struct seen *seen = ctx;

	assert_true(seen->count < 16);
	snprintf(seen->names[seen->count], sizeof(seen->names[0]), "%s", s->name);
	seen->symbols[seen->count] = *s;
	return (int)seen->count++ == seen->stop_at ? 77 : 0;
}

static int setup(void **state)
{
	struct image *m = malloc(sizeof(*m));

	assert_non_null(m);
	image_make(m);
	*state = m;
	return 0;
}

static int teardown(void **state)
{
	image_free(*state);
	free(*state);
	return 0;
}

static struct elf *open_image(const struct image *m, int *fd)
{
	struct elf *e;

	*fd = image_file(m, m->size);
	assert_int_equal(elf_open(&e, *fd), 0);
	assert_non_null(e);
	return e;
}

static int open_result(const struct image *m, size_t size)
{
	int fd = image_file(m, size), err;
	struct elf *e;

	err = elf_open(&e, fd);
	if (err)
		assert_null(e);
	elf_close(e);
	close(fd);
	return err;
}

static int walk_result(const struct image *m, struct seen *seen)
{
	int fd, err;
	struct elf *e = open_image(m, &fd);

	*seen = (struct seen){.stop_at = -1};
	err = elf_each_function(e, note, seen);
	elf_close(e);
	close(fd);
	return err;
}

static void finds_functions(void **state)
{
	struct seen seen;

	assert_int_equal(walk_result(*state, &seen), 0);
	assert_int_equal(seen.count, 5);
	assert_string_equal(seen.names[0], "alpha");
	assert_string_equal(seen.names[1], "beta");
	assert_string_equal(seen.names[2], "resolver");
	assert_string_equal(seen.names[3], "hidden");
	assert_string_equal(seen.names[4], "nowhere");
	assert_int_equal(seen.symbols[0].value, 0x2000);
	assert_int_equal(seen.symbols[0].offset, 0x1000);
	assert_int_equal(seen.symbols[0].size, 0x20);
	assert_true(seen.symbols[0].dynamic && seen.symbols[0].global);
	assert_false(seen.symbols[0].ifunc);
	assert_true(seen.symbols[1].global);
	assert_true(seen.symbols[2].ifunc);
	assert_int_equal(seen.symbols[3].offset, 0x1080);
	assert_false(seen.symbols[3].dynamic || seen.symbols[3].global);
	assert_true(seen.symbols[4].offset == UINT64_MAX);
}

static void stops_when_told(void **state)
{
	struct seen seen = {.stop_at = 1};
	int fd;
	struct elf *e = open_image(*state, &fd);

	assert_int_equal(elf_each_function(e, note, &seen), 77);
	assert_int_equal(seen.count, 2);
	elf_close(e);
	close(fd);
}

static void tells_about_the_file(void **state)
{
	int fd;
	struct elf *e = open_image(*state, &fd);

	assert_int_equal(elf_machine(e), ELF_X86_64);
	assert_true(elf_has_symtab(e));
	assert_true(elf_has_section(e, ".dynsym"));
	assert_false(elf_has_section(e, ".dyn"));
	assert_string_equal(elf_soname(e), "libimage.so.2");
	assert_true(elf_needs(e, "libneeded"));
	assert_false(elf_needs(e, "libneeded.so.12"));
	assert_string_equal(elf_build_id(e), "0abbccddee");
	assert_string_equal(elf_build_id(e), "0abbccddee");
	elf_close(e);
	elf_close(NULL);
	close(fd);
}

static void tells_nothing_where_nothing_is(void **state)
{
	struct image *m = *state;
	int fd;
	struct elf *e;

	m->segment[SEGMENT_DYNAMIC].p_type = PT_NULL;
	m->segment[SEGMENT_NOTE].p_type = PT_NULL;
	m->section[SECTION_SYMTAB].sh_type = SHT_PROGBITS;
	e = open_image(m, &fd);
	assert_false(elf_has_symtab(e));
	assert_string_equal(elf_soname(e), "");
	assert_false(elf_needs(e, ""));
	assert_string_equal(elf_build_id(e), "");
	elf_close(e);
	close(fd);
}

static void maps_addresses(void **state)
{
	struct image *m = *state;
	uint8_t buf[64];
	int fd;
	struct elf *e;

	e = open_image(m, &fd);
	assert_int_equal(elf_offset(e, 0), 0);
	assert_int_equal(elf_offset(e, 0xfff), 0xfff);
	assert_true(elf_offset(e, 0x1000) == UINT64_MAX);
	assert_int_equal(elf_offset(e, 0x2000), 0x1000);
	assert_int_equal(elf_offset(e, 0x20ff), 0x10ff);
	assert_true(elf_offset(e, 0x2100) == UINT64_MAX); /* only in memory */
	assert_true(elf_offset(e, UINT64_MAX) == UINT64_MAX);
	assert_true(elf_executable(e, 0x2000));
	assert_false(elf_executable(e, 0x800));
	assert_false(elf_executable(e, 0x2100));
	assert_int_equal(elf_read(e, IMAGE_SIZE - 8, buf, sizeof(buf)), 8);
	assert_int_equal(buf[7], 0x55);
	assert_int_equal(elf_read(e, IMAGE_SIZE, buf, sizeof(buf)), 0);
	assert_int_equal(elf_read(e, UINT64_MAX, buf, sizeof(buf)), 0);
	elf_close(e);
	close(fd);

	/* A segment that claims more than the file has. */
	m->segment[SEGMENT_TEXT].p_filesz = UINT64_MAX - 0x2000;
	e = open_image(m, &fd);
	assert_int_equal(elf_offset(e, 0x20ff), 0x10ff);
	assert_true(elf_offset(e, 0x2100) == UINT64_MAX);
	assert_false(elf_executable(e, 0x2100));
	elf_close(e);
	close(fd);
	m->segment[SEGMENT_TEXT].p_offset = UINT64_MAX - 8;
	e = open_image(m, &fd);
	assert_true(elf_offset(e, 0x2010) == UINT64_MAX);
	elf_close(e);
	close(fd);
}

static void symbolizes(void **state)
{
	int fd;
	struct elf *e = open_image(*state, &fd);
	struct elf_symbol s;

	assert_int_equal(elf_symbolize(e, 0x2000, &s), 0);
	assert_string_equal(s.name, "alpha");
	assert_int_equal(elf_symbolize(e, 0x201f, &s), 0);
	assert_string_equal(s.name, "alpha");
	assert_int_equal(elf_symbolize(e, 0x2020, &s), 0);
	assert_string_equal(s.name, "beta"); /* without a size: its first byte */
	assert_int_equal(elf_symbolize(e, 0x2021, &s), -ENOENT);
	assert_int_equal(elf_symbolize(e, 0x208f, &s), 0);
	assert_string_equal(s.name, "hidden");
	assert_int_equal(elf_symbolize(e, 0x10, &s), -ENOENT);
	elf_close(e);
	close(fd);
}

static void refuses_other_files(void **state)
{
	struct image *m = *state;
	struct elf *e;
	int fd = open("/", O_RDONLY | O_CLOEXEC);

	assert_int_equal(elf_open(&e, fd), -ENOEXEC);
	close(fd);
	assert_int_equal(elf_open(&e, -1), -EBADF);
	assert_int_equal(open_result(m, 0), -ENOEXEC);
	assert_int_equal(open_result(m, 3), -ENOEXEC);
	assert_int_equal(open_result(m, 63), -EBADMSG);
	m->header->e_type = ET_REL;
	assert_int_equal(open_result(m, m->size), -ENOEXEC);
	m->header->e_type = ET_CORE;
	assert_int_equal(open_result(m, m->size), -ENOEXEC);
	m->header->e_type = ET_EXEC;
	assert_int_equal(open_result(m, m->size), 0);
	m->header->e_ident[EI_CLASS] = ELFCLASS32;
	assert_int_equal(open_result(m, m->size), -ENOEXEC);
	m->header->e_ident[EI_CLASS] = ELFCLASS64;
	m->header->e_ident[EI_DATA] = ELFDATA2MSB;
	assert_int_equal(open_result(m, m->size), -ENOEXEC);
	memcpy(m->bytes, "#!/bin/sh\n", 10);
	assert_int_equal(open_result(m, m->size), -ENOEXEC);
}

static void cut_anywhere(void **state)
{
	struct image *m = *state;
	size_t tables = AT_SECTIONS + SECTIONS * sizeof(Elf64_Shdr);

	for (size_t size = sizeof(Elf64_Ehdr); size < tables; size++)
		assert_int_equal(open_result(m, size), -EBADMSG);
	/* All tables are there, only code is missing. */
	for (size_t size = tables; size <= m->size; size++)
		assert_int_equal(open_result(m, size), 0);
}

static void cut_while_open(void **state)
{
	struct seen seen = {.stop_at = -1};
	int fd;
	struct elf *e = open_image(*state, &fd);
	uint8_t buf[8];

	assert_int_equal(ftruncate(fd, AT_DYNSYM + 10), 0);
	assert_int_equal(elf_each_function(e, note, &seen), -EBADMSG);
	assert_int_equal(elf_read(e, AT_TEXT, buf, sizeof(buf)), 0);
	assert_string_equal(elf_soname(e), "");
	assert_string_equal(elf_build_id(e), "");
	elf_close(e);
	close(fd);
}

/* Puts value there for one attempt to open the image. */
#define BENT(field, value)                                                                         \
	do {                                                                                       \
		__typeof__(field) saved = (field);                                                 \
		(field) = (__typeof__(field))(value);                                              \
		assert_int_equal(open_result(m, m->size), -EBADMSG);                               \
		(field) = saved;                                                                   \
	} while (0)

static void lying_headers(void **state)
{
	struct image *m = *state;

	BENT(m->header->e_shoff, IMAGE_SIZE);
	BENT(m->header->e_shoff, UINT64_MAX);
	BENT(m->header->e_shoff, UINT64_MAX - 63);
	BENT(m->header->e_shentsize, 63);
	BENT(m->header->e_shentsize, 0);
	BENT(m->header->e_shnum, 0xfffe);
	BENT(m->header->e_shstrndx, SECTIONS);
	BENT(m->header->e_shstrndx, SHN_XINDEX - 1);
	BENT(m->header->e_phoff, IMAGE_SIZE);
	BENT(m->header->e_phoff, UINT64_MAX);
	BENT(m->header->e_phentsize, 32);
	BENT(m->header->e_phnum, 1025);
	BENT(m->header->e_phnum, 0xfffe);
	BENT(m->segment[SEGMENT_DYNAMIC].p_offset, UINT64_MAX - 8);
	BENT(m->segment[SEGMENT_DYNAMIC].p_filesz, UINT64_MAX);
	assert_int_equal(open_result(m, m->size), 0);
}

static void lying_sections(void **state)
{
	struct image *m = *state;

	BENT(m->section[SECTION_DYNSYM].sh_link, SECTIONS);
	BENT(m->section[SECTION_DYNSYM].sh_link, UINT32_MAX);
	BENT(m->section[SECTION_DYNSYM].sh_link, SECTION_TEXT);
	BENT(m->section[SECTION_DYNSYM].sh_size, IMAGE_SIZE);
	BENT(m->section[SECTION_DYNSYM].sh_size, UINT64_MAX);
	BENT(m->section[SECTION_DYNSYM].sh_offset, UINT64_MAX - 16);
	BENT(m->section[SECTION_DYNSYM].sh_entsize, 0);
	BENT(m->section[SECTION_DYNSYM].sh_entsize, 16);
	BENT(m->section[SECTION_DYNSTR].sh_size, IMAGE_SIZE);
	BENT(m->section[SECTION_DYNSTR].sh_offset, UINT64_MAX);
	BENT(m->section[SECTION_SYMTAB].sh_link, SECTIONS);
	BENT(m->section[SECTION_STRTAB].sh_size, UINT64_MAX);
	BENT(m->section[SECTION_NAMES].sh_size, UINT64_MAX);
	BENT(m->section[SECTION_NAMES].sh_size, 3); /* does not end in NUL */
	assert_int_equal(open_result(m, m->size), 0);
}

static void counts_in_the_first_section(void **state)
{
	struct image *m = *state;
	struct seen seen;

	m->header->e_shnum = 0;
	m->section[0].sh_size = SECTIONS;
	m->header->e_shstrndx = SHN_XINDEX;
	m->section[0].sh_link = SECTION_NAMES;
	m->header->e_phnum = PN_XNUM;
	m->section[0].sh_info = SEGMENTS;
	assert_int_equal(walk_result(m, &seen), 0);
	assert_int_equal(seen.count, 5);
	assert_int_equal(seen.symbols[0].offset, 0x1000);
	BENT(m->section[0].sh_size, UINT64_MAX);
	BENT(m->section[0].sh_size, UINT64_MAX / 64 + 2);
	BENT(m->section[0].sh_size, 1000);
	BENT(m->section[0].sh_link, SECTIONS);
	BENT(m->section[0].sh_info, UINT32_MAX);
	BENT(m->header->e_shoff, 0);
}

static void strings_without_end(void **state)
{
	struct image *m = *state;
	struct seen seen;

	m->section[SECTION_DYNSTR].sh_size -= 1;
	assert_int_equal(walk_result(m, &seen), -EBADMSG);
	assert_int_equal(seen.count, 0);
	m->section[SECTION_DYNSTR].sh_size += 1;
	m->section[SECTION_STRTAB].sh_size -= 1;
	assert_int_equal(walk_result(m, &seen), -EBADMSG);
	assert_int_equal(seen.count, 3); /* .dynsym was good */
	m->section[SECTION_STRTAB].sh_size = 0;
	assert_int_equal(walk_result(m, &seen), 0);
	assert_int_equal(seen.count, 3);
}

static void names_out_of_range(void **state)
{
	struct image *m = *state;
	struct seen seen;

	m->dynsym[SYMBOL_ALPHA].st_name = (uint32_t)m->section[SECTION_DYNSTR].sh_size;
	m->dynsym[SYMBOL_BETA].st_name = UINT32_MAX;
	m->dynsym[SYMBOL_RESOLVER].st_name = 0; /* the empty name */
	assert_int_equal(walk_result(m, &seen), 0);
	assert_int_equal(seen.count, 2);
	assert_string_equal(seen.names[0], "hidden");
}

static void more_headers_than_any_linker_makes(void **state)
{
	struct image *m = *state;
	const size_t size = 0x2000 + 1025 * sizeof(Elf64_Phdr);
	uint8_t *large = calloc(1, size);
	Elf64_Phdr *segment;
	Elf64_Ehdr *h;

	assert_non_null(large);
	memcpy(large, m->bytes, m->size);
	free(m->bytes);
	m->bytes = large;
	m->size = size;
	h = (Elf64_Ehdr *)large;
	segment = (Elf64_Phdr *)(large + 0x2000);
	h->e_phoff = 0x2000;
	h->e_phnum = 1025;
	assert_int_equal(open_result(m, m->size), -EBADMSG);
	h->e_phnum = 1024;
	assert_int_equal(open_result(m, m->size), 0);
	for (unsigned i = 0; i < 128; i++)
		segment[2 * i].p_type = PT_LOAD;
	assert_int_equal(open_result(m, m->size), 0);
	segment[1].p_type = PT_LOAD;
	assert_int_equal(open_result(m, m->size), -EBADMSG);
}

static void tables_too_large(void **state)
{
	struct image *m = *state;
	int fd;
	struct elf *e;

	m->section[SECTION_DYNSYM].sh_size = 512ull << 20;
	fd = image_file(m, m->size);
	assert_int_equal(ftruncate(fd, 1ll << 30), 0);
	assert_int_equal(elf_open(&e, fd), -EFBIG);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(finds_functions, setup, teardown),
		cmocka_unit_test_setup_teardown(stops_when_told, setup, teardown),
		cmocka_unit_test_setup_teardown(tells_about_the_file, setup, teardown),
		cmocka_unit_test_setup_teardown(tells_nothing_where_nothing_is, setup, teardown),
		cmocka_unit_test_setup_teardown(maps_addresses, setup, teardown),
		cmocka_unit_test_setup_teardown(symbolizes, setup, teardown),
		cmocka_unit_test_setup_teardown(refuses_other_files, setup, teardown),
		cmocka_unit_test_setup_teardown(cut_anywhere, setup, teardown),
		cmocka_unit_test_setup_teardown(cut_while_open, setup, teardown),
		cmocka_unit_test_setup_teardown(lying_headers, setup, teardown),
		cmocka_unit_test_setup_teardown(lying_sections, setup, teardown),
		cmocka_unit_test_setup_teardown(counts_in_the_first_section, setup, teardown),
		cmocka_unit_test_setup_teardown(strings_without_end, setup, teardown),
		cmocka_unit_test_setup_teardown(names_out_of_range, setup, teardown),
		cmocka_unit_test_setup_teardown(more_headers_than_any_linker_makes, setup,
						teardown),
		cmocka_unit_test_setup_teardown(tables_too_large, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
