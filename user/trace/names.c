/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kernel names: what the programs in the kernel could not read themselves, where
 * the driver keeps a name in its handles, and the symbols of host functions.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "bpf/gbpf.h"
#include "probe/elf.h"
#include "trace/private.h"

#define LAYOUT_WORDS 12 /* offsets 0 … 88 of a handle are searched */

/* As many bytes of the target as can be had; its pages are faulted in if need be. */
static ssize_t target_read(uint32_t pid, uint64_t from, void *to, size_t size)
{
	struct iovec here = {to, size}, there = {(void *)(uintptr_t)from, size};
	ssize_t n = process_vm_readv((pid_t)pid, &here, 1, &there, 1, 0);

	return n < 0 ? -errno : n;
}

/* A string of the target, page by page: the next page may not be there. Its length or -errno. */
static ssize_t target_string(uint32_t pid, uint64_t from, char *to, size_t size)
{
	size_t have = 0, step;
	const char *end;
	ssize_t n;

	while (have < size) {
		step = 4096 - (from + have) % 4096;
		if (step > size - have)
			step = size - have;
		n = target_read(pid, from + have, to + have, step);
		if (n <= 0)
			return n ? n : -EFAULT;
		end = memchr(to + have, '\0', (size_t)n);
		if (end)
			return end - to;
		have += (size_t)n;
	}
	to[size - 1] = '\0';
	return (ssize_t)size - 1;
}

static int name_write(struct tracer *t, const struct gbpf_name *n, uint32_t source,
		      const char *name, size_t len)
{
	struct record r = {.kind = RECORD_NAME};

	r.name = (struct record_name){
		.ts = (int64_t)n->hdr.ts,
		.pid = n->hdr.pid,
		.source = source,
		.handle = n->handle,
		.name = name,
		.len = len,
	};
	return scheduled_name(t, n, name) ? -ENOMEM : tracer_add(t, &r);
}

/* Where in the object behind this handle is a pointer to just that name? -ENOENT: nowhere. */
static int layout_search(uint32_t pid, uint64_t handle, const char *name)
{
	uint64_t words[LAYOUT_WORDS];
	char text[256];
	size_t len = strnlen(name, sizeof(text) - 1);
	ssize_t n = target_read(pid, handle, words, sizeof(words));
	size_t i;

	if (n <= 0)
		return -EFAULT; /* the process has ended, or the handle is gone: nothing learnt */
	for (i = 0; i < (size_t)n / sizeof(*words); i++)
		if (target_string(pid, words[i], text, sizeof(text)) == (ssize_t)len &&
		    !strncmp(text, name, len))
			return (int)(8 * i);
	return -ENOENT;
}

static void layout_set(struct tracer *t, uint8_t offset)
{
	size_t i;

	t->layout.offset = offset;
	for (i = 0; i < images_count(t->images); i++)
		if (images_get(t->images, i)->kind == IMAGE_DRIVER)
			probes_name_offset(t->probes, images_get(t->images, i)->slot, offset);
}

/*
 * The program asked for a handle by name, so both are known: does the handle
 * hold the name where we believe? One that does settles it; several that do
 * not, and in which no other place is found, end the reading of handles.
 */
static void layout_learn(struct tracer *t, const struct gbpf_name *n)
{
	int offset;

	if (t->layout.confirmed >= 4)
		return;
	offset = layout_search(n->hdr.pid, n->handle, n->name);
	if (offset < 0) {
		if (offset == -ENOENT && !t->layout.confirmed && ++t->layout.contradicted == 4) {
			tracer_tell(t, "this driver keeps kernel names elsewhere: kernels that "
				       "were loaded before are shown by their handles");
			layout_set(t, GBPF_NO_NAMES);
		}
		return;
	}
	t->layout.confirmed++;
	if ((uint8_t)offset != t->layout.offset) {
		layout_set(t, (uint8_t)offset);
		probes_forget_names(t->probes, n->hdr.pid);
	}
}

static int name_lost(struct tracer *t)
{
	t->names_lost++;
	return 0;
}

/* The programs cannot fault pages in; we can. */
static int name_fetch(struct tracer *t, const struct gbpf_name *n)
{
	char text[GBPF_NAME_LONG];
	uint64_t where = n->where;
	ssize_t len;

	if (!where && target_read(n->hdr.pid, n->handle + t->layout.offset, &where,
				  sizeof(where)) != sizeof(where))
		return name_lost(t);
	len = target_string(n->hdr.pid, where, text, sizeof(text));
	if (len <= 0)
		return name_lost(t);
	return name_write(t, n, GBPF_NAME_LAYOUT, text, (size_t)len);
}

struct stub_search {
	uint64_t address;
	uint32_t pid;
	struct tracer *t;
	struct stub_file *file;
	uint64_t offset;
};

static void stub_close(struct stub_file *f)
{
	elf_close(f->elf);
	if (f->fd >= 0)
		close(f->fd);
	memset(f, 0, sizeof(*f));
	f->fd = -1;
}

static struct stub_file *stub_open(struct tracer *t, uint32_t pid, const struct mapping *m)
{
	struct stub_file *f;
	struct stat st;
	int fd = maps_open(pid, m);
	size_t i;

	if (fd < 0 || fstat(fd, &st))
		goto fail;
	for (i = 0; i < t->stubs_count; i++)
		if (t->stubs[i].ino == st.st_ino && t->stubs[i].dev == st.st_dev) {
			close(fd);
			return &t->stubs[i];
		}
	f = &t->stubs[t->stubs_next++ % STUB_FILES];
	if (t->stubs_count < STUB_FILES)
		t->stubs_count++;
	else
		stub_close(f);
	*f = (struct stub_file){.dev = st.st_dev, .ino = st.st_ino, .fd = fd};
	if (elf_open(&f->elf, fd))
		f->elf = NULL; /* kept, so that it is not tried again */
	return f;
fail:
	if (fd >= 0)
		close(fd);
	return NULL;
}

static int on_stub_mapping(const struct mapping *m, void *ctx)
{
	struct stub_search *s = ctx;

	if (s->address < m->start || s->address >= m->end)
		return 0;
	s->file = stub_open(s->t, s->pid, m);
	s->offset = s->address - m->start + m->offset;
	return 1;
}

/* The runtime's kernels are host functions: the symbol is the mangled kernel's. */
static int stub_name(struct tracer *t, const struct gbpf_name *n)
{
	struct stub_search s = {.address = n->handle, .pid = n->hdr.pid, .t = t};
	struct elf_symbol symbol;

	if (maps_each(n->hdr.pid, on_stub_mapping, &s) != 1 || !s.file || !s.file->elf)
		return 0;
	if (elf_symbolize(s.file->elf, elf_address(s.file->elf, s.offset), &symbol))
		return 0; /* stripped: the driver's own launch brings the name */
	return name_write(t, n, GBPF_NAME_STUB, symbol.name, strnlen(symbol.name, 8191));
}

int names_add(struct tracer *t, const struct gbpf_name *n)
{
	int err;

	switch (n->source) {
	case GBPF_NAME_STUB:
		return stub_name(t, n);
	case GBPF_NAME_FAULT:
		return name_fetch(t, n);
	default:
		err = name_write(t, n, n->source, n->name, (size_t)n->len - 1);
		if (!err && n->source == GBPF_NAME_GETTER)
			layout_learn(t, n);
		return err;
	}
}

void names_close(struct tracer *t)
{
	size_t i;

	for (i = 0; i < t->stubs_count; i++)
		stub_close(&t->stubs[i]);
	t->stubs_count = 0;
}
