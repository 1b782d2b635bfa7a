/* SPDX-License-Identifier: BSD-2-Clause */
#include "probe/elf.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probe/elf_private.h"

/* No linker makes more; the limits keep the work per symbol small. */
#define MAX_HEADERS 1024
#define MAX_SEGMENTS 128

int elf_read(const struct elf *e, uint64_t offset, void *buf, size_t size)
{
	size_t done = 0;

	if (offset >= e->size)
		return 0;
	if (size > e->size - offset)
		size = e->size - offset;
	if (size > INT_MAX)
		size = INT_MAX;
	while (done < size) {
		ssize_t n = pread(e->fd, (char *)buf + done, size - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break; /* cut since it was opened */
		done += (size_t)n;
	}
	return (int)done;
}

int elf_check(const struct elf *e, uint64_t offset, uint64_t size)
{
	if (offset > e->size || size > e->size - offset)
		return -EBADMSG;
	return size > ELF_MAX_TABLE ? -EFBIG : 0;
}

int elf_read_exact(const struct elf *e, uint64_t offset, void *buf, uint64_t size)
{
	int n = elf_check(e, offset, size);

	if (n)
		return n;
	n = elf_read(e, offset, buf, size);
	if (n < 0)
		return n;
	return (uint64_t)n == size ? 0 : -EBADMSG;
}

int elf_load(const struct elf *e, uint64_t offset, uint64_t size, void **out)
{
	int err = elf_check(e, offset, size);
	void *data;

	*out = NULL;
	if (err || !size)
		return err;
	data = malloc(size);
	if (!data)
		return -ENOMEM;
	err = elf_read_exact(e, offset, data, size);
	if (err) {
		free(data);
		return err;
	}
	*out = data;
	return 0;
}

int elf_load_strings(const struct elf *e, struct elf_strings *s)
{
	void *data;
	int err;

	if (s->data || !s->size)
		return 0;
	err = elf_load(e, s->offset, s->size, &data);
	if (err)
		return err;
	if (((char *)data)[s->size - 1]) {
		free(data);
		return -EBADMSG;
	}
	s->data = data;
	return 0;
}

const char *elf_string(const struct elf_strings *s, uint64_t at)
{
	return s->data && at < s->size ? s->data + at : NULL;
}

const Elf64_Phdr *elf_segment(const struct elf *e, uint64_t address)
{
	for (unsigned i = 0; i < e->segments_count; i++) {
		const Elf64_Phdr *p = &e->segments[i];

		if (address >= p->p_vaddr && address - p->p_vaddr < p->p_filesz)
			return p;
	}
	return NULL;
}

uint64_t elf_offset(const struct elf *e, uint64_t address)
{
	const Elf64_Phdr *p = elf_segment(e, address);
	uint64_t delta;

	if (!p)
		return UINT64_MAX;
	delta = address - p->p_vaddr;
	/* A segment that says it goes on past the end of the file holds nothing there. */
	if (p->p_offset >= e->size || delta >= e->size - p->p_offset)
		return UINT64_MAX;
	return p->p_offset + delta;
}

uint64_t elf_address(const struct elf *e, uint64_t offset)
{
	for (unsigned i = 0; i < e->segments_count; i++) {
		const Elf64_Phdr *p = &e->segments[i];

		if ((p->p_flags & PF_X) && offset >= p->p_offset &&
		    offset - p->p_offset < p->p_filesz)
			return p->p_vaddr + (offset - p->p_offset);
	}
	return UINT64_MAX;
}

bool elf_executable(const struct elf *e, uint64_t address)
{
	const Elf64_Phdr *p = elf_segment(e, address);

	return p && (p->p_flags & PF_X) && elf_offset(e, address) != UINT64_MAX;
}

unsigned elf_machine(const struct elf *e)
{
	return e->machine;
}

static int read_header(const struct elf *e, Elf64_Ehdr *h)
{
	int n = elf_read(e, 0, h, sizeof(*h));

	if (n < 0)
		return n;
	if (n < EI_NIDENT || memcmp(h->e_ident, ELFMAG, SELFMAG))
		return -ENOEXEC;
	if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB)
		return -ENOEXEC;
	if (n < (int)sizeof(*h))
		return -EBADMSG;
	if (h->e_type != ET_EXEC && h->e_type != ET_DYN)
		return -ENOEXEC;
	return 0;
}

/* The first section header stands in for counts too large for the ELF header (System V gABI). */
static int read_sections(struct elf *e, Elf64_Ehdr *h, uint64_t *phnum)
{
	Elf64_Shdr first;
	uint64_t count = h->e_shnum, names = h->e_shstrndx;
	void *sections;
	int err;

	*phnum = h->e_phnum;
	if (!h->e_shoff)
		return h->e_phnum == PN_XNUM ? -EBADMSG : 0;
	if (h->e_shentsize != sizeof(Elf64_Shdr))
		return -EBADMSG;
	err = elf_read_exact(e, h->e_shoff, &first, sizeof(first));
	if (err)
		return err;
	if (!count)
		count = first.sh_size;
	if (names == SHN_XINDEX)
		names = first.sh_link;
	if (h->e_phnum == PN_XNUM)
		*phnum = first.sh_info;
	if (count > e->size / sizeof(Elf64_Shdr) || (names && names >= count))
		return -EBADMSG;
	err = elf_load(e, h->e_shoff, count * sizeof(Elf64_Shdr), &sections);
	if (err)
		return err;
	e->sections = sections;
	e->sections_count = count;
	if (!names || !e->sections)
		return 0;
	e->section_names.offset = e->sections[names].sh_offset;
	e->section_names.size = e->sections[names].sh_size;
	return elf_load_strings(e, &e->section_names);
}

static int read_segments(struct elf *e, const Elf64_Ehdr *h, uint64_t count)
{
	void *headers;
	int err;

	if (!count)
		return 0;
	if (h->e_phentsize != sizeof(Elf64_Phdr) || count > MAX_HEADERS)
		return -EBADMSG;
	err = elf_load(e, h->e_phoff, count * sizeof(Elf64_Phdr), &headers);
	if (err || !headers)
		return err;
	e->segments = headers;
	for (uint64_t i = 0; i < count; i++) {
		if (e->segments[i].p_type != PT_LOAD)
			continue;
		if (e->segments_count == MAX_SEGMENTS)
			return -EBADMSG;
		/* Swap, so that loads lead and the others stay for notes and PT_DYNAMIC. */
		Elf64_Phdr load = e->segments[i];

		e->segments[i] = e->segments[e->segments_count];
		e->segments[e->segments_count++] = load;
	}
	e->headers_count = (unsigned)count;
	return 0;
}

static int open_tables(struct elf *e)
{
	Elf64_Ehdr h;
	uint64_t phnum;
	int err = read_header(e, &h);

	if (err)
		return err;
	e->machine = h.e_machine;
	err = read_sections(e, &h, &phnum);
	if (!err)
		err = read_segments(e, &h, phnum);
	if (!err)
		err = elf_load_dynamic(e);
	if (!err)
		err = elf_find_tables(e);
	return err;
}

int elf_open(struct elf **out, int fd)
{
	struct elf *e;
	struct stat st;
	int err;

	*out = NULL;
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->fd = fd;
	e->size = (uint64_t)st.st_size;
	err = open_tables(e);
	if (err) {
		elf_close(e);
		return err;
	}
	*out = e;
	return 0;
}

void elf_close(struct elf *e)
{
	if (!e)
		return;
	free(e->segments);
	free(e->sections);
	free(e->section_names.data);
	free(e->dynsym.strings.data);
	free(e->symtab.strings.data);
	free(e->dynamic);
	free(e->dynamic_strings.data);
	free(e);
}

bool elf_has_section(const struct elf *e, const char *name)
{
	for (uint64_t i = 0; i < e->sections_count; i++) {
		const char *s = elf_string(&e->section_names, e->sections[i].sh_name);

		if (s && !strcmp(s, name))
			return true;
	}
	return false;
}
