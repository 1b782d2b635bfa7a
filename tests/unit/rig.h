/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Real probes on functions of the test itself, on each rung of this kernel: what
 * the rings bring is kept to be compared with the calls that were made.
 */
#ifndef GBPF_TESTS_UNIT_RIG_H
#define GBPF_TESTS_UNIT_RIG_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "collect/rings.h"
#include "probe/catalogue.h"
#include "probe/elf.h"
#include "probe/probes.h"

#define RIG_EVENTS 8192
#define RIG_NAMES 64
#define RIG_IMAGE 7

struct rig_name {
	struct gbpf_name head;
	char text[GBPF_NAME_LONG + 1];
};

struct rig {
	struct probes *p;
	struct rings *r;
	struct probe_link *link;
	struct event events[RIG_EVENTS];
	size_t count;
	struct rig_name names[RIG_NAMES];
	size_t names_count;
	struct gbpf_process processes[RIG_NAMES];
	size_t processes_count;
	int exe;
};

/*
 * Functions that begin as those of the CUDA libraries do. rig_call returns its
 * second argument; rig_other and rig_query are the same under other names.
 */
typedef long (*rig_fn)(void *, long, long, long, long, long, long, long, long);
long rig_call(void *, long, long, long, long, long, long, long, long);
long rig_other(void *, long, long, long, long, long, long, long, long);
long rig_query(void *, long, long, long, long, long, long, long, long);

#if defined(__x86_64__)
#define RIG_FUNCTION(name)                                                                         \
	__asm__(".pushsection .text\n.globl " #name "\n.type " #name ", @function\n"              \
		".balign 16\n" #name ":\n"                                                        \
		"	push %rbp\n	mov %rsp, %rbp\n	mov %rsi, %rax\n"                 \
		"	pop %rbp\n	ret\n.size " #name ", . - " #name "\n.popsection\n")
#else
#define RIG_FUNCTION(name)                                                                         \
	long __attribute__((noinline)) name(void *a, long b, long c, long d, long e, long f,      \
					    long g, long h, long i)                               \
	{                                                                                          \
		__asm__ volatile("" ::: "memory");                                                 \
		return b;                                                                          \
	}                                                                                          \
	_Static_assert(1, "a semicolon may follow")
#endif

RIG_FUNCTION(rig_call);
RIG_FUNCTION(rig_other);
RIG_FUNCTION(rig_query);

/* ---- what the rings bring ---- */

static inline int rig_on_events(void *ctx, const struct event *events, size_t count)
{
	struct rig *g = ctx;

	if (g->count + count > RIG_EVENTS)
		return -ENOSPC;
	memcpy(g->events + g->count, events, count * sizeof(*events));
	g->count += count;
	return 0;
}

static inline int rig_on_name(void *ctx, const struct gbpf_name *n)
{
	struct rig *g = ctx;
	struct rig_name *to;

	if (g->names_count == RIG_NAMES)
		return -ENOSPC;
	to = &g->names[g->names_count++];
	to->head = *n;
	memset(to->text, 0, sizeof(to->text));
	if (n->len > 0)
		memcpy(to->text, n->name, (size_t)n->len);
	return 0;
}

static inline int rig_on_process(void *ctx, const struct gbpf_process *p)
{
	struct rig *g = ctx;

	if (g->processes_count == RIG_NAMES)
		return -ENOSPC;
	g->processes[g->processes_count++] = *p;
	return 0;
}

static inline int rig_compare(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->ts != y->ts)
		return x->ts < y->ts ? -1 : 1;
	return (x->kind == EVENT_END) - (y->kind == EVENT_END);
}

/*
 * Reads all there is; what was read before is forgotten. In the order of time: rings
 * are by CPU, and a thread may move between them.
 */
static inline void rig_read(struct rig *g)
{
	int n;

	g->count = g->names_count = g->processes_count = 0;
	do {
		n = rings_consume(g->r);
		if (n < 0)
			fail_msg("rings: %s", strerror(-n));
	} while (n);
	qsort(g->events, g->count, sizeof(*g->events), rig_compare);
	assert_int_equal(rings_stats(g->r)->malformed, 0);
	assert_int_equal(probes_counters(g->p)->ring_full, 0);
}

/* ---- rungs ---- */

/* The first rung that kernels of this version must have; those after it they have as well. */
static inline enum rung rig_first_rung(void)
{
	unsigned major = 0, minor = 0;
	struct utsname u;

	if (uname(&u) || sscanf(u.release, "%u.%u", &major, &minor) != 2)
		fail_msg("what kernel is this?");
	if (major > 6 || (major == 6 && minor >= 13))
		return RUNG_SESSION;
	return major == 6 && minor >= 6 ? RUNG_MULTI : RUNG_SINGLE;
}

static inline struct rig *rig_new(enum rung rung)
{
	struct probes_options o = {.rung = rung, .buffer_bytes = 4 << 20};
	struct rig *g = calloc(1, sizeof(*g));
	struct collect_sink sink = {rig_on_events, rig_on_name, rig_on_process, g};
	int err;

	if (geteuid())
		skip();
	assert_non_null(g);
	err = probes_new(&g->p, &o, NULL);
	if (err)
		fail_msg("%s: %s", rung_name(rung), strerror(-err));
	assert_int_equal(rings_new(&g->r, g->p, &sink), 0);
	g->exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_true(g->exe >= 0);
	probes_switches(g->p)->mode = GBPF_MODE_PIDS;
	probes_want(g->p, (uint32_t)getpid(), true);
	return g;
}

static inline void rig_free(struct rig *g)
{
	probe_link_free(g->link);
	rings_free(g->r);
	probes_free(g->p);
	close(g->exe);
	free(g);
}

/* ---- sites ---- */

struct rig_search {
	const char *name;
	uint64_t offset;
};

static inline int rig_is(const struct elf_symbol *s, void *ctx)
{
	struct rig_search *search = ctx;

	if (strcmp(s->name, search->name))
		return 0;
	search->offset = s->offset;
	return 1;
}

static inline uint64_t rig_offset(int fd, const char *function)
{
	struct rig_search search = {.name = function};
	struct elf *e = NULL;

	assert_int_equal(elf_open(&e, fd), 0);
	assert_int_equal(elf_each_function(e, rig_is, &search), 1);
	elf_close(e);
	return search.offset;
}

static inline uint16_t rig_api(const char *api)
{
	uint16_t id = catalogue_find(api);

	if (!id)
		fail_msg("%s is not in the catalogue", api);
	return id;
}

/* The function of ours, as if it were that API. */
static inline struct probe_site rig_site(const struct rig *g, const char *function,
					 const char *api)
{
	return (struct probe_site){.offset = rig_offset(g->exe, function),
				   .cookie = catalogue_cookie(rig_api(api), RIG_IMAGE)};
}

static inline void rig_attach(struct rig *g, const struct probe_site *sites, size_t count)
{
	int err = probes_attach(g->p, g->exe, sites, count, &g->link);

	if (err)
		fail_msg("%s: %s", rung_name(probes_rung(g->p)), strerror(-err));
}

/* One site is often enough. */
static inline struct rig *rig_on(enum rung rung, const char *function, const char *api)
{
	struct rig *g = rig_new(rung);
	struct probe_site site = rig_site(g, function, api);

	rig_attach(g, &site, 1);
	return g;
}

static inline void rig_detach(struct rig *g)
{
	probe_link_free(g->link);
	g->link = NULL;
}

static inline size_t rig_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

#endif
