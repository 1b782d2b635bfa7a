/* SPDX-License-Identifier: BSD-2-Clause */
#include "probe/private.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gbpf.skel.h"

/* Attach types of linux/bpf.h; the headers we build with may not have them yet. */
enum { ATTACH_PERF = 41, ATTACH_MULTI = 48, ATTACH_SESSION = 57 };

#define RINGS_MAX 64

const char *rung_name(enum rung rung)
{
	switch (rung) {
	case RUNG_SESSION:
		return "uprobe.session";
	case RUNG_MULTI:
		return "uprobe.multi";
	case RUNG_SINGLE:
		return "perf_event";
	default:
		return "none";
	}
}

static size_t rings_wanted(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	size_t n = 1;

	while (n < (size_t)(cpus > 0 ? cpus : 1) && n < RINGS_MAX)
		n *= 2;
	return n;
}

/* 8 MiB a ring up to 16 CPUs, then less a ring, so that the whole stays at 128 MiB. */
static uint64_t ring_size(uint64_t total, size_t rings)
{
	uint64_t size = 1 << 16, wanted;

	if (!total)
		total = rings > 16 ? 128 << 20 : rings * (8ULL << 20);
	wanted = total / rings;
	while (size * 2 <= wanted && size < 1ULL << 30)
		size *= 2;
	return size;
}

static int rings_create(struct probes *p)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts);
	int fd, err;
	uint32_t i;

	p->rings = calloc(p->rings_count, sizeof(*p->rings));
	if (!p->rings)
		return -ENOMEM;
	for (i = 0; i < p->rings_count; i++)
		p->rings[i] = -1;
	for (i = 0; i < p->rings_count; i++) {
		fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "gbpf_ring", 0, 0,
				    (uint32_t)p->ring_bytes, &opts);
		if (fd < 0)
			return -errno;
		p->rings[i] = fd;
		err = bpf_map_update_elem(bpf_map__fd(p->skel->maps.rings), &i, &fd, BPF_ANY);
		if (err)
			return -errno;
	}
	p->skel->bss->sw.ring_mask = (uint32_t)p->rings_count - 1;
	return 0;
}

static void program_choose(struct bpf_program *prog, bool load, int attach_type)
{
	bpf_program__set_autoload(prog, load);
	if (load && attach_type)
		bpf_program__set_expected_attach_type(prog, (enum bpf_attach_type)attach_type);
}

static int skeleton_load(struct probes *p, enum rung rung)
{
	struct gbpf_bpf *skel = gbpf_bpf__open();

	if (!skel)
		return errno ? -errno : -ENOMEM;
	p->skel = skel;
	p->rung = rung;
	program_choose(skel->progs.gbpf_session, rung == RUNG_SESSION, ATTACH_SESSION);
	program_choose(skel->progs.gbpf_multi_entry, rung == RUNG_MULTI, ATTACH_MULTI);
	program_choose(skel->progs.gbpf_multi_return, rung == RUNG_MULTI, ATTACH_MULTI);
	program_choose(skel->progs.gbpf_single_entry, rung == RUNG_SINGLE, 0);
	program_choose(skel->progs.gbpf_single_return, rung == RUNG_SINGLE, 0);
	bpf_map__set_max_entries(skel->maps.rings, (uint32_t)p->rings_count);
	return gbpf_bpf__load(skel);
}

int probes_entry_fd(const struct probes *p)
{
	switch (p->rung) {
	case RUNG_SESSION:
		return bpf_program__fd(p->skel->progs.gbpf_session);
	case RUNG_MULTI:
		return bpf_program__fd(p->skel->progs.gbpf_multi_entry);
	default:
		return bpf_program__fd(p->skel->progs.gbpf_single_entry);
	}
}

int probes_return_fd(const struct probes *p)
{
	switch (p->rung) {
	case RUNG_MULTI:
		return bpf_program__fd(p->skel->progs.gbpf_multi_return);
	case RUNG_SINGLE:
		return bpf_program__fd(p->skel->progs.gbpf_single_return);
	default:
		return -1;
	}
}

void probes_trial_end(struct probes *p)
{
	probe_link_free(p->trial);
	p->trial = NULL;
}

static void skeleton_unload(struct probes *p)
{
	size_t i;

	probes_trial_end(p);
	for (i = 0; p->rings && i < p->rings_count; i++)
		if (p->rings[i] >= 0)
			close(p->rings[i]);
	free(p->rings);
	p->rings = NULL;
	gbpf_bpf__destroy(p->skel);
	p->skel = NULL;
}

/* A kernel may load a program and refuse the link (6.1 does): only attaching tells. */
static int rung_attach_try(struct probes *p)
{
	struct probe_site site = {.cookie = GBPF_COOKIE(0, GBPF_IMAGE_CALIBRATION, 0)};
	int fd, err;

	err = calibration_site(&fd, &site.offset);
	if (err)
		return err;
	/* taking it away takes longer than all else that goes before the first event */
	err = probes_attach(p, fd, &site, 1, &p->trial);
	close(fd);
	return err;
}

static int rung_try(struct probes *p, enum rung rung, bool returns, struct probes_trial *trial)
{
	trial->rung = rung;
	trial->attach = 1;
	trial->load = skeleton_load(p, rung);
	if (trial->load || !p->skel) {
		skeleton_unload(p);
		return trial->load;
	}
	p->skel->bss->sw.self = (uint32_t)getpid();
	p->skel->bss->sw.returns = returns;
	memset(p->skel->bss->name_offset, GBPF_NO_NAMES, sizeof(p->skel->bss->name_offset));
	if (rung == RUNG_SINGLE)
		trial->attach = perf_uprobe_pmu(&p->perf_type, &p->perf_return);
	if (rung != RUNG_SINGLE || !trial->attach)
		trial->attach = rung_attach_try(p);
	if (!trial->attach)
		trial->attach = rings_create(p);
	if (trial->attach)
		skeleton_unload(p);
	return trial->attach;
}

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

int probes_new(struct probes **out, const struct probes_options *o, struct probes_trial trials[3])
{
	struct probes_trial local[3];
	struct probes *p = calloc(1, sizeof(*p));
	int err = -EOPNOTSUPP, first = 0, rung;

	if (!p)
		return -ENOMEM;
	if (!trials)
		trials = local;
	memset(trials, 0, 3 * sizeof(*trials));
	if (!getenv("GBPF_DEBUG_LIBBPF"))
		libbpf_set_print(quiet);
	memset(p->task_links, -1, sizeof(p->task_links));
	p->rings_count = rings_wanted();
	p->ring_bytes = ring_size(o->buffer_bytes, p->rings_count);
	for (rung = RUNG_SESSION; rung <= RUNG_SINGLE; rung++) {
		if (o->rung != RUNG_AUTO && (int)o->rung != rung)
			continue;
		err = rung_try(p, (enum rung)rung, !o->entry_only, &trials[rung - RUNG_SESSION]);
		if (!err)
			break;
		if (!first)
			first = err;
	}
	if (err) {
		probes_free(p);
		/* without rights every rung fails alike: say that, not the last one's words */
		return first == -EPERM || first == -EACCES || first == -ENOMEM ? first
									       : -EOPNOTSUPP;
	}
	*out = p;
	return 0;
}

void probes_free(struct probes *p)
{
	size_t i;

	if (!p)
		return;
	for (i = 0; i < 3; i++)
		if (p->task_links[i] >= 0)
			close(p->task_links[i]);
	if (p->skel)
		skeleton_unload(p);
	free(p);
}

enum rung probes_rung(const struct probes *p)
{
	return p->rung;
}

bool probes_returns(const struct probes *p)
{
	return p->skel->bss->sw.returns;
}

void probes_entry_only(struct probes *p)
{
	p->skel->bss->sw.returns = 0;
}

struct gbpf_switches *probes_switches(struct probes *p)
{
	return &p->skel->bss->sw;
}

const volatile struct gbpf_counters *probes_counters(const struct probes *p)
{
	return &p->skel->bss->counters;
}

void probes_want(struct probes *p, uint32_t pid, bool want)
{
	__u64 *word = &p->skel->bss->filter[pid / 64 % GBPF_FILTER_WORDS];
	__u64 bit = 1ULL << pid % 64;

	/* programs in the kernel change the same words */
	if (want)
		__atomic_fetch_or(word, bit, __ATOMIC_SEQ_CST);
	else
		__atomic_fetch_and(word, ~bit, __ATOMIC_SEQ_CST);
}

bool probes_wanted(const struct probes *p, uint32_t pid)
{
	return p->skel->bss->filter[pid / 64 % GBPF_FILTER_WORDS] >> (pid % 64) & 1;
}

bool probes_any_wanted(const struct probes *p)
{
	size_t i;

	for (i = 0; i < GBPF_FILTER_WORDS; i++)
		if (p->skel->bss->filter[i])
			return true;
	return false;
}

void probes_name_offset(struct probes *p, uint16_t image, uint8_t offset)
{
	p->skel->bss->name_offset[image] = offset;
}

void probes_forget_names(struct probes *p, uint32_t pid)
{
	__atomic_fetch_add(&p->skel->bss->name_generation[pid % GBPF_NAME_GENERATIONS], 1,
			   __ATOMIC_SEQ_CST);
}

size_t probes_ring_count(const struct probes *p)
{
	return p->rings_count;
}

int probes_ring_fd(const struct probes *p, size_t i)
{
	return p->rings[i];
}

uint64_t probes_ring_bytes(const struct probes *p)
{
	return p->ring_bytes;
}

int probes_polls_fd(const struct probes *p)
{
	return bpf_map__fd(p->skel->maps.polls);
}

int probes_attach_tasks(struct probes *p)
{
	static const char *const names[] = {"sched_process_fork", "sched_process_exec",
					    "sched_process_exit"};
	struct bpf_program *progs[] = {p->skel->progs.gbpf_fork, p->skel->progs.gbpf_exec,
				       p->skel->progs.gbpf_exit};
	size_t i;
	int fd;

	for (i = 0; i < 3; i++) {
		if (p->task_links[i] >= 0)
			continue;
		fd = bpf_raw_tracepoint_open(names[i], bpf_program__fd(progs[i]));
		if (fd < 0)
			return -errno;
		p->task_links[i] = fd;
	}
	return 0;
}
