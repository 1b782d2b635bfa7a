// SPDX-License-Identifier: BSD-2-Clause
/* Sets of processes: descendants, and the members of a cgroup. */
#include "target/target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "target/parse.h"
#include "target/procfs.h"

#define CGROUP_DEPTH 64 /* deeper trees are cut; each level holds two fds open */

struct family {
	uint32_t pid, ppid;
	bool taken;
};

struct snapshot {
	struct family *items;
	size_t count, room;
};

static int add_family(uint32_t pid, void *ctx)
{
	struct snapshot *s = ctx;
	struct parsed_stat stat;
	char text[2048];
	ssize_t n;
	int dir = proc_open(pid);

	if (dir < 0)
		return 0;
	n = proc_read(dir, "stat", text, sizeof(text));
	close(dir);
	if (n <= 0 || parse_stat(text, (size_t)n, &stat))
		return 0;
	if (s->count == s->room) {
		size_t room = s->room ? 2 * s->room : 512;
		struct family *items = realloc(s->items, room * sizeof(*items));

		if (!items)
			return -ENOMEM;
		s->items = items;
		s->room = room;
	}
	s->items[s->count++] = (struct family){ .pid = pid, .ppid = stat.ppid };
	return 0;
}

static int by_parent(const void *a, const void *b)
{
	const struct family *x = a, *y = b;

	return (x->ppid > y->ppid) - (x->ppid < y->ppid);
}

static int add_children(struct pid_list *list, struct snapshot *s, uint32_t parent)
{
	size_t low = 0, high = s->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (s->items[mid].ppid < parent)
			low = mid + 1;
		else
			high = mid;
	}
	/* A number used again during the scan could close a circle: take each only once. */
	for (; low < s->count && s->items[low].ppid == parent; low++) {
		if (s->items[low].taken)
			continue;
		s->items[low].taken = true;
		if (pid_list_add(list, s->items[low].pid))
			return -ENOMEM;
	}
	return 0;
}

static int collect_tree(uint32_t pid, struct snapshot *s, struct pid_list *list)
{
	int err = process_each(add_family, s);

	if (err)
		return err;
	if (s->count)
		qsort(s->items, s->count, sizeof(*s->items), by_parent);
	for (size_t i = 0; i < s->count; i++)
		if (s->items[i].pid == pid)
			s->items[i].taken = true;
	err = pid_list_add(list, pid);
	for (size_t i = 0; !err && i < list->count; i++)
		err = add_children(list, s, list->items[i]);
	return err;
}

static int hand_over(struct pid_list *list, int err, uint32_t **pids, size_t *count)
{
	if (err) {
		free(list->items);
		*pids = NULL;
		*count = 0;
		return err;
	}
	*pids = list->items;
	*count = list->count;
	return 0;
}

/*
 * A child born while /proc is being scanned can be missed: whoever follows
 * children starts watching forks first. Orphans belong to their new parent.
 */
int process_tree(uint32_t pid, uint32_t **pids, size_t *count)
{
	struct snapshot s = { 0 };
	struct pid_list list = { 0 };
	struct process_info self;
	int err = process_read(pid, &self);

	if (!err)
		err = collect_tree(pid, &s, &list);
	free(s.items);
	return hand_over(&list, err, pids, count);
}

static uint32_t thread_process(uint32_t tid)
{
	struct parsed_status status = { 0 };
	struct proc_lines lines;
	char *line;
	size_t len;
	int dir = proc_open(tid);

	if (dir < 0)
		return 0;
	if (!proc_lines_open(&lines, dir, "status")) {
		while (!status.tgid && proc_lines_next(&lines, &line, &len) > 0)
			parse_status_line(line, len, &status);
		proc_lines_close(&lines);
	}
	close(dir);
	return status.tgid;
}

/* -EOPNOTSUPP for cgroup.procs of a threaded cgroup. */
static int read_members(int dir, const char *file, bool threads, struct pid_list *list)
{
	struct proc_lines lines;
	uint32_t pid;
	char *line;
	size_t len;
	int ret = proc_lines_open(&lines, dir, file);

	if (ret)
		return ret;
	while ((ret = proc_lines_next(&lines, &line, &len)) > 0) {
		if (!proc_number(line, &pid))
			continue;
		if (threads)
			pid = thread_process(pid);
		/* 0: outside our pid namespace, or gone meanwhile. */
		if (pid && (ret = pid_list_add(list, pid)))
			break;
	}
	proc_lines_close(&lines);
	return ret;
}

static int walk_cgroup(int dir, unsigned depth, struct pid_list *list);

static int walk_children(int dir, unsigned depth, struct pid_list *list)
{
	int err = 0, again = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = again < 0 ? NULL : fdopendir(again);
	struct dirent *entry;

	if (!stream) {
		err = proc_error(errno);
		if (again >= 0)
			close(again);
		return err;
	}
	while (!err && (entry = readdir(stream))) {
		int child;

		if (entry->d_type != DT_DIR || !strcmp(entry->d_name, ".") ||
		    !strcmp(entry->d_name, ".."))
			continue;
		child = openat(dir, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (child < 0)
			continue;
		err = walk_cgroup(child, depth + 1, list);
		close(child);
		if (err == -ESRCH || err == -ENODEV)
			err = 0;
	}
	closedir(stream);
	return err;
}

static int walk_cgroup(int dir, unsigned depth, struct pid_list *list)
{
	int err = read_members(dir, "cgroup.procs", false, list);

	if (err == -EOPNOTSUPP)
		err = read_members(dir, "cgroup.threads", true, list);
	if (err)
		return err;
	return depth < CGROUP_DEPTH ? walk_children(dir, depth, list) : 0;
}

/* path is a directory of any hierarchy; reading it needs no rights by default. */
int process_in_cgroup(const char *path, uint32_t **pids, size_t *count)
{
	struct pid_list list = { 0 };
	struct statfs fs;
	int err = 0, dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return hand_over(&list, -errno, pids, count);
	if (fstatfs(dir, &fs))
		err = -errno;
	else if (fs.f_type != CGROUP_SUPER_MAGIC && fs.f_type != CGROUP2_SUPER_MAGIC)
		err = -ENOTDIR;
	else
		err = walk_cgroup(dir, 0, &list);
	close(dir);
	/* The cgroup itself was removed while it was read. */
	if (err == -ESRCH || err == -ENODEV)
		err = -ENOENT;
	pid_list_sort_unique(&list);
	return hand_over(&list, err, pids, count);
}
