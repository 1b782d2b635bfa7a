/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * old LIBRARY FD: serves FD with libgbpf-cupti.so until standard input ends. Started without
 * the toolchain's own start files, which need a glibc as new as the toolchain's.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv,
		      void (*init)(void), void (*fini)(void), void (*rtld_fini)(void), void *end);
__asm__(".symver __libc_start_main,__libc_start_main@GLIBC_2.2.5");
__asm__(".symver dlerror,dlerror@GLIBC_2.2.5");
void begin(void **stack);

static int run(int argc, char **argv, char **environ)
{
	void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
	int (*entry)(int fd);
	char byte;

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 2;
	}
	*(void **)&entry = dlsym(library, "gbpf_sidecar_begin");
	if (!entry || entry(atoi(argv[2])))
		return 3;
	while (read(0, &byte, 1) > 0)
		;
	return 0;
}

__attribute__((used)) void begin(void **stack)
{
	__libc_start_main(run, (int)(long)stack[0], (char **)(stack + 1), NULL, NULL, NULL, stack);
}

__asm__(".globl _start\n"
	"_start:\n"
	"	xor %ebp, %ebp\n"
	"	mov %rsp, %rdi\n"
	"	and $-16, %rsp\n"
	"	call begin\n"
	"	hlt\n");
