/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes and threads into the file, each once in its life. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bpf/gbpf.h"
#include "trace/private.h"

/*
 * PF_EXITING (linux/sched.h) in the flags of /proc/PID/task/TID/stat, the seventh
 * field behind the name. It is set before the exit that clears bits is traced.
 */
static bool thread_exiting(uint32_t pid, const char *tid)
{
	char path[64], stat[512];
	const char *at;
	unsigned flags;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/task/%.16s/stat", pid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	n = read(fd, stat, sizeof(stat) - 1);
	close(fd);
	stat[n > 0 ? n : 0] = '\0';
	at = strrchr(stat, ')');
	return !at || sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %u", &flags) != 1 || flags & 4;
}

/* Ended, or so far on its way that its exit was traced: all of its threads are. */
static bool process_ended(uint32_t pid)
{
	const struct dirent *task;
	char path[32];
	bool ended = true;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	dir = opendir(path);
	while (dir && ended && (task = readdir(dir)))
		if (task->d_name[0] != '.')
			ended = thread_exiting(pid, task->d_name);
	if (dir)
		closedir(dir);
	return ended;
}

void processes_want(struct tracer *t, uint32_t pid)
{
	probes_want(t->probes, pid, true);
	if (process_ended(pid))
		probes_want(t->probes, pid, false);
}

static int process_write(struct tracer *t, const struct process_info *info, int64_t ts,
			 unsigned event, int32_t exit_code)
{
	struct record r = {.kind = RECORD_PROCESS};

	r.process = (struct record_process){
		.ts = ts,
		.event = event,
		.pid = info->pid,
		.ppid = info->ppid,
		.ns_pid = info->ns_pid,
		.uid = info->uid,
		.exit_code = exit_code,
		.flags = info->seccomp ? RECORD_PROCESS_SECCOMP : 0,
		.start = info->start,
		.comm = info->comm,
		.cmdline = info->cmdline,
		.exe = info->exe,
		.container = info->container,
	};
	if (!probes_returns(t->probes))
		r.process.flags |= RECORD_PROCESS_ENTRY_ONLY;
	return tracer_add(t, &r);
}

/* A process that took over the number of one that did something at ts (ns, monotonic)? */
static bool started_after(const struct process_info *info, int64_t ts)
{
	struct timespec boot, monotonic;
	int64_t asleep;

	clock_gettime(CLOCK_MONOTONIC, &monotonic);
	clock_gettime(CLOCK_BOOTTIME, &boot); /* start times count suspended time, too */
	asleep = (boot.tv_sec - monotonic.tv_sec) * 1000000000LL + boot.tv_nsec -
		 monotonic.tv_nsec;
	/* asleep comes out too long by the time between the readings */
	return info->start - asleep > ts;
}

int processes_seen(struct tracer *t, uint32_t pid, int64_t ts, unsigned event)
{
	struct process_info info;
	int err = idset_add(&t->processes, pid);

	if (err <= 0)
		return err;
	t->targets++;
	if (process_read(pid, &info) || started_after(&info, ts)) {
		/* gone, or not ours to read: its number is all we know */
		memset(&info, 0, sizeof(info));
		info.pid = pid;
	}
	err = process_write(t, &info, ts, event, 0);
	return err ? err : labels_write(t, pid, ts);
}

static bool of_process(uint64_t id, void *ctx)
{
	return id >> 32 == *(uint32_t *)ctx;
}

static bool is_process(uint64_t id, void *ctx)
{
	return id == *(uint32_t *)ctx;
}

static int process_forget(struct tracer *t, uint32_t pid, int64_t ts)
{
	struct ended_list *l = &t->ended[0];

	idset_remove_if(&t->processes, is_process, &pid);
	idset_remove_if(&t->threads, of_process, &pid);
	t->last_thread = 0;
	if (l->count == l->room) {
		size_t room = l->room ? 2 * l->room : 16;
		struct ended *grown = realloc(l->items, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		l->items = grown;
		l->room = room;
	}
	l->items[l->count++] = (struct ended){pid, ts};
	return 0;
}

/*
 * Rings are read one after another: what a process did may be read after its end
 * was, if no later than in the next round. /proc has another by that number then.
 */
static bool ended_after(const struct tracer *t, uint32_t pid, int64_t ts)
{
	size_t i, k;

	for (i = 0; i < 2; i++)
		for (k = 0; k < t->ended[i].count; k++)
			if (t->ended[i].items[k].pid == pid && t->ended[i].items[k].ts >= ts)
				return true;
	return false;
}

void processes_round(struct tracer *t)
{
	struct ended_list old = t->ended[1];

	t->ended[1] = t->ended[0];
	t->ended[0] = old;
	t->ended[0].count = 0;
}

void processes_close(struct tracer *t)
{
	idset_free(&t->processes);
	idset_free(&t->threads);
	free(t->ended[0].items);
	free(t->ended[1].items);
	memset(t->ended, 0, sizeof(t->ended));
}

/* Born, became another program, or ended: as the kernel tells it, /proc adding what it knows. */
int processes_event(struct tracer *t, const struct gbpf_process *p)
{
	struct process_info info;
	unsigned event = RECORD_PROCESS_FORK;
	uint32_t pid = p->hdr.pid;
	int err;

	if (p->event == GBPF_PROCESS_EXEC)
		event = RECORD_PROCESS_EXEC;
	else if (p->event == GBPF_PROCESS_EXIT)
		event = RECORD_PROCESS_EXIT;
	if (event == RECORD_PROCESS_EXIT || process_read(pid, &info)) {
		memset(&info, 0, sizeof(info));
		info.pid = pid;
		memcpy(info.comm, p->comm, sizeof(info.comm));
		info.comm[sizeof(info.comm) - 1] = '\0';
	}
	info.ppid = p->parent;
	if (p->start) /* in clock ticks, as /proc gives it: one identity whoever saw it first */
		info.start = (int64_t)(p->start - p->start % (1000000000 / sysconf(_SC_CLK_TCK)));
	if (event != RECORD_PROCESS_FORK) {
		scheduled_ended(t, pid);
		err = gpu_time_ended(t, pid, (int64_t)p->hdr.ts);
		if (err)
			return err;
	}
	if (event == RECORD_PROCESS_EXIT)
		recorder_ended(t);
	if (event == RECORD_PROCESS_EXIT && process_forget(t, pid, (int64_t)p->hdr.ts))
		return -ENOMEM;
	if (event != RECORD_PROCESS_EXIT && idset_add(&t->processes, pid) == 1)
		t->targets++;
	err = process_write(t, &info, (int64_t)p->hdr.ts, event, p->exit_code);
	return err || event == RECORD_PROCESS_EXIT ? err : labels_write(t, pid, (int64_t)p->hdr.ts);
}

static int thread_seen(struct tracer *t, uint32_t pid, uint32_t tid, int64_t ts)
{
	struct record r = {.kind = RECORD_THREAD};
	char comm[16];
	int err;

	if (!idset_has(&t->processes, pid)) {
		err = processes_seen(t, pid, ts, RECORD_PROCESS_SEEN);
		if (err < 0)
			return err;
	}
	err = gpu_time_process(t, pid, ts);
	if (err)
		return err;
	process_thread_comm(pid, tid, comm);
	r.thread = (struct record_thread){
		.pid = pid,
		.tid = tid,
		.ns_tid = process_thread_ns_tid(pid, tid),
		.comm = comm,
	};
	return tracer_add(t, &r);
}

int processes_threads(struct tracer *t, const struct event *events, size_t count)
{
	uint64_t id;
	size_t i;
	int err;

	for (i = 0; i < count; i++) {
		id = (uint64_t)events[i].pid << 32 | events[i].tid;
		if (id == t->last_thread)
			continue;
		if (ended_after(t, events[i].pid, events[i].ts)) {
			err = gpu_time_missed(t, events[i].pid, events[i].ts);
			if (err)
				return err;
			continue;
		}
		t->last_thread = id;
		err = idset_add(&t->threads, id);
		if (err == 1)
			err = thread_seen(t, events[i].pid, events[i].tid, events[i].ts);
		if (err < 0)
			return err;
	}
	return 0;
}
