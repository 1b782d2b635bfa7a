/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Just enough ELF to find functions in a file somebody else wrote: every
 * offset and count is checked against the file, nothing is mapped (a file cut
 * while mapped kills its reader), and only the tables needed are read.
 */
#ifndef GBPF_PROBE_ELF_H
#define GBPF_PROBE_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf;

enum elf_machine { ELF_X86_64 = 62, ELF_AARCH64 = 183 };

struct elf_symbol {
	const char *name;  /* valid until elf_close() */
	uint64_t value;	   /* virtual address */
	uint64_t offset;   /* in the file, UINT64_MAX if outside every segment */
	uint64_t size;
	bool ifunc;	   /* value is a resolver, not the function */
	bool dynamic;	   /* from .dynsym, else from .symtab */
	bool global;
};

/*
 * fd stays the caller's and must outlive the elf. -ENOEXEC: not an executable or
 * shared library in little-endian ELF64; -EBADMSG: cut or lying tables; -EFBIG: a
 * table over 256 MiB; -ENOMEM; or what reading said.
 */
int elf_open(struct elf **out, int fd);
void elf_close(struct elf *e);
unsigned elf_machine(const struct elf *e);
/*
 * Each defined function (undefined imports are none), .dynsym first, then .symtab.
 * Stops when each returns non-zero and returns that. Errors as elf_open(); what a
 * good table held before a bad one has then been reported.
 */
int elf_each_function(struct elf *e, int (*each)(const struct elf_symbol *s, void *ctx),
		      void *ctx);
/* A symbol of .dynsym, function or object, by its name; -ENOENT. */
int elf_exported(struct elf *e, const char *name, struct elf_symbol *out);
/* PT_INTERP: the dynamic linker's path. -ENOENT: it needs none. */
int elf_interpreter(const struct elf *e, char *path, size_t size);
bool elf_has_symtab(const struct elf *e); /* false: stripped */
bool elf_has_section(const struct elf *e, const char *name);
bool elf_needs(struct elf *e, const char *prefix); /* DT_NEEDED starting with prefix */
/* Hexadecimal, "" if it has none. */
const char *elf_build_id(struct elf *e);
/* DT_SONAME, "" if none. */
const char *elf_soname(struct elf *e);
/* File offset → bytes; as many as there are, or -errno. */
int elf_read(const struct elf *e, uint64_t offset, void *buf, size_t size);
/* Virtual address → file offset, UINT64_MAX if none. */
uint64_t elf_offset(const struct elf *e, uint64_t address);
/* File offset → virtual address of executable bytes, UINT64_MAX if none. */
uint64_t elf_address(const struct elf *e, uint64_t offset);
/* Is the address in bytes of the file that are mapped executable? */
bool elf_executable(const struct elf *e, uint64_t address);
/* The function that covers an address (for host stubs), or -ENOENT. */
int elf_symbolize(struct elf *e, uint64_t address, struct elf_symbol *out);

#endif
