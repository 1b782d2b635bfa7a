/* SPDX-License-Identifier: BSD-2-Clause */
/* What a process maps, and what of it would be hooked. Looks, and attaches nothing. */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <unistd.h>

#include "cmd/doctor.h"
#include "probe/identity.h"

#define ENVIRONMENT_MAX (256 * 1024) /* bytes that are looked at */

struct look {
	const struct doctor *d;
	struct doctor_process *p;
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* CUPTI, and what nvprof and Nsight Systems put into a process. */
static bool is_tool(const char *path)
{
	static const char *const names[] = {"libcupti", "libcuinj64", "libToolsInjection"};
	const char *base = base_name(path);
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strncmp(base, names[i], strlen(names[i])))
			return true;
	return false;
}

static int tool_add(struct doctor_process *p, const char *path)
{
	char **grown = realloc(p->tools, (p->tools_count + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	p->tools = grown;
	grown[p->tools_count] = strdup(path);
	return grown[p->tools_count] && ++p->tools_count ? 0 : -ENOMEM;
}

static struct doctor_image *image_add(struct doctor_process *p, const struct mapping *m)
{
	struct doctor_image *grown;

	grown = realloc(p->images, (p->images_count + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	p->images = grown;
	grown += p->images_count;
	*grown = (struct doctor_image){
		.path = strdup(m->path), .hint = image_hint(m->path), .deleted = m->deleted,
		.dev = m->dev, .ino = m->ino};
	if (!grown->path)
		return NULL;
	p->images_count++;
	return grown;
}

/* How many of the sites that would be hooked hold a breakpoint already; -errno as none. */
static int foreign_probes(const struct image *i, int fd)
{
	uint64_t offsets[8];
	size_t n = 0, k;
	int found = 0, some;

	for (k = 0; k < i->sites_count; k++) {
		if (i->sites[k].state != SITE_NOT_HOOKED)
			offsets[n++] = i->sites[k].offset;
		if (n < 8 && k + 1 < i->sites_count)
			continue;
		some = identity_probed(fd, offsets, n);
		found += some > 0 ? some : 0;
		n = 0;
	}
	return found;
}

/* What is not found by its path can be opened through map_files, with more rights. */
static void open_trouble(const struct look *l, struct doctor_image *i, int error)
{
	bool gone = i->deleted || error == -ESTALE || error == -ENOENT;
	int wanted[4], n = 0;
	char missing[120];

	if (l->p->info.uid != geteuid()) {
		wanted[n++] = CAP_SYS_PTRACE;
		wanted[n++] = CAP_DAC_READ_SEARCH;
	}
	if (gone)
		wanted[n++] = CAP_CHECKPOINT_RESTORE;
	wanted[n] = -1;
	doctor_missing(l->d, wanted, missing, sizeof(missing));
	snprintf(i->trouble, sizeof(i->trouble), "its file %s%s%s",
		 gone ? "was deleted or replaced, and cannot be read" : "cannot be read",
		 missing[0] ? ":" : "", missing);
	if (!missing[0])
		snprintf(i->trouble, sizeof(i->trouble), "its file cannot be read: %s",
			 strerror(-error));
}

static const char *trouble_of(const struct doctor_image *d)
{
	if (!d->asked || !d->all)
		return "is no x86-64 ELF file with functions that gbpf knows";
	if (d->asked->hooked)
		return "";
	if (d->not_asked)
		return "none of its functions was asked for (--api)";
	return d->asked->trouble;
}

static int image_look(struct look *l, const struct mapping *m, int fd)
{
	struct doctor_process *p = l->p;
	struct image *asked = NULL, *all = NULL;
	struct doctor_image *d;
	int err;

	err = images_add(p->asked, fd, m->path, 0, &asked);
	if (err >= 0)
		err = images_add(p->all, fd, m->path, 0, &all);
	if (err == -ENOMEM)
		return err;
	if (image_hint(m->path) == HINT_NONE && !all)
		return 0; /* one of the many files that have nothing to do with CUDA */
	d = image_add(p, m);
	if (!d)
		return -ENOMEM;
	d->asked = asked;
	d->all = all;
	if (asked) {
		d->dev = asked->dev;
		d->ino = asked->ino;
		d->foreign = foreign_probes(asked, fd);
	}
	d->not_asked = asked && all && !asked->sites_count && all->sites_count;
	snprintf(d->trouble, sizeof(d->trouble), "%s", trouble_of(d));
	return 0;
}

static int on_mapping(const struct mapping *m, void *ctx)
{
	struct look *l = ctx;
	struct doctor_image *d;
	int fd, err;

	if (is_tool(m->path))
		return tool_add(l->p, m->path);
	fd = maps_open(l->p->pid, m);
	if (fd >= 0) {
		err = image_look(l, m, fd);
		close(fd);
		return err;
	}
	if (fd == -ESRCH || image_hint(m->path) == HINT_NONE)
		return fd == -ENOMEM ? fd : 0;
	d = image_add(l->p, m);
	if (!d)
		return -ENOMEM;
	open_trouble(l, d, fd);
	return 0;
}

static bool variable_matters(const char *name)
{
	static const char *const names[] = {"CUDA_INJECTION64_PATH=", "NVTX_INJECTION64_PATH=",
					    "LD_PRELOAD=", "NSYS_", "NVPROF_", "CUPTI_"};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	return false;
}

/* Keeps the variables by which other tools come into a process, and none else. */
static int read_environment(struct doctor_process *p)
{
	char path[40], *text = malloc(ENVIRONMENT_MAX + 1), *to = text;
	size_t len = 0, at, size;
	ssize_t n;
	int fd;

	if (!text)
		return -ENOMEM;
	snprintf(path, sizeof(path), "/proc/%u/environ", p->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && len < ENVIRONMENT_MAX &&
	       (n = read(fd, text + len, ENVIRONMENT_MAX - len)) > 0)
		len += (size_t)n;
	if (fd >= 0)
		close(fd);
	text[len] = '\0';
	for (at = 0; at < len; at += size) {
		size = strlen(text + at) + 1;
		if (!variable_matters(text + at))
			continue;
		memmove(to, text + at, size);
		to += size;
	}
	p->environment = text;
	p->environment_size = (size_t)(to - text);
	return 0;
}

static int on_child_mapping(const struct mapping *m, void *ctx)
{
	return image_hint(m->path) == HINT_DRIVER || image_hint(m->path) == HINT_RUNTIME;
}

/* A launcher uses no CUDA itself: do those below it? */
static void look_below(struct doctor_process *p)
{
	const size_t most = sizeof(p->children) / sizeof(*p->children);
	uint32_t *pids = NULL;
	size_t count = 0, i;

	if (process_tree(p->pid, &pids, &count))
		return;
	for (i = 0; i < count && p->children_count < most; i++)
		if (pids[i] != p->pid && maps_each(pids[i], on_child_mapping, NULL) == 1)
			p->children[p->children_count++] = pids[i];
	free(pids);
}

static int look(const struct doctor *d, struct doctor_process *p)
{
	struct images_options o = {.selection = d->selection, .static_runtime = true, .dry = true};
	struct look l = {d, p};
	const struct passwd *user;
	int err = process_read(p->pid, &p->info);

	if (err == -ESRCH)
		return err;
	user = getpwuid(p->info.uid);
	if (user)
		snprintf(p->user, sizeof(p->user), "%s", user->pw_name);
	else
		snprintf(p->user, sizeof(p->user), "%u", p->info.uid);
	if (!err)
		err = images_new(&p->asked, NULL, &o);
	o.selection = d->everything;
	if (!err)
		err = images_new(&p->all, NULL, &o);
	if (!err)
		err = read_environment(p);
	if (!err)
		err = maps_each(p->pid, on_mapping, &l);
	if (err == -ENOMEM || err == -ESRCH)
		return err;
	p->error = err;
	if (!p->images_count)
		look_below(p);
	return doctor_gpu_time(d, p);
}

int doctor_look(struct doctor *d, uint32_t pid)
{
	struct doctor_process *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	p->pid = pid;
	err = look(d, p);
	if (err) {
		doctor_process_free(p);
		return err;
	}
	d->process = p;
	return 0;
}

void doctor_process_free(struct doctor_process *p)
{
	size_t i;

	if (!p)
		return;
	for (i = 0; i < p->images_count; i++)
		free(p->images[i].path);
	for (i = 0; i < p->tools_count; i++)
		free(p->tools[i]);
	free(p->images);
	free(p->tools);
	free(p->environment);
	free(p->gpu_time.cupti);
	images_free(p->asked);
	images_free(p->all);
	free(p);
}
