// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a process maps, and the files behind it. /proc/PID/maps of another
 * user's process needs CAP_SYS_PTRACE; following /proc/PID/map_files needs
 * CAP_CHECKPOINT_RESTORE (or CAP_SYS_ADMIN) and, for another user's process,
 * CAP_DAC_READ_SEARCH and CAP_SYS_PTRACE; /proc/PID/root needs CAP_SYS_PTRACE.
 */
#include "target/target.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "target/parse.h"
#include "target/procfs.h"

#ifndef BTRFS_SUPER_MAGIC
#define BTRFS_SUPER_MAGIC 0x9123683E
#endif

/* Files already handed over, as hashes in an open-addressed table of a power of two. */
struct seen {
	uint64_t *slots;
	size_t count, size;
};

static uint64_t hash_mapping(const struct parsed_map *m)
{
	uint64_t h = 0xcbf29ce484222325u ^ m->dev;

	h = (h ^ m->ino) * 0x9E3779B97F4A7C15u;
	h ^= h >> 29;
	for (const char *p = m->path; *p; p++)
		h = (h ^ (unsigned char)*p) * 0x100000001b3u;
	h ^= h >> 32;
	return h ? h : 1; /* 0 marks an empty slot */
}

/* Returns whether it was there already. There is always an empty slot. */
static bool place(struct seen *s, uint64_t hash)
{
	size_t i = hash & (s->size - 1);

	for (; s->slots[i]; i = (i + 1) & (s->size - 1))
		if (s->slots[i] == hash)
			return true;
	s->slots[i] = hash;
	return false;
}

/* 1 if new, 0 if seen before, -ENOMEM. */
static int remember(struct seen *s, const struct parsed_map *m)
{
	if (2 * (s->count + 1) > s->size) {
		size_t size = s->size ? 2 * s->size : 128;
		struct seen grown = { .slots = calloc(size, sizeof(uint64_t)), .size = size };

		if (!grown.slots)
			return -ENOMEM;
		for (size_t i = 0; i < s->size; i++)
			if (s->slots[i])
				(void)place(&grown, s->slots[i]);
		free(s->slots);
		s->slots = grown.slots;
		s->size = size;
	}
	if (place(s, hash_mapping(m)))
		return 0;
	s->count++;
	return 1;
}

static void to_mapping(const struct parsed_map *from, struct mapping *to)
{
	*to = (struct mapping){
		.start = from->start,
		.end = from->end,
		.offset = from->offset,
		.dev = from->dev,
		.ino = from->ino,
		.path = from->path,
		.deleted = from->deleted,
	};
}

static int open_maps(struct proc_lines *lines, uint32_t pid)
{
	int err, dir = proc_open(pid);

	if (dir < 0)
		return dir;
	err = proc_lines_open(lines, dir, "maps");
	close(dir);
	return err;
}

int maps_each(uint32_t pid, int (*each)(const struct mapping *m, void *ctx), void *ctx)
{
	struct proc_lines lines;
	struct seen seen = { 0 };
	struct parsed_map parsed;
	struct mapping m;
	char *line;
	size_t len;
	int ret = open_maps(&lines, pid);

	if (ret)
		return ret;
	while ((ret = proc_lines_next(&lines, &line, &len)) > 0) {
		if (parse_maps_line(line, len, &parsed) || !parsed.executable || !parsed.ino ||
		    parsed.path[0] != '/')
			continue;
		ret = remember(&seen, &parsed);
		if (ret < 0)
			break;
		if (!ret)
			continue;
		to_mapping(&parsed, &m);
		ret = each(&m, ctx);
		if (ret)
			break;
	}
	free(seen.slots);
	proc_lines_close(&lines);
	return ret;
}

/*
 * Reads from what an O_PATH fd names, only if it is a regular file: opening a
 * FIFO could block, a device could do anything. O_NONBLOCK because a file
 * lease would make open() wait for its holder.
 */
static int reopen(int path_fd)
{
	char self[32];
	struct stat st;
	int fd;

	if (fstat(path_fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
	fd = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

/* Is the file at path_fd, whose link reads as name, the one of the mapping? */
static bool same_file(int path_fd, const struct mapping *m, char *name)
{
	struct stat st;
	size_t len = strlen(name);

	if (fstat(path_fd, &st))
		return false;
	if (st.st_dev == m->dev && st.st_ino == m->ino)
		return true;
	/* Overlayfs and btrfs show other numbers in mappings than to stat(). */
	name[parse_deleted(name, len)] = '\0';
	return m->path && !strcmp(name, m->path);
}

static int open_range(uint32_t pid, const struct mapping *m, uint64_t start, uint64_t end)
{
	char link[80], name[4096];
	int fd, path_fd, dir = proc_open(pid);

	if (dir < 0)
		return dir;
	/* The kernel takes the range only as it would print it itself: no leading zeros. */
	snprintf(link, sizeof(link), "map_files/%" PRIx64 "-%" PRIx64, start, end);
	path_fd = openat(dir, link, O_PATH | O_CLOEXEC);
	if (path_fd < 0) {
		fd = proc_error(errno);
	} else {
		(void)proc_readlink(dir, link, name, sizeof(name));
		fd = same_file(path_fd, m, name) ? reopen(path_fd) : -ESTALE;
		close(path_fd);
	}
	close(dir);
	return fd;
}

/* The range can have been split or moved since it was seen: looks for the file anew. */
static int open_any_range(uint32_t pid, const struct mapping *m)
{
	struct proc_lines lines;
	struct parsed_map parsed;
	char *line;
	size_t len;
	int fd = -ESTALE, ret = open_maps(&lines, pid);

	if (ret)
		return ret;
	while ((ret = proc_lines_next(&lines, &line, &len)) > 0) {
		if (parse_maps_line(line, len, &parsed) || parsed.dev != m->dev ||
		    parsed.ino != m->ino || parsed.path[0] != '/')
			continue;
		fd = open_range(pid, m, parsed.start, parsed.end);
		if (fd != -ESRCH && fd != -ESTALE)
			break;
	}
	proc_lines_close(&lines);
	return ret < 0 ? ret : fd;
}

/*
 * By path, as the process sees it. RESOLVE_IN_ROOT keeps a symbolic link of a
 * hostile container inside that container. Where stat() and mappings number
 * files differently only the inode can be compared, and the caller must look
 * at the contents before it trusts them.
 */
static int open_in_root(uint32_t pid, const struct mapping *m, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	struct stat st;
	struct statfs fs;
	int fd, root, dir = proc_open(pid);

	if (dir < 0)
		return dir;
	root = openat(dir, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	fd = root < 0 ? proc_error(errno) : 0;
	close(dir);
	if (fd)
		return fd;
	int path_fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));

	fd = path_fd < 0 ? -errno : 0;
	close(root);
	if (fd)
		return fd;
	if (fstat(path_fd, &st) || fstatfs(path_fd, &fs))
		fd = -errno;
	else if (st.st_ino != m->ino ||
		 (st.st_dev != m->dev && fs.f_type != OVERLAYFS_SUPER_MAGIC &&
		  (unsigned long)fs.f_type != BTRFS_SUPER_MAGIC))
		fd = -ESTALE;
	else
		fd = reopen(path_fd);
	close(path_fd);
	return fd;
}

int maps_open(uint32_t pid, const struct mapping *m)
{
	int fd = open_range(pid, m, m->start, m->end);

	if (fd == -ESRCH || fd == -ESTALE)
		fd = open_any_range(pid, m);
	/* The process is gone, or its file is not what it should be: a path helps neither. */
	if (fd >= 0 || fd == -ESRCH || fd == -EINVAL || !m->path)
		return fd;

	int by_path = open_in_root(pid, m, m->path);

	/* Without the right to use map_files, say that and not that a path is wrong. */
	return by_path < 0 && fd == -EACCES ? fd : by_path;
}
