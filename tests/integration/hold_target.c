/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that opens libraries nobody knew and calls into them at once.
 *
 *   hold_target calls LIBRARY N     N times cuLaunchKernel()
 *   hold_target each LIBRARY…       opens one after the other
 *
 * Prints what it did and how long the openings took.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int (*launch_fn)(void *f, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
			 unsigned smem, void *stream, void **params, void **extra);

static int64_t opening_ns;

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void *library_open(const char *path)
{
	int64_t begin = now_ns();
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	opening_ns += now_ns() - begin;
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(3);
	}
	return library;
}

static int calls(const char *path, int n)
{
	void *library = library_open(path);
	launch_fn launch;
	int i;

	*(void **)&launch = dlsym(library, "cuLaunchKernel");
	if (!launch)
		return 3;
	for (i = 0; i < n; i++)
		launch(NULL, 1, 2, 3, 4, 5, 6, 0, NULL, NULL, NULL);
	return 0;
}

int main(int argc, char **argv)
{
	int status = 0, i, n = 0;

	if (argc < 4)
		return 2;
	printf("opening\n");
	fflush(stdout);
	if (!strcmp(argv[1], "calls")) {
		n = atoi(argv[3]);
		status = calls(argv[2], n);
	} else {
		for (i = 2; i < argc; i++, n++)
			library_open(argv[i]);
	}
	printf("done %d in %" PRId64 " ns\n", n, opening_ns);
	return status;
}
