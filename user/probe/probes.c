/* SPDX-License-Identifier: BSD-2-Clause */
#include "probe/private.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
		err = bpf_map_update_elem(p->programs.rings, &i, &fd, BPF_ANY);
		if (err)
			return -errno;
	}
	p->programs.sw->ring_mask = (uint32_t)p->rings_count - 1;
	return 0;
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
	programs_unload(&p->programs);
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
	p->rung = rung;
	trial->load = programs_load(&p->programs, p->counting, rung, (uint32_t)p->rings_count);
	if (trial->load) {
		skeleton_unload(p);
		return trial->load;
	}
	p->programs.sw->self = (uint32_t)getpid();
	p->programs.sw->returns = returns;
	if (rung == RUNG_SINGLE)
		trial->attach = perf_uprobe_pmu(&p->perf_type, &p->perf_return);
	if (rung != RUNG_SINGLE || !trial->attach)
		trial->attach = rung_attach_try(p);
	if (!trial->attach && !p->counting)
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
	p->counting = o->counting;
	p->rings_count = o->counting ? 0 : rings_wanted();
	p->ring_bytes = o->counting ? 0 : ring_size(o->buffer_bytes, p->rings_count);
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

int probes_entry_fd(const struct probes *p)
{
	return p->programs.entry;
}

int probes_return_fd(const struct probes *p)
{
	return p->programs.returns;
}

void probes_free(struct probes *p)
{
	size_t i;

	if (!p)
		return;
	for (i = 0; i < 3; i++)
		if (p->task_links[i] >= 0)
			close(p->task_links[i]);
	skeleton_unload(p);
	free(p);
}

enum rung probes_rung(const struct probes *p)
{
	return p->rung;
}

bool probes_returns(const struct probes *p)
{
	return p->programs.sw->returns;
}

void probes_entry_only(struct probes *p)
{
	p->programs.sw->returns = 0;
}

struct gbpf_switches *probes_switches(struct probes *p)
{
	return p->programs.sw;
}

const volatile struct gbpf_counters *probes_counters(const struct probes *p)
{
	return p->programs.counters;
}

void probes_want(struct probes *p, uint32_t pid, bool want)
{
	__u64 *word = &p->programs.filter[pid / 64 % GBPF_FILTER_WORDS];
	__u64 bit = 1ULL << pid % 64;

	/* programs in the kernel change the same words */
	if (want)
		__atomic_fetch_or(word, bit, __ATOMIC_SEQ_CST);
	else
		__atomic_fetch_and(word, ~bit, __ATOMIC_SEQ_CST);
}

bool probes_wanted(const struct probes *p, uint32_t pid)
{
	return p->programs.filter[pid / 64 % GBPF_FILTER_WORDS] >> (pid % 64) & 1;
}

bool probes_any_wanted(const struct probes *p)
{
	size_t i;

	for (i = 0; i < GBPF_FILTER_WORDS; i++)
		if (p->programs.filter[i])
			return true;
	return false;
}

void probes_name_offset(struct probes *p, uint16_t image, uint8_t offset)
{
	if (p->programs.name_offset)
		p->programs.name_offset[image] = offset;
}

void probes_forget_names(struct probes *p, uint32_t pid)
{
	__u32 *generation = p->programs.name_generation;

	if (generation)
		__atomic_fetch_add(&generation[pid % GBPF_NAME_GENERATIONS], 1, __ATOMIC_SEQ_CST);
}

void probes_forget_all_names(struct probes *p)
{
	uint32_t pid;

	for (pid = 0; pid < GBPF_NAME_GENERATIONS; pid++)
		probes_forget_names(p, pid);
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
	return p->programs.polls;
}

int probes_attach_tasks(struct probes *p)
{
	static const char *const names[] = {"sched_process_fork", "sched_process_exec",
					    "sched_process_exit"};
	size_t i;
	int fd;

	for (i = 0; i < 3; i++) {
		if (p->task_links[i] >= 0)
			continue;
		fd = bpf_raw_tracepoint_open(names[i], p->programs.tasks[i]);
		if (fd < 0)
			return -errno;
		p->task_links[i] = fd;
	}
	return 0;
}
