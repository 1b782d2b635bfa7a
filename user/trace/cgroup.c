/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "trace/private.h"

#define ROOT_CGROUP_ID 1 /* kernfs numbers its root so */
#define DEPTH_MAX 64

static bool is_cgroup2(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && fs.f_type == CGROUP2_SUPER_MAGIC;
}

/* Climbs to the root and counts: names and mounts may lie, inodes do not. */
static int climb(int fd, uint32_t *level)
{
	struct stat st;
	int up;

	for (*level = 0; *level < DEPTH_MAX; ++*level) {
		if (fstat(fd, &st))
			break;
		if (st.st_ino == ROOT_CGROUP_ID) {
			close(fd);
			return 0;
		}
		up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = up;
		if (fd < 0 || !is_cgroup2(fd))
			break; /* mounted from below the root: depth unknown */
	}
	if (fd >= 0)
		close(fd);
	return -ENOTSUP;
}

int cgroup_level(const char *path, uint32_t *level)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (!is_cgroup2(fd)) {
		close(fd);
		return -ENOTSUP;
	}
	return climb(fd, level);
}
