/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The code that the stopped thread runs in the target, and the memory it has there:
 * a page of code, then data, the frame that restores the thread, and a stack.
 */
#ifndef GBPF_INJECT_STUB_H
#define GBPF_INJECT_STUB_H

#include <stddef.h>
#include <stdint.h>

#include "inject/inject.h"

#define STUB_MEMORY (INJECT_LEFT_KIB * 1024) /* all of it */
#define STUB_PAGE 4096
#define STUB_FRAME 1024 /* offset in the data */
#define STUB_STACK_TOP (STUB_MEMORY - STUB_PAGE - 64) /* likewise */

enum stub_state {
	STUB_RUNNING = 0,
	STUB_READY, /* descriptors are there: waits for go */
	STUB_DONE,
	STUB_NO_OPEN, /* dlopen() failed, error points to why */
	STUB_NO_ENTRY,
	STUB_FAILED,	/* a system call did: memfd or returned is -errno */
	STUB_ABANDONED, /* no go came, or another one; descriptors are closed again */
	STUB_LEFT = 16, /* added: nobody took the thread over, it has restored itself */
};

enum stub_go { STUB_GO = 1, STUB_WAITED, STUB_CANCEL };

/* Its address is in %rbx. stub.c knows the offsets. */
struct stub_data {
	uint64_t errno_location, dlopen, dlsym, dlerror;
	uint64_t handle, function;
	uint64_t error; /* address of a string */
	int32_t memfd;	/* -1: none */
	int32_t returned;
	int32_t pair[2]; /* the socket: the target's end, the loader's; -1: none */
	uint32_t state;
	uint32_t saved_errno;
	uint64_t spins;	  /* waits that often for the loader */
	uint32_t claimed; /* the loader will take over: wait as long again */
	uint32_t go;
	char path[64];
	char entry[64];
	char name[64];
};

extern const uint8_t inject_stub[], inject_stub_end[];

/*
 * The kernel's struct rt_sigframe from its return address on (asm/sigcontext.h,
 * asm-generic/ucontext.h), as far as rt_sigreturn(2) reads it.
 */
struct stub_frame {
	uint64_t restorer;
	uint64_t flags, link;
	struct {
		uint64_t sp;
		uint32_t flags, pad;
		uint64_t size;
	} stack;
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
	uint64_t di, si, bp, bx, dx, ax, cx, sp, ip, eflags;
	uint16_t cs, gs, fs, ss;
	uint64_t err, trapno, oldmask, cr2;
	uint64_t fpstate; /* address, a multiple of 64 */
	uint64_t reserved[8];
	uint64_t mask;
};

#endif
