/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A shared object loaded into a running process (x86-64, glibc), without any of
 * its system calls being interrupted or shortened. One of its threads is stopped,
 * where it has just completed a call that no allocator, dynamic linker or stdio
 * makes, and calls dlopen(3) for us on a stack of ours. Should gbpf be killed in
 * the middle of it, the thread restores itself.
 */
#ifndef GBPF_INJECT_INJECT_H
#define GBPF_INJECT_INJECT_H

#include <stddef.h>
#include <stdint.h>

struct inject_options {
	const void *library; /* the shared object, read only */
	size_t size;	     /* bytes of it; it arrives as a memfd */
	const char *name;    /* of the memfd, e.g. "libgbpf-cupti.so"; at most 63 bytes */
	/*
	 * An exported function int entry(int fd), called once with the target's end of a
	 * socket, which it owns. The thread that calls it may hold locks of the program and
	 * of the CUDA driver: it must take none but those of libc, and return at once (start
	 * a thread for the rest). At most 63 bytes.
	 */
	const char *entry;
	int64_t limit_ns; /* the whole may take that long at most; a call in the target has less */
};

#define INJECT_LEFT_KIB 512 /* of private memory, most of it never touched */

struct inject_result {
	int socket;	    /* the loader's end (SOCK_SEQPACKET), owned by the caller; -1 */
	int32_t returned;   /* what entry() returned */
	int64_t stopped_ns; /* how long the worst thread was stopped in all */
	int64_t longest_ns; /* the longest single stop */
	uint32_t left;	    /* threads that went on by themselves: private memory of each stays */
	char why[200];	    /* a sentence when it was refused or failed: what is in the way */
};

/*
 * Threads may call it at the same time, for different processes; not for a child that
 * another thread waits for with waitpid(2), which would be told of its stops. While a
 * thread is looked for, one CPU is busy and every system call of the machine takes some
 * ten nanoseconds longer. Needs CAP_BPF and CAP_PERFMON (or CAP_SYS_ADMIN, as it takes
 * anyway for processes with seccomp filters), and CAP_SYS_PTRACE for other users' processes.
 *
 * 0, or with r->why filled:
 * -ESRCH       no such process, or it ended meanwhile
 * -EPERM       ptrace(2) is forbidden, or somebody else traces it
 * -EALREADY    a memfd of this name is loaded there
 * -EOPNOTSUPP  not in this program (static, musl, 32-bit, shadow stacks, seccomp) or not
 *              on this kernel (before 5.17)
 * -EAGAIN      no thread came to a place that is safe within the limit
 * -EBUSY       another thread is loading a library
 * -ETIMEDOUT   a call in the target has not returned in time; it goes on by itself
 * -ELIBACC     the target's dynamic linker refused, why says what it said
 * -ENOTSUP     not on this architecture
 * -EINVAL, -ENOMEM, -EIO and the like.
 */
int inject(uint32_t pid, const struct inject_options *o, struct inject_result *r);
/*
 * Would it be refused, as far as that can be seen without touching the process? The same
 * errors, with a sentence in why.
 */
int inject_check(uint32_t pid, const struct inject_options *o, char why[200]);

#endif
