/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "probe/elf_private.h"

#define CHUNK 256 /* symbols read at once: 6 KiB of stack */

typedef int (*each_fn)(const struct elf_symbol *s, void *ctx);

static bool is_function(const Elf64_Sym *s)
{
	unsigned type = ELF64_ST_TYPE(s->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC) && s->st_shndx != SHN_UNDEF;
}

static int report(const struct elf *e, const struct elf_table *t, const Elf64_Sym *s,
		  each_fn each, void *ctx)
{
	struct elf_symbol out = {
		.name = elf_string(&t->strings, s->st_name),
		.value = s->st_value,
		.offset = elf_offset(e, s->st_value),
		.size = s->st_size,
		.ifunc = ELF64_ST_TYPE(s->st_info) == STT_GNU_IFUNC,
		.dynamic = t == &e->dynsym,
		.global = ELF64_ST_BIND(s->st_info) != STB_LOCAL,
	};

	if (!out.name || !out.name[0])
		return 0;
	return each(&out, ctx);
}

static int walk(const struct elf *e, struct elf_table *t, each_fn each, void *ctx)
{
	Elf64_Sym symbols[CHUNK];
	int err;

	if (!t->present)
		return 0;
	err = elf_load_strings(e, &t->strings);
	for (uint64_t at = 0; at < t->count && !err; at += CHUNK) {
		uint64_t count = t->count - at < CHUNK ? t->count - at : CHUNK;

		err = elf_read_exact(e, t->offset + at * sizeof(Elf64_Sym), symbols,
				     count * sizeof(Elf64_Sym));
		for (uint64_t i = 0; i < count && !err; i++)
			if (is_function(&symbols[i]))
				err = report(e, t, &symbols[i], each, ctx);
	}
	return err;
}

int elf_each_function(struct elf *e, each_fn each, void *ctx)
{
	int err = walk(e, &e->dynsym, each, ctx);

	return err ? err : walk(e, &e->symtab, each, ctx);
}

bool elf_has_symtab(const struct elf *e)
{
	return e->symtab.present;
}

struct cover {
	uint64_t address;
	struct elf_symbol *out;
};

static int covers(const struct elf_symbol *s, void *ctx)
{
	struct cover *c = ctx;

	if (c->address < s->value || c->address - s->value >= (s->size ? s->size : 1))
		return 0;
	*c->out = *s;
	return 1;
}

int elf_symbolize(struct elf *e, uint64_t address, struct elf_symbol *out)
{
	struct cover c = {address, out};
	int found = elf_each_function(e, covers, &c);

	if (found < 0)
		return found;
	return found ? 0 : -ENOENT;
}
