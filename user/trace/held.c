/* SPDX-License-Identifier: BSD-2-Clause */
/* A command waits where it mapped a CUDA library that nobody knew, until it is probed. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "bpf/hold.h"
#include "probe/catalogue.h"
#include "trace/private.h"

int held_new(struct tracer *t)
{
	const struct selection *wanted = t->options.selection;
	uint32_t kinds = 0;
	int err;

	if (!t->options.command)
		return 0;
	if (selection_wants_library(wanted, API_DRIVER))
		kinds |= GBPF_HOLD_DRIVER;
	if (selection_wants_library(wanted, API_RUNTIME))
		kinds |= GBPF_HOLD_RUNTIME;
	if (selection_wants_library(wanted, API_NCCL))
		kinds |= GBPF_HOLD_NCCL;
	err = hold_new(&t->hold, t->probes, kinds,
		       t->options.pids_count ? t->options.pids[0] : 0);
	if (err)
		return err == -ENOMEM ? err : 0; /* then there is a gap, and the file says so */
	hold_attach_installed(t->hold, t->options.command);
	t->holds = true;
	return 0;
}

static int on_held(uint32_t pid, void *ctx)
{
	struct tracer *t = ctx;
	int err;

	/* the notice knows when it was mapped, but another CPU's may not be there yet */
	err = follow_notices(t);
	return err ? err : follow_process_images(t, pid);
}

int held_release(struct tracer *t)
{
	int n = t->hold ? hold_consume(t->hold, on_held, t) : 0;

	return n < 0 ? n : 0;
}

void held_stop(struct tracer *t)
{
	if (!t->hold)
		return;
	hold_stats(t->hold, &t->held);
	hold_free(t->hold);
	t->hold = NULL;
}

static bool is_linker(const char *path)
{
	const char *base = strrchr(path, '/');

	base = base ? base + 1 : path;
	return !strncmp(base, "ld-", 3) && strstr(base, ".so");
}

bool held_wants_path(const struct tracer *t, const char *path)
{
	return t->hold && is_linker(path);
}

bool held_linker(struct tracer *t, uint32_t pid, const struct mapping *m)
{
	int fd;

	if (!held_wants_path(t, m->path))
		return false;
	fd = maps_open(pid, m);
	if (fd < 0)
		return true; /* it went away meanwhile */
	hold_attach(t->hold, fd);
	close(fd);
	return true;
}

struct linker_search {
	struct tracer *t;
	uint32_t pid;
	int64_t when;
};

static int on_linker(const struct mapping *m, void *ctx)
{
	struct linker_search *s = ctx;
	bool covered;
	int fd;

	if (!is_linker(m->path))
		return 0;
	fd = maps_open(s->pid, m);
	if (fd < 0)
		return 0;
	covered = hold_covers(s->t->hold, fd, s->when);
	close(fd);
	return covered;
}

bool held_covers(struct tracer *t, uint32_t pid, int64_t when)
{
	struct linker_search s = {t, pid, when};

	return t->hold && when && maps_each(pid, on_linker, &s) == 1;
}

void held_publish(struct tracer *t, const struct image *image, int fd)
{
	if (t->hold && image && (image->link || image->window))
		hold_publish(t->hold, image, fd);
}
