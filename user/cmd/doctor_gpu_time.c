/* SPDX-License-Identifier: BSD-2-Clause */
/* Could gbpf trace --gpu-time have the GPU's own time of this process? */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <unistd.h>

#include "cmd/doctor.h"
#include "inject/inject.h"
#include "probe/elf.h"
#include "sidecar/library.h"
#include "sidecar/neighbour.h"

struct look {
	struct doctor_process *p;
};

static void soname_read(struct doctor_gpu_time *g, uint32_t pid, const struct mapping *m)
{
	int fd = maps_open(pid, m);
	struct elf *e;

	if (fd >= 0 && !elf_open(&e, fd)) {
		snprintf(g->soname, sizeof(g->soname), "%s", elf_soname(e));
		elf_close(e);
	}
	if (fd >= 0)
		close(fd);
}

static int on_mapping(const struct mapping *m, void *ctx)
{
	struct look *l = ctx;

	if (!neighbour_is_cupti(m->path))
		return 0;
	l->p->gpu_time.cupti = strdup(m->path);
	if (!l->p->gpu_time.cupti)
		return -ENOMEM;
	soname_read(&l->p->gpu_time, l->p->pid, m);
	return 1;
}

/* The rights first: without them nothing else can be seen. */
static bool refused(const struct doctor *d, struct doctor_process *p)
{
	const struct inject_options o = {
		.library = sidecar_library,
		.size = sidecar_library_size,
		.name = "libgbpf-cupti.so",
		.entry = "gbpf_sidecar_begin",
		.limit_ns = 1000000000,
	};
	static const int wanted[] = {CAP_SYS_PTRACE, -1};
	struct doctor_gpu_time *g = &p->gpu_time;
	char why[200] = "";

	if (p->info.uid != geteuid() &&
	    doctor_missing(d, wanted, why, sizeof(why))[0]) {
		snprintf(g->text, sizeof(g->text), "no:%s", why);
		return true;
	}
	if (neighbour_check(p->pid, why, sizeof(why))) {
		snprintf(g->text, sizeof(g->text), "no: %s", why);
		return true;
	}
	switch (inject_check(p->pid, &o, why)) {
	case 0:
	case -EALREADY: /* from an earlier visit */
		return false;
	default:
		snprintf(g->text, sizeof(g->text), "not while it runs: %s", why);
		return true;
	}
}

int doctor_gpu_time(const struct doctor *d, struct doctor_process *p)
{
	struct doctor_gpu_time *g = &p->gpu_time;
	struct look l = {p};

	g->result = CHECK_NO;
	if (!p->images_count || p->error) {
		snprintf(g->text, sizeof(g->text), "no: it has loaded no CUDA");
		return 0;
	}
	if (maps_each(p->pid, on_mapping, &l) == -ENOMEM)
		return -ENOMEM;
	if (refused(d, p))
		return 0;
	g->result = CHECK_OK;
	snprintf(g->text, sizeof(g->text), "possible: a library is injected%s. Whether another "
					   "profiler uses CUPTI in it is seen only then",
		 g->cupti ? "" : ", and looks for libcupti beside its libcudart and in the "
				 "CUDA toolkit");
	return 0;
}
