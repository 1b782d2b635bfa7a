// SPDX-License-Identifier: BSD-2-Clause
/* What CPU quotas of cgroups cost those in them. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "target/parse.h"
#include "target/procfs.h"
#include "target/usage.h"

#define PERIOD_NS 100000000.0 /* cpu.cfs_period_us, second number of cpu.max: their default */

/* Adds what one cgroup's own quota cost; false if it has none. */
static bool add_level(int dir, int version, uint64_t *ns, uint64_t *periods)
{
	const char *quota = version == 1 ? "cpu.cfs_quota_us" : "cpu.max";
	uint64_t level_ns, level_periods;
	char text[1024];
	ssize_t n = proc_read(dir, quota, text, sizeof(text));

	if (n <= 0 || !parse_cpu_quota(text, (size_t)n))
		return false;
	n = proc_read(dir, "cpu.stat", text, sizeof(text));
	if (n <= 0 || parse_cpu_stat(text, (size_t)n, &level_ns, &level_periods))
		return false;
	*ns += level_ns;
	*periods += level_periods;
	return true;
}

int cgroup_throttled_at(int root, const char *path, int version, uint64_t *ns,
			uint64_t *periods)
{
	char at[PATH_MAX];
	bool found = false;
	int len = snprintf(at, sizeof(at), ".%s", strcmp(path, "/") ? path : "");

	*ns = *periods = 0;
	if (len < 0 || (size_t)len >= sizeof(at))
		return -ENOENT;
	while (len > 0) {
		int dir = openat(root, at, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (dir >= 0) {
			found |= add_level(dir, version, ns, periods);
			close(dir);
		}
		while (len > 0 && at[--len] != '/')
			;
		at[len] = '\0';
	}
	return found ? 0 : -ENOENT;
}

/* Is it a cgroup that the process is in? It chose what is mounted there. */
static bool has_member(int dir, uint32_t pid)
{
	struct proc_lines lines;
	bool found = false;
	struct statfs fs;
	uint32_t member;
	char *line;
	size_t len;

	if (fstatfs(dir, &fs) ||
	    (fs.f_type != CGROUP_SUPER_MAGIC && fs.f_type != CGROUP2_SUPER_MAGIC) ||
	    proc_lines_open(&lines, dir, "cgroup.procs"))
		return false;
	while (!found && proc_lines_next(&lines, &line, &len) > 0)
		found = proc_number(line, &member) && member == pid;
	proc_lines_close(&lines);
	return found;
}

/*
 * gbpf runs in a cgroup namespace of its own, from where the path leads up and out. What
 * the process itself sees is its own cgroup, or its container's.
 */
static int throttled_inside(int proc, uint32_t pid, int version, uint64_t *ns, uint64_t *periods)
{
	const char *name = version == 1 ? "root/sys/fs/cgroup/cpu" : "root/sys/fs/cgroup";
	int dir = openat(proc, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool found;

	if (dir < 0)
		return -ENOENT;
	found = has_member(dir, pid) && add_level(dir, version, ns, periods);
	close(dir);
	return found ? 0 : -ENOENT;
}

static int open_hierarchy(int version)
{
	int dir;

	if (version == 2)
		return open("/sys/fs/cgroup", O_PATH | O_DIRECTORY | O_CLOEXEC);
	dir = open("/sys/fs/cgroup/cpu", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return dir >= 0 ? dir : open("/sys/fs/cgroup/cpu,cpuacct",
				     O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Where both versions are mounted, the controller is in version 1. */
static int find_cgroup(int proc, char *path, size_t size, int *version)
{
	struct proc_lines lines;
	const char *found;
	char *line;
	size_t len;
	int ret = proc_lines_open(&lines, proc, "cgroup");

	*version = 0;
	if (ret)
		return ret;
	while (*version != 1 && (ret = proc_lines_next(&lines, &line, &len)) > 0) {
		int v = parse_cpu_cgroup(line, len, &found);

		if (v && (size_t)snprintf(path, size, "%s", found) < size)
			*version = v;
	}
	proc_lines_close(&lines);
	if (ret < 0)
		return ret;
	return *version ? 0 : -ENOENT;
}

static int throttled_at(const char *path, int version, uint64_t *ns, uint64_t *periods)
{
	int root = open_hierarchy(version), err;

	if (root < 0)
		return -ENOENT;
	err = cgroup_throttled_at(root, path, version, ns, periods);
	close(root);
	return err;
}

int cgroup_throttled(uint32_t pid, struct cgroup_seen *seen, uint64_t *ns, uint64_t *periods)
{
	char path[PATH_MAX];
	int proc = proc_open(pid), version, err;

	*ns = *periods = 0;
	if (proc < 0)
		return proc;
	err = find_cgroup(proc, path, sizeof(path), &version);
	if (!err && !strncmp(path, "/..", 3)) {
		err = throttled_inside(proc, pid, version, ns, periods);
	} else if (!err) {
		if (seen->version != version || strcmp(seen->path, path)) {
			memcpy(seen->path, path, strlen(path) + 1);
			seen->version = version;
			seen->ns = seen->periods = 0;
			seen->err = throttled_at(path, version, &seen->ns, &seen->periods);
		}
		err = seen->err;
		*ns = seen->ns;
		*periods = seen->periods;
	}
	close(proc);
	return err;
}

double throttled_share(uint64_t ns, uint64_t periods, int64_t interval_ns)
{
	double lost = (double)ns, most = (double)periods * PERIOD_NS, share;

	if (interval_ns <= 0 || ns > INT64_MAX || periods > INT64_MAX)
		return 0;
	share = (lost < most ? lost : most) / (double)interval_ns;
	return share < 1 ? share : 1;
}
