// SPDX-License-Identifier: BSD-2-Clause
#include "code.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LINE_MAX_BYTES 8192
#define RANGES_BYTES (NEIGHBOUR_RANGES * sizeof(struct address_range))

/* CUPTI holds addresses of these on its own account. Beginnings of file names. */
static const char *const known[] = {
	"libcupti.so", "libcuda.so", "libcudart.so", "libcudadebugger.so", "libnvidia-",
	"libnvperf_", "libcheckpoint.so", "libpcsamplingutil.so", "libnvoptix.so", "libc.so",
	"libc-", "ld-", "libpthread", "libdl", "librt", "libm.so", "libm-", "libutil",
	"libgcc_s", "libstdc++.so", "[vdso]", "[vsyscall]",
};

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_known(const char *path)
{
	const char *name = base_of(path);

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!strncmp(name, known[i], strlen(known[i])))
			return true;
	return false;
}

/* strtoull() is another function with every other glibc. */
static uintptr_t read_hex(const char *text, const char **end)
{
	uintptr_t value = 0;

	for (;; text++) {
		if (*text >= '0' && *text <= '9')
			value = value << 4 | (uintptr_t)(*text - '0');
		else if (*text >= 'a' && *text <= 'f')
			value = value << 4 | (uintptr_t)(*text - 'a' + 10);
		else
			break;
	}
	*end = text;
	return value;
}

bool code_line(const char *line, uintptr_t *from, uintptr_t *to, const char **path)
{
	const char *end;
	int fields = 0;

	*from = read_hex(line, &end);
	if (*end != '-')
		return false;
	*to = read_hex(end + 1, &end);
	if (*end != ' ' || strlen(end) < 5 || end[3] != 'x')
		return false;
	/* permissions, offset, device, inode; then blanks and the path */
	for (; fields < 4 && *end; fields++) {
		end += strspn(end, " ");
		end += strcspn(end, " ");
	}
	*path = end + strspn(end, " ");
	return fields == 4 && *from < *to;
}

static int add(struct code *c, const char *line, uintptr_t self)
{
	uintptr_t from, to;
	const char *path;

	if (!code_line(line, &from, &to, &path) || is_known(path) || (self >= from && self < to))
		return 0;
	if (c->count == NEIGHBOUR_RANGES)
		return -E2BIG;
	c->ranges[c->count++] = (struct address_range){ from, to };
	return 0;
}

/* Line by line, without stdio: that would allocate from the process's heap. */
static int read_lines(struct code *c, int fd, uintptr_t self)
{
	char text[LINE_MAX_BYTES + 1];
	size_t have = 0;
	ssize_t got;

	while ((got = read(fd, text + have, LINE_MAX_BYTES - have)) > 0) {
		char *line = text, *end;

		have += (size_t)got;
		text[have] = '\0';
		while ((end = memchr(line, '\n', have - (size_t)(line - text)))) {
			int err;

			*end = '\0';
			err = add(c, line, self);
			if (err)
				return err;
			line = end + 1;
		}
		have -= (size_t)(line - text);
		memmove(text, line, have);
		if (have == LINE_MAX_BYTES)
			return -EMSGSIZE;
	}
	return got < 0 ? -errno : 0;
}

int code_read(struct code *c, uintptr_t self)
{
	int fd, err;

	c->count = 0;
	c->ranges = mmap(NULL, RANGES_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	if (c->ranges == MAP_FAILED) {
		c->ranges = NULL;
		return -ENOMEM;
	}
	fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	err = fd < 0 ? -errno : read_lines(c, fd, self);
	if (fd >= 0)
		close(fd);
	if (err)
		code_free(c);
	return err;
}

void code_free(struct code *c)
{
	if (c->ranges)
		munmap(c->ranges, RANGES_BYTES);
	c->ranges = NULL;
	c->count = 0;
}

bool code_foreign(const struct code *c, uintptr_t address)
{
	size_t low = 0, high = c->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (address >= c->ranges[middle].to)
			low = middle + 1;
		else if (address < c->ranges[middle].from)
			high = middle;
		else
			return true;
	}
	return false;
}

void code_name(uintptr_t address, char *name, size_t size)
{
	Dl_info info;

	if (dladdr((void *)address, &info) && info.dli_fname && info.dli_fname[0])
		(void)snprintf(name, size, "%s", base_of(info.dli_fname));
	else
		(void)snprintf(name, size, "code made at run time");
}
