/* SPDX-License-Identifier: BSD-2-Clause */
/* The stopped thread calls dlopen, dlsym and entry; we look on from outside. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "inject/private.h"
#include "inject/remote.h"
#include "inject/wait.h"
#include "target/procfs.h"

#ifdef __x86_64__

#define SPIN_NS 500000 /* as long as that we look without pause */
#define PAUSE_NS 20000
#define LOCK_NS 1000000 /* it does not wait longer than that for another thread's dlopen() */

static bool state_get(const struct tracee *t, uint32_t *state)
{
	const uint64_t at = t->memory + STUB_PAGE + offsetof(struct stub_data, state);

	return inject_read(t->plan->pid, at, state, sizeof(*state));
}

static int interrupt(struct tracee *t, struct stop *s)
{
	if (ptrace(PTRACE_INTERRUPT, (pid_t)t->caught.tid, NULL, NULL))
		return -errno;
	return stop_await(t->caught.tid, inject_now() + WAIT_NS, s);
}

/* Does it sleep until another thread has loaded its library? That may wait for ours. */
static bool waits_for_loader(const struct tracee *t)
{
	char text[256];
	unsigned long nr, address;
	int dir = proc_open_thread(t->plan->pid, t->caught.tid);
	bool waits;

	if (dir < 0)
		return false;
	waits = proc_read(dir, "syscall", text, sizeof(text)) > 0 &&
		sscanf(text, "%lu 0x%lx", &nr, &address) == 2 && nr == SYS_futex &&
		address == t->plan->load_lock;
	close(dir);
	return waits;
}

/* It has taken no lock yet, so that it can be taken back. */
static int take_back(struct tracee *t)
{
	struct user_regs_struct r;
	struct stop s = {0};
	int err = interrupt(t, &s);

	if (err)
		return err;
	if (s.kind == STOP_TRAP && !ptrace(PTRACE_GETREGS, (pid_t)t->caught.tid, NULL, &r) &&
	    r.orig_rax == SYS_futex && r.rdi == t->plan->load_lock && (int64_t)r.rax < 0)
		return -EBUSY;
	return stop_pass(t->caught.tid, PTRACE_CONT, &s); /* it has got it meanwhile */
}

/* Signals that could not be held back, and the like. -EFAULT: it crashed, and stands there. */
static int attend(struct tracee *t)
{
	struct stop s;
	int stopped = stop_peek(t->caught.tid, &s);

	if (stopped <= 0)
		return stopped;
	return s.kind == STOP_FAULT ? -EFAULT : stop_pass(t->caught.tid, PTRACE_CONT, &s);
}

int tracee_take_over(struct tracee *t)
{
	const uint64_t at = t->memory + STUB_PAGE + offsetof(struct stub_data, claimed);
	const uint32_t one = 1;
	struct stop s = {0};
	uint32_t state;
	int err;

	if (!inject_write(t->plan->pid, at, &one, sizeof(one)) || !state_get(t, &state) ||
	    state >= STUB_LEFT)
		return -ESTALE;
	while (!(err = interrupt(t, &s)) && s.kind != STOP_TRAP)
		if (s.kind == STOP_FAULT)
			return -EFAULT;
		else if ((err = stop_pass(t->caught.tid, PTRACE_CONT, &s)))
			return err;
	return err ? err : tracee_in_stub(t) ? 0 : -ESTALE;
}

int tracee_await(struct tracee *t, uint32_t known, int64_t until, uint32_t *state)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	int64_t begin = inject_now(), now;
	int err = 0;

	while (!err) {
		if (!state_get(t, state))
			return -ESRCH;
		if (*state != known)
			return 0;
		err = attend(t);
		now = inject_now();
		if (!err && now >= until)
			return -ETIMEDOUT;
		if (!err && now - begin > LOCK_NS && waits_for_loader(t))
			err = take_back(t);
		if (now - begin > SPIN_NS)
			nanosleep(&pause, NULL);
	}
	return err;
}

#endif
