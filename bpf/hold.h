/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The wire between hold.bpf.c and user/probe/hold.c: which breakpoints tell that
 * a library is probed, who is held, and who may go on.
 */
#ifndef GBPF_HOLD_H
#define GBPF_HOLD_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

/*
 * How long a thread waits for the loader to take it over, and after that to be let
 * go: it spins no longer than the sum, whatever became of the loader.
 */
#define GBPF_HOLD_WAIT_NS 40000000ULL
#define GBPF_HOLD_GRACE_NS 10000000ULL
#define GBPF_HOLD_IMAGES 256
#define GBPF_HOLD_SITES 3
#define GBPF_HOLD_SLOTS 64 /* threads held at one time; with more, some go on early */

/*
 * A held thread's word: its sequence number and who moves next. WAITING becomes
 * TAKEN by the loader or GO by the thread, whoever is first; TAKEN becomes GO.
 */
#define GBPF_HOLD_WAITING 1u
#define GBPF_HOLD_TAKEN 2u
#define GBPF_HOLD_GO 3u
#define GBPF_HOLD_WORD(sequence, state) ((__u64)(sequence) << 2 | (state))

/* Bits of gbpf_hold_shared.kinds: whom to hold for. */
#define GBPF_HOLD_DRIVER 1u  /* libcuda.so* */
#define GBPF_HOLD_RUNTIME 2u /* libcudart* */
#define GBPF_HOLD_NCCL 4u    /* libnccl* */

/* Virtual addresses of some sites of a probed image, as its ELF file has them. */
struct gbpf_hold_image {
	__u64 address[GBPF_HOLD_SITES];
};

struct gbpf_hold_shared {
	__u32 kinds;
	__u32 images_count; /* grows only, after the image is there */
	__u32 sequence;	    /* of the hold begun last */
	__u32 pad;
	__u64 holds, timeouts; /* threads that spun; of these, in vain or not to the end */
	__u64 slots[GBPF_HOLD_SLOTS]; /* GBPF_HOLD_WORD(), by sequence */
	struct gbpf_hold_image images[GBPF_HOLD_IMAGES];
};

struct gbpf_hold_record {
	__u64 ts; /* CLOCK_MONOTONIC, ns */
	__u32 pid, tid;
	__u32 sequence;
	__u32 libraries; /* that made it wait */
};

#endif
