/* SPDX-License-Identifier: BSD-2-Clause */
#include "probe/hold.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bpf/hold.h"
#include "bpf/steps.h"
#include "probe/elf.h"
#include "probe/keeper.h"
#include "probe/private.h"

#include "gbpf.skel.h"
#include "gbpf_hold.skel.h"

#define LINKERS_MAX 16
#define ATTACH_MULTI 48 /* linux/bpf.h; the headers we build with may not have it yet */

struct linker {
	uint64_t dev, ino;
	struct probe_link *link; /* NULL: looked at, and not one of glibc's */
	int64_t since;		 /* attached, ns */
};

struct hold {
	struct gbpf_hold *skel;
	struct probes *probes;
	struct keeper *keeper;
	struct linker linkers[LINKERS_MAX];
	size_t linkers_count;
};

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static struct gbpf_hold_shared *shared(const struct hold *h)
{
	return &h->skel->bss->shared;
}

static int skeleton_load(struct hold *h, uint32_t kinds, uint32_t own_child)
{
	int err;

	h->skel = gbpf_hold__open();
	if (!h->skel)
		return errno == ENOMEM ? -ENOMEM : -EOPNOTSUPP;
	if (probes_rung(h->probes) != RUNG_SINGLE)
		bpf_program__set_expected_attach_type(h->skel->progs.gbpf_hold,
						      (enum bpf_attach_type)ATTACH_MULTI);
	h->skel->rodata->filter_at = offsetof(struct gbpf_bpf__bss, filter);
	h->skel->bss->shared.kinds = kinds;
	err = bpf_map__reuse_fd(h->skel->maps.main_bss,
				h->probes->programs.bss);
	if (!err)
		err = gbpf_hold__load(h->skel);
	if (err)
		return err == -ENOMEM ? err : -EOPNOTSUPP;
	return keeper_new(&h->keeper, shared(h), bpf_map__fd(h->skel->maps.held), own_child);
}

int hold_new(struct hold **out, struct probes *p, uint32_t kinds, uint32_t own_child)
{
	struct hold *h = calloc(1, sizeof(*h));
	int err;

	if (!h)
		return -ENOMEM;
	h->probes = p;
	err = skeleton_load(h, kinds, own_child);
	if (err) {
		hold_free(h);
		return err;
	}
	*out = h;
	return 0;
}

void hold_free(struct hold *h)
{
	size_t i;

	if (!h)
		return;
	/* closing a link waits for its program to end: nobody is to spin meanwhile */
	if (h->skel && h->skel->bss)
		shared(h)->kinds = 0;
	keeper_free(h->keeper);
	if (h->skel && h->skel->bss)
		memset(shared(h)->slots, 0, sizeof(shared(h)->slots));
	for (i = 0; i < h->linkers_count; i++)
		probe_link_free(h->linkers[i].link);
	gbpf_hold__destroy(h->skel);
	free(h);
}

/* Where the linker announces what it mapped, and how far from there its list begins. */
static int linker_site(int fd, struct probe_site *site)
{
	struct elf_symbol state, debug;
	struct elf *e;
	int err = elf_open(&e, fd);

	if (err)
		return err == -ENOMEM ? err : -ENOENT;
	err = elf_exported(e, "_dl_debug_state", &state);
	if (!err)
		err = elf_exported(e, "_r_debug", &debug);
	if (!err && (state.offset == UINT64_MAX || !elf_executable(e, state.value)))
		err = -ENOENT;
	if (!err) {
		site->offset = state.offset;
		site->cookie = debug.value - state.value;
	}
	elf_close(e);
	return err == -ENOMEM || !err ? err : -ENOENT;
}

static struct linker *linker_find(struct hold *h, const struct stat *st)
{
	size_t i;

	for (i = 0; i < h->linkers_count; i++)
		if (h->linkers[i].dev == st->st_dev && h->linkers[i].ino == st->st_ino)
			return &h->linkers[i];
	return NULL;
}

int hold_attach(struct hold *h, int fd)
{
	struct probe_site site = {0};
	struct linker *l;
	struct stat st;
	int err;

	if (fstat(fd, &st))
		return -errno;
	l = linker_find(h, &st);
	if (l)
		return l->link ? 0 : -ENOENT;
	if (h->linkers_count == LINKERS_MAX)
		return -ENOSPC;
	l = &h->linkers[h->linkers_count++];
	l->dev = st.st_dev;
	l->ino = st.st_ino;
	err = linker_site(fd, &site);
	if (!err)
		err = probes_attach_entry(h->probes, bpf_program__fd(h->skel->progs.gbpf_hold), fd,
					  &site, &l->link);
	l->since = now_ns();
	return err;
}

bool hold_covers(struct hold *h, int fd, int64_t when)
{
	struct linker *l;
	struct stat st;

	if (fstat(fd, &st))
		return false;
	l = linker_find(h, &st);
	return l && l->link && l->since < when;
}

int hold_publish(struct hold *h, const struct image *i, int fd)
{
	uint32_t at = shared(h)->images_count, n = 0;
	size_t step = i->hooked / GBPF_HOLD_SITES, seen = 0, k;
	struct gbpf_hold_image *image;
	struct elf *e;
	int err;

	if (at == GBPF_HOLD_IMAGES || !i->hooked)
		return 0; /* others wait, are looked at, and go on */
	err = elf_open(&e, fd);
	if (err)
		return err;
	image = &shared(h)->images[at];
	/* far from each other; of an image with fewer sites the first one thrice */
	for (k = 0; k < i->sites_count && n < GBPF_HOLD_SITES; k++)
		if (i->sites[k].state != SITE_NOT_HOOKED && (!step || seen++ % step == 0))
			image->address[n++] = elf_address(e, i->sites[k].offset);
	while (n && n < GBPF_HOLD_SITES)
		image->address[n++] = image->address[0];
	elf_close(e);
	__atomic_store_n(&shared(h)->images_count, at + 1, __ATOMIC_RELEASE);
	return 0;
}

int hold_fd(const struct hold *h)
{
	return keeper_fd(h->keeper);
}

int hold_consume(struct hold *h, int (*look)(uint32_t pid, void *ctx), void *ctx)
{
	return keeper_consume(h->keeper, look, ctx);
}

void hold_stats(const struct hold *h, struct hold_stats *out)
{
	out->holds = __atomic_load_n(&shared(h)->holds, __ATOMIC_RELAXED);
	out->timeouts = __atomic_load_n(&shared(h)->timeouts, __ATOMIC_RELAXED);
	out->ns = keeper_ns(h->keeper);
}
