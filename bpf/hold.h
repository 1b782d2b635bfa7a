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

#define GBPF_HOLD_NS 50000000ULL /* nobody is held longer */
#define GBPF_HOLD_IMAGES 256
#define GBPF_HOLD_SITES 3
#define GBPF_HOLD_SLOTS 64 /* threads held at one time; more give way early */

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
	__u64 holds, ns, timeouts, unheld; /* unheld: the ring was full */
	__u32 acknowledged[GBPF_HOLD_SLOTS]; /* by sequence: the latest that may go on */
	struct gbpf_hold_image images[GBPF_HOLD_IMAGES];
};

struct gbpf_hold_record {
	__u64 ts; /* CLOCK_MONOTONIC, ns */
	__u32 pid, tid;
	__u32 sequence;
	__u32 libraries; /* that made it wait */
};

#endif
