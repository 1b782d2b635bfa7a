// SPDX-License-Identifier: BSD-2-Clause
/*
 * A dummy software event on every CPU: it counts nothing and costs nothing by
 * itself, but its ring is told of every executable mapping, fork, exec and
 * exit. System-wide it needs CAP_PERFMON (CAP_SYS_ADMIN before 5.8), or
 * kernel.perf_event_paranoid at 0 or below; rings beyond perf_event_mlock_kb
 * would need CAP_IPC_LOCK, so ours are as large as its default allows.
 */
#include "target/target.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "target/procfs.h"
#include "target/watch_record.h"

#define RING_BYTES 524288	    /* with the control page the default 516 KiB a CPU */
#define CPU_MAX 8192		    /* CONFIG_NR_CPUS of the largest distribution kernels */
#define CPU_CHECK_NS 1000000000 /* how often a changed set of CPUs is looked for */

struct ring {
	unsigned cpu;
	int fd;
	struct perf_event_mmap_page *page;
	struct watch_range range;
	bool gone;	/* its CPU is offline */
	uint64_t bytes; /* of the record at tail, 0: none up to the cut */
	int64_t ts;
};

struct watch {
	int epoll_fd;
	struct ring *rings;
	struct ring **heap; /* scratch of watch_consume(), room for all rings */
	size_t count, page_size, ring_size; /* bytes */
	int64_t checked; /* when the set of CPUs was last looked at, CLOCK_MONOTONIC ns */
	char online[1024];
	bool (*want)(const char *path, void *ctx);
	void *want_ctx;
	unsigned char scratch[WATCH_RECORD_MAX];
};

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int open_event(unsigned cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.exclude_kernel = 1,
		.mmap = 1,
		.mmap2 = 1,
		.task = 1,
		.comm = 1,
		.comm_exec = 1,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		/* wakeup_events counts samples, of which a dummy has none. */
		.watermark = 1,
		.wakeup_watermark = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static void close_ring(struct watch *w, struct ring *r)
{
	if (r->page)
		munmap(r->page, w->page_size + w->ring_size);
	if (r->fd >= 0)
		close(r->fd);
	r->page = NULL;
	r->fd = -1;
}

static int open_ring(struct watch *w, struct ring *r, unsigned cpu)
{
	struct epoll_event ev = { .events = EPOLLIN };
	void *page;
	int err;

	*r = (struct ring){ .cpu = cpu, .fd = open_event(cpu) };
	if (r->fd < 0)
		return r->fd;
	page = mmap(NULL, w->page_size + w->ring_size, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd,
		    0);
	if (page != MAP_FAILED) {
		r->page = page;
		r->range.data = (unsigned char *)page + w->page_size;
		r->range.size = w->ring_size;
		if (!epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, r->fd, &ev))
			return 0;
	}
	err = -errno;
	close_ring(w, r);
	return err;
}

static int add_ring(struct watch *w, unsigned cpu)
{
	struct ring *rings = realloc(w->rings, (w->count + 1) * sizeof(*rings));
	struct ring **heap = realloc(w->heap, (w->count + 1) * sizeof(*heap));
	int err;

	w->rings = rings ? rings : w->rings;
	w->heap = heap ? heap : w->heap;
	if (!rings || !heap)
		return -ENOMEM;
	err = open_ring(w, &rings[w->count], cpu);
	/* It went offline since the list was read. */
	if (err == -ENODEV)
		return 0;
	if (!err)
		w->count++;
	return err;
}

static struct ring *ring_of(struct watch *w, unsigned cpu)
{
	for (size_t i = 0; i < w->count; i++)
		if (w->rings[i].cpu == cpu)
			return &w->rings[i];
	return NULL;
}

/* Calls each for the CPUs of a list like "0-3,8,10-11"; stops at what is not one. */
static int each_cpu(const char *list, int (*each)(struct watch *w, unsigned cpu), struct watch *w)
{
	int err = 0;

	while (!err && *list >= '0' && *list <= '9') {
		char *end;
		unsigned long first = strtoul(list, &end, 10), last = first;

		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (; !err && first <= last && first < CPU_MAX; first++)
			err = each(w, (unsigned)first);
		list = *end == ',' ? end + 1 : end;
	}
	return err;
}

static int keep_or_add(struct watch *w, unsigned cpu)
{
	struct ring *r = ring_of(w, cpu);

	if (!r)
		return add_ring(w, cpu);
	r->gone = false;
	return 0;
}

/*
 * An event dies with its CPU's going offline and does not come back with it:
 * the ring of a CPU that left is closed, so that a new one is opened later.
 * Called when the rings are empty, except for what came in the last moment.
 */
static int follow_cpus(struct watch *w, const char *online)
{
	size_t kept = 0;
	int err;

	for (size_t i = 0; i < w->count; i++)
		w->rings[i].gone = true;
	err = each_cpu(online, keep_or_add, w);
	for (size_t i = 0; i < w->count; i++) {
		if (w->rings[i].gone)
			close_ring(w, &w->rings[i]);
		else
			w->rings[kept++] = w->rings[i];
	}
	w->count = kept;
	return err;
}

static int check_cpus(struct watch *w, int64_t now)
{
	char online[sizeof(w->online)];
	ssize_t n;

	if (w->count && now - w->checked < CPU_CHECK_NS)
		return 0;
	w->checked = now;
	n = proc_read(AT_FDCWD, "/sys/devices/system/cpu/online", online, sizeof(online));
	if (n < 0)
		return (int)n;
	if (!strcmp(online, w->online))
		return 0;
	memcpy(w->online, online, sizeof(online));
	return follow_cpus(w, online);
}

int watch_new_sized(struct watch **out, size_t ring_size)
{
	struct watch *w = calloc(1, sizeof(*w));
	int err;

	*out = NULL;
	if (!w)
		return -ENOMEM;
	w->page_size = (size_t)sysconf(_SC_PAGESIZE);
	w->ring_size = ring_size;
	w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	err = w->epoll_fd < 0 ? -errno : check_cpus(w, now_ns());
	if (!err && !w->count)
		err = -ENODEV;
	if (err) {
		watch_free(w);
		return err;
	}
	*out = w;
	return 0;
}

int watch_new(struct watch **out)
{
	return watch_new_sized(out, RING_BYTES);
}

void watch_filter(struct watch *w, bool (*want)(const char *path, void *ctx), void *ctx)
{
	w->want = want;
	w->want_ctx = ctx;
}

int watch_fd(const struct watch *w)
{
	return w->epoll_fd;
}

void watch_free(struct watch *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->count; i++)
		close_ring(w, &w->rings[i]);
	free(w->rings);
	free(w->heap);
	if (w->epoll_fd >= 0)
		close(w->epoll_fd);
	free(w);
}

static void release(struct ring *r)
{
	__atomic_store_n(&r->page->data_tail, r->range.tail, __ATOMIC_RELEASE);
}

/* Finds the next record not younger than the cut; a ring that makes no sense is emptied. */
static void look(struct ring *r, int64_t cut)
{
	int err = watch_record_peek(&r->range, &r->bytes, &r->ts);

	if (err == -EBADMSG) {
		r->range.tail = r->range.head;
		release(r);
	}
	if (err || r->ts > cut)
		r->bytes = 0;
}

/* A binary heap of the rings that have a record, the earliest at its root. */
static void sift_down(struct ring **heap, size_t count, size_t i)
{
	for (;;) {
		size_t child = 2 * i + 1, least = i;

		if (child < count && heap[child]->ts < heap[least]->ts)
			least = child;
		if (child + 1 < count && heap[child + 1]->ts < heap[least]->ts)
			least = child + 1;
		if (least == i)
			return;

		struct ring *r = heap[i];

		heap[i] = heap[least];
		heap[least] = r;
		i = least;
	}
}

static size_t gather(struct watch *w, int64_t cut)
{
	size_t count = 0;

	for (size_t i = 0; i < w->count; i++) {
		struct ring *r = &w->rings[i];

		r->range.head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
		look(r, cut);
		if (r->bytes)
			w->heap[count++] = r;
	}
	for (size_t i = count / 2; i-- > 0;)
		sift_down(w->heap, count, i);
	return count;
}

/*
 * The cut is taken before the rings are looked at: what happened later stays
 * for the next call. Otherwise the ring read first would lack what the ring
 * read last already has, and an exec could come before its fork.
 */
int watch_consume(struct watch *w, int (*each)(const struct watch_notice *n, void *ctx), void *ctx)
{
	int64_t cut = now_ns();
	size_t waiting = gather(w, cut);
	struct watch_notice n;
	int count = 0, stop = 0, err;

	while (waiting && !stop) {
		struct ring *r = w->heap[0];

		if (watch_record_decode(&r->range, w->scratch, w->want, w->want_ctx, &n)) {
			stop = each(&n, ctx);
			count++;
		}
		/* Only now: the notice pointed into the ring. */
		r->range.tail += r->bytes;
		release(r);
		look(r, cut);
		if (!r->bytes)
			w->heap[0] = w->heap[--waiting];
		sift_down(w->heap, waiting, 0);
	}
	if (stop)
		return stop < 0 ? stop : count;
	err = check_cpus(w, cut);
	return err ? err : count;
}
