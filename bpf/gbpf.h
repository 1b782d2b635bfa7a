/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The wire between the programs in the kernel and the loader: attach cookies,
 * ring records and the loader's switches. Both sides include this file and
 * nothing else describes these layouts.
 */
#ifndef GBPF_H
#define GBPF_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

/* ---- attach cookie: what a site is, so that one program serves every API ----
 *
 *   bits  0..11  API id (catalogue)       bits 28..31  shape
 *   bits 12..27  image slot               bits 32..59  seven argument positions
 *   bit  60      level: 1 for libraries above the driver (runtime, NCCL)
 *   bit  61      entry only: this site has no return probe
 *   bit  62      step marker (steps.h); to the programs that count, bits 62 and 63 say
 *                something else (monitor.h)
 *
 * A position is 0 (absent), 1..6 (integer argument registers in System V
 * order) or 7..15 (stack arguments, 7 being the first above the return
 * address).
 */
#define GBPF_API_BITS 12
#define GBPF_MAX_API (1u << GBPF_API_BITS)
#define GBPF_MAX_IMAGE (1u << 16)
#define GBPF_IMAGE_CALIBRATION 0 /* slot of gbpf's own calibration target */

enum gbpf_shape {
	GBPF_SHAPE_BARE = 0,	  /* no argument is read */
	GBPF_SHAPE_OBJECT = 1,	  /* one argument: position OBJECT */
	GBPF_SHAPE_CALL = 2,	  /* positions OBJECT..KIND, each if present */
	GBPF_SHAPE_LAUNCH = 3,	  /* cuLaunchKernel(f, gx,gy,gz, bx,by,bz, smem, stream, …) */
	GBPF_SHAPE_CONFIG = 4,	  /* cuLaunchKernelEx(config *, f, …) and cudaLaunchKernelExC */
	GBPF_SHAPE_RT_LAUNCH = 5, /* cudaLaunchKernel(f, dim3, dim3, args, smem, stream) */
	GBPF_SHAPE_QUERY = 6,	  /* cuEventQuery(handle): polls are collapsed */
	GBPF_SHAPE_GET_NAMED = 7, /* cuModuleGetFunction(out *, container, name) */
	GBPF_SHAPE_UNLOAD = 8,	  /* cuModuleUnload(handle): names must be read again */
	GBPF_SHAPE_COPY2D = 9,	  /* cuMemcpy2D(CUDA_MEMCPY2D *, [stream]) */
	GBPF_SHAPE_COPY3D = 10,	  /* cuMemcpy3D(CUDA_MEMCPY3D *, [stream]) */
	GBPF_SHAPE_RT_COPY3D = 11, /* cudaMemcpy3D(cudaMemcpy3DParms *, [stream]) */
};

enum gbpf_arg {
	GBPF_ARG_OBJECT = 0, /* handle, destination or pointer the call is about */
	GBPF_ARG_BYTES = 1,  /* size, or width, or element count */
	GBPF_ARG_BYTES2 = 2, /* height: bytes are multiplied by it */
	GBPF_ARG_STREAM = 3,
	GBPF_ARG_SOURCE = 4, /* source pointer */
	GBPF_ARG_KIND = 5,   /* cudaMemcpyKind, ncclDataType_t, flags */
	GBPF_ARG_OUT = 6,    /* where the call stores a pointer or handle; read at return */
	GBPF_ARGS = 7,
};

#define GBPF_COOKIE(api, image, shape)                                                             \
	((__u64)(api) | (__u64)(image) << 12 | (__u64)(shape) << 28)
#define GBPF_COOKIE_LEVEL (1ULL << 60)
#define GBPF_COOKIE_ENTRY_ONLY (1ULL << 61)
#define GBPF_COOKIE_STEP (1ULL << 62)
#define GBPF_COOKIE_ARG(arg, position) ((__u64)(position) << (32 + 4 * (arg)))

/* ---- ring records ---- */

enum gbpf_rec_type {
	GBPF_REC_BEGIN_BARE = 1,
	GBPF_REC_BEGIN_OBJECT = 2,
	GBPF_REC_BEGIN_CALL = 3,
	GBPF_REC_BEGIN_LAUNCH = 4,
	GBPF_REC_BEGIN_CONFIG = 5,
	GBPF_REC_BEGIN_RT_LAUNCH = 6,
	GBPF_REC_END = 7,
	GBPF_REC_END_OUT = 8,
	GBPF_REC_POLL = 9,
	GBPF_REC_NAME = 10,
	GBPF_REC_PROCESS = 11,
};

/*
 * Every record starts so. sp is the low half of the stack pointer on entry;
 * a return probe sees it eight bytes higher, and the program takes them off,
 * so that begin and end of one call carry the same value.
 */
struct gbpf_hdr {
	__u64 ts; /* CLOCK_MONOTONIC, ns */
	__u32 pid; /* thread group id, host's numbers */
	__u32 tid;
	__u32 sp;
	__u32 tag; /* bits 0..11 API, 12..15 type, 16..31 image slot */
};

#define GBPF_TAG(api, type, image) ((__u32)(api) | (__u32)(type) << 12 | (__u32)(image) << 16)
#define GBPF_TAG_API(tag) ((tag) & 0xfff)
#define GBPF_TAG_TYPE(tag) ((tag) >> 12 & 0xf)
#define GBPF_TAG_IMAGE(tag) ((tag) >> 16)

struct gbpf_begin_object {
	struct gbpf_hdr hdr;
	__u64 object;
};

struct gbpf_begin_call {
	struct gbpf_hdr hdr;
	__u64 arg[6]; /* GBPF_ARG_OBJECT .. GBPF_ARG_KIND, raw */
};

/* Registers and stack words as the caller left them; decoded in user space. */
struct gbpf_begin_launch {
	struct gbpf_hdr hdr;
	__u64 func;
	__u32 grid[3], block_x, block_y, pad;
	__u64 block_z, smem, stream; /* one 24-byte read of the stack */
};

/* The leading 40 bytes of CUlaunchConfig, or of cudaLaunchConfig_t. */
struct gbpf_begin_config {
	struct gbpf_hdr hdr;
	__u64 func;
	__u32 grid[3], block[3];
	__u64 smem; /* the driver's has 32 bits and 32 of padding here */
	__u64 stream;
};

/* dim3 by value: x and y packed in one register, z in the next. */
struct gbpf_begin_rt_launch {
	struct gbpf_hdr hdr;
	__u64 func;
	__u64 grid_xy, grid_z, block_xy, block_z;
	__u64 smem, stream; /* one 16-byte read of the stack */
};

struct gbpf_end {
	struct gbpf_hdr hdr;
	__s32 ret;
	__u32 pad;
};

struct gbpf_end_out {
	struct gbpf_hdr hdr;
	__s32 ret;
	__u32 pad;
	__u64 out; /* what *OUT held at return, 0 if it could not be read */
};

/* One wait made of many queries that answered "not ready", and the last. */
struct gbpf_poll {
	struct gbpf_hdr hdr; /* ts: entry of the first query */
	__u64 object;
	__u64 last_end; /* return of the last query, ns; 0: the last has not returned */
	__u64 inside;	/* ns spent inside the calls */
	__u32 min, max; /* shortest and longest call, ns */
	__u32 count;	/* calls */
	__s32 ret;	/* of the last call */
};

enum gbpf_name_source {
	GBPF_NAME_LAYOUT = 1, /* through the handle, at the learned offset */
	GBPF_NAME_GETTER = 2, /* the program asked the driver for it by name */
	GBPF_NAME_FAULT = 3,  /* unreadable from the kernel: name holds nothing */
	GBPF_NAME_STUB = 4,   /* a host function stands for the kernel: name holds nothing */
};

#define GBPF_NAME_SHORT 256
#define GBPF_NAME_LONG 8192

struct gbpf_name {
	struct gbpf_hdr hdr;
	__u64 handle;
	__u64 where; /* address of the string in the target */
	__s32 len;   /* with the terminating NUL; negative: -errno */
	__u32 source;
	char name[]; /* GBPF_NAME_SHORT or GBPF_NAME_LONG bytes */
};

enum gbpf_process_event {
	GBPF_PROCESS_FORK = 1,
	GBPF_PROCESS_EXEC = 2,
	GBPF_PROCESS_EXIT = 3,
};

struct gbpf_process {
	struct gbpf_hdr hdr; /* pid: the process that is born, executes or ends */
	__u32 event;
	__u32 parent;
	__s32 exit_code;
	__u32 pad;
	__u64 start; /* task's start time, CLOCK_BOOTTIME ns */
	char comm[16];
};

#endif
