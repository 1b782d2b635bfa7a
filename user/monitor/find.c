/* SPDX-License-Identifier: BSD-2-Clause */
/* Who uses CUDA, and of which files: at the start, and from then on. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "monitor/private.h"

static bool all_wanted(const struct monitor *m)
{
	return !m->options.pids;
}

static bool hint_wanted(enum image_hint hint)
{
	return hint == HINT_DRIVER || hint == HINT_NCCL;
}

static bool wants_path(const char *path, void *ctx)
{
	return image_hint(path) != HINT_NONE;
}

struct mon_image *find_item(const struct monitor *m, const struct image *image)
{
	size_t i;

	for (i = 0; i < m->items_count; i++)
		if (m->items[i].image == image)
			return &m->items[i];
	return NULL;
}

/* Its windows, if it is probed: a file that is another's twin has none of its own. */
static int item_add(struct monitor *m, struct image *image)
{
	struct mon_image *grown;

	if (!image || image->fd < 0 || find_item(m, image))
		return 0;
	grown = realloc(m->items, (m->items_count + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	m->items = grown;
	m->items[m->items_count++] = (struct mon_image){
		.image = image,
		.hot = windows_hot(image),
		.hot_since = windows_hot(image) ? mon_now() : 0,
		.next = mon_now(),
		.origin = mon_now(),
		.period = PERIOD_NS,
		.length = 2000000, /* until it is known how dear it is */
		.ramp_ns = 3e6,
	};
	return 0;
}

static int image_look(struct monitor *m, int fd, const char *path, int64_t mapped,
		      struct image **out)
{
	struct image *image;
	int err = images_add(m->images, fd, path, mapped, &image);

	*out = image && image->same_as ? image->same_as : image;
	if (image && image->trouble && !image->told) {
		mon_tell(m, "%s: %s", image->path, image->trouble);
		image->told = true;
	}
	if (err == 1)
		err = item_add(m, image);
	return err == -ENOMEM ? err : 0;
}

static void denied(struct monitor *m, uint32_t pid)
{
	if (!m->denied)
		mon_tell(m, "not permitted to look into process %u: run it with sudo "
			 "(gbpf doctor says which rights are missing)", pid);
	m->denied = true;
}

/* A process maps a file; if it is a CUDA library, the process is one to be watched. */
static int mapping_consider(struct monitor *m, uint32_t pid, const struct mapping *map,
			    int64_t mapped)
{
	enum image_hint hint = image_hint(map->path);
	struct image *image = NULL;
	struct mon_process *p;
	int fd, err = 0;

	if (hint == HINT_NONE)
		return 0;
	p = process_add(m, pid, &err);
	if (!p || !hint_wanted(hint))
		return err;
	fd = maps_open(pid, map);
	if (fd == -EACCES || fd == -EPERM)
		denied(m, pid);
	if (fd < 0)
		return fd == -ENOMEM ? fd : 0;
	err = image_look(m, fd, map->path, mapped, &image);
	close(fd);
	if (!err && image && image->kind == IMAGE_DRIVER)
		p->image = image;
	plan_mark(m, p, false);
	return err;
}

struct consider {
	struct monitor *m;
	uint32_t pid;
};

static int on_mapping(const struct mapping *map, void *ctx)
{
	struct consider *c = ctx;

	return mapping_consider(c->m, c->pid, map, 0);
}

static int process_look(struct monitor *m, uint32_t pid)
{
	struct consider c = {m, pid};
	int err = maps_each(pid, on_mapping, &c);

	if (err == -EACCES)
		denied(m, pid);
	return err == -ENOMEM ? err : 0;
}

static int on_installed(const char *path, enum image_hint hint, void *ctx)
{
	struct monitor *m = ctx;
	struct image *image;
	int fd, err;

	/* a probe that takes a tenth of a second to remove is not for what nobody may use */
	if (!hint_wanted(hint) || probes_rung(m->probes) == RUNG_SINGLE)
		return 0;
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return 0; /* listed, but not to be opened: nobody can map it either */
	err = image_look(m, fd, path, 0, &image);
	close(fd);
	return err;
}

static int on_any(uint32_t pid, void *ctx)
{
	struct monitor *m = ctx;

	return pid == (uint32_t)getpid() ? 0 : process_look(m, pid);
}

static int tree_look(struct monitor *m, uint32_t root)
{
	uint32_t *pids = NULL;
	size_t count = 0, i;
	int err = process_tree(root, &pids, &count);

	for (i = 0; !err && i < count; i++) {
		probes_want(m->probes, pids[i], true);
		err = process_look(m, pids[i]);
	}
	free(pids);
	return err == -ESRCH ? 0 : err;
}

int find_start(struct monitor *m, char *why, size_t size)
{
	struct gbpf_switches *sw = probes_switches(m->probes);
	int err = 0;
	size_t i;

	watch_filter(m->watch, wants_path, m);
	sw->follow = 1;
	sw->mode = all_wanted(m) ? GBPF_MODE_ALL : GBPF_MODE_PIDS;
	if (all_wanted(m))
		err = process_each(on_any, m);
	for (i = 0; !err && i < m->options.pids_count; i++)
		err = tree_look(m, m->options.pids[i]);
	if (!err && all_wanted(m))
		err = images_installed(on_installed, m);
	if (err)
		snprintf(why, size, "looking for processes failed: %s", strerror(-err));
	return err;
}

static int on_notice(const struct watch_notice *n, void *ctx)
{
	struct monitor *m = ctx;

	if (n->kind == WATCH_LOST)
		m->lost_notices = true;
	if (n->kind != WATCH_MAP || n->pid == (uint32_t)getpid())
		return 0;
	if (!all_wanted(m) && !probes_wanted(m->probes, n->pid))
		return 0;
	return mapping_consider(m, n->pid, &n->map, n->ts);
}

int find_notices(struct monitor *m)
{
	int n = watch_consume(m->watch, on_notice, m);

	return n < 0 ? n : 0;
}

static int on_any_mapping(const struct mapping *map, void *ctx)
{
	return image_hint(map->path) != HINT_NONE;
}

/* One that only looked into a library, or has become another program, is none of ours. */
static bool uses_nothing(const struct mon_process *p)
{
	return !p->apis_count && !maps_each(p->pid, on_any_mapping, NULL);
}

/* Ends and beginnings of which the notice was lost. */
int find_sweep(struct monitor *m)
{
	size_t i;

	for (i = 0; i < m->processes_count; i++)
		if (process_start(m->processes[i]->pid) != m->processes[i]->start ||
		    uses_nothing(m->processes[i]))
			m->processes[i]->ended = true;
	if (!m->lost_notices || !all_wanted(m))
		return 0;
	m->lost_notices = false;
	return process_each(on_any, m);
}
