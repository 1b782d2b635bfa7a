// SPDX-License-Identifier: BSD-2-Clause
/*
 * arguments_target LIBCUDA: calls cuMemPrefetchAsync() with arguments of which no two are alike,
 * so that a recording of them does not become small, until SIGTERM. The size is the number of
 * the call. (The stand-in does nothing with them.)
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

typedef int (*prefetch_fn)(uint64_t pointer, size_t size, int device, void *stream);

static volatile sig_atomic_t stop;

static void on_term(int signal)
{
	(void)signal;
	stop = 1;
}

/* Marsaglia's xorshift64 */
static uint64_t next(uint64_t *r)
{
	*r ^= *r << 13;
	*r ^= *r >> 7;
	*r ^= *r << 17;
	return *r;
}

int main(int argc, char **argv)
{
	static const struct timespec pause = {.tv_nsec = 300000};
	void *cuda = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
	prefetch_fn prefetch = cuda ? (prefetch_fn)dlsym(cuda, "cuMemPrefetchAsync") : NULL;
	uint64_t r = 88172645463325252u;
	size_t n = 0;

	if (!prefetch) {
		fprintf(stderr, "arguments_target: no library with cuMemPrefetchAsync\n");
		return 1;
	}
	signal(SIGTERM, on_term);
	printf("ready\n");
	fflush(stdout);
	while (!stop) {
		uint64_t pointer = next(&r);

		prefetch(pointer, n++, 0, (void *)(uintptr_t)next(&r));
		if (n % 64 == 0)
			nanosleep(&pause, NULL);
	}
	printf("%zu\n", n);
	return 0;
}
