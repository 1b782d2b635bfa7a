/* SPDX-License-Identifier: BSD-2-Clause */
/* What is asked of dynamic linkers, and of programs about theirs. */
#include <errno.h>
#include <string.h>

#include "probe/elf_private.h"

#define CHUNK 64

static int matches(const struct elf *e, const Elf64_Sym *s, const char *name,
		   struct elf_symbol *out)
{
	const char *its = elf_string(&e->dynsym.strings, s->st_name);

	if (s->st_shndx == SHN_UNDEF || !its || strcmp(its, name))
		return 0;
	*out = (struct elf_symbol){
		.name = its,
		.value = s->st_value,
		.offset = elf_offset(e, s->st_value),
		.size = s->st_size,
		.ifunc = ELF64_ST_TYPE(s->st_info) == STT_GNU_IFUNC,
		.dynamic = true,
		.global = ELF64_ST_BIND(s->st_info) != STB_LOCAL,
	};
	return 1;
}

int elf_exported(struct elf *e, const char *name, struct elf_symbol *out)
{
	Elf64_Sym symbols[CHUNK];
	int err;

	if (!e->dynsym.present)
		return -ENOENT;
	err = elf_load_strings(e, &e->dynsym.strings);
	for (uint64_t at = 0; !err && at < e->dynsym.count; at += CHUNK) {
		uint64_t count = e->dynsym.count - at < CHUNK ? e->dynsym.count - at : CHUNK;

		err = elf_read_exact(e, e->dynsym.offset + at * sizeof(Elf64_Sym), symbols,
				     count * sizeof(Elf64_Sym));
		for (uint64_t i = 0; i < count && !err; i++)
			if (matches(e, &symbols[i], name, out))
				return 0;
	}
	return err ? err : -ENOENT;
}

int elf_interpreter(const struct elf *e, char *path, size_t size)
{
	unsigned i;
	int err;

	for (i = 0; i < e->headers_count; i++) {
		const Elf64_Phdr *ph = &e->segments[i];

		if (ph->p_type != PT_INTERP)
			continue;
		if (!ph->p_filesz || ph->p_filesz > size)
			return -EBADMSG;
		err = elf_read_exact(e, ph->p_offset, path, ph->p_filesz);
		if (err)
			return err;
		return path[ph->p_filesz - 1] ? -EBADMSG : 0;
	}
	return -ENOENT;
}
