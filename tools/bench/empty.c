// SPDX-License-Identifier: BSD-2-Clause
#include "tools/bench/empty.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/bench.h" /* before the skeleton, which needs it */

#include "bench.skel.h"
#include "probe/private.h"

/* As in probe/link.c: attach types and the attribute of a multi link, since 6.6. */
enum { ATTACH_MULTI = 48, ATTACH_SESSION = 57, MULTI_RETURN = 1 };

struct multi_attr {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t count, multi_flags, pid, path_fd;
	uint8_t rest[64];
};

#define FDS 4

struct empty {
	struct gbpf_bench *skel[3]; /* by enum empty_at; NULL: not on this kernel */
	uint32_t perf_type, perf_return;
	int fds[FDS];
	int count;
};

static void choose(struct bpf_program *prog, bool load, int type)
{
	bpf_program__set_autoload(prog, load);
	if (load && type)
		bpf_program__set_expected_attach_type(prog, (enum bpf_attach_type)type);
}

static void load(struct empty *e, enum empty_at at)
{
	struct gbpf_bench *s = gbpf_bench__open();

	if (!s)
		return;
	choose(s->progs.empty_multi_entry, at == EMPTY_AT_MULTI, ATTACH_MULTI);
	choose(s->progs.empty_multi_return, at == EMPTY_AT_MULTI, ATTACH_MULTI);
	choose(s->progs.empty_session, at == EMPTY_AT_SESSION, ATTACH_SESSION);
	choose(s->progs.empty_single_entry, at == EMPTY_AT_SINGLE, 0);
	choose(s->progs.empty_single_return, at == EMPTY_AT_SINGLE, 0);
	choose(s->progs.fill, false, 0);
	if (gbpf_bench__load(s)) {
		gbpf_bench__destroy(s);
		return;
	}
	e->skel[at] = s;
}

int empty_new(struct empty **out)
{
	struct empty *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	load(e, EMPTY_AT_MULTI);
	load(e, EMPTY_AT_SESSION);
	load(e, EMPTY_AT_SINGLE);
	if (!e->skel[EMPTY_AT_SINGLE] || perf_uprobe_pmu(&e->perf_type, &e->perf_return)) {
		empty_free(e);
		return -EOPNOTSUPP;
	}
	*out = e;
	return 0;
}

void empty_free(struct empty *e)
{
	int i;

	if (!e)
		return;
	empty_detach(e);
	for (i = 0; i < 3; i++)
		gbpf_bench__destroy(e->skel[i]);
	free(e);
}

bool empty_has(const struct empty *e, enum empty_at at)
{
	return e->skel[at] != NULL;
}

static int keep(struct empty *e, long fd)
{
	if (fd < 0)
		return -errno;
	e->fds[e->count++] = (int)fd;
	return 0;
}

static int multi(struct empty *e, int prog, const char *path, uint64_t offset, uint32_t type,
		 uint32_t flags)
{
	struct multi_attr attr = {
		.prog_fd = (uint32_t)prog,
		.attach_type = type,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)&offset,
		.count = 1,
		.multi_flags = flags,
	};

	return keep(e, syscall(__NR_bpf, BPF_LINK_CREATE, &attr, sizeof(attr)));
}

static int single(struct empty *e, int prog, const char *path, uint64_t offset, bool is_return)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = e->perf_type,
		.config = is_return ? 1ULL << e->perf_return : 0,
		.config1 = (uintptr_t)path,
		.config2 = offset,
	};
	long perf = syscall(__NR_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	int err = keep(e, perf);

	return err ? err : keep(e, bpf_link_create(prog, (int)perf, BPF_PERF_EVENT, NULL));
}

static int attach(struct empty *e, enum empty_at at, const char *path, uint64_t offset)
{
	struct gbpf_bench *s = e->skel[at];
	int err;

	if (at == EMPTY_AT_SESSION)
		return multi(e, bpf_program__fd(s->progs.empty_session), path, offset,
			     ATTACH_SESSION, 0);
	if (at == EMPTY_AT_MULTI) {
		err = multi(e, bpf_program__fd(s->progs.empty_multi_entry), path, offset,
			    ATTACH_MULTI, 0);
		return err ? err : multi(e, bpf_program__fd(s->progs.empty_multi_return), path,
					 offset, ATTACH_MULTI, MULTI_RETURN);
	}
	err = single(e, bpf_program__fd(s->progs.empty_single_return), path, offset, true);
	return err ? err : single(e, bpf_program__fd(s->progs.empty_single_entry), path, offset,
				  false);
}

int empty_attach(struct empty *e, enum empty_at at, int fd, uint64_t offset)
{
	char path[40];
	int err;

	empty_detach(e);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	err = attach(e, at, path, offset);
	if (err)
		empty_detach(e);
	return err;
}

void empty_detach(struct empty *e)
{
	while (e->count)
		close(e->fds[--e->count]);
}

struct search {
	uintptr_t address;
	uint64_t offset;
};

static int in_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct search *s = ctx;
	int i;

	(void)size;
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type == PT_LOAD && s->address >= start &&
		    s->address < start + ph->p_filesz) {
			s->offset = s->address - start + ph->p_offset;
			return 1;
		}
	}
	return 0;
}

int bench_site(uintptr_t function, int *fd, uint64_t *offset)
{
	struct search s = {.address = function};

	if (!dl_iterate_phdr(in_object, &s))
		return -ENOENT;
	*offset = s.offset;
	*fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	return *fd < 0 ? -errno : 0;
}
