/* SPDX-License-Identifier: BSD-2-Clause */
/* System calls made in libc's text with every register in view. */
#ifndef GBPF_TESTS_INJECT_REGS_H
#define GBPF_TESTS_INJECT_REGS_H

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

struct regs_text {
	uintptr_t call; /* "syscall; ret" somewhere in libc */
};

static int regs_look(struct dl_phdr_info *info, size_t size, void *ctx)
{
	static const uint8_t call[] = {0x0f, 0x05, 0xc3};
	struct regs_text *t = ctx;
	const void *found;
	int i;

	if (!strstr(info->dlpi_name, "libc.so") && !strstr(info->dlpi_name, "libc-2."))
		return 0;
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		found = memmem((void *)(info->dlpi_addr + p->p_vaddr), p->p_memsz, call,
			       sizeof(call));
		if (found)
			t->call = (uintptr_t)found;
	}
	return 1;
}

static uintptr_t regs_call(void)
{
	static struct regs_text t;

	if (!t.call)
		dl_iterate_phdr(regs_look, &t);
	if (!t.call)
		abort();
	return t.call;
}

struct regs_frame {
	uint64_t gpr[13]; /* rbx rbp r12 r13 r14 r15 rdi rsi rdx r8 r9 r10, and rax after */
	uint8_t vector[16][32];	  /* ymm */
	uint32_t mxcsr;
	uint16_t control, pad;
};

#define REGS_VECTOR(op)                                                                            \
	op(0) op(1) op(2) op(3) op(4) op(5) op(6) op(7) op(8) op(9) op(10) op(11) op(12) op(13)    \
		op(14) op(15)
#define REGS_LOAD(n) "vmovdqu " REGS_STRING(104 + 32 * n) "(%0), %%ymm" #n "\n\t"
#define REGS_STORE(n) "vmovdqu %%ymm" #n ", " REGS_STRING(104 + 32 * n) "(%1)\n\t"
#define REGS_STRING(x) REGS_STRING2(x)
#define REGS_STRING2(x) #x

/* poll(NULL, 0, ms): did the rest stay as it was, and the result as it should be? */
static __attribute__((noinline)) bool regs_kept(int ms, unsigned seed)
{
	struct regs_frame in, out;
	static __thread uintptr_t call;
	uint8_t *bytes = (uint8_t *)&in;
	size_t i;

	call = regs_call();
	memset(&out, 0, sizeof(out));
	for (i = 0; i < sizeof(in); i++)
		bytes[i] = (uint8_t)(seed * 31 + i * 7 + 1);
	in.gpr[6] = in.gpr[7] = 0;
	in.gpr[8] = (uint64_t)ms;
	in.mxcsr = 0x1f80 | (seed & 3) << 13; /* all ways of rounding */
	in.control = (uint16_t)(0x037f | (seed & 3) << 10);
	in.pad = 0;
	__asm__ volatile(
		"sub $128, %%rsp\n\t" /* the compiler may use the red zone */
		"push %%rbx\n\tpush %%rbp\n\tpush %%r12\n\t"
		"push %%r13\n\tpush %%r14\n\tpush %%r15\n\t"
		"push %0\n\tpush %1\n\tpush %2\n\t" REGS_VECTOR(REGS_LOAD)
		"ldmxcsr 616(%0)\n\tfldcw 620(%0)\n\t"
		"mov 0(%0), %%rbx\n\tmov 8(%0), %%rbp\n\tmov 16(%0), %%r12\n\tmov 24(%0), %%r13\n\t"
		"mov 32(%0), %%r14\n\tmov 40(%0), %%r15\n\t"
		"mov 56(%0), %%rsi\n\tmov 64(%0), %%rdx\n\t"
		"mov 72(%0), %%r8\n\tmov 80(%0), %%r9\n\tmov 88(%0), %%r10\n\tmov 48(%0), %%rdi\n\t"
		"mov $7, %%eax\n\t" /* poll */
		"call *(%%rsp)\n\t"
		"mov 8(%%rsp), %%rcx\n\t" /* where to */
		"mov %%rbx, 0(%%rcx)\n\tmov %%rbp, 8(%%rcx)\n\tmov %%r12, 16(%%rcx)\n\t"
		"mov %%r13, 24(%%rcx)\n\tmov %%r14, 32(%%rcx)\n\tmov %%r15, 40(%%rcx)\n\t"
		"mov %%rdi, 48(%%rcx)\n\tmov %%rsi, 56(%%rcx)\n\tmov %%rdx, 64(%%rcx)\n\t"
		"mov %%r8, 72(%%rcx)\n\tmov %%r9, 80(%%rcx)\n\tmov %%r10, 88(%%rcx)\n\t"
		"mov %%rax, 96(%%rcx)\n\tstmxcsr 616(%%rcx)\n\tfnstcw 620(%%rcx)\n\t"
		"pop %2\n\tpop %1\n\tpop %0\n\tpop %%r15\n\tpop %%r14\n\tpop %%r13\n\t"
		"pop %%r12\n\tpop %%rbp\n\tpop %%rbx\n\tadd $128, %%rsp\n\t" REGS_VECTOR(REGS_STORE)
		"vzeroupper\n\t"
		:
		: "D"(&in), "S"(&out), "a"(call)
		: "rcx", "rdx", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4",
		  "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
		  "xmm14", "xmm15", "memory", "cc");
	__asm__ volatile("ldmxcsr %0\n\tfldcw %1"
			 :
			 : "m"((uint32_t){0x1f80}), "m"((uint16_t){0x37f}));
	in.gpr[12] = 0; /* poll()'s result */
	return !memcmp(&in, &out, sizeof(in));
}

/* poll(NULL, 0, ms) with the stack pointer at top. */
static __attribute__((noinline)) long regs_poll_on(void *top, int ms)
{
	uintptr_t call = regs_call();
	long result = SYS_poll;

	__asm__ volatile("mov %%rsp, %%rbx\n\tmov %2, %%rsp\n\tcall *%1\n\tmov %%rbx, %%rsp"
			 : "+a"(result)
			 : "r"(call), "r"(top), "D"(0), "S"(0), "d"((long)ms)
			 : "rbx", "rcx", "r11", "memory", "cc");
	return result;
}

#endif
