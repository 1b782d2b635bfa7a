/* SPDX-License-Identifier: BSD-2-Clause */
#include "probe/keeper.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "probe/stop.h"
#include "util/thread.h"

enum held_state { HELD_FREE = 0, HELD_NEW, HELD_LOOKED };

#define LATE_MS 10 /* between looks at those that did not stop in time */

struct held {
	enum held_state state;
	bool stopped; /* else it spins */
	bool late;    /* it did not stop in time, and may yet: it must not wait for us then */
	struct gbpf_hold_record record;
};

struct keeper {
	struct gbpf_hold_shared *shared;
	struct ring_buffer *ring;
	uint32_t own_child;
	int epoll, wake, news; /* wake: the thread has something to do; news: so have others */
	pthread_t thread;
	bool running;
	atomic_bool quit;
	pthread_mutex_t lock; /* of what follows */
	struct held held[GBPF_HOLD_SLOTS];
	uint64_t ns;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static void signal_to(int fd)
{
	uint64_t one = 1;

	while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static void signal_take(int fd)
{
	uint64_t count;

	while (read(fd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
}

static bool slot_move(struct keeper *k, uint32_t sequence, unsigned from, unsigned to)
{
	__u64 *slot = &k->shared->slots[sequence % GBPF_HOLD_SLOTS];
	__u64 expected = GBPF_HOLD_WORD(sequence, from);

	return __atomic_compare_exchange_n(slot, &expected, GBPF_HOLD_WORD(sequence, to), false,
					   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/*
 * The thread spins in the kernel, in no system call: there, a stop has no effect
 * that it could notice. If it cannot be stopped (a debugger has it), it spins on.
 */
static void take(struct keeper *k, struct held *h)
{
	const struct gbpf_hold_record *r = &h->record;
	bool own = r->tid == k->own_child;
	int err;

	h->stopped = h->late = false;
	if (stop_request(r->tid, own))
		return;
	slot_move(k, r->sequence, GBPF_HOLD_TAKEN, GBPF_HOLD_GO);
	err = stop_wait(r->tid, own);
	h->stopped = !err;
	h->late = err == -ETIMEDOUT;
	if (h->late)
		__atomic_fetch_add(&k->shared->timeouts, 1, __ATOMIC_RELAXED);
}

static struct held *held_room(struct keeper *k)
{
	size_t i;

	for (i = 0; i < GBPF_HOLD_SLOTS; i++)
		if (k->held[i].state == HELD_FREE)
			return &k->held[i];
	return NULL;
}

static int on_record(void *ctx, void *data, size_t size)
{
	const struct gbpf_hold_record *r = data;
	struct keeper *k = ctx;
	struct held *h = held_room(k);

	if (!h || size < sizeof(*r) ||
	    !slot_move(k, r->sequence, GBPF_HOLD_WAITING, GBPF_HOLD_TAKEN))
		return 0; /* no room, or we were too slow and it has gone on */
	h->record = *r;
	take(k, h);
	pthread_mutex_lock(&k->lock);
	h->state = HELD_NEW;
	pthread_mutex_unlock(&k->lock);
	signal_to(k->news);
	return 0;
}

/* False: not yet, as it has not stopped. */
static bool release(struct keeper *k, struct held *h)
{
	bool own = h->record.tid == k->own_child;

	if (h->late)
		return stop_late(h->record.tid, own);
	if (h->stopped)
		stop_release(h->record.tid, own);
	else
		slot_move(k, h->record.sequence, GBPF_HOLD_TAKEN, GBPF_HOLD_GO);
	return true;
}

/* Milliseconds after which somebody may have to be let go; -1: nobody waits for that. */
static int let_go(struct keeper *k, bool all)
{
	int again = -1;
	size_t i;

	pthread_mutex_lock(&k->lock);
	for (i = 0; i < GBPF_HOLD_SLOTS; i++) {
		struct held *h = &k->held[i];

		if (h->state == HELD_FREE || (h->state == HELD_NEW && !all))
			continue;
		if (!release(k, h)) {
			again = LATE_MS;
			continue;
		}
		k->ns += now_ns() - h->record.ts;
		h->state = HELD_FREE;
	}
	pthread_mutex_unlock(&k->lock);
	return again;
}

/* This thread stops and looks; whatever else gbpf may do is for the other. */
static void keep_ptrace_only(void)
{
	const cap_value_t ptrace_cap = CAP_SYS_PTRACE;
	cap_flag_value_t held = CAP_CLEAR;
	cap_t now = cap_get_proc(), kept = cap_init();

	if (now && kept && !cap_get_flag(now, ptrace_cap, CAP_PERMITTED, &held) &&
	    (held == CAP_CLEAR || (!cap_set_flag(kept, CAP_PERMITTED, 1, &ptrace_cap, CAP_SET) &&
				   !cap_set_flag(kept, CAP_EFFECTIVE, 1, &ptrace_cap, CAP_SET))))
		cap_set_proc(kept); /* giving up rights is refused to nobody */
	cap_free(now);
	cap_free(kept);
}

static void *run(void *arg)
{
	struct keeper *k = arg;
	struct epoll_event ev;
	int again = -1;

	keep_ptrace_only();
	while (!atomic_load(&k->quit)) {
		if (epoll_wait(k->epoll, &ev, 1, again) < 0 && errno != EINTR)
			break;
		signal_take(k->wake);
		ring_buffer__consume(k->ring);
		again = let_go(k, false);
	}
	let_go(k, true); /* those that have not stopped yet never will: the kernel sees to it */
	return NULL;
}

static int thread_start(struct keeper *k)
{
	int err = thread_quiet(&k->thread, run, k);

	k->running = !err;
	return err;
}

static int descriptors_open(struct keeper *k, int ring)
{
	struct epoll_event ev = {.events = EPOLLIN};

	k->ring = ring_buffer__new(ring, on_record, k, NULL);
	if (!k->ring)
		return -errno;
	k->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	k->news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	k->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (k->wake < 0 || k->news < 0 || k->epoll < 0)
		return -errno;
	if (epoll_ctl(k->epoll, EPOLL_CTL_ADD, k->wake, &ev) ||
	    epoll_ctl(k->epoll, EPOLL_CTL_ADD, ring_buffer__epoll_fd(k->ring), &ev))
		return -errno;
	return 0;
}

int keeper_new(struct keeper **out, struct gbpf_hold_shared *shared, int ring, uint32_t own_child)
{
	struct keeper *k = calloc(1, sizeof(*k));
	int err;

	if (!k)
		return -ENOMEM;
	k->shared = shared;
	k->own_child = own_child;
	k->epoll = k->wake = k->news = -1;
	pthread_mutex_init(&k->lock, NULL);
	err = descriptors_open(k, ring);
	if (!err)
		err = thread_start(k);
	if (err) {
		keeper_free(k);
		return err;
	}
	*out = k;
	return 0;
}

void keeper_free(struct keeper *k)
{
	if (!k)
		return;
	if (k->running) {
		atomic_store(&k->quit, true);
		signal_to(k->wake);
		pthread_join(k->thread, NULL);
	}
	ring_buffer__free(k->ring);
	if (k->epoll >= 0)
		close(k->epoll);
	if (k->wake >= 0)
		close(k->wake);
	if (k->news >= 0)
		close(k->news);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

int keeper_fd(const struct keeper *k)
{
	return k->news;
}

/* The process of a held thread, 0: it is none. */
static uint32_t held_pid(struct keeper *k, const struct held *h)
{
	uint32_t pid;

	pthread_mutex_lock(&k->lock);
	pid = h->state == HELD_NEW ? h->record.pid : 0;
	pthread_mutex_unlock(&k->lock);
	return pid;
}

static void held_looked(struct keeper *k, struct held *h)
{
	pthread_mutex_lock(&k->lock);
	h->state = HELD_LOOKED;
	pthread_mutex_unlock(&k->lock);
	signal_to(k->wake);
}

int keeper_consume(struct keeper *k, int (*look)(uint32_t pid, void *ctx), void *ctx)
{
	int err = 0, looked, taken = 0;
	uint32_t pid;
	size_t i;

	signal_take(k->news);
	for (i = 0; i < GBPF_HOLD_SLOTS; i++) {
		pid = held_pid(k, &k->held[i]);
		if (!pid)
			continue;
		looked = look(pid, ctx);
		held_looked(k, &k->held[i]); /* whatever became of it: nobody waits for an error */
		taken++;
		if (looked < 0 && !err)
			err = looked;
	}
	return err ? err : taken;
}

uint64_t keeper_ns(struct keeper *k)
{
	uint64_t ns;

	pthread_mutex_lock(&k->lock);
	ns = k->ns;
	pthread_mutex_unlock(&k->lock);
	return ns;
}
