/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small shared library made by hand, so that a test can bend any field of it:
 * two segments, five dynamic symbols, two more in .symtab, notes and hashes.
 * The functions are plausible, the code is not.
 */
#ifndef GBPF_TESTS_ELF_IMAGE_H
#define GBPF_TESTS_ELF_IMAGE_H

#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum image_layout { /* offsets in the file */
	AT_SEGMENTS = 0x40,
	AT_DYNSYM = 0x400,
	AT_DYNSTR = 0x600,
	AT_HASH = 0x700,
	AT_GNU_HASH = 0x740,
	AT_DYNAMIC = 0x800,
	AT_NOTE = 0x900,
	AT_SECTION_NAMES = 0x980,
	AT_SYMTAB = 0xa00,
	AT_STRTAB = 0xb00,
	AT_SECTIONS = 0xc00,
	AT_TEXT = 0x1000, /* at 0x2000 in memory */
	IMAGE_SIZE = 0x1100,
};

enum { SEGMENT_DATA, SEGMENT_DYNAMIC, SEGMENT_NOTE, SEGMENT_TEXT, SEGMENTS };
enum { SECTION_NULL, SECTION_DYNSYM, SECTION_DYNSTR, SECTION_SYMTAB, SECTION_STRTAB,
       SECTION_NAMES, SECTION_TEXT, SECTIONS };
enum { SYMBOL_NULL, SYMBOL_ALPHA, SYMBOL_BETA, SYMBOL_IMPORT, SYMBOL_RESOLVER, SYMBOL_DATA,
       SYMBOLS };

#define DYNAMIC_ENTRIES 9

struct image {
	uint8_t *bytes;
	size_t size;
	Elf64_Ehdr *header;
	Elf64_Phdr *segment;
	Elf64_Shdr *section;
	Elf64_Sym *dynsym, *symtab;
	Elf64_Dyn *dynamic;
	uint32_t *hash, *gnu_hash;
};

/* Offsets of the strings are counted by the helper that adds them. */
static uint32_t image_string(struct image *m, size_t table, uint32_t *end, const char *s)
{
	uint32_t at = *end;

	memcpy(m->bytes + table + at, s, strlen(s) + 1);
	*end += (uint32_t)strlen(s) + 1;
	return at;
}

static void image_symbols(struct image *m, uint32_t *dynstr)
{
	uint32_t strtab = 1;

	m->dynsym[SYMBOL_ALPHA] = (Elf64_Sym){
		image_string(m, AT_DYNSTR, dynstr, "alpha"),
		ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, SECTION_TEXT, 0x2000, 0x20};
	m->dynsym[SYMBOL_BETA] = (Elf64_Sym){
		image_string(m, AT_DYNSTR, dynstr, "beta"),
		ELF64_ST_INFO(STB_WEAK, STT_FUNC), 0, SECTION_TEXT, 0x2020, 0};
	m->dynsym[SYMBOL_IMPORT] = (Elf64_Sym){
		image_string(m, AT_DYNSTR, dynstr, "import"),
		ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, SHN_UNDEF, 0, 0};
	m->dynsym[SYMBOL_RESOLVER] = (Elf64_Sym){
		image_string(m, AT_DYNSTR, dynstr, "resolver"),
		ELF64_ST_INFO(STB_GLOBAL, STT_GNU_IFUNC), 0, SECTION_TEXT, 0x2040, 0x10};
	m->dynsym[SYMBOL_DATA] = (Elf64_Sym){
		image_string(m, AT_DYNSTR, dynstr, "data"),
		ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), 0, SECTION_TEXT, 0x10, 8};
	m->symtab[1] = (Elf64_Sym){
		image_string(m, AT_STRTAB, &strtab, "hidden"),
		ELF64_ST_INFO(STB_LOCAL, STT_FUNC), 0, SECTION_TEXT, 0x2080, 0x10};
	m->symtab[2] = (Elf64_Sym){
		image_string(m, AT_STRTAB, &strtab, "nowhere"),
		ELF64_ST_INFO(STB_LOCAL, STT_FUNC), 0, SECTION_TEXT, 0x7000, 0x10};
	m->section[SECTION_STRTAB] = (Elf64_Shdr){
		.sh_type = SHT_STRTAB, .sh_offset = AT_STRTAB, .sh_size = strtab};
	m->section[SECTION_SYMTAB] = (Elf64_Shdr){
		.sh_type = SHT_SYMTAB, .sh_offset = AT_SYMTAB, .sh_link = SECTION_STRTAB,
		.sh_size = 3 * sizeof(Elf64_Sym), .sh_entsize = sizeof(Elf64_Sym)};
	m->section[SECTION_DYNSYM] = (Elf64_Shdr){
		.sh_type = SHT_DYNSYM, .sh_offset = AT_DYNSYM, .sh_link = SECTION_DYNSTR,
		.sh_size = SYMBOLS * sizeof(Elf64_Sym), .sh_entsize = sizeof(Elf64_Sym)};
}

static void image_dynamic(struct image *m, uint32_t *dynstr)
{
	uint32_t needed = image_string(m, AT_DYNSTR, dynstr, "libneeded.so.1");
	uint32_t soname = image_string(m, AT_DYNSTR, dynstr, "libimage.so.2");
	const Elf64_Dyn entries[DYNAMIC_ENTRIES] = {
		{DT_NEEDED, {needed}},	     {DT_SONAME, {soname}},  {DT_SYMTAB, {AT_DYNSYM}},
		{DT_STRTAB, {AT_DYNSTR}},    {DT_STRSZ, {*dynstr}},  {DT_HASH, {AT_HASH}},
		{DT_GNU_HASH, {AT_GNU_HASH}}, {DT_NULL, {0}},	     {DT_NULL, {0}},
	};
	/* Buckets, chains. */
	const uint32_t hash[] = {1, SYMBOLS, 1, 0, 2, 3, 4, 5, 0};
	/* Buckets, first symbol, bloom words, shift; bloom; bucket; chain of symbols 1 to 5. */
	const uint32_t gnu[] = {1, 1, 1, 6, 0, 0, 1, 10, 20, 30, 40, 51};

	memcpy(m->dynamic, entries, sizeof(entries));
	memcpy(m->hash, hash, sizeof(hash));
	memcpy(m->gnu_hash, gnu, sizeof(gnu));
	m->section[SECTION_DYNSTR] = (Elf64_Shdr){
		.sh_type = SHT_STRTAB, .sh_offset = AT_DYNSTR, .sh_size = *dynstr};
}

static void image_segments(struct image *m)
{
	m->segment[SEGMENT_DATA] = (Elf64_Phdr){
		.p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = 0x1000, .p_memsz = 0x1000};
	m->segment[SEGMENT_TEXT] = (Elf64_Phdr){
		.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_offset = AT_TEXT, .p_vaddr = 0x2000,
		.p_filesz = 0x100, .p_memsz = 0x1000};
	m->segment[SEGMENT_DYNAMIC] = (Elf64_Phdr){
		.p_type = PT_DYNAMIC, .p_flags = PF_R, .p_offset = AT_DYNAMIC,
		.p_vaddr = AT_DYNAMIC, .p_filesz = DYNAMIC_ENTRIES * sizeof(Elf64_Dyn)};
	m->segment[SEGMENT_NOTE] = (Elf64_Phdr){
		.p_type = PT_NOTE, .p_flags = PF_R, .p_offset = AT_NOTE, .p_align = 4,
		.p_filesz = 48};
	/* One note of another owner first, then the build id. */
	const uint32_t other[] = {4, 3, 7, 0x00796d65, 0x00616161};
	const uint32_t build[] = {4, 5, NT_GNU_BUILD_ID, 0x00554e47, 0xddccbb0a, 0xee};

	memcpy(m->bytes + AT_NOTE, other, sizeof(other));
	memcpy(m->bytes + AT_NOTE + sizeof(other), build, sizeof(build));
}

static void image_names(struct image *m)
{
	static const char *const names[SECTIONS] = {"", ".dynsym", ".dynstr", ".symtab", ".strtab",
						    ".shstrtab", ".text"};
	uint32_t end = 0;

	for (unsigned i = 0; i < SECTIONS; i++)
		m->section[i].sh_name = image_string(m, AT_SECTION_NAMES, &end, names[i]);
	m->section[SECTION_NAMES].sh_type = SHT_STRTAB;
	m->section[SECTION_NAMES].sh_offset = AT_SECTION_NAMES;
	m->section[SECTION_NAMES].sh_size = end;
}

static void image_make(struct image *m)
{
	uint32_t dynstr = 1;

	m->size = IMAGE_SIZE;
	m->bytes = calloc(1, m->size);
	if (!m->bytes)
		abort();
	m->header = (Elf64_Ehdr *)m->bytes;
	m->segment = (Elf64_Phdr *)(m->bytes + AT_SEGMENTS);
	m->section = (Elf64_Shdr *)(m->bytes + AT_SECTIONS);
	m->dynsym = (Elf64_Sym *)(m->bytes + AT_DYNSYM);
	m->symtab = (Elf64_Sym *)(m->bytes + AT_SYMTAB);
	m->dynamic = (Elf64_Dyn *)(m->bytes + AT_DYNAMIC);
	m->hash = (uint32_t *)(m->bytes + AT_HASH);
	m->gnu_hash = (uint32_t *)(m->bytes + AT_GNU_HASH);
	memcpy(m->header->e_ident, ELFMAG, SELFMAG);
	m->header->e_ident[EI_CLASS] = ELFCLASS64;
	m->header->e_ident[EI_DATA] = ELFDATA2LSB;
	m->header->e_type = ET_DYN;
	m->header->e_machine = EM_X86_64;
	m->header->e_phoff = AT_SEGMENTS;
	m->header->e_phentsize = sizeof(Elf64_Phdr);
	m->header->e_phnum = SEGMENTS;
	m->header->e_shoff = AT_SECTIONS;
	m->header->e_shentsize = sizeof(Elf64_Shdr);
	m->header->e_shnum = SECTIONS;
	m->header->e_shstrndx = SECTION_NAMES;
	image_symbols(m, &dynstr);
	image_dynamic(m, &dynstr);
	image_segments(m);
	image_names(m);
	memset(m->bytes + AT_TEXT, 0x55, IMAGE_SIZE - AT_TEXT); /* push %rbp */
}

/* The first size bytes of the image, as a file. */
static int image_file(const struct image *m, size_t size)
{
	int fd = memfd_create("image", MFD_CLOEXEC);

	if (fd < 0 || write(fd, m->bytes, size) != (ssize_t)size)
		abort();
	return fd;
}

static void image_free(struct image *m)
{
	free(m->bytes);
	m->bytes = NULL;
}

#endif
