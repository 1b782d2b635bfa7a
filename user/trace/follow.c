/* SPDX-License-Identifier: BSD-2-Clause */
/* Which processes, and which files of theirs: at the start and from then on. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probe/catalogue.h"
#include "trace/private.h"

static bool runtime_wanted(const struct tracer *t)
{
	return selection_wants_library(t->options.selection, API_RUNTIME);
}

/* Is this kind of library among what --api asks for? */
static bool hint_wanted(const struct tracer *t, enum image_hint hint)
{
	switch (hint) {
	case HINT_DRIVER:
		return selection_wants_library(t->options.selection, API_DRIVER);
	case HINT_RUNTIME:
		return runtime_wanted(t);
	case HINT_NCCL:
		return selection_wants_library(t->options.selection, API_NCCL);
	default:
		return false;
	}
}

bool follow_wants_path(const char *path, void *ctx)
{
	const struct tracer *t = ctx;

	/* a runtime may be linked into any executable or library */
	return image_hint(path) != HINT_NONE || runtime_wanted(t) || held_wants_path(t, path) ||
	       scheduled_wants_path(t, path);
}

/* Told once: rights are as they are for all. */
static void denied(struct tracer *t, uint32_t pid)
{
	if (!t->denied && t->begin)
		tracer_tell(t, FOLLOW_DENIED, pid);
	t->denied = pid;
}

/* Probed, or to be probed in windows. */
static void published(struct tracer *t, struct image *image, int fd)
{
	if (image)
		scheduled_image(t, image);
	held_publish(t, image, fd);
}

static int image_consider(struct tracer *t, uint32_t pid, const struct mapping *m, int64_t mapped)
{
	enum image_hint hint = image_hint(m->path);
	struct image *image;
	bool held;
	int fd, err;

	if (hint == HINT_DRIVER || hint == HINT_RUNTIME)
		t->cuda_seen = true;
	err = scheduled_mapping(t, pid, m);
	if (err)
		return err;
	if (hint == HINT_NONE && held_linker(t, pid, m))
		return 0;
	if (hint == HINT_NONE ? !runtime_wanted(t) : !hint_wanted(t, hint))
		return 0;
	fd = maps_open(pid, m);
	if (fd == -EACCES || fd == -EPERM)
		denied(t, pid);
	if (fd < 0)
		return fd == -ENOMEM ? fd : 0; /* it went away meanwhile: nothing left to see */
	/* asked while it still waits; afterwards it may be gone */
	held = hint != HINT_NONE && !images_known(t->images, m->dev, m->ino) &&
	       held_covers(t, pid, mapped);
	err = images_add(t->images, fd, m->path, mapped, &image);
	if (err == 1 && image)
		image->held = held;
	if (err == 1)
		published(t, image, fd);
	close(fd);
	/* embedded runtimes are many and normal: doctor lists them */
	if (image && image->trouble && !image->told && image->kind != IMAGE_STATIC_RUNTIME) {
		tracer_tell(t, "%s: %s", image->path, image->trouble);
		image->told = true;
	}
	return err == -ENOMEM ? err : 0;
}

struct consider {
	struct tracer *t;
	uint32_t pid;
};

static int on_mapping(const struct mapping *m, void *ctx)
{
	struct consider *c = ctx;

	return image_consider(c->t, c->pid, m, 0);
}

int follow_process_images(struct tracer *t, uint32_t pid)
{
	struct consider c = {t, pid};
	int err = maps_each(pid, on_mapping, &c);

	if (err == -EACCES)
		denied(t, pid);
	return err == -ENOMEM ? err : 0;
}

static int on_installed(const char *path, enum image_hint hint, void *ctx)
{
	struct tracer *t = ctx;
	struct image *image;
	int fd, err;

	/* a probe that takes a tenth of a second to remove is not for what nobody may use */
	if (!hint_wanted(t, hint) ||
	    (probes_rung(t->probes) == RUNG_SINGLE && (!t->options.command || hint == HINT_NCCL)))
		return 0;
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return 0; /* listed, but not to be opened: nobody can map it either */
	err = images_add(t->images, fd, path, 0, &image);
	if (err == 1)
		published(t, image, fd);
	close(fd);
	return err == -ENOMEM ? err : 0;
}

/* The command may have a runtime linked in, to be probed before it runs. */
static int command_image(struct tracer *t)
{
	char path[PATH_MAX];
	struct image *image;
	int fd, err = 0;

	if (!command_find(t->options.command, environ, path, sizeof(path)))
		return 0; /* not found: running it will say so */
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (fd >= 0) {
		err = images_add(t->images, fd, path, 0, &image);
		if (err == 1)
			published(t, image, fd);
		close(fd);
	}
	return err == -ENOMEM ? err : 0;
}

/* Known images are probed before anybody maps them, so that no first call is missed. */
int follow_installed(struct tracer *t)
{
	int err = images_installed(on_installed, t);

	if (err || !t->options.command)
		return err;
	err = images_of_command(t->options.command, environ, on_installed, t);
	if (!err && runtime_wanted(t))
		err = command_image(t);
	return err;
}

int tracer_add_target(struct tracer *t, uint32_t pid)
{
	processes_want(t, pid);
	return follow_process_images(t, pid);
}

/* Descendants may be born while they are looked for: until a round finds no new one. */
static int target_tree(struct tracer *t, uint32_t root)
{
	bool found = true;
	int round, err = 0;

	processes_want(t, root);
	for (round = 0; found && !err && round < 16; round++) {
		uint32_t *pids = NULL;
		size_t count = 0, i;

		found = false;
		err = process_tree(root, &pids, &count);
		for (i = 0; !err && i < count; i++) {
			if (pids[i] != root && t->options.no_follow)
				continue;
			if (idset_has(&t->processes, pids[i]))
				continue;
			found = true;
			processes_want(t, pids[i]);
			err = processes_seen(t, pids[i], tracer_now(), RECORD_PROCESS_SEEN);
			if (!err)
				err = follow_process_images(t, pids[i]);
		}
		free(pids);
	}
	return err == -ESRCH ? 0 : err;
}

/* One that was asked for and may not be looked into is no use to record. */
static int target_named(struct tracer *t, uint32_t pid, char *why, size_t size)
{
	int err = target_tree(t, pid);

	if (err || !t->denied)
		return err;
	snprintf(why, size, FOLLOW_DENIED, t->denied);
	return -EACCES;
}

static int on_any_process(uint32_t pid, void *ctx)
{
	struct tracer *t = ctx;

	if (pid == (uint32_t)getpid())
		return 0;
	return follow_process_images(t, pid);
}

/* The cgroup's id is its directory's inode; only the second version has ids and levels. */
static int cgroup_switch(struct tracer *t, const char *path, char *why, size_t size)
{
	struct gbpf_switches *sw = probes_switches(t->probes);
	uint32_t *pids = NULL;
	size_t count = 0, i;
	struct stat st;
	int err;

	err = process_in_cgroup(path, &pids, &count);
	if (err) {
		snprintf(why, size, "%s is not a cgroup's directory; see /proc/PID/cgroup", path);
		return err;
	}
	for (i = 0; !err && i < count; i++) {
		processes_want(t, pids[i]);
		err = processes_seen(t, pids[i], tracer_now(), RECORD_PROCESS_SEEN);
		if (!err)
			err = follow_process_images(t, pids[i]);
	}
	free(pids);
	sw->mode = GBPF_MODE_PIDS;
	if (!err && cgroup_level(path, &sw->cgroup_level) == 0 && !stat(path, &st)) {
		sw->cgroup_id = st.st_ino;
		sw->mode = GBPF_MODE_CGROUP; /* newcomers from elsewhere, too */
	}
	return err;
}

int follow_targets(struct tracer *t, char *why, size_t size)
{
	struct gbpf_switches *sw = probes_switches(t->probes);
	int err = 0;
	size_t i;

	sw->follow = !t->options.no_follow;
	if (t->options.all) {
		sw->mode = GBPF_MODE_ALL;
		return process_each(on_any_process, t);
	}
	if (t->options.cgroup)
		return cgroup_switch(t, t->options.cgroup, why, size);
	sw->mode = GBPF_MODE_PIDS;
	for (i = 0; !err && i < t->options.pids_count; i++)
		err = target_named(t, t->options.pids[i], why, size);
	return err;
}

static bool notice_wanted(const struct tracer *t, uint32_t pid)
{
	/* one that has ended since has no bit any more, but did map it */
	return probes_switches((struct probes *)t->probes)->mode != GBPF_MODE_PIDS ||
	       probes_wanted(t->probes, pid) || idset_has(&t->processes, pid);
}

static int on_notice(const struct watch_notice *n, void *ctx)
{
	struct tracer *t = ctx;
	int err = 0;

	if (n->kind == WATCH_LOST)
		t->perf_lost += n->lost;
	else if (n->kind == WATCH_MAP && notice_wanted(t, n->pid))
		err = image_consider(t, n->pid, &n->map, n->ts);
	return err;
}

int follow_notices(struct tracer *t)
{
	int n = watch_consume(t->watch, on_notice, t);

	return n < 0 ? n : 0;
}
