/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef GBPF_INJECT_FRAME_H
#define GBPF_INJECT_FRAME_H

#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

#include "inject/stub.h"

#ifdef __x86_64__

/* A thread as it was stopped. */
struct frame_thread {
	const struct user_regs_struct *regs;
	uint64_t mask;	       /* of signals */
	const uint8_t *xstate; /* of NT_X86_XSTATE */
	size_t xstate_size;
};

/*
 * Fills to with what rt_sigreturn(2) restores the thread from when the stack pointer
 * is address + 8. All of the vector registers if there is room for them, else those of
 * SSE. Bytes that were used, 0: too little room.
 */
size_t frame_build(uint8_t *to, size_t room, uint64_t address, uint64_t restorer,
		   const struct frame_thread *t);

#endif
#endif
