/* SPDX-License-Identifier: BSD-2-Clause */
/* The frame with which a thread restores itself, as from a signal handler. */
#include <string.h>

#include "inject/frame.h"
#include "inject/private.h"

#ifdef __x86_64__

/* Where struct _fpx_sw_bytes (asm/sigcontext.h) lies in the state; ptrace(2) puts XCR0 there. */
#define SOFTWARE_AT 464
#define MAGIC1 0x46505853u
#define MAGIC2 0x46505845u
#define LEGACY_SIZE 512 /* of FXSAVE */
#define UC_FP_XSTATE 1
#define UC_SIGCONTEXT_SS 2
#define UC_STRICT_RESTORE_SS 4
#define NO_SUCH_MODE 7 /* of a signal stack: rt_sigreturn(2) leaves it as it is then */

struct software {
	uint32_t magic1, extended_size;
	uint64_t features;
	uint32_t size, padding[7];
};

static void registers_fill(struct stub_frame *f, const struct user_regs_struct *r)
{
	f->r8 = r->r8, f->r9 = r->r9, f->r10 = r->r10, f->r11 = r->r11;
	f->r12 = r->r12, f->r13 = r->r13, f->r14 = r->r14, f->r15 = r->r15;
	f->di = r->rdi, f->si = r->rsi, f->bp = r->rbp, f->bx = r->rbx;
	f->dx = r->rdx, f->ax = r->rax, f->cx = r->rcx, f->sp = r->rsp;
	f->ip = r->rip, f->eflags = r->eflags;
	f->cs = (uint16_t)r->cs, f->ss = (uint16_t)r->ss;
}

/* The size of the state in the frame, 0: none fits. */
static size_t state_fill(uint8_t *to, size_t room, const struct frame_thread *t)
{
	const uint32_t magic2 = MAGIC2;
	struct software s = {.magic1 = MAGIC1, .size = (uint32_t)t->xstate_size};

	if (t->xstate_size > LEGACY_SIZE && room >= t->xstate_size + sizeof(magic2)) {
		memcpy(&s.features, t->xstate + SOFTWARE_AT, sizeof(s.features));
		s.extended_size = s.size + (uint32_t)sizeof(magic2);
		memcpy(to, t->xstate, t->xstate_size);
		memcpy(to + SOFTWARE_AT, &s, sizeof(s));
		memcpy(to + t->xstate_size, &magic2, sizeof(magic2));
		return t->xstate_size + sizeof(magic2);
	}
	if (t->xstate_size < LEGACY_SIZE || room < LEGACY_SIZE)
		return 0;
	memcpy(to, t->xstate, LEGACY_SIZE);
	memset(to + SOFTWARE_AT, 0, LEGACY_SIZE - SOFTWARE_AT);
	return LEGACY_SIZE;
}

size_t frame_build(uint8_t *to, size_t room, uint64_t address, uint64_t restorer,
		   const struct frame_thread *t)
{
	/* The state must be aligned to 64 bytes where it will be. */
	size_t at = ((address + sizeof(struct stub_frame) + 63) & ~63ull) - address, state;
	struct stub_frame f = {
		.restorer = restorer,
		.flags = UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS,
		.stack.flags = NO_SUCH_MODE,
		.mask = t->mask,
	};

	if (room < sizeof(f))
		return 0;
	memset(to, 0, room < at ? room : at);
	registers_fill(&f, t->regs);
	state = room > at ? state_fill(to + at, room - at, t) : 0;
	f.fpstate = state ? address + at : 0;
	memcpy(to, &f, sizeof(f));
	return state ? at + state : sizeof(f);
}

#endif
