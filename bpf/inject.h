/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The wire between inject.bpf.c and user/inject/: which thread waits, at the end
 * of a system call, to be stopped there.
 */
#ifndef GBPF_INJECT_H
#define GBPF_INJECT_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

/*
 * How long a thread spins until the loader has attached to it, and from then on
 * until the loader has asked it to stop. Nobody else gets its CPU meanwhile; both
 * take microseconds, as a thread waits only while the loader is looking.
 */
#define GBPF_INJECT_HELD_NS 500000ULL
#define GBPF_INJECT_ARMED_NS 3000000ULL
/* The loader looked this long ago at the most, or no thread waits for it. */
#define GBPF_INJECT_BEAT_NS 10000ULL

#define GBPF_INJECT_CALLS 512 /* system call numbers below it can be wanted */
#define GBPF_INJECT_RANGES 4

/*
 * gbpf_inject_shared.word: who moves next, and the thread. IDLE becomes HELD by a
 * thread; HELD becomes ARMED by the loader or IDLE by the thread, whoever is first;
 * ARMED becomes BUSY by either; BUSY becomes IDLE by the loader.
 */
#define GBPF_INJECT_IDLE 0u
#define GBPF_INJECT_HELD 1u
#define GBPF_INJECT_ARMED 2u
#define GBPF_INJECT_BUSY 3u
#define GBPF_INJECT_WORD(tid, state) ((__u64)(tid) << 2 | (state))

struct gbpf_inject_shared {
	__u64 word;
	__u64 beat;    /* CLOCK_MONOTONIC, ns: the loader's last look */
	__u64 held_at; /* likewise, of the thread that spins */
	__u64 ip, ax;  /* that the thread goes on with */
	__u64 calls[GBPF_INJECT_CALLS / 64]; /* system calls after which a thread may wait */
	__u64 ranges[GBPF_INJECT_RANGES][2]; /* of addresses that they are made from */
	__u32 tgid;
	__u32 skip; /* a thread that has just been found in the wrong place, or 0 */
	__u32 ranges_count;
	__u32 missed_cpu;
	__u64 missed; /* calls that fit when the loader had not got a CPU; the last one's CPU */
	__u64 passed, elsewhere; /* calls that fit; those only by their number */
	__u64 late;		 /* threads that went on before they were asked to stop */
};

#endif
