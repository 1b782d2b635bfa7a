// SPDX-License-Identifier: BSD-2-Clause
/*
 * One process as /proc shows it. Everybody's stat, status, cmdline and cgroup
 * can be read without rights unless /proc is mounted with hidepid; exe of
 * another user's process, or of a non-dumpable one, needs CAP_SYS_PTRACE.
 */
#include "target/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/parse.h"
#include "target/procfs.h"

#define PID_NS_INIT_INO 0xEFFFFFFCu /* PROC_PID_INIT_INO, include/linux/proc_ns.h */

static int read_stat(int dir, struct parsed_stat *out)
{
	char text[2048];
	ssize_t n = proc_read(dir, "stat", text, sizeof(text));

	if (n < 0)
		return (int)n;
	/* Empty: it ended between opening and reading. */
	return n ? parse_stat(text, (size_t)n, out) : -ESRCH;
}

static int read_status(int dir, struct parsed_status *out)
{
	struct proc_lines lines;
	char *line;
	size_t len;
	int ret;

	memset(out, 0, sizeof(*out));
	ret = proc_lines_open(&lines, dir, "status");
	if (ret)
		return ret;
	while ((ret = proc_lines_next(&lines, &line, &len)) > 0)
		parse_status_line(line, len, out);
	proc_lines_close(&lines);
	if (!ret && !out->tgid)
		return -ESRCH;
	return ret;
}

static int64_t ticks_to_ns(uint64_t ticks)
{
	long hz = sysconf(_SC_CLK_TCK);
	uint64_t ns = 1000000000u / (uint64_t)(hz > 0 ? hz : 100);

	return ticks > INT64_MAX / ns ? -ERANGE : (int64_t)(ticks * ns);
}

static void read_cmdline(int dir, char *out, size_t size)
{
	ssize_t n = proc_read(dir, "cmdline", out, size);

	if (n < 0)
		n = 0;
	while (n && !out[n - 1])
		n--;
	for (ssize_t i = 0; i < n; i++)
		if (!out[i])
			out[i] = ' ';
	out[n] = '\0';
}

static void read_container(int dir, char *out, size_t size)
{
	struct proc_lines lines;
	char *line;
	size_t len;

	out[0] = '\0';
	if (proc_lines_open(&lines, dir, "cgroup"))
		return;
	while (proc_lines_next(&lines, &line, &len) > 0)
		if (parse_cgroup_line(line, len, out, size))
			break;
	proc_lines_close(&lines);
}

/* Nothing but the parent's unread exit status is left of it. */
static bool is_dead(const struct parsed_stat *stat)
{
	return (stat->state == 'Z' || stat->state == 'X') && stat->threads <= 1;
}

static int read_all(int dir, uint32_t pid, struct process_info *out)
{
	struct parsed_stat stat;
	struct parsed_status status;
	int err = read_stat(dir, &stat);

	if (!err)
		err = read_status(dir, &status);
	if (err)
		return err;
	/* /proc answers for the number of a thread too, which names no process. */
	if (is_dead(&stat) || status.tgid != pid)
		return -ESRCH;
	out->start = ticks_to_ns(stat.start);
	if (out->start < 0)
		return (int)out->start;
	out->pid = pid;
	out->ppid = stat.ppid;
	out->uid = status.uid;
	out->ns_pid = status.levels ? status.pids[status.levels - 1] : pid;
	out->seccomp = status.seccomp == 2;
	memcpy(out->comm, stat.comm, sizeof(out->comm));
	read_cmdline(dir, out->cmdline, sizeof(out->cmdline));
	(void)proc_readlink(dir, "exe", out->exe, sizeof(out->exe));
	read_container(dir, out->container, sizeof(out->container));
	return 0;
}

int process_read(uint32_t pid, struct process_info *out)
{
	int err, dir = proc_open(pid);

	memset(out, 0, sizeof(*out));
	if (dir < 0)
		return dir;
	err = read_all(dir, pid, out);
	close(dir);
	return err;
}

int64_t process_start(uint32_t pid)
{
	struct parsed_stat stat;
	int err, dir = proc_open(pid);

	if (dir < 0)
		return dir;
	err = read_stat(dir, &stat);
	close(dir);
	return err ? err : ticks_to_ns(stat.start);
}

void process_thread_comm(uint32_t pid, uint32_t tid, char comm[16])
{
	char text[80]; /* kernel threads' names have up to 64 bytes */
	int dir = proc_open_thread(pid, tid);
	ssize_t n;

	memset(comm, 0, 16);
	if (dir < 0)
		return;
	n = proc_read(dir, "comm", text, sizeof(text));
	close(dir);
	if (n > 0 && text[n - 1] == '\n')
		n--;
	if (n > 0)
		memcpy(comm, text, n < 15 ? (size_t)n : 15);
}

uint32_t process_thread_ns_tid(uint32_t pid, uint32_t tid)
{
	struct parsed_status status;
	int err, dir = proc_open_thread(pid, tid);

	if (dir < 0)
		return 0;
	err = read_status(dir, &status);
	close(dir);
	return !err && status.levels ? status.pids[status.levels - 1] : 0;
}

int process_each(int (*each)(uint32_t pid, void *ctx), void *ctx)
{
	return proc_each_number("/proc", each, ctx);
}

int process_each_thread(uint32_t pid, int (*each)(uint32_t tid, void *ctx), void *ctx)
{
	char path[32];
	int dir = proc_open(pid);

	if (dir < 0)
		return dir;
	close(dir);
	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	return proc_each_number(path, each, ctx);
}

struct search {
	uint32_t number;
	uint32_t *out;
	size_t max, count;
};

static int match_ns_pid(uint32_t pid, void *ctx)
{
	struct search *s = ctx;
	struct parsed_status status;
	int err, dir = proc_open(pid);

	if (dir < 0)
		return 0;
	err = read_status(dir, &status);
	close(dir);
	if (err)
		return 0;
	for (unsigned i = 1; i < status.levels; i++) {
		if (status.pids[i] != s->number)
			continue;
		if (s->count < s->max)
			s->out[s->count] = pid;
		s->count++;
		break;
	}
	return 0;
}

size_t process_resolve(uint32_t number, uint32_t *out, size_t max)
{
	struct search s = { .number = number, .out = out, .max = max };
	struct process_info info;
	int err = process_read(number, &info);

	if (err != -ESRCH) {
		if (max)
			out[0] = number;
		return 1;
	}
	(void)process_each(match_ns_pid, &s);
	return s.count;
}

bool process_host_namespace(void)
{
	struct stat st;

	return !stat("/proc/self/ns/pid", &st) && st.st_ino == PID_NS_INIT_INO;
}
