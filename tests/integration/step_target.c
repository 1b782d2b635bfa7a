// SPDX-License-Identifier: BSD-2-Clause
/*
 * A training loop that knows its steps:
 *
 *   step_target LIBCUDA MARKER SYMBOL MICRO PAUSE_US TRUTH [OTHER_EVERY]
 *
 * A step is MICRO times two launches, a call of the marker (SYMBOL of the library MARKER; "-":
 * none) and a cooperative launch, then a set and a sync. Grids say which call it is: step,
 * micro-batch. It runs until SIGTERM, and writes each call to TRUTH when it has ended:
 * "STEP API ENTER LEAVE", ns of CLOCK_MONOTONIC, and "-1 lost 0 0" if there was no room.
 * With OTHER_EVERY each so many-th step has a micro-batch more.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CALLS_MAX (1 << 21)

enum { LAUNCH, COOPERATIVE, SET, SYNC, MARKER, APIS };
static const char *const names[APIS] = {"cuLaunchKernel", "cuLaunchCooperativeKernel",
					"cuMemsetD8Async", "cuStreamSynchronize", "marker"};

typedef int (*launch_fn)(void *f, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
			 unsigned smem, void *stream, void **params, void **extra);
typedef int (*cooperative_fn)(void *f, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
			      unsigned smem, void *stream, void **params);

struct call {
	int64_t enter, leave;
	int32_t step, api;
};

static struct call *calls;
static size_t calls_count;
static volatile sig_atomic_t over;

static struct {
	launch_fn launch;
	cooperative_fn cooperative;
	int (*set)(unsigned long long to, unsigned char value, size_t bytes, void *stream);
	int (*sync)(void *stream);
	int (*marker)(int n);
} fn;

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void on_end(int signal)
{
	(void)signal;
	over = 1;
}

static void *symbol(void *library, const char *name)
{
	void *found = library ? dlsym(library, name) : NULL;

	if (!found) {
		fprintf(stderr, "%s: %s\n", name, dlerror());
		exit(3);
	}
	return found;
}

static void call(int step, int micro, int api)
{
	struct call *c = &calls[calls_count < CALLS_MAX - 1 ? calls_count++ : CALLS_MAX - 1];
	unsigned x = (unsigned)step + 1, y = (unsigned)micro + 1;

	c->step = step;
	c->api = api;
	c->enter = now_ns();
	if (api == LAUNCH)
		fn.launch(NULL, x, y, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	else if (api == COOPERATIVE)
		fn.cooperative(NULL, x, y, 1, 1, 1, 1, 0, NULL, NULL);
	else if (api == SET)
		fn.set(0, 0, x, NULL);
	else if (api == SYNC)
		fn.sync(NULL);
	else
		fn.marker(step);
	c->leave = now_ns();
}

static void step(int n, int micro, int64_t pause_us)
{
	int64_t until;
	int i;

	for (i = 0; i < micro; i++) {
		call(n, i, LAUNCH);
		call(n, i, LAUNCH);
		if (fn.marker)
			call(n, i, MARKER);
		call(n, i, COOPERATIVE);
	}
	call(n, 0, SET);
	call(n, 0, SYNC);
	for (until = now_ns() + pause_us * 1000; now_ns() < until && pause_us < 1000;)
		;
	if (pause_us >= 1000)
		usleep((useconds_t)pause_us);
}

static int truth_write(const char *path)
{
	FILE *f = fopen(path, "w");
	size_t i;

	if (!f)
		return 3;
	for (i = 0; i < calls_count; i++)
		fprintf(f, "%d %s %" PRId64 " %" PRId64 "\n", calls[i].step, names[calls[i].api],
			calls[i].enter, calls[i].leave);
	if (calls_count >= CALLS_MAX - 1)
		fprintf(f, "-1 lost 0 0\n");
	return fclose(f) ? 3 : 0;
}

int main(int argc, char **argv)
{
	int n, micro, other = argc > 7 ? atoi(argv[7]) : 0;
	void *cuda;

	if (argc < 7)
		return 2;
	cuda = dlopen(argv[1], RTLD_NOW);
	*(void **)&fn.launch = symbol(cuda, names[LAUNCH]);
	*(void **)&fn.cooperative = symbol(cuda, names[COOPERATIVE]);
	*(void **)&fn.set = symbol(cuda, names[SET]);
	*(void **)&fn.sync = symbol(cuda, names[SYNC]);
	if (strcmp(argv[2], "-"))
		*(void **)&fn.marker = symbol(dlopen(argv[2], RTLD_NOW), argv[3]);
	micro = atoi(argv[4]);
	calls = calloc(CALLS_MAX, sizeof(*calls));
	if (!calls)
		return 3;
	signal(SIGTERM, on_end);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	for (n = 0; !over; n++)
		step(n, micro + (other && n % other == 0), atoll(argv[5]));
	return truth_write(argv[6]);
}
