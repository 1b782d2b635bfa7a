/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of the ELF reader share; only elf*.c include this. */
#ifndef GBPF_PROBE_ELF_PRIVATE_H
#define GBPF_PROBE_ELF_PRIVATE_H

#include <elf.h>

#include "probe/elf.h"

#define ELF_MAX_TABLE (256u << 20) /* bytes of any one table */

/* A table of strings in memory; the last byte is known to be NUL. */
struct elf_strings {
	uint64_t offset, size; /* in the file */
	char *data;	       /* NULL until loaded */
};

/* A table of symbols, left in the file and read piece by piece. */
struct elf_table {
	bool present;
	uint64_t offset, count;
	struct elf_strings strings;
};

struct elf {
	int fd;
	uint64_t size; /* of the file */
	unsigned machine;
	Elf64_Phdr *segments;	 /* every program header, PT_LOAD first */
	unsigned segments_count; /* of PT_LOAD */
	unsigned headers_count;
	Elf64_Shdr *sections;
	uint64_t sections_count;
	struct elf_strings section_names;
	struct elf_table dynsym, symtab;
	Elf64_Dyn *dynamic; /* NULL if there is none; ends with DT_NULL */
	struct elf_strings dynamic_strings;
	char build_id[2 * 64 + 1];
	bool build_id_read;
};

/* Exactly size bytes, or -EBADMSG where the file ends, or -errno. */
int elf_read_exact(const struct elf *e, uint64_t offset, void *buf, uint64_t size);
/* Is [offset, offset + size) in the file and within the limit? 0, -EBADMSG or -EFBIG. */
int elf_check(const struct elf *e, uint64_t offset, uint64_t size);
/* A copy of that range, malloc'ed; NULL with size 0. */
int elf_load(const struct elf *e, uint64_t offset, uint64_t size, void **out);
int elf_load_strings(const struct elf *e, struct elf_strings *s);
/* NULL if out of range. */
const char *elf_string(const struct elf_strings *s, uint64_t at);

/* The PT_LOAD that holds the address in its file bytes, or NULL. */
const Elf64_Phdr *elf_segment(const struct elf *e, uint64_t address);
/* Reads PT_DYNAMIC. */
int elf_load_dynamic(struct elf *e);
/* Finds .dynsym and .symtab by the sections, else by PT_DYNAMIC. */
int elf_find_tables(struct elf *e);

#endif
