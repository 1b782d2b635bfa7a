// SPDX-License-Identifier: BSD-2-Clause
#include "probe/foreign.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bpf/foreign.h"
#include "probe/elf.h"
#include "probe/private.h"
#include "probe/site.h"

#include "gbpf_foreign.skel.h"

#define FILES_MAX 32
_Static_assert(FOREIGN_RANGES == GBPF_FOREIGN_RANGES, "both sides have as many");
#define ATTACH_MULTI 48 /* linux/bpf.h; the headers we build with may not have it yet */

/*
 * With these a client of CUPTI begins: its subscription, its buffers, what it wants
 * recorded, counted or sampled. By prefix, as versions and variants are appended.
 */
static const char *const beginnings[] = {
	"cuptiSubscribe",
	"cuptiActivityRegisterCallbacks",
	"cuptiActivityRegisterTimestampCallback",
	"cuptiActivityEnable",
	"cuptiEnableCallback",
	"cuptiEnableDomain",
	"cuptiEnableAllDomains",
	"cuptiFinalize",
	"cuptiEventGroupEnable",
	"cuptiEventGroupSetEnable",
	"cuptiProfilerInitialize",
	"cuptiProfilerBeginSession",
	"cuptiRangeProfilerEnable",
	"cuptiPCSamplingEnable",
	"cuptiPmSamplingEnable",
	"cuptiSassMetricsEnable",
};
#define BEGINNINGS (sizeof(beginnings) / sizeof(*beginnings))
#define SITES_MAX 64

struct file {
	uint64_t dev, ino;
	struct probe_link *link;
};

struct foreign {
	struct gbpf_foreign *skel;
	struct probes *probes;
	struct ring_buffer *ring;
	struct file files[FILES_MAX];
	size_t files_count;
	int (*each)(const struct foreign_call *c, void *ctx);
	void *ctx;
};

static int on_call(void *ctx, void *data, size_t size)
{
	const struct gbpf_foreign_call *c = data;
	struct foreign *f = ctx;
	struct foreign_call call;

	if (size < sizeof(*c) || c->function >= BEGINNINGS)
		return 0;
	call = (struct foreign_call){
		.ts = (int64_t)c->ts, .pid = c->pid, .tid = c->tid,
		.function = beginnings[c->function],
	};
	return f->each(&call, f->ctx);
}

static int load(struct foreign *f)
{
	int err;

	f->skel = gbpf_foreign__open();
	if (!f->skel)
		return errno ? -errno : -ENOMEM;
	if (probes_rung(f->probes) != RUNG_SINGLE)
		bpf_program__set_expected_attach_type(f->skel->progs.gbpf_foreign,
						      (enum bpf_attach_type)ATTACH_MULTI);
	err = gbpf_foreign__load(f->skel);
	if (err)
		return err;
	f->ring = ring_buffer__new(bpf_map__fd(f->skel->maps.calls), on_call, f, NULL);
	return f->ring ? 0 : -errno;
}

int foreign_new(struct foreign **out, struct probes *p)
{
	struct foreign *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	f->probes = p;
	err = load(f);
	if (err) {
		foreign_free(f);
		return err;
	}
	*out = f;
	return 0;
}

void foreign_free(struct foreign *f)
{
	if (!f)
		return;
	while (f->files_count)
		probe_link_free(f->files[--f->files_count].link);
	ring_buffer__free(f->ring);
	gbpf_foreign__destroy(f->skel);
	free(f);
}

struct search {
	const struct elf *elf;
	struct probe_site sites[SITES_MAX];
	size_t count;
};

/* They are called a few times in a profile: single-stepping will do. */
static int on_function(const struct elf_symbol *s, void *ctx)
{
	struct search *search = ctx;
	struct site site;
	size_t i;

	if (!s->dynamic || strncmp(s->name, "cupti", 5))
		return 0;
	for (i = 0; i < BEGINNINGS; i++)
		if (!strncmp(s->name, beginnings[i], strlen(beginnings[i])))
			break;
	if (i == BEGINNINGS || search->count == SITES_MAX)
		return 0;
	site = site_choose(search->elf, s);
	if (site.verdict != SITE_REFUSED)
		search->sites[search->count++] =
			(struct probe_site){.offset = site.offset, .cookie = i};
	return 0;
}

static int file_attach(struct foreign *f, struct file *file, int fd)
{
	struct search search = {0};
	struct elf *e;
	int err = elf_open(&e, fd);

	if (err)
		return err == -ENOMEM ? err : -ENOENT;
	search.elf = e;
	err = elf_each_function(e, on_function, &search);
	elf_close(e);
	if (!err && !search.count)
		err = -ENOENT;
	if (err)
		return err;
	return probes_attach_entries(f->probes, bpf_program__fd(f->skel->progs.gbpf_foreign), fd,
				     search.sites, search.count, &file->link);
}

int foreign_file(struct foreign *f, int fd)
{
	struct file *file = f->files;
	struct stat st;
	int err;

	if (fstat(fd, &st))
		return -errno;
	for (; file < f->files + f->files_count; file++)
		if (file->dev == st.st_dev && file->ino == st.st_ino)
			return 0;
	if (f->files_count == FILES_MAX)
		return -EMFILE;
	*file = (struct file){.dev = st.st_dev, .ino = st.st_ino};
	err = file_attach(f, file, fd);
	f->files_count += !err;
	return err;
}

int foreign_watch(struct foreign *f, uint32_t pid, const struct foreign_range *ranges,
		  size_t count)
{
	struct gbpf_foreign_process p = {0};
	size_t i;

	if (count > FOREIGN_RANGES)
		return -E2BIG;
	for (i = 0; i < count; i++) {
		p.ranges[i].begin = ranges[i].begin;
		p.ranges[i].end = ranges[i].end;
	}
	if (bpf_map_update_elem(bpf_map__fd(f->skel->maps.watched), &pid, &p, BPF_ANY))
		return -errno;
	return 0;
}

void foreign_forget(struct foreign *f, uint32_t pid)
{
	bpf_map_delete_elem(bpf_map__fd(f->skel->maps.watched), &pid);
}

int foreign_fd(const struct foreign *f)
{
	return ring_buffer__epoll_fd(f->ring);
}

int foreign_consume(struct foreign *f, int (*each)(const struct foreign_call *c, void *ctx),
		    void *ctx)
{
	int n;

	f->each = each;
	f->ctx = ctx;
	n = ring_buffer__consume(f->ring);
	return n < 0 ? n : 0;
}
