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
AT(socket, 0x38);
AT(memfd, 0x3c);
AT(loader_end, 0x40);
AT(returned, 0x44);
AT(state, 0x48);
AT(saved_errno, 0x4c);
AT(spins, 0x50);
AT(claimed, 0x58);
AT(path, 0x60);
AT(entry, 0xa0);
_Static_assert(sizeof(struct stub_data) <= STUB_FRAME, "the frame comes after the data");
_Static_assert(STUB_FRAME == 1024 && STUB_LEFT == 16, "likewise");
_Static_assert(offsetof(struct stub_frame, mask) == 8 + 296, "struct ucontext");

/*
 * %rbx: the data. close(loader_end); dlopen(path, RTLD_NOW); dlsym(handle, entry);
 * entry(socket); close(memfd). errno is the program's, it gets its value back. Then
 * the thread waits to be taken over, and if nobody comes it returns as from a signal.
 */
__asm__(".pushsection .rodata\n"
	".globl inject_stub, inject_stub_end\n"
	"inject_stub:\n"
	"	call *0x00(%rbx)\n"
	"	mov %rax, %r12\n"
	"	mov (%rax), %eax\n"
	"	mov %eax, 0x4c(%rbx)\n"
	"	mov 0x40(%rbx), %edi\n"
	"	mov $3, %eax\n" /* close */
	"	syscall\n"
	"	lea 0x60(%rbx), %rdi\n"
	"	mov $2, %esi\n" /* RTLD_NOW */
	"	call *0x08(%rbx)\n"
	"	mov %rax, 0x20(%rbx)\n"
	"	mov $2, %r13d\n" /* STUB_NO_OPEN */
	"	test %rax, %rax\n"
	"	jz 1f\n"
	"	mov %rax, %rdi\n"
	"	lea 0xa0(%rbx), %rsi\n"
	"	call *0x10(%rbx)\n"
	"	mov %rax, 0x28(%rbx)\n"
	"	mov $3, %r13d\n" /* STUB_NO_ENTRY */
	"	test %rax, %rax\n"
	"	jz 1f\n"
	"	mov 0x38(%rbx), %edi\n"
	"	call *%rax\n"
	"	mov %eax, 0x44(%rbx)\n"
	"	mov $1, %r13d\n" /* STUB_DONE */
	"	jmp 2f\n"
	"1:	call *0x18(%rbx)\n"
	"	mov %rax, 0x30(%rbx)\n"
	"	mov 0x38(%rbx), %edi\n"
	"	mov $3, %eax\n"
	"	syscall\n"
	"2:	mov 0x3c(%rbx), %edi\n"
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
