// SPDX-License-Identifier: BSD-2-Clause
#include "target/usage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "target/parse.h"
#include "target/procfs.h"

enum io_state { IO_UNREAD = 0, IO_KNOWN, IO_UNKNOWN };

struct member {
	uint32_t pid, ppid;
	uint64_t cpu; /* clock ticks */
	size_t tree;  /* 1 + the last tree it was counted in */
	enum io_state io_state;
	struct parsed_io io;
};

/* All processes of the machine, by parent. */
struct walk {
	int proc; /* fd of /proc */
	struct member *items;
	size_t count, room;
};

static int add_member(uint32_t pid, void *ctx)
{
	struct walk *w = ctx;
	struct parsed_stat stat;
	char name[32], text[1024];
	ssize_t n;

	snprintf(name, sizeof(name), "%u/stat", pid);
	n = proc_read(w->proc, name, text, sizeof(text));
	if (n <= 0 || parse_stat(text, (size_t)n, &stat))
		return 0;
	if (w->count == w->room) {
		size_t room = w->room ? 2 * w->room : 512;
		struct member *items = realloc(w->items, room * sizeof(*items));

		if (!items)
			return -ENOMEM;
		w->items = items;
		w->room = room;
	}
	w->items[w->count++] = (struct member){ .pid = pid, .ppid = stat.ppid, .cpu = stat.cpu };
	return 0;
}

static int by_parent(const void *a, const void *b)
{
	const struct member *x = a, *y = b;

	return (x->ppid > y->ppid) - (x->ppid < y->ppid);
}

static size_t first_child(const struct walk *w, uint32_t parent)
{
	size_t low = 0, high = w->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (w->items[mid].ppid < parent)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Gone meanwhile: nothing to add, and nothing that we may not know. */
static void read_io(const struct walk *w, struct member *m)
{
	char name[32], text[512];
	ssize_t n;

	if (m->io_state != IO_UNREAD)
		return;
	snprintf(name, sizeof(name), "%u/io", m->pid);
	n = proc_read(w->proc, name, text, sizeof(text));
	if (n == -ESRCH)
		m->io_state = IO_KNOWN;
	else
		m->io_state = n > 0 && !parse_io(text, (size_t)n, &m->io) ? IO_KNOWN : IO_UNKNOWN;
}

static void add_usage(const struct walk *w, struct member *m, uint64_t tick_ns, struct usage *out)
{
	read_io(w, m);
	out->processes++;
	out->cpu_ns += m->cpu * tick_ns;
	out->read_bytes += m->io.read_bytes;
	out->write_bytes += m->io.write_bytes;
	if (m->io_state == IO_UNKNOWN)
		out->io_known = false;
}

/* queue has room for all; a number used again during the walk could close a circle. */
static void sum_tree(struct walk *w, uint32_t pid, size_t tree, size_t *queue, struct usage *out)
{
	long hz = sysconf(_SC_CLK_TCK);
	uint64_t tick_ns = 1000000000u / (uint64_t)(hz > 0 ? hz : 100);
	size_t queued = 0;

	out->io_known = true;
	for (size_t i = 0; i < w->count && !queued; i++)
		if (w->items[i].pid == pid)
			queue[queued++] = i;
	if (queued)
		w->items[queue[0]].tree = tree;
	for (size_t next = 0; next < queued; next++) {
		struct member *m = &w->items[queue[next]];

		add_usage(w, m, tick_ns, out);
		for (size_t i = first_child(w, m->pid); i < w->count; i++) {
			if (w->items[i].ppid != m->pid)
				break;
			if (w->items[i].tree == tree)
				continue;
			w->items[i].tree = tree;
			queue[queued++] = i;
		}
	}
}

static int sum_trees(struct walk *w, const uint32_t *pids, size_t count, struct usage *out)
{
	size_t *queue = calloc(w->count + 1, sizeof(*queue));

	if (!queue)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		sum_tree(w, pids[i], i + 1, queue, &out[i]);
	free(queue);
	return 0;
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int usage_trees(const uint32_t *pids, size_t count, struct usage *out)
{
	struct walk w = { .proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC) };
	int64_t now = now_ns();
	int err;

	if (count)
		memset(out, 0, count * sizeof(*out));
	for (size_t i = 0; i < count; i++)
		out[i].time_ns = now;
	if (w.proc < 0)
		return -errno;
	err = count ? proc_each_number("/proc", add_member, &w) : 0;
	if (!err && w.count) {
		qsort(w.items, w.count, sizeof(*w.items), by_parent);
		err = sum_trees(&w, pids, count, out);
	}
	free(w.items);
	close(w.proc);
	return err;
}

int usage_tree(uint32_t pid, struct usage *out)
{
	int err = usage_trees(&pid, 1, out);

	if (err)
		return err;
	return out->processes ? 0 : -ESRCH;
}

/*
 * A sum that falls is kept once, in case the next reading has it again; if that
 * falls short too, it is gone for good and counting starts there.
 */
bool usage_advance(struct usage *last, const struct usage *now, struct usage_rate *out)
{
	struct usage before = *last;
	double seconds = (double)(now->time_ns - before.time_ns) / 1e9;
	double all_cpus = 100;
	uint64_t io = now->read_bytes + now->write_bytes;
	uint64_t io_before = before.read_bytes + before.write_bytes;
	bool short_cpu = now->cpu_ns < before.cpu_ns;
	bool short_io = io < io_before && now->io_known && before.io_known;

	*last = *now;
	last->fell = false;
	if (!before.processes || !now->processes || seconds <= 0)
		return false;
	if ((short_cpu || short_io) && !before.fell) {
		last->fell = true;
		if (short_cpu)
			last->cpu_ns = before.cpu_ns;
		if (short_io) {
			last->read_bytes = before.read_bytes;
			last->write_bytes = before.write_bytes;
		}
	}
	out->cpu_pct = short_cpu ? 0 : (double)(now->cpu_ns - before.cpu_ns) / seconds / 1e7;
	if (out->cpu_pct > all_cpus) /* of this one, sysconf() reads a file each time */
		all_cpus *= (double)sysconf(_SC_NPROCESSORS_CONF);
	if (out->cpu_pct > all_cpus)
		out->cpu_pct = all_cpus;
	out->io_bytes_per_s = -1;
	if (now->io_known && before.io_known)
		out->io_bytes_per_s = short_io ? 0 : (double)(io - io_before) / seconds;
	return true;
}

int usage_thread(uint32_t pid, uint32_t tid, struct thread_usage *out)
{
	int dir = proc_open_thread(pid, tid);
	char text[128];
	ssize_t n;
	int err;

	memset(out, 0, sizeof(*out));
	if (dir < 0)
		return dir;
	n = proc_read(dir, "schedstat", text, sizeof(text));
	err = n < 0 ? (int)n : 0;
	/* No such file, of a thread that is there. */
	if (err == -ESRCH && proc_read(dir, "comm", text, sizeof(text)) > 0)
		err = -ENOTSUP;
	close(dir);
	if (err)
		return err;
	return parse_schedstat(text, (size_t)n, &out->run_ns, &out->delay_ns);
}
