// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "neighbour.h"

#define ENVIRONMENT_BYTES (1u << 16)

struct tool_search {
	uintptr_t self;
	const char *injected; /* of CUDA_INJECTION64_PATH; NULL: none */
	char *why;
	size_t size;
};

/* Beginnings of file names of libraries that tools put into a process, and whose they are. */
static const struct {
	const char *file, *tool;
} tools[] = {
	{ "libToolsInjection", "Nsight" },
	{ "libcuda-injection", "Nsight Compute" },
	{ "libInterceptorInjectionTarget", "Nsight" },
	{ "libTreeLauncher", "Nsight" },
	{ "libcuinj64.so", "nvprof" },
	{ "libsanitizer-collection", "compute-sanitizer" },
	{ "libcudadebugger.so", "cuda-gdb" },
};

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool holds(const struct dl_phdr_info *info, uintptr_t address)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && address - info->dlpi_addr - p->p_vaddr < p->p_memsz)
			return true;
	}
	return false;
}

static int see_tool(struct dl_phdr_info *info, size_t size, void *user)
{
	struct tool_search *s = user;
	const char *name = info->dlpi_name ? base_of(info->dlpi_name) : "";

	if (!name[0] || holds(info, s->self))
		return 0;
	for (size_t i = 0; i < sizeof(tools) / sizeof(*tools); i++) {
		if (strncmp(name, tools[i].file, strlen(tools[i].file)))
			continue;
		(void)snprintf(s->why, s->size, "%s is at work in this process (%s)",
			       tools[i].tool, name);
		return 1;
	}
	if (s->injected && !strcmp(name, base_of(s->injected))) {
		(void)snprintf(s->why, s->size, "another tool was injected into this process (%s)",
			       name);
		return 1;
	}
	return 0;
}

/* Of the process as it began: its environment now is its own to change. */
static size_t read_environment(char *text, size_t size)
{
	int fd = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
	size_t have = 0;
	ssize_t got;

	if (fd < 0)
		return 0;
	while (have + 1 < size && (got = read(fd, text + have, size - 1 - have)) > 0)
		have += (size_t)got;
	close(fd);
	text[have] = '\0';
	return have;
}

static const char *variable(const char *text, size_t size, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = text; at < text + size; at += strlen(at) + 1)
		if (!strncmp(at, name, length) && at[length] == '=')
			return at + length + 1;
	return NULL;
}

bool neighbour_tool(const void *self, char *why, size_t size)
{
	char text[ENVIRONMENT_BYTES];
	size_t have = read_environment(text, sizeof(text));
	struct tool_search s = { .self = (uintptr_t)self, .why = why, .size = size };

	s.injected = variable(text, have, "CUDA_INJECTION64_PATH");
	if (s.injected && !s.injected[0])
		s.injected = NULL;
	if (variable(text, have, "NSYS_PROFILING_SESSION_ID")) {
		(void)snprintf(why, size, "Nsight Systems profiles this process");
		return true;
	}
	return dl_iterate_phdr(see_tool, &s) != 0;
}
