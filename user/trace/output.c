/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

struct output {
	char *path, *part, *old;
	struct invoker who;
	int fd; /* holds the lock */
	bool as_root; /* the invoker's own rights did not suffice */
	bool committed, keep;
};

/* A number as sudo writes it, and nothing else. */
static bool number_of(const char *variable, uint32_t *out)
{
	const char *text = getenv(variable);
	unsigned long value;
	char *end;

	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	value = strtoul(text, &end, 10);
	*out = (uint32_t)value;
	return !errno && !*end && value < UINT32_MAX;
}

int invoker_get(struct invoker *out)
{
	const struct passwd *pw;
	uint32_t uid, gid;

	out->uid = getuid();
	out->gid = getgid();
	if (getenv("SUDO_UID") && !geteuid()) {
		if (!number_of("SUDO_UID", &uid) || !number_of("SUDO_GID", &gid))
			return -EINVAL; /* root's own rights would be more than was meant */
		out->uid = uid;
		out->gid = gid;
	}
	pw = getpwuid(out->uid);
	snprintf(out->name, sizeof(out->name), "%s", pw ? pw->pw_name : "");
	return 0;
}

/* File accesses of this thread are the invoker's until rights_back(). */
static void rights_of_invoker(const struct output *o)
{
	if (o->as_root || geteuid())
		return;
	setfsgid(o->who.gid);
	setfsuid(o->who.uid);
}

static void rights_back(void)
{
	if (geteuid())
		return;
	setfsuid(geteuid());
	setfsgid(getegid());
}

static int part_create(struct output *o)
{
	int fd;

	rights_of_invoker(o);
	fd = open(o->part, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		fd = -errno;
	rights_back();
	if ((fd == -EACCES || fd == -EPERM) && !o->as_root && !geteuid()) {
		o->as_root = true; /* sudo was used, so root's rights are wanted here */
		fd = part_create(o);
		if (fd >= 0 && fchown(fd, o->who.uid, o->who.gid)) {
			close(fd);
			unlink(o->part);
			return -EPERM;
		}
	}
	return fd;
}

/* An unfinished recording is in the way: somebody's crash, or somebody at work. */
static int part_set_aside(struct output *o)
{
	int fd, err = 0;

	rights_of_invoker(o);
	fd = open(o->part, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		err = -errno;
	else if (flock(fd, LOCK_EX | LOCK_NB))
		err = errno == EWOULDBLOCK ? -EBUSY : -errno;
	else if (rename(o->part, o->old))
		err = -errno;
	if (fd >= 0)
		close(fd);
	rights_back();
	return err;
}

static int path_check(const struct output *o, char *why, size_t size)
{
	struct stat st;

	if (stat(o->path, &st))
		return 0; /* not there, or not to be seen: creating tells */
	if (S_ISREG(st.st_mode))
		return 0;
	snprintf(why, size, "%s is not a regular file; give another name with -o", o->path);
	return -EINVAL;
}

static int names_make(struct output *o, const char *path)
{
	if (asprintf(&o->path, "%s", path) < 0)
		o->path = NULL;
	if (asprintf(&o->part, "%s.part", path) < 0)
		o->part = NULL;
	if (asprintf(&o->old, "%s.old", path) < 0)
		o->old = NULL;
	return o->path && o->part && o->old ? 0 : -ENOMEM;
}

static int part_open(struct output *o, char *why, size_t size)
{
	int fd = part_create(o), err;

	if (fd == -EEXIST) {
		err = part_set_aside(o);
		fd = err ? err : part_create(o);
	}
	if (fd == -EBUSY || fd == -EEXIST)
		snprintf(why, size, "another gbpf is writing %s; give another name with -o",
			 o->path);
	else if (fd < 0)
		snprintf(why, size, "cannot write %s: %s", o->part, strerror(-fd));
	if (fd < 0)
		return fd;
	o->fd = fd;
	return flock(fd, LOCK_EX | LOCK_NB) ? -errno : 0;
}

int output_open(struct output **out, const char *path, const struct invoker *who, char *why,
		size_t size)
{
	struct output *o = calloc(1, sizeof(*o));
	int err;

	if (!o)
		return -ENOMEM;
	o->fd = -1;
	o->who = *who;
	err = names_make(o, path);
	if (!err)
		err = path_check(o, why, size);
	if (!err)
		err = part_open(o, why, size);
	if (err) {
		output_free(o);
		return err;
	}
	*out = o;
	return 0;
}

int output_fd(const struct output *o)
{
	int fd = fcntl(o->fd, F_DUPFD_CLOEXEC, 3);

	return fd < 0 ? -errno : fd;
}

int output_commit(struct output *o)
{
	int err = 0;

	rights_of_invoker(o);
	if (rename(o->path, o->old) && errno != ENOENT)
		err = -errno;
	else if (rename(o->part, o->path))
		err = -errno;
	rights_back();
	o->committed = !err;
	o->keep = true; /* whole, if under another name: not to be thrown away */
	return err;
}

void output_free(struct output *o)
{
	if (!o)
		return;
	if (o->fd >= 0) {
		if (!o->keep) {
			rights_of_invoker(o);
			unlink(o->part);
			rights_back();
		}
		close(o->fd);
	}
	free(o->path);
	free(o->part);
	free(o->old);
	free(o);
}
