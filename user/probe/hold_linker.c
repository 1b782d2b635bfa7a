/* SPDX-License-Identifier: BSD-2-Clause */
/* Which dynamic linker will a command have? Found before it starts. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probe/elf.h"
#include "probe/hold.h"

/* Where the ABI of each architecture puts it; most programs have no other. */
static const char *const usual[] = {"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"};

static int file_open(const char *path)
{
	return open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
}

static void attach_path(struct hold *h, const char *path)
{
	int fd = file_open(path);

	if (fd < 0)
		return;
	hold_attach(h, fd);
	close(fd);
}

/* As execvp() looks for it. */
static int command_open(const char *command)
{
	const char *dirs = getenv("PATH"), *end;
	char path[PATH_MAX];
	int fd, n;

	if (strchr(command, '/'))
		return file_open(command);
	for (; dirs && *dirs; dirs = *end ? end + 1 : end) {
		end = strchrnul(dirs, ':');
		n = snprintf(path, sizeof(path), "%.*s%s%s", (int)(end - dirs), dirs,
			     end == dirs ? "" : "/", command);
		if (n < 0 || (size_t)n >= sizeof(path) || access(path, X_OK))
			continue;
		fd = file_open(path);
		if (fd >= 0)
			return fd;
	}
	return -ENOENT;
}

static void attach_interpreter(struct hold *h, int fd)
{
	char path[PATH_MAX];
	struct elf *e;

	if (elf_open(&e, fd))
		return; /* a script: its interpreter most likely has the usual one */
	if (!elf_interpreter(e, path, sizeof(path)))
		attach_path(h, path);
	elf_close(e);
}

void hold_attach_installed(struct hold *h, const char *command)
{
	size_t i;
	int fd;

	for (i = 0; i < sizeof(usual) / sizeof(*usual); i++)
		attach_path(h, usual[i]);
	fd = command ? command_open(command) : -1;
	if (fd < 0)
		return;
	attach_interpreter(h, fd);
	close(fd);
}
