/* SPDX-License-Identifier: BSD-2-Clause */
#include "inject/stub.h"

#ifdef __x86_64__

#define AT(field, offset) \
	_Static_assert(offsetof(struct stub_data, field) == (offset), "the code below knows it")

AT(errno_location, 0x00);
AT(dlopen, 0x08);
AT(dlsym, 0x10);
AT(dlerror, 0x18);
AT(handle, 0x20);
AT(function, 0x28);
AT(error, 0x30);
AT(memfd, 0x38);
AT(returned, 0x3c);
AT(pair, 0x40);
AT(state, 0x48);
AT(saved_errno, 0x4c);
AT(spins, 0x50);
AT(claimed, 0x58);
AT(go, 0x5c);
AT(path, 0x60);
AT(entry, 0xa0);
AT(name, 0xe0);
_Static_assert(sizeof(struct stub_data) <= STUB_FRAME, "the frame comes after the data");
_Static_assert(STUB_FRAME == 1024 && STUB_PAGE == 4096 && STUB_MEMORY == 0x80000, "likewise");
_Static_assert(STUB_DONE == 2 && STUB_NO_OPEN == 3 && STUB_NO_ENTRY == 4 && STUB_FAILED == 5 &&
	       STUB_ABANDONED == 6 && STUB_LEFT == 16 && STUB_WAITED == 2, "likewise");
_Static_assert(offsetof(struct stub_frame, mask) == 8 + 296, "struct ucontext");

/*
 * %rbx: the data. The thread makes the descriptors and waits for the loader to fill
 * them; calls dlopen(path, RTLD_NOW), dlsym(handle, entry) and entry(pair[0]); waits
 * to be taken over, and if nobody comes returns as from a signal. errno is the
 * program's and gets its value back.
 */
__asm__(".pushsection .rodata\n"
	".globl inject_stub, inject_stub_end\n"
	"inject_stub:\n"
	"	call *0x00(%rbx)\n"
	"	mov %rax, %r12\n"
	"	mov (%rax), %eax\n"
	"	mov %eax, 0x4c(%rbx)\n"
	/* what is written is no longer executed, and what is executed no longer written */
	"	mov %rbx, %rdi\n"
	"	mov $0x7f000, %esi\n"
	"	mov $3, %edx\n"
	"	mov $10, %eax\n" /* mprotect */
	"	syscall\n"
	"	lea -4096(%rbx), %rdi\n"
	"	mov $4096, %esi\n"
	"	mov $5, %edx\n"
	"	mov $10, %eax\n"
	"	syscall\n"
	"	lea 0xe0(%rbx), %rdi\n"
	"	mov $1, %esi\n"   /* MFD_CLOEXEC */
	"	mov $319, %eax\n" /* memfd_create */
	"	syscall\n"
	"	mov %eax, 0x38(%rbx)\n"
	"	mov $5, %r13d\n"
	"	test %eax, %eax\n"
	"	js 8f\n"
	"	mov $1, %edi\n"       /* AF_UNIX */
	"	mov $0x80005, %esi\n" /* SOCK_SEQPACKET | SOCK_CLOEXEC */
	"	xor %edx, %edx\n"
	"	lea 0x40(%rbx), %r10\n"
	"	mov $53, %eax\n" /* socketpair */
	"	syscall\n"
	"	mov %eax, 0x3c(%rbx)\n"
	"	test %eax, %eax\n"
	"	js 8f\n"
	"	movl $1, 0x48(%rbx)\n" /* STUB_READY */
	"	mov 0x50(%rbx), %rcx\n"
	"1:	cmpl $0, 0x5c(%rbx)\n"
	"	jne 2f\n"
	"	pause\n"
	"	dec %rcx\n"
	"	jnz 1b\n"
	"2:	mov $2, %eax\n"
	"	xchg %eax, 0x5c(%rbx)\n"
	"	mov $6, %r13d\n"
	"	cmp $1, %eax\n" /* STUB_GO */
	"	jne 8f\n"
	"	mov 0x44(%rbx), %edi\n"
	"	mov $3, %eax\n" /* close */
	"	syscall\n"
	"	movl $-1, 0x44(%rbx)\n"
	"	lea 0x60(%rbx), %rdi\n"
	"	mov $2, %esi\n" /* RTLD_NOW */
	"	call *0x08(%rbx)\n"
	"	mov %rax, 0x20(%rbx)\n"
	"	mov $3, %r13d\n"
	"	test %rax, %rax\n"
	"	jz 7f\n"
	"	mov %rax, %rdi\n"
	"	lea 0xa0(%rbx), %rsi\n"
	"	call *0x10(%rbx)\n"
	"	mov %rax, 0x28(%rbx)\n"
	"	mov $4, %r13d\n"
	"	test %rax, %rax\n"
	"	jz 7f\n"
	"	mov 0x40(%rbx), %edi\n"
	"	movl $-1, 0x40(%rbx)\n"
	"	call *%rax\n"
	"	mov %eax, 0x3c(%rbx)\n"
	"	mov $2, %r13d\n"
	"	jmp 8f\n"
	"7:	call *0x18(%rbx)\n"
	"	mov %rax, 0x30(%rbx)\n"
	"8:	mov 0x38(%rbx), %edi\n" /* those that are not there are -1 */
	"	mov $3, %eax\n"
	"	syscall\n"
	"	mov 0x40(%rbx), %edi\n"
	"	mov $3, %eax\n"
	"	syscall\n"
	"	mov 0x44(%rbx), %edi\n"
	"	mov $3, %eax\n"
	"	syscall\n"
	"	mov 0x4c(%rbx), %eax\n"
	"	mov %eax, (%r12)\n"
	"3:	mov %r13d, 0x48(%rbx)\n"
	"	mov 0x50(%rbx), %rcx\n"
	"4:	pause\n"
	"	dec %rcx\n"
	"	jnz 4b\n"
	"	lea 16(%r13), %eax\n" /* STUB_LEFT */
	"	xchg %eax, 0x48(%rbx)\n"
	"	xor %eax, %eax\n"
	"	xchg %eax, 0x58(%rbx)\n" /* claimed, once */
	"	test %eax, %eax\n"
	"	jnz 3b\n"
	"	lea 1024+8(%rbx), %rsp\n"
	"	mov $15, %eax\n" /* rt_sigreturn */
	"	syscall\n"
	"	hlt\n"
	"inject_stub_end:\n"
	".popsection\n");

#endif
