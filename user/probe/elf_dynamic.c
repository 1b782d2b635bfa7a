/* SPDX-License-Identifier: BSD-2-Clause */
/* What the dynamic linker reads, and all that a file without section headers has. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probe/elf_private.h"

#define MAX_DYNAMIC 65536u /* entries */
#define MAX_CHAIN 65536u   /* symbols that share a bucket of a GNU hash table */
#define MAX_NOTES 65536u   /* bytes of notes read in one segment */

int elf_load_dynamic(struct elf *e)
{
	for (unsigned i = e->segments_count; i < e->headers_count; i++) {
		const Elf64_Phdr *p = &e->segments[i];
		uint64_t count = p->p_filesz / sizeof(Elf64_Dyn);
		void *entries;
		int err;

		if (p->p_type != PT_DYNAMIC || !count)
			continue;
		if (count > MAX_DYNAMIC)
			return -EBADMSG;
		err = elf_load(e, p->p_offset, count * sizeof(Elf64_Dyn), &entries);
		if (err)
			return err;
		e->dynamic = entries;
		/* Whatever the file says, the last entry ends the table. */
		e->dynamic[count - 1].d_tag = DT_NULL;
		return 0;
	}
	return 0;
}

static bool dynamic_value(const struct elf *e, int64_t tag, uint64_t *value)
{
	for (const Elf64_Dyn *d = e->dynamic; d && d->d_tag != DT_NULL; d++)
		if (d->d_tag == tag) {
			*value = d->d_un.d_val;
			return true;
		}
	return false;
}

/* Where DT_STRTAB is in the file; a size of 0 if there is none. */
static void find_strings(const struct elf *e, struct elf_strings *s)
{
	uint64_t address, size;

	if (s->size || !dynamic_value(e, DT_STRTAB, &address) ||
	    !dynamic_value(e, DT_STRSZ, &size))
		return;
	s->offset = elf_offset(e, address);
	s->size = s->offset == UINT64_MAX ? 0 : size;
}

/* Symbols of a GNU hash table: one past the end of the chain that starts last. */
static int count_gnu_hash(const struct elf *e, uint64_t offset, uint64_t *count)
{
	uint32_t head[4]; /* buckets, first hashed symbol, bloom words, shift */
	uint64_t buckets, chains, last = 0;
	uint32_t word, *bucket;
	void *data;
	int err = elf_read_exact(e, offset, head, sizeof(head));

	if (err)
		return err;
	buckets = offset + sizeof(head) + 8ull * head[2];
	chains = buckets + 4ull * head[0];
	err = elf_load(e, buckets, 4ull * head[0], &data);
	if (err)
		return err;
	bucket = data;
	for (uint32_t i = 0; i < head[0]; i++)
		if (bucket[i] > last)
			last = bucket[i];
	free(data);
	if (last < head[1]) {
		*count = head[1];
		return 0;
	}
	for (unsigned length = 0; length < MAX_CHAIN; length++, last++) {
		err = elf_read_exact(e, chains + 4 * (last - head[1]), &word, sizeof(word));
		if (err)
			return err;
		if (word & 1) { /* the chain ends here */
			*count = last + 1;
			return 0;
		}
	}
	return -EBADMSG;
}

static int count_symbols(const struct elf *e, uint64_t *count)
{
	uint64_t address, offset;
	uint32_t head[2]; /* buckets, chains: one a symbol */
	int err;

	if (dynamic_value(e, DT_HASH, &address)) {
		offset = elf_offset(e, address);
		if (offset == UINT64_MAX)
			return -EBADMSG;
		err = elf_read_exact(e, offset, head, sizeof(head));
		*count = err ? 0 : head[1];
		return err;
	}
	if (!dynamic_value(e, DT_GNU_HASH, &address)) {
		*count = 0;
		return 0;
	}
	offset = elf_offset(e, address);
	return offset == UINT64_MAX ? -EBADMSG : count_gnu_hash(e, offset, count);
}

static int tables_of_dynamic(struct elf *e)
{
	uint64_t address, count;
	int err;

	if (!dynamic_value(e, DT_SYMTAB, &address))
		return 0;
	err = count_symbols(e, &count);
	if (err || !count)
		return err;
	e->dynsym.offset = elf_offset(e, address);
	if (e->dynsym.offset == UINT64_MAX || count > e->size / sizeof(Elf64_Sym))
		return -EBADMSG;
	e->dynsym.count = count;
	e->dynsym.present = true;
	find_strings(e, &e->dynsym.strings);
	return elf_check(e, e->dynsym.offset, count * sizeof(Elf64_Sym));
}

static int table_of_section(const struct elf *e, const Elf64_Shdr *s, struct elf_table *t)
{
	const Elf64_Shdr *strings;
	int err;

	if (t->present)
		return 0;
	if (s->sh_entsize != sizeof(Elf64_Sym) || s->sh_link >= e->sections_count)
		return -EBADMSG;
	strings = &e->sections[s->sh_link];
	if (strings->sh_type != SHT_STRTAB)
		return -EBADMSG;
	err = elf_check(e, s->sh_offset, s->sh_size);
	if (!err)
		err = elf_check(e, strings->sh_offset, strings->sh_size);
	if (err)
		return err;
	t->present = true;
	t->offset = s->sh_offset;
	t->count = s->sh_size / sizeof(Elf64_Sym);
	t->strings.offset = strings->sh_offset;
	t->strings.size = strings->sh_size;
	return 0;
}

int elf_find_tables(struct elf *e)
{
	int err = 0;

	for (uint64_t i = 0; i < e->sections_count && !err; i++) {
		const Elf64_Shdr *s = &e->sections[i];

		if (s->sh_type == SHT_DYNSYM)
			err = table_of_section(e, s, &e->dynsym);
		else if (s->sh_type == SHT_SYMTAB)
			err = table_of_section(e, s, &e->symtab);
	}
	if (!err && !e->dynsym.present)
		err = tables_of_dynamic(e);
	return err;
}

static const char *dynamic_string(struct elf *e, uint64_t at)
{
	struct elf_strings *s = &e->dynamic_strings, *of_symbols = &e->dynsym.strings;

	find_strings(e, s);
	/* Nearly always the same table; frameworks' are tens of megabytes. */
	if (s->offset == of_symbols->offset && s->size == of_symbols->size)
		s = of_symbols;
	if (elf_load_strings(e, s))
		return NULL;
	return elf_string(s, at);
}

bool elf_needs(struct elf *e, const char *prefix)
{
	for (const Elf64_Dyn *d = e->dynamic; d && d->d_tag != DT_NULL; d++) {
		const char *name;

		if (d->d_tag != DT_NEEDED)
			continue;
		name = dynamic_string(e, d->d_un.d_val);
		if (name && !strncmp(name, prefix, strlen(prefix)))
			return true;
	}
	return false;
}

const char *elf_soname(struct elf *e)
{
	const char *name = NULL;
	uint64_t at;

	if (dynamic_value(e, DT_SONAME, &at))
		name = dynamic_string(e, at);
	return name ? name : "";
}

static uint64_t align_up(uint64_t n, uint64_t align)
{
	return (n + align - 1) & ~(align - 1);
}

/* Notes are padded to 4 bytes, or to 8 in segments aligned so. */
static bool find_build_id(struct elf *e, const uint8_t *notes, uint64_t size, uint64_t align)
{
	uint64_t at = 0;

	while (at + sizeof(Elf64_Nhdr) <= size) {
		Elf64_Nhdr n;
		uint64_t name = at + sizeof(n), desc;

		memcpy(&n, notes + at, sizeof(n));
		desc = align_up(name + n.n_namesz, align);
		at = align_up(desc + n.n_descsz, align);
		if (desc + n.n_descsz > size)
			return false;
		if (n.n_type != NT_GNU_BUILD_ID || n.n_namesz != 4 ||
		    memcmp(notes + name, "GNU", 4) || n.n_descsz > sizeof(e->build_id) / 2)
			continue;
		for (uint32_t i = 0; i < n.n_descsz; i++) {
			e->build_id[2 * i] = "0123456789abcdef"[notes[desc + i] >> 4];
			e->build_id[2 * i + 1] = "0123456789abcdef"[notes[desc + i] & 15];
		}
		return true;
	}
	return false;
}

const char *elf_build_id(struct elf *e)
{
	for (unsigned i = e->segments_count; i < e->headers_count && !e->build_id_read; i++) {
		const Elf64_Phdr *p = &e->segments[i];
		uint64_t size = p->p_filesz < MAX_NOTES ? p->p_filesz : MAX_NOTES;
		void *notes;

		if (p->p_type != PT_NOTE || elf_load(e, p->p_offset, size, &notes))
			continue;
		e->build_id_read = notes && find_build_id(e, notes, size, p->p_align == 8 ? 8 : 4);
		free(notes);
	}
	e->build_id_read = true;
	return e->build_id;
}
