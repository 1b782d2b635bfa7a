/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * library LIBCUPTI LIBRARY: can a client of this CUPTI (LIBRARY's functions "request" and
 * "complete") be seen, is its absence seen, and is it seen when ours are replaced?
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/sidecar/lib/neighbour.h"

static void request(uint8_t **buffer, size_t *size, size_t *max_records)
{
	*size = 0;
}

static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
}

static int fail(const char *what)
{
	printf("  %s\n", what);
	return 1;
}

static int check(char **argv)
{
	void *cupti = dlopen(argv[1], RTLD_NOW), *other = dlopen(argv[2], RTLD_NOW);
	int (*enroll)(void *request, void *complete);
	int (*version)(uint32_t *version);
	uint32_t number = 0;
	struct neighbour n = { 0 };
	char whose[64] = "";

	if (!cupti || !other)
		return fail(dlerror());
	*(void **)&enroll = dlsym(cupti, "cuptiActivityRegisterCallbacks");
	*(void **)&version = dlsym(cupti, "cuptiGetVersion");
	if (!neighbour_data(&n.data, (const void *)enroll))
		return fail("it has no data");
	if (version(&number))
		return fail("it says nothing without a driver: not checked") - 1;
	n.deep = neighbour_deep(number);
	if (neighbour_registered(&n, request, whose, sizeof(whose)) != 0)
		return fail("somebody is seen where nobody is");
	if (enroll(dlsym(other, "request"), dlsym(other, "complete")))
		return fail("it cannot be registered with without a driver: not checked") - 1;
	if (neighbour_registered(&n, request, whose, sizeof(whose)) != 1)
		return fail("somebody else is not seen");
	printf("  %s is seen\n", whose);
	if (enroll(request, complete) || !neighbour_note(&n, request, complete) ||
	    !neighbour_ours(&n, request, complete))
		return fail("ours are not found");
	if (neighbour_registered(&n, request, whose, sizeof(whose)) != 0)
		return fail("ours are taken for somebody else's");
	enroll(dlsym(other, "request"), dlsym(other, "complete"));
	if (neighbour_ours(&n, request, complete))
		return fail("that ours were replaced is not seen");
	printf("  and that it takes over\n");
	return 0;
}

/* 13.2 does not survive being asked without a driver. */
int main(int argc, char **argv)
{
	int status = 0;
	pid_t child;

	setbuf(stdout, NULL);
	if (argc != 3)
		return 2;
	child = fork();
	if (!child)
		_exit(check(argv));
	waitpid(child, &status, 0);
	if (WIFSIGNALED(status))
		return fail("it crashes without a driver: not checked") - 1;
	return WEXITSTATUS(status);
}
