// SPDX-License-Identifier: BSD-2-Clause
#include "probe/markers.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "probe/elf.h"
#include "probe/identity.h"
#include "probe/private.h"
#include "probe/site.h"

#define SITES_MAX 16 /* of one file */

struct marker_file { /* looked at */
	uint64_t dev, ino;
	struct probe_link *link; /* NULL: it has none */
	char build_id[65];
};

struct markers {
	struct probes *probes;
	struct ring_buffer *ring;
	const struct marker_name *names;
	size_t names_count;
	struct marker_file *files;
	size_t files_count, files_room;
	size_t found;
	int (*each)(void *ctx, const struct gbpf_mark *mark);
	void *ctx;
};

struct gbpf_steps *probes_steps(struct probes *p)
{
	return p->programs.steps;
}

static int on_mark(void *ctx, void *data, size_t size)
{
	struct markers *m = ctx;

	return size < sizeof(struct gbpf_mark) ? 0 : m->each(m->ctx, data);
}

int markers_new(struct markers **out, struct probes *p, const struct marker_name *names,
		size_t count)
{
	struct markers *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	m->probes = p;
	m->names = names;
	m->names_count = count;
	m->ring = ring_buffer__new(p->programs.marks, on_mark, m, NULL);
	if (!m->ring) {
		err = -errno;
		free(m);
		return err;
	}
	*out = m;
	return 0;
}

void markers_free(struct markers *m)
{
	if (!m)
		return;
	while (m->files_count)
		probe_link_free(m->files[--m->files_count].link);
	free(m->files);
	ring_buffer__free(m->ring);
	free(m);
}

/* "libtorch_cpu" names libtorch_cpu.so and libtorch_cpu.so.2, and "job" the program job. */
static bool library_is(const char *library, const char *path)
{
	const char *base = strrchr(path, '/'), *rest;
	size_t len = strlen(library);

	base = base ? base + 1 : path;
	if (strncmp(base, library, len))
		return false;
	rest = base + len;
	return !*rest || !strcmp(rest, ".so") || !strncmp(rest, ".so.", 4) ||
	       (*rest == '.' && strstr(library, ".so"));
}

bool markers_wants(const struct markers *m, const char *path)
{
	size_t i;

	for (i = 0; i < m->names_count; i++)
		if (!m->names[i].library || library_is(m->names[i].library, path))
			return true;
	return false;
}

bool markers_known(const struct markers *m, uint64_t dev, uint64_t ino)
{
	size_t i;

	for (i = 0; i < m->files_count; i++)
		if (m->files[i].dev == dev && m->files[i].ino == ino)
			return true;
	return false;
}

struct search {
	const struct markers *m;
	const struct elf *elf;
	struct probe_site sites[SITES_MAX];
	size_t count;
};

static bool named(const struct markers *m, const char *symbol)
{
	size_t i;

	for (i = 0; i < m->names_count; i++) {
		const struct marker_name *n = &m->names[i];

		if (n->prefix ? !strncmp(symbol, n->symbol, strlen(n->symbol))
			      : !strcmp(symbol, n->symbol))
			return true;
	}
	return false;
}

/* They are called once a step or so: single-stepping will do. */
static int on_function(const struct elf_symbol *s, void *ctx)
{
	struct search *search = ctx;
	struct site site;
	size_t i;

	if (!s->dynamic)
		return 1; /* all of those that are exported came before */
	if (s->ifunc || !named(search->m, s->name) || search->count == SITES_MAX)
		return 0;
	site = site_choose(search->elf, s);
	if (site.verdict == SITE_REFUSED)
		return 0;
	for (i = 0; i < search->count; i++)
		if (search->sites[i].offset == site.offset)
			return 0; /* another name of the same */
	search->sites[search->count++] = (struct probe_site){
		.offset = site.offset, .cookie = GBPF_COOKIE_STEP, .entry_only = true,
	};
	return 0;
}

/* Two mounts of one layer show one file as two: then it has our breakpoints already. */
static bool probed_before(const struct markers *m, const char *build_id, int fd,
			  const struct search *search)
{
	size_t i;

	for (i = 0; i < m->files_count; i++)
		if (m->files[i].link && !strcmp(m->files[i].build_id, build_id))
			return identity_probed(fd, &search->sites[0].offset, 1) == 1;
	return false;
}

static int file_attach(struct markers *m, struct marker_file *file, int fd)
{
	struct search search = {.m = m};
	struct elf *e;
	int err = elf_open(&e, fd);

	if (err)
		return err == -ENOMEM ? err : 0;
	search.elf = e;
	err = elf_each_function(e, on_function, &search);
	snprintf(file->build_id, sizeof(file->build_id), "%s", elf_build_id(e));
	elf_close(e);
	if (err == -ENOMEM)
		return err;
	if (!search.count || probed_before(m, file->build_id, fd, &search))
		return 0;
	err = probes_attach(m->probes, fd, search.sites, search.count, &file->link);
	if (err)
		return err == -ENOMEM ? err : 0;
	return (int)search.count;
}

static struct marker_file *file_add(struct markers *m, const struct stat *st)
{
	if (m->files_count == m->files_room) {
		size_t room = m->files_room ? 2 * m->files_room : 64;
		struct marker_file *grown = realloc(m->files, room * sizeof(*grown));

		if (!grown)
			return NULL;
		m->files = grown;
		m->files_room = room;
	}
	m->files[m->files_count] = (struct marker_file){.dev = st->st_dev, .ino = st->st_ino};
	return &m->files[m->files_count];
}

int markers_file(struct markers *m, int fd)
{
	struct marker_file *file;
	struct stat st;
	int found;

	if (fstat(fd, &st) || markers_known(m, st.st_dev, st.st_ino))
		return 0;
	file = file_add(m, &st);
	if (!file)
		return -ENOMEM;
	found = file_attach(m, file, fd);
	if (found < 0)
		return found;
	m->files_count++;
	m->found += (size_t)found;
	return found;
}

size_t markers_found(const struct markers *m)
{
	return m->found;
}

int markers_fd(const struct markers *m)
{
	return ring_buffer__epoll_fd(m->ring);
}

int markers_consume(struct markers *m, int (*each)(void *ctx, const struct gbpf_mark *mark),
		    void *ctx)
{
	int n;

	m->each = each;
	m->ctx = ctx;
	n = ring_buffer__consume(m->ring);
	return n < 0 ? n : 0;
}

int markers_kernel(struct markers *m, uint32_t pid, uint64_t handle, bool marks)
{
	struct gbpf_step_kernel key = {.handle = handle, .pid = pid};
	int fd = m->probes->programs.step_kernels;
	uint32_t one = 1;

	if (!marks) {
		bpf_map_delete_elem(fd, &key);
		return 0;
	}
	return bpf_map_update_elem(fd, &key, &one, BPF_ANY) ? -errno : 0;
}
