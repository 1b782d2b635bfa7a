// SPDX-License-Identifier: BSD-2-Clause
#include "target/procfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int proc_error(int error)
{
	switch (error) {
	case ENOENT:
	case ESRCH:
		return -ESRCH;
	case EPERM:
	case EACCES:
		return -EACCES;
	default:
		return -error;
	}
}

static int open_dir(const char *path, uint32_t pid)
{
	/* Unlike O_PATH, this asks for the permission that hidepid refuses. */
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	/* hidepid=invisible says ENOENT; a signal that may not be sent shows the process exists. */
	if (errno == ENOENT && kill((pid_t)pid, 0) < 0 && errno == EPERM)
		return -EACCES;
	return proc_error(errno);
}

int proc_open(uint32_t pid)
{
	char path[32];

	if (!pid || pid > INT_MAX)
		return -ESRCH;
	snprintf(path, sizeof(path), "/proc/%u", pid);
	return open_dir(path, pid);
}

int proc_open_thread(uint32_t pid, uint32_t tid)
{
	char path[48];

	if (!pid || pid > INT_MAX)
		return -ESRCH;
	snprintf(path, sizeof(path), "/proc/%u/task/%u", pid, tid);
	return open_dir(path, pid);
}

ssize_t proc_read(int dir, const char *name, char *buf, size_t size)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n;

	if (fd < 0)
		return proc_error(errno);
	while (len < size - 1) {
		n = read(fd, buf + len, size - 1 - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	n = len < size - 1 && n < 0 ? proc_error(errno) : (ssize_t)len;
	buf[len] = '\0';
	close(fd);
	return n;
}

ssize_t proc_readlink(int dir, const char *name, char *buf, size_t size)
{
	ssize_t n = readlinkat(dir, name, buf, size - 1);
	int err = n < 0 ? proc_error(errno) : 0;

	buf[n < 0 ? 0 : n] = '\0';
	return err ? err : n;
}

int proc_lines_open(struct proc_lines *l, int dir, const char *name)
{
	l->pos = l->len = 0;
	l->cut = l->end = false;
	l->fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	return l->fd < 0 ? proc_error(errno) : 0;
}

/* Makes room at the end of the buffer and reads into it. */
static int fill(struct proc_lines *l)
{
	ssize_t n;

	memmove(l->buf, l->buf + l->pos, l->len - l->pos);
	l->len -= l->pos;
	l->pos = 0;
	do {
		n = read(l->fd, l->buf + l->len, sizeof(l->buf) - 1 - l->len);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return proc_error(errno);
	l->len += (size_t)n;
	l->end = n == 0;
	return 0;
}

int proc_lines_next(struct proc_lines *l, char **line, size_t *len)
{
	for (;;) {
		char *start = l->buf + l->pos;
		size_t have = l->len - l->pos;
		char *newline = memchr(start, '\n', have);
		bool full = !newline && !l->pos && have == sizeof(l->buf) - 1;
		bool rest = l->cut;
		int err;

		if (!newline && !full && !l->end) {
			err = fill(l);
			if (err)
				return err;
			continue;
		}
		if (!newline && !full && !have)
			return 0;
		if (newline)
			have = (size_t)(newline - start);
		start[have] = '\0';
		l->pos += have + (newline ? 1 : 0);
		l->cut = full;
		/* The remainder of a line that was cut is no line. */
		if (rest)
			continue;
		*line = start;
		*len = have;
		return 1;
	}
}

void proc_lines_close(struct proc_lines *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}

bool proc_number(const char *s, uint32_t *out)
{
	uint64_t v = 0;

	if (!*s)
		return false;
	for (; *s; s++) {
		if (*s < '0' || *s > '9')
			return false;
		v = v * 10 + (uint64_t)(*s - '0');
		if (v > UINT32_MAX)
			return false;
	}
	*out = (uint32_t)v;
	return true;
}

int proc_each_number(const char *path, int (*each)(uint32_t number, void *ctx), void *ctx)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int ret = 0;

	if (!dir)
		return proc_error(errno);
	while (!ret && (entry = readdir(dir))) {
		uint32_t number;

		if (proc_number(entry->d_name, &number))
			ret = each(number, ctx);
	}
	closedir(dir);
	return ret;
}

int pid_list_add(struct pid_list *l, uint32_t pid)
{
	if (l->count == l->room) {
		size_t room = l->room ? 2 * l->room : 64;
		uint32_t *items = realloc(l->items, room * sizeof(*items));

		if (!items)
			return -ENOMEM;
		l->items = items;
		l->room = room;
	}
	l->items[l->count++] = pid;
	return 0;
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

void pid_list_sort_unique(struct pid_list *l)
{
	size_t n = 0;

	if (!l->count)
		return;
	qsort(l->items, l->count, sizeof(*l->items), by_value);
	for (size_t i = 1; i < l->count; i++)
		if (l->items[i] != l->items[n])
			l->items[++n] = l->items[i];
	l->count = n + 1;
}
