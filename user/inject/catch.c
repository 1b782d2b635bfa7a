/* SPDX-License-Identifier: BSD-2-Clause */
/* A thread taken where it has just completed a system call (bpf/inject.bpf.c). */
#include <bpf/libbpf.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "bpf/inject.h"
#include "inject/private.h"

#include "gbpf_inject.skel.h"

#ifdef __x86_64__

/*
 * Calls that no allocator, dynamic linker or stdio makes while it holds a lock.
 * Reading, writing and ioctl() are not among them: stdio, the linker and the CUDA
 * driver make those. Of futex() only the wait of condition variables and semaphores is.
 */
static const uint16_t waits[] = {
	SYS_poll,        SYS_ppoll,           SYS_select,  SYS_pselect6, SYS_epoll_wait,
	SYS_epoll_pwait, SYS_recvfrom,        SYS_recvmsg, SYS_recvmmsg, SYS_sendto,
	SYS_sendmsg,     SYS_sendmmsg,        SYS_accept,  SYS_accept4,  SYS_wait4,
	SYS_waitid,      SYS_rt_sigtimedwait, 441, /* epoll_pwait2 */
};

/* An allocator may wait so for one of its spinning locks, with another one held. */
static const uint16_t pauses[] = {SYS_nanosleep, SYS_clock_nanosleep, SYS_sched_yield, SYS_futex};

#define SKIP_NS 5000000 /* for which others come first, if there are any */
#define LOOK_NS 1000000 /* between looks whether the process is still there */

struct catcher {
	struct inject_plan *plan;
	struct gbpf_inject *skel;
	cpu_set_t cpus;     /* that we may run on */
	int64_t skip_until; /* CLOCK_MONOTONIC, ns */
};

static void want(struct gbpf_inject_shared *s, const uint16_t *calls, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		s->calls[calls[i] / 64] |= 1ull << (calls[i] % 64);
}

static void prepare(struct gbpf_inject_shared *s, const struct inject_plan *p)
{
	size_t i;

	s->tgid = p->pid;
	want(s, waits, sizeof(waits) / sizeof(*waits));
	if (!p->own_malloc)
		want(s, pauses, sizeof(pauses) / sizeof(*pauses));
	for (i = 0; i < p->calls_count && i < GBPF_INJECT_RANGES; i++) {
		s->ranges[i][0] = p->calls[i].start;
		s->ranges[i][1] = p->calls[i].end;
		s->ranges_count++;
	}
}

static struct gbpf_inject_shared *shared(const struct catcher *c)
{
	return &c->skel->bss->shared;
}

int catcher_new(struct catcher **out, struct inject_plan *p)
{
	struct catcher *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	c->plan = p;
	if (sched_getaffinity(0, sizeof(c->cpus), &c->cpus))
		CPU_ZERO(&c->cpus); /* more CPUs than this type has: stay where we are */
	c->skel = gbpf_inject__open();
	err = c->skel ? 0 : -errno;
	if (!err) {
		prepare(shared(c), p);
		err = gbpf_inject__load(c->skel);
	}
	if (!err)
		err = gbpf_inject__attach(c->skel);
	if (err) {
		catcher_free(c);
		if (err == -EPERM || err == -EACCES)
			return inject_refuse(p, err,
					     "Loading a BPF program is not permitted; this "
					     "takes root.");
		return inject_refuse(p, err == -ENOMEM ? err : -EOPNOTSUPP,
				     "The kernel does not take the program that finds a safe "
				     "moment "
				     "(Linux 5.17 has what it needs).");
	}
	*out = c;
	return 0;
}

void catcher_free(struct catcher *c)
{
	if (!c)
		return;
	if (c->skel && c->skel->bss)
		shared(c)->word = GBPF_INJECT_WORD(0, GBPF_INJECT_BUSY);
	gbpf_inject__destroy(c->skel);
	free(c);
}

uint64_t catcher_passed(const struct catcher *c)
{
	return __atomic_load_n(&shared(c)->passed, __ATOMIC_RELAXED);
}

static bool move(struct catcher *c, uint32_t tid, unsigned from, unsigned to)
{
	__u64 expected = GBPF_INJECT_WORD(tid, from);

	return __atomic_compare_exchange_n(&shared(c)->word, &expected, GBPF_INJECT_WORD(tid, to),
					   false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* Threads run where they ran before: where we look on, they would push us aside each time. */
static void move_away(const struct catcher *c, uint32_t cpu)
{
	cpu_set_t cpus = c->cpus;

	if (cpu >= CPU_SETSIZE)
		return;
	CPU_CLR(cpu, &cpus);
	if (CPU_COUNT(&cpus))
		sched_setaffinity(0, sizeof(cpus),
				  &cpus); /* of this thread only, which soon ends */
}

static bool process_ended(const struct catcher *c)
{
	struct pollfd p = {.fd = c->plan->pidfd, .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

/* A thread that waits for us now; 0: none came, or none will. */
static uint32_t wait_held(struct catcher *c, int64_t until)
{
	uint64_t word, missed = 0, seen;
	int64_t now, look = 0;

	do {
		now = inject_now();
		if (now >= c->skip_until)
			__atomic_store_n(&shared(c)->skip, 0, __ATOMIC_RELAXED);
		seen = __atomic_load_n(&shared(c)->missed, __ATOMIC_RELAXED);
		if (seen != missed)
			move_away(c, shared(c)->missed_cpu);
		missed = seen;
		__atomic_store_n(&shared(c)->beat, (__u64)now, __ATOMIC_RELAXED);
		word = __atomic_load_n(&shared(c)->word, __ATOMIC_ACQUIRE);
		if ((word & 3) == GBPF_INJECT_HELD)
			return (uint32_t)(word >> 2);
		__builtin_ia32_pause();
		if (now < look)
			continue;
		if (process_ended(c))
			return 0;
		look = now + LOOK_NS;
	} while (now < until);
	return 0;
}

int catcher_catch(struct catcher *c, int64_t until, struct caught *out)
{
	uint32_t tid = wait_held(c, until);
	int err;

	if (!tid)
		return process_ended(c) ? -ESRCH : -EAGAIN;
	*out = (struct caught){
		.tid = tid,
		.since = (int64_t)__atomic_load_n(&shared(c)->held_at, __ATOMIC_RELAXED),
		.ip = __atomic_load_n(&shared(c)->ip, __ATOMIC_RELAXED),
		.ax = __atomic_load_n(&shared(c)->ax, __ATOMIC_RELAXED),
	};
	if (ptrace(PTRACE_SEIZE, (pid_t)tid, NULL, (void *)(uintptr_t)PTRACE_O_TRACESYSGOOD)) {
		err = -errno;
		if (!move(c, tid, GBPF_INJECT_HELD, GBPF_INJECT_BUSY))
			err = -EAGAIN; /* it has gone on, perhaps to its end */
		return err;
	}
	if (!move(c, tid, GBPF_INJECT_HELD, GBPF_INJECT_ARMED))
		return -ESTALE; /* it has gone on: asking now could cut its next call short */
	err = ptrace(PTRACE_INTERRUPT, (pid_t)tid, NULL, NULL) ? -errno : 0;
	if (!move(c, tid, GBPF_INJECT_ARMED, GBPF_INJECT_BUSY) && !err)
		err = -ESTALE;
	return err;
}

void catcher_next(struct catcher *c, uint32_t skip)
{
	__atomic_store_n(&shared(c)->skip, skip, __ATOMIC_RELAXED);
	c->skip_until = inject_now() + SKIP_NS;
	__atomic_store_n(&shared(c)->word, GBPF_INJECT_WORD(0, GBPF_INJECT_IDLE), __ATOMIC_RELEASE);
}

#endif
