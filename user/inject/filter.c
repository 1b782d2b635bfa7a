/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * seccomp(2): a classic BPF program, as linux/filter.h describes it, decides about each
 * system call by its number and arguments. Most containers have one, whose worst answer
 * is an error. We run it for the calls in question before they are made.
 */
#include "inject/filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>

#ifdef __x86_64__

#define CALLS 512 /* more than there are */
#define THREAD_FLAGS                                                                           \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |   \
	 CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)

struct machine {
	uint32_t a, x, memory[BPF_MEMWORDS];
};

static const struct seccomp_data needed[] = {
	{.nr = SYS_mmap, .args = {0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				  MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX}},
	{.nr = SYS_mmap, .args = {0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_DENYWRITE, 3}},
	{.nr = SYS_mmap, .args = {0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, 3}},
	{.nr = SYS_mprotect, .args = {4096, 4096, PROT_READ | PROT_EXEC}},
	{.nr = SYS_mprotect, .args = {4096, 4096, PROT_READ | PROT_WRITE}},
	{.nr = SYS_memfd_create, .args = {4096, MFD_CLOEXEC}},
	{.nr = SYS_socketpair, .args = {AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC}},
	{.nr = SYS_clone, .args = {THREAD_FLAGS}},
	{.nr = SYS_madvise, .args = {4096, 4096, MADV_DONTNEED}},
	{.nr = SYS_munmap},	   {.nr = SYS_brk},	       {.nr = SYS_close},
	{.nr = SYS_openat},	   {.nr = SYS_read},	       {.nr = SYS_pread64},
	{.nr = SYS_fstat},	   {.nr = SYS_newfstatat},     {.nr = SYS_futex},
	{.nr = SYS_rt_sigreturn},  {.nr = SYS_rt_sigprocmask}, {.nr = SYS_set_robust_list},
	{.nr = SYS_sendto},	   {.nr = SYS_sendmsg},	       {.nr = SYS_recvfrom},
	{.nr = SYS_recvmsg},	   {.nr = SYS_poll},	       {.nr = SYS_gettid},
	{.nr = SYS_clock_gettime}, {.nr = SYS_clock_nanosleep}, {.nr = SYS_exit},
};

static bool load(struct machine *m, const struct sock_filter *i, const struct seccomp_data *d)
{
	switch (BPF_MODE(i->code)) {
	case BPF_ABS:
		if (i->k > sizeof(*d) - 4 || i->k % 4)
			return false;
		memcpy(&m->a, (const uint8_t *)d + i->k, 4);
		return true;
	case BPF_IMM:
		m->a = i->k;
		return true;
	case BPF_LEN:
		m->a = sizeof(*d);
		return true;
	case BPF_MEM:
		if (i->k >= BPF_MEMWORDS)
			return false;
		m->a = m->memory[i->k];
		return true;
	default:
		return false;
	}
}

static bool compute(struct machine *m, const struct sock_filter *i)
{
	uint32_t with = BPF_SRC(i->code) == BPF_X ? m->x : i->k;

	switch (BPF_OP(i->code)) {
	case BPF_ADD:
		m->a += with;
		return true;
	case BPF_SUB:
		m->a -= with;
		return true;
	case BPF_MUL:
		m->a *= with;
		return true;
	case BPF_DIV:
		m->a = with ? m->a / with : 0;
		return with != 0;
	case BPF_AND:
		m->a &= with;
		return true;
	case BPF_OR:
		m->a |= with;
		return true;
	case BPF_XOR:
		m->a ^= with;
		return true;
	case BPF_LSH:
		m->a = with < 32 ? m->a << with : 0;
		return true;
	case BPF_RSH:
		m->a = with < 32 ? m->a >> with : 0;
		return true;
	case BPF_NEG:
		m->a = -m->a;
		return true;
	default:
		return false;
	}
}

/* How many instructions a jump passes over. */
static uint32_t jump(const struct machine *m, const struct sock_filter *i)
{
	uint32_t with = BPF_SRC(i->code) == BPF_X ? m->x : i->k;
	bool taken;

	switch (BPF_OP(i->code)) {
	case BPF_JA:
		return i->k;
	case BPF_JEQ:
		taken = m->a == with;
		break;
	case BPF_JGT:
		taken = m->a > with;
		break;
	case BPF_JGE:
		taken = m->a >= with;
		break;
	default: /* BPF_JSET */
		taken = m->a & with;
		break;
	}
	return taken ? i->jt : i->jf;
}

static bool store(struct machine *m, const struct sock_filter *i, uint32_t value)
{
	if (i->k >= BPF_MEMWORDS)
		return false;
	m->memory[i->k] = value;
	return true;
}

static bool load_index(struct machine *m, const struct sock_filter *i)
{
	struct machine other = *m;

	/* of what can be loaded into A, only these can into X */
	if (BPF_MODE(i->code) == BPF_ABS || !load(&other, i, &needed[0]))
		return false;
	m->x = other.a;
	return true;
}

/* Everything but jumps and returns. */
static bool step(struct machine *m, const struct sock_filter *i, const struct seccomp_data *d)
{
	switch (BPF_CLASS(i->code)) {
	case BPF_LD:
		return load(m, i, d);
	case BPF_LDX:
		return load_index(m, i);
	case BPF_ST:
		return store(m, i, m->a);
	case BPF_STX:
		return store(m, i, m->x);
	case BPF_ALU:
		return compute(m, i);
	case BPF_MISC:
		if (BPF_MISCOP(i->code) == BPF_TAX)
			m->x = m->a;
		else
			m->a = m->x;
		return true;
	default:
		return false;
	}
}

uint32_t filter_run(const struct sock_filter *code, size_t length, const struct seccomp_data *d)
{
	struct machine m = {0};
	uint64_t at;

	/* Jumps go forward only, so that it ends. */
	for (at = 0; at < length; at++) {
		const struct sock_filter *i = &code[at];

		if (BPF_CLASS(i->code) == BPF_RET)
			return BPF_RVAL(i->code) == BPF_A ? m.a : i->k;
		if (BPF_CLASS(i->code) == BPF_JMP)
			at += jump(&m, i);
		else if (!step(&m, i, d))
			break;
	}
	return SECCOMP_RET_KILL_PROCESS;
}

/* seccomp(2): an error is the mildest thing that a call that is not allowed can meet. */
static bool all_answer(const struct filters *f, const struct seccomp_data *call, bool error_good)
{
	struct seccomp_data d = *call;
	uint32_t action;
	size_t i;

	d.arch = AUDIT_ARCH_X86_64;
	for (i = 0; i < f->count; i++) {
		action = filter_run(f->programs[i].code, f->programs[i].length, &d) &
			 SECCOMP_RET_ACTION_FULL;
		if (action != SECCOMP_RET_ALLOW && action != SECCOMP_RET_LOG &&
		    (action != SECCOMP_RET_ERRNO || !error_good))
			return false;
	}
	return true;
}

int filters_judge(const struct filters *f, long *nr)
{
	struct seccomp_data any = {0};
	size_t i;

	for (i = 0; i < sizeof(needed) / sizeof(*needed); i++) {
		*nr = needed[i].nr;
		if (!all_answer(f, &needed[i], false))
			return -EOPNOTSUPP;
	}
	for (any.nr = 0; any.nr < CALLS; any.nr++) {
		*nr = any.nr;
		if (!all_answer(f, &any, true))
			return -EOPNOTSUPP;
	}
	return 0;
}

static int program_read(struct filters *f, uint32_t tid)
{
	const uint64_t index = f->count;
	struct sock_filter *code;
	long length = ptrace((enum __ptrace_request)PTRACE_SECCOMP_GET_FILTER, (pid_t)tid, index,
			     NULL);

	if (length < 0)
		return -errno;
	if (index == FILTERS_MAX || !length)
		return -E2BIG;
	code = calloc((size_t)length, sizeof(*code));
	if (!code)
		return -ENOMEM;
	f->programs[index].code = code;
	f->programs[index].length = (size_t)length;
	f->count++;
	return ptrace((enum __ptrace_request)PTRACE_SECCOMP_GET_FILTER, (pid_t)tid, index, code) ==
			       length
		       ? 0
		       : -EAGAIN;
}

int filters_read(struct filters *f, uint32_t tid)
{
	int err;

	memset(f, 0, sizeof(*f));
	do {
		err = program_read(f, tid);
	} while (!err);
	if (err == -ENOENT)
		return 0; /* no more */
	filters_free(f);
	return err;
}

#endif

void filters_free(struct filters *f)
{
	size_t i;

	for (i = 0; i < f->count; i++)
		free(f->programs[i].code);
	memset(f, 0, sizeof(*f));
}

bool filters_equal(const struct filters *a, const struct filters *b)
{
	size_t i;

	if (a->count != b->count)
		return false;
	for (i = 0; i < a->count; i++)
		if (a->programs[i].length != b->programs[i].length ||
		    memcmp(a->programs[i].code, b->programs[i].code,
			   a->programs[i].length * sizeof(*a->programs[i].code)))
			return false;
	return true;
}
