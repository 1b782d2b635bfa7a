/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the filling program is told, and what it tells. */
#ifndef GBPF_BENCH_PROGRAMS_H
#define GBPF_BENCH_PROGRAMS_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

struct bench_fill_options {
	__u32 pid;		  /* whose calls they are */
	__u32 ring_mask;	  /* number of rings - 1 */
	__u32 stop_when_full;	  /* else what does not fit is lost */
	__u32 launch, copy, sync; /* catalogue ids */
};

struct bench_fill { /* of one thread, which pretends to call CUDA; in and out of a run */
	__u64 clock, random;
	__u32 position, tid;
	__u32 count;		  /* records to write */
	__u32 written, refused, pad;
};

#endif
