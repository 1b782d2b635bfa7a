/* SPDX-License-Identifier: BSD-2-Clause */
/* The stand-in for NVML: which one, what it answers, and what it leaves behind. */
#ifndef GBPF_TESTS_NVML_FILE_H
#define GBPF_TESTS_NVML_FILE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ONE_GPU                                                                                    \
	"gpu GPU-11111111-2222-3333-4444-555555555555\n"                                           \
	"name NVIDIA H200\npci 00000000:65:00.0\nsm 1980\nmemory_clock 3201\npower 412500\n"       \
	"power_limit 700000\ntemperature 61\nthrottle 0x4\nutilisation 97 41\n"                    \
	"memory 1073741824 150754820096\nenergy 123456789\nprocesses 4242 17\n"
#define ONE_UUID "GPU-11111111-2222-3333-4444-555555555555"

static char nvml_path[64]; /* of the file with its answers */

/* Replaces the answers. A rename, so that no reader meets half of it. */
static inline void nvml_says(const char *text)
{
	char next[80];
	FILE *out;

	snprintf(next, sizeof(next), "%s.next", nvml_path);
	out = fopen(next, "w");
	assert_non_null(out);
	assert_true(fputs(text, out) >= 0);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(rename(next, nvml_path), 0);
}

/* The library in this directory of the build (nvml, nvml-bare, nvml-broken) is NVML. */
static inline void nvml_use(const char *directory)
{
	char self[PATH_MAX], path[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	assert_true(n > 0);
	self[n] = '\0';
	snprintf(path, sizeof(path), "%s/../../sim/%s/libnvidia-ml.so.1", dirname(self), directory);
	assert_int_equal(setenv("GBPF_NVML", path, 1), 0);
}

static inline int nvml_setup(void **state)
{
	snprintf(nvml_path, sizeof(nvml_path), "/tmp/gbpf-nvml.%d", getpid());
	nvml_use("nvml");
	return setenv("SIMNVML", nvml_path, 1);
}

static inline int nvml_teardown(void **state)
{
	unlink(nvml_path);
	return 0;
}

static inline int entries_of(const char *directory)
{
	DIR *dir = opendir(directory);
	int count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* What this process holds, of which NVML must leave nothing. */
struct holding {
	int fds, threads;
};

static inline struct holding holding_now(void)
{
	return (struct holding){entries_of("/proc/self/fd"), entries_of("/proc/self/task")};
}

static inline int library_mapped(void)
{
	FILE *in = fopen("/proc/self/maps", "re");
	char line[PATH_MAX + 256];
	int found = 0;

	assert_non_null(in);
	while (fgets(line, sizeof(line), in))
		found |= strstr(line, "libnvidia-ml") != NULL;
	fclose(in);
	return found;
}

static inline void assert_let_go(struct holding before)
{
	struct holding now = holding_now();

	assert_int_equal(now.fds, before.fds);
	assert_int_equal(now.threads, before.threads);
	assert_false(library_mapped());
}

#endif
