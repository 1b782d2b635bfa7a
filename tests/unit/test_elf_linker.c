/* SPDX-License-Identifier: BSD-2-Clause */
/* Our own program and its dynamic linker, against what the running process knows. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <cmocka.h>
#include <unistd.h>

#include "probe/elf.h"

static const char *interpreter; /* as our program headers in memory have it */

static int find_interpreter(struct dl_phdr_info *info, size_t size, void *ctx)
{
	int i;

	(void)size;
	(void)ctx;
	for (i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_INTERP)
			interpreter = (const char *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	return 1; /* the program is the first */
}

static struct elf *open_file(const char *path, int *fd)
{
	struct elf *e;

	*fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(*fd >= 0);
	assert_int_equal(elf_open(&e, *fd), 0);
	return e;
}

static void test_interpreter(void **state)
{
	char path[PATH_MAX];
	struct elf *e;
	int fd;

	(void)state;
	e = open_file("/proc/self/exe", &fd);
	assert_int_equal(elf_interpreter(e, path, sizeof(path)), 0);
	assert_string_equal(path, interpreter);
	assert_int_equal(elf_interpreter(e, path, strlen(interpreter)), -EBADMSG);
	elf_close(e);
	close(fd);
}

/* The linker's own structure begins the list that dlopen(NULL) gives the head of. */
static void test_linker_symbols(void **state)
{
	struct elf_symbol debug, hook;
	const struct r_debug *own;
	uintptr_t base;
	struct elf *e;
	int fd;

	(void)state;
	e = open_file(interpreter, &fd);
	assert_int_equal(elf_exported(e, "_r_debug", &debug), 0);
	assert_int_equal(elf_exported(e, "_dl_debug_state", &hook), 0);
	base = getauxval(AT_BASE);
	own = (const struct r_debug *)(base + debug.value);
	assert_ptr_equal(own->r_map, dlopen(NULL, RTLD_NOW));
	assert_int_equal(own->r_state, RT_CONSISTENT);
	assert_true(base + hook.value == own->r_brk);
	assert_true(elf_executable(e, hook.value));
	assert_int_equal(elf_exported(e, "no_such_symbol", &hook), -ENOENT);
	assert_int_equal(elf_interpreter(e, (char[PATH_MAX]){0}, PATH_MAX), -ENOENT);
	elf_close(e);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_interpreter),
		cmocka_unit_test(test_linker_symbols),
	};

	dl_iterate_phdr(find_interpreter, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
