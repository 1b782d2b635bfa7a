/* SPDX-License-Identifier: BSD-2-Clause */
/* Where in a process is what we need: functions of its C library, a few bytes of code. */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inject/private.h"
#include "probe/elf.h"
#include "target/target.h"

#define TEXT_MAX (64u << 20)
#define HEADERS_MAX 64
#define PAGE 4096ull
#define SPARE_ENOUGH 3072 /* a frame, and the vector registers of AVX-512 */
#define IMAGES_MAX 256    /* looked at for spare memory */
#define GLOBAL_MAX 65536  /* _rtld_global; 4 to 5 KiB so far */

enum image_kind { OTHER, LIBC, LIBPTHREAD, LIBDL, LINKER, MUSL, ALLOCATOR };

struct finding {
	struct inject_plan *p;
	const char *memfd; /* "/memfd:NAME" */
	unsigned libcs, images;
	bool linker;
};

static bool starts(const char *s, const char *with)
{
	return !strncmp(s, with, strlen(with));
}

static enum image_kind kind_of(const char *path)
{
	static const char *const allocators[] = {"jemalloc", "tcmalloc", "mimalloc", "hoard",
						 "scudo",    "libasan",  "libtsan"};
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t i;

	if (starts(name, "libc.so.6") || starts(name, "libc-2."))
		return LIBC;
	if (starts(name, "libpthread.so.0") || starts(name, "libpthread-2."))
		return LIBPTHREAD;
	if (starts(name, "libdl.so.2") || starts(name, "libdl-2."))
		return LIBDL;
	if (starts(name, "ld-linux") || starts(name, "ld-2."))
		return LINKER;
	if (starts(name, "ld-musl") || starts(name, "libc.musl"))
		return MUSL;
	for (i = 0; i < sizeof(allocators) / sizeof(*allocators); i++)
		if (strstr(name, allocators[i]))
			return ALLOCATOR;
	return OTHER;
}

/* What is added to the addresses in its file. */
static uint64_t bias_of(const struct elf *e, const struct mapping *m)
{
	uint64_t at = elf_address(e, m->offset);

	/* A segment may begin in the middle of the page. */
	if (at == UINT64_MAX) {
		at = elf_address(e, m->offset + PAGE - 1);
		at = at == UINT64_MAX ? at : at - (PAGE - 1);
	}
	return at == UINT64_MAX ? UINT64_MAX : m->start - at;
}

static void function_find(struct elf *e, uint64_t bias, const char *name, uint64_t *out)
{
	struct elf_symbol s;

	if (!*out && !elf_exported(e, name, &s) && !s.ifunc && elf_executable(e, s.value))
		*out = bias + s.value;
}

/* The text that a mapping shows, as its file has it: in the process breakpoints may be in it. */
static uint8_t *text_read(const struct elf *e, const struct mapping *m, size_t *size)
{
	uint8_t *text;
	int n;

	*size = m->end - m->start;
	if (*size > TEXT_MAX)
		return NULL;
	text = malloc(*size);
	n = text ? elf_read(e, m->offset, text, *size) : 0;
	*size = n > 0 ? (size_t)n : 0;
	return text;
}

static void code_find(struct inject_plan *p, const struct elf *e, const struct mapping *m)
{
	const uint8_t *found;
	size_t size;
	uint8_t *text = text_read(e, m, &size);

	if (!text)
		return;
	found = memmem(text, size, inject_syscall_ret, sizeof(inject_syscall_ret));
	if (found)
		p->syscall_ret = m->start + (uint64_t)(found - text);
	found = memmem(text, size, inject_restorer, sizeof(inject_restorer));
	if (found)
		p->restorer = m->start + (uint64_t)(found - text);
	free(text);
}

static void libc_find(struct inject_plan *p, struct elf *e, const struct mapping *m, uint64_t bias)
{
	struct elf_symbol s;

	if (elf_exported(e, "gnu_get_libc_version", &s))
		return;                               /* another one that calls itself so */
	function_find(e, bias, "dlopen", &p->dlopen); /* here since glibc 2.34 */
	function_find(e, bias, "dlsym", &p->dlsym);
	function_find(e, bias, "dlerror", &p->dlerror);
	function_find(e, bias, "__errno_location", &p->errno_location);
	code_find(p, e, m);
}

static void linker_find(struct finding *f, struct elf *e, uint64_t bias)
{
	struct elf_symbol s;

	f->linker = true;
	if (!elf_exported(e, "_rtld_global", &s) && s.size <= GLOBAL_MAX) {
		f->p->global = bias + s.value;
		f->p->global_size = s.size;
	}
}

/* The end of the data of a library, and what is left of that page. */
static void spare_find(struct inject_plan *p, const struct elf *e, uint64_t bias)
{
	Elf64_Phdr headers[HEADERS_MAX];
	uint64_t end = 0, left;
	bool writable = false;
	Elf64_Ehdr h;
	int i;

	if (elf_read(e, 0, &h, sizeof(h)) != sizeof(h) || h.e_phnum > HEADERS_MAX ||
	    h.e_phentsize != sizeof(*headers) ||
	    elf_read(e, h.e_phoff, headers, h.e_phnum * sizeof(*headers)) !=
		    (int)(h.e_phnum * sizeof(*headers)))
		return;
	for (i = 0; i < h.e_phnum; i++)
		if (headers[i].p_type == PT_LOAD && headers[i].p_vaddr + headers[i].p_memsz > end) {
			end = headers[i].p_vaddr + headers[i].p_memsz;
			writable = headers[i].p_flags & PF_W;
		}
	if (!writable)
		return;
	end = (end + 63) & ~63ull;
	left = -end & (PAGE - 1);
	if (left <= p->spare_size)
		return;
	p->spare = bias + end;
	p->spare_size = left;
}

static void ranges_add(struct inject_range *ranges, size_t *count, size_t max,
		       const struct mapping *m)
{
	if (*count < max)
		ranges[(*count)++] = (struct inject_range){m->start, m->end};
}

static void image_use(struct finding *f, struct elf *e, const struct mapping *m,
		      enum image_kind kind)
{
	struct inject_plan *p = f->p;
	uint64_t bias = bias_of(e, m);

	if (bias == UINT64_MAX)
		return;
	if (kind == LIBC)
		libc_find(p, e, m, bias);
	if (kind == LIBC || kind == LIBPTHREAD)
		ranges_add(p->calls, &p->calls_count, INJECT_RANGES, m);
	if (kind == LIBDL) {
		function_find(e, bias, "dlopen", &p->dlopen);
		function_find(e, bias, "dlsym", &p->dlsym);
		function_find(e, bias, "dlerror", &p->dlerror);
	}
	if (kind == LINKER)
		linker_find(f, e, bias);
	else
		spare_find(p, e, bias); /* the linker itself uses the rest of its page */
}

static int image_look(const struct mapping *m, void *ctx)
{
	enum image_kind kind = kind_of(m->path);
	struct finding *f = ctx;
	struct elf *e;
	int fd;

	if (!strcmp(m->path, f->memfd))
		return inject_refuse(f->p, -EALREADY, "%s is loaded in the process already.",
				     f->memfd + strlen("/memfd:"));
	if (kind == MUSL)
		return inject_refuse(f->p, -EOPNOTSUPP,
				     "The program uses musl; only glibc is known "
				     "to be safe.");
	if (kind == LIBC && f->libcs++)
		return inject_refuse(f->p, -EOPNOTSUPP, "The process has two C libraries.");
	if (kind == ALLOCATOR)
		ranges_add(f->p->allocators, &f->p->allocators_count, INJECT_ALLOCATORS, m);
	if (kind == OTHER && (f->p->spare_size >= SPARE_ENOUGH || f->images++ >= IMAGES_MAX))
		return 0;
	fd = maps_open(f->p->pid, m);
	if (fd < 0)
		return 0; /* what is missed in the end says so */
	if (!elf_open(&e, fd)) {
		image_use(f, e, m, kind);
		elf_close(e);
	}
	close(fd);
	return 0;
}

static int missing(struct inject_plan *p, const struct finding *f)
{
	if (p->standalone && (!f->libcs || !f->linker))
		return inject_refuse(p, -EOPNOTSUPP,
				     "The program is linked statically: it has no "
				     "dynamic linker that could load a library.");
	if (!f->libcs || !f->linker)
		return inject_refuse(p, -EOPNOTSUPP, "No glibc was found in the process.");
	if (!p->dlopen || !p->dlsym || !p->dlerror)
		return inject_refuse(p, -EOPNOTSUPP,
				     "The process has not loaded libdl.so.2, which holds "
				     "dlopen() before glibc 2.34.");
	if (!p->errno_location || !p->syscall_ret || !p->restorer || !p->calls_count)
		return inject_refuse(p, -EOPNOTSUPP,
				     "The process's C library is not a glibc as we know "
				     "it, or its file cannot be read.");
	if (p->spare_size < 1024)
		return inject_refuse(p, -EOPNOTSUPP,
				     "No spare memory was found in the process's "
				     "libraries.");
	return 0;
}

static void lock_find(struct inject_plan *p)
{
	uint8_t *bytes = p->global ? malloc(p->global_size) : NULL;
	size_t at;

	if (bytes && inject_read(p->pid, p->global, bytes, p->global_size)) {
		at = inject_find_lock(bytes, p->global_size);
		p->load_lock = at == SIZE_MAX ? 0 : p->global + at;
	}
	free(bytes);
}

int inject_find(struct inject_plan *p, const struct inject_options *o)
{
	char memfd[INJECT_NAME_MAX + 8] = "/memfd:";
	struct finding f = {.p = p, .memfd = memfd};
	int err;

	strcat(memfd, o->name);
	err = maps_each(p->pid, image_look, &f);
	if (err && !p->why[0])
		inject_refuse(p, err,
			      err == -ESRCH ? "The process has ended."
					    : "What the process maps cannot be read.");
	if (!err)
		err = missing(p, &f);
	if (err)
		return err;
	lock_find(p);
	if (!p->load_lock)
		return inject_refuse(p, -EOPNOTSUPP,
				     "The lock of the process's dynamic linker was not "
				     "found: this glibc is not known.");
	return 0;
}

void inject_plan_free(struct inject_plan *p)
{
	filters_free(&p->filters);
	if (p->pidfd >= 0)
		close(p->pidfd);
	p->pidfd = -1;
}
