/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls on a stopped thread. Whatever the thread is made to do ends in a frame that
 * restores it, so that our death at any moment leaves it as it was.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "inject/private.h"
#include "inject/remote.h"
#include "inject/wait.h"

#ifdef __x86_64__

#define FLAGS 0x202 /* interrupts on, as always */
#define USER_CS 0x33

static uint64_t data_at(const struct tracee *t)
{
	return t->memory + STUB_PAGE;
}

static int regs_get(struct tracee *t, struct user_regs_struct *r)
{
	return ptrace(PTRACE_GETREGS, (pid_t)t->caught.tid, NULL, r) ? -errno : 0;
}

static int regs_set(struct tracee *t, const struct user_regs_struct *r)
{
	return ptrace(PTRACE_SETREGS, (pid_t)t->caught.tid, NULL, r) ? -errno : 0;
}

static int mask_set(struct tracee *t, uint64_t mask)
{
	return ptrace(PTRACE_SETSIGMASK, (pid_t)t->caught.tid, sizeof(mask), &mask) ? -errno : 0;
}

/*
 * All but those that a fault raises: the kernel would take the handler of a fault
 * away if its signal were held back.
 */
static uint64_t held_back(void)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
	uint64_t mask = ~0ull;
	size_t i;

	for (i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		mask &= ~(1ull << (faults[i] - 1));
	return mask;
}

int tracee_new(struct tracee **out, const struct inject_plan *p, const struct caught *c)
{
	struct tracee *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->plan = p;
	t->caught = *c;
	*out = t;
	return 0;
}

void tracee_free(struct tracee *t)
{
	free(t);
}

uint64_t tracee_sp(const struct tracee *t)
{
	return t->regs.rsp;
}

uint64_t tracee_memory(const struct tracee *t)
{
	return t->memory;
}

int64_t tracee_stopped_ns(const struct tracee *t)
{
	return (t->released ? t->released : inject_now()) - t->caught.since;
}

static bool at_end_of_call(const struct tracee *t)
{
	uint8_t code[2];

	return t->regs.rip == t->caught.ip && t->regs.rax == t->caught.ax &&
	       (t->regs.cs & 0xffff) == USER_CS &&
	       inject_read(t->plan->pid, t->regs.rip - 2, code, sizeof(code)) && code[0] == 0x0f &&
	       code[1] == 0x05;
}

static int detach(struct tracee *t, int signal)
{
	int err = ptrace(PTRACE_DETACH, (pid_t)t->caught.tid, NULL, (long)signal) ? -errno : 0;

	t->released = inject_now();
	return err;
}

int tracee_begin(struct tracee *t)
{
	struct stop s;
	int err = stop_await(t->caught.tid, inject_now() + WAIT_NS, &s);

	if (err)
		return err;
	if (s.kind == STOP_TRAP)
		err = regs_get(t, &t->regs);
	if (err)
		return err;
	if (s.kind == STOP_TRAP && at_end_of_call(t)) {
		t->regs.orig_rax = (unsigned long long)-1; /* it is complete */
		return 0;
	}
	/* A signal or a group stop came first. */
	err = detach(t, s.kind == STOP_SIGNAL ? s.signal : 0);
	return err ? err : -ESTALE;
}

static int state_read(struct tracee *t)
{
	struct iovec v = {t->xstate, sizeof(t->xstate)};

	if (ptrace(PTRACE_GETREGSET, (pid_t)t->caught.tid, NT_X86_XSTATE, &v) ||
	    ptrace(PTRACE_GETSIGMASK, (pid_t)t->caught.tid, sizeof(t->mask), &t->mask))
		return -errno;
	t->xstate_size = v.iov_len;
	return 0;
}

static struct frame_thread thread_of(const struct tracee *t)
{
	return (struct frame_thread){&t->regs, t->mask, t->xstate, t->xstate_size};
}

/* The frame in the spare memory: used by calls that our own memory does not outlive. */
static int spare_fill(struct tracee *t)
{
	const struct inject_plan *p = t->plan;
	struct frame_thread thread = thread_of(t);
	uint8_t frame[SPARE_MAX];
	size_t room = p->spare_size < sizeof(frame) ? p->spare_size : sizeof(frame);

	t->spare_used = frame_build(frame, room, p->spare, p->restorer, &thread);
	if (!t->spare_used || !inject_read(p->pid, p->spare, t->spare, t->spare_used) ||
	    !inject_write(p->pid, p->spare, frame, t->spare_used))
		return -EFAULT;
	return 0;
}

int tracee_syscall(struct tracee *t, long nr, const uint64_t args[6], int64_t *result)
{
	struct user_regs_struct r = t->regs;
	int err, i;

	r.rip = t->plan->syscall_ret;
	r.rsp = t->plan->spare; /* it returns to the restorer */
	r.rax = (unsigned long long)nr;
	r.orig_rax = (unsigned long long)-1;
	r.eflags = FLAGS;
	r.rdi = args[0], r.rsi = args[1], r.rdx = args[2];
	r.r10 = args[3], r.r8 = args[4], r.r9 = args[5];
	err = regs_set(t, &r);
	if (!err && !t->held_back) {
		err = mask_set(t, held_back());
		t->held_back = !err;
	}
	for (i = 0; i < 2 && !err; i++) /* its beginning, its end */
		err = stop_at_syscall(t->caught.tid, inject_now() + WAIT_NS);
	if (!err)
		err = regs_get(t, &r);
	*result = err ? err : (int64_t)r.rax;
	return err;
}

/* A call whose failure is an error of its own. */
static int call(struct tracee *t, long nr, const uint64_t args[6], int64_t *result)
{
	int err = tracee_syscall(t, nr, args, result);

	return err ? err : *result < 0 && *result > -4096 ? (int)*result : 0;
}

static int memory_map(struct tracee *t)
{
	const uint64_t args[6] = {0,
				  STUB_MEMORY,
				  PROT_READ | PROT_WRITE | PROT_EXEC,
				  MAP_PRIVATE | MAP_ANONYMOUS,
				  (uint64_t)-1,
				  0};
	int64_t at;
	int err = call(t, SYS_mmap, args, &at);

	if (!err)
		t->memory = (uint64_t)at;
	return err;
}

static int memory_fill(struct tracee *t)
{
	const uint64_t address = data_at(t) + STUB_FRAME;
	struct frame_thread thread = thread_of(t);
	size_t room = INJECT_XSTATE_MAX + 1024, size;
	uint8_t *frame = malloc(room);
	bool ok;

	if (!frame)
		return -ENOMEM;
	size = frame_build(frame, room, address, t->plan->restorer, &thread);
	ok = size && inject_write(t->plan->pid, address, frame, size) &&
	     inject_write(t->plan->pid, t->memory, inject_stub,
			  (size_t)(inject_stub_end - inject_stub));
	free(frame);
	return ok ? 0 : -EFAULT;
}

int tracee_enter(struct tracee *t)
{
	int err = state_read(t);

	if (!err)
		err = spare_fill(t);
	if (err)
		return err;
	t->entered = true;
	err = memory_map(t);
	return err ? err : memory_fill(t);
}

int tracee_leave(struct tracee *t)
{
	const uint64_t args[6] = {t->memory, STUB_MEMORY};
	int64_t result;
	int err = t->memory ? call(t, SYS_munmap, args, &result) : 0;

	if (!err)
		t->memory = 0;
	return err;
}

/*
 * Registers and signal mask at once, by the frame: set one after the other, our death in
 * between would leave the thread with its signals held back. The frame may have had no room
 * for all vector registers, so these are set again.
 */
static int restore(struct tracee *t)
{
	struct iovec v = {t->xstate, t->xstate_size};
	struct user_regs_struct r = t->regs;
	int err, i;

	r.rip = t->plan->syscall_ret;
	r.rsp = t->plan->spare + sizeof(uint64_t); /* as if the restorer had been returned to */
	r.rax = SYS_rt_sigreturn;
	r.orig_rax = (unsigned long long)-1;
	r.eflags = FLAGS;
	err = regs_set(t, &r);
	for (i = 0; i < 2 && !err; i++)
		err = stop_at_syscall(t->caught.tid, inject_now() + WAIT_NS);
	if (!err && ptrace(PTRACE_SETREGSET, (pid_t)t->caught.tid, NT_X86_XSTATE, &v))
		err = -errno;
	if (!err)
		inject_write(t->plan->pid, t->plan->spare, t->spare, t->spare_used);
	return err;
}

int tracee_release(struct tracee *t)
{
	int err = t->entered ? restore(t) : 0;

	return err ? err : detach(t, 0);
}

int tracee_start(struct tracee *t)
{
	struct user_regs_struct r = t->regs;
	int err;

	r.rip = t->memory;
	r.rbx = data_at(t);
	r.rsp = data_at(t) + STUB_STACK_TOP;
	r.rbp = 0;
	r.orig_rax = (unsigned long long)-1;
	r.eflags = FLAGS;
	err = regs_set(t, &r);
	return err ? err : ptrace(PTRACE_CONT, (pid_t)t->caught.tid, NULL, NULL) ? -errno : 0;
}

bool tracee_in_stub(struct tracee *t)
{
	struct user_regs_struct r;

	return !regs_get(t, &r) && r.rip >= t->memory && r.rip < t->memory + STUB_PAGE;
}

#endif
