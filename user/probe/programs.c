/* SPDX-License-Identifier: BSD-2-Clause */
/* Loading the programs of one rung, out of either object. */
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "bpf/monitor.h"
#include "bpf/steps.h"
#include "probe/private.h"

#include "gbpf.skel.h"
#include "gbpf_monitor.skel.h"

/* Attach types of linux/bpf.h; the headers we build with may not have them yet. */
enum { ATTACH_NONE = 0, ATTACH_MULTI = 48, ATTACH_SESSION = 57 };

struct rung_programs { /* of one object */
	struct bpf_program *session, *multi_entry, *multi_return, *single_entry, *single_return;
	struct bpf_program *tasks[3];
};

static void program_choose(struct bpf_program *prog, bool load, int attach_type)
{
	bpf_program__set_autoload(prog, load);
	if (load && attach_type)
		bpf_program__set_expected_attach_type(prog, (enum bpf_attach_type)attach_type);
}

static void rung_choose(const struct rung_programs *r, enum rung rung)
{
	program_choose(r->session, rung == RUNG_SESSION, ATTACH_SESSION);
	program_choose(r->multi_entry, rung == RUNG_MULTI, ATTACH_MULTI);
	program_choose(r->multi_return, rung == RUNG_MULTI, ATTACH_MULTI);
	program_choose(r->single_entry, rung == RUNG_SINGLE, ATTACH_NONE);
	program_choose(r->single_return, rung == RUNG_SINGLE, ATTACH_NONE);
}

static void rung_take(struct programs *p, const struct rung_programs *r, enum rung rung)
{
	size_t i;

	p->returns = -1;
	if (rung == RUNG_SESSION) {
		p->entry = bpf_program__fd(r->session);
	} else if (rung == RUNG_MULTI) {
		p->entry = bpf_program__fd(r->multi_entry);
		p->returns = bpf_program__fd(r->multi_return);
	} else {
		p->entry = bpf_program__fd(r->single_entry);
		p->returns = bpf_program__fd(r->single_return);
	}
	for (i = 0; i < 3; i++)
		p->tasks[i] = bpf_program__fd(r->tasks[i]);
}

static int recorder_load(struct programs *p, enum rung rung, uint32_t rings)
{
	struct gbpf_bpf *s = p->recorder = gbpf_bpf__open();
	struct rung_programs r;
	int err;

	if (!s)
		return errno ? -errno : -ENOMEM;
	r = (struct rung_programs){
		s->progs.gbpf_session, s->progs.gbpf_multi_entry, s->progs.gbpf_multi_return,
		s->progs.gbpf_single_entry, s->progs.gbpf_single_return,
		{s->progs.gbpf_fork, s->progs.gbpf_exec, s->progs.gbpf_exit},
	};
	rung_choose(&r, rung);
	bpf_map__set_max_entries(s->maps.rings, rings);
	err = gbpf_bpf__load(s);
	if (err)
		return err;
	rung_take(p, &r, rung);
	p->sw = &s->bss->sw;
	p->filter = s->bss->filter;
	p->counters = &s->bss->counters;
	p->name_offset = s->bss->name_offset;
	p->name_generation = s->bss->name_generation;
	p->rings = bpf_map__fd(s->maps.rings);
	p->polls = bpf_map__fd(s->maps.polls);
	p->bss = bpf_map__fd(s->maps.bss);
	p->steps = &s->bss->steps;
	p->marks = bpf_map__fd(s->maps.marks);
	p->step_kernels = bpf_map__fd(s->maps.step_kernels);
	memset(p->name_offset, GBPF_NO_NAMES, sizeof(s->bss->name_offset));
	return 0;
}

static int counter_load(struct programs *p, enum rung rung)
{
	struct gbpf_monitor *s = p->counter = gbpf_monitor__open();
	struct rung_programs r;
	int err;

	if (!s)
		return errno ? -errno : -ENOMEM;
	r = (struct rung_programs){
		s->progs.monitor_session, s->progs.monitor_multi_entry,
		s->progs.monitor_multi_return, s->progs.monitor_single_entry,
		s->progs.monitor_single_return,
		{s->progs.gbpf_fork, s->progs.gbpf_exec, s->progs.gbpf_exit},
	};
	rung_choose(&r, rung);
	err = gbpf_monitor__load(s);
	if (err)
		return err;
	rung_take(p, &r, rung);
	p->sw = &s->bss->sw;
	p->filter = s->bss->filter;
	return 0;
}

int programs_load(struct programs *p, bool counting, enum rung rung, uint32_t rings)
{
	memset(p, 0, sizeof(*p));
	return counting ? counter_load(p, rung) : recorder_load(p, rung, rings);
}

void programs_unload(struct programs *p)
{
	gbpf_bpf__destroy(p->recorder);
	gbpf_monitor__destroy(p->counter);
	p->recorder = NULL;
	p->counter = NULL;
}
