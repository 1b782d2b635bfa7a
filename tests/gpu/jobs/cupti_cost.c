// SPDX-License-Identifier: BSD-2-Clause
/*
 * What CUPTI does to an empty launch and to a small call, by itself or after gbpf.
 *
 *   cupti_cost LIBCUPTI
 *
 * Each line of its input changes something and is then measured; one line of JSON each:
 *   rest        nothing
 *   busy        nothing, and it lasts 4 s
 *   open        libcupti is opened, buffers are registered
 *   subscribe   the subscriber's slot is taken and given back
 *   on=KINDS    kinds of records by numbers, "10,1,2"; with "+" at the end, calls in moments
 *   off         they are switched off
 *   finalize    cuptiFinalize(), while nothing runs
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cupti_alone.h"

#define LAUNCHES 500 /* of the 1 021 that may be outstanding */
#define PHASE_NS 100000000LL
#define BUSY_NS 4000000000LL
#define SETTLE_NS 20000000LL
#define CALLS 1000
#define CHUNKS_MAX 4096

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry gbpf_empty() { ret; }\n";

typedef void *handle;

static struct {
	int (*init)(unsigned);
	int (*retain)(handle *context, int device);
	int (*set_current)(handle);
	int (*get_current)(handle *context);
	int (*load)(handle *module, const void *image);
	int (*function)(handle *function, handle module, const char *name);
	int (*stream)(handle *stream, unsigned flags);
	int (*wait)(handle stream);
	int (*launch)(handle f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
		      unsigned bz, unsigned smem, handle stream, void **params, void **extra);
} cu;

static void check(int status, const char *what)
{
	if (!status)
		return;
	fprintf(stderr, "%s: %d\n", what, status);
	exit(1);
}
#define CHECK(call) check((call), #call)

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void find(void *lib, const char *name, void *at)
{
	*(void **)at = dlsym(lib, name);
	if (!*(void **)at) {
		fprintf(stderr, "no %s\n", name);
		exit(1);
	}
}

static void load(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);

	if (!lib) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	find(lib, "cuInit", &cu.init);
	find(lib, "cuDevicePrimaryCtxRetain", &cu.retain);
	find(lib, "cuCtxSetCurrent", &cu.set_current);
	find(lib, "cuCtxGetCurrent", &cu.get_current);
	find(lib, "cuModuleLoadData", &cu.load);
	find(lib, "cuModuleGetFunction", &cu.function);
	find(lib, "cuStreamCreate", &cu.stream);
	find(lib, "cuStreamSynchronize", &cu.wait);
	find(lib, "cuLaunchKernel", &cu.launch);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct measured {
	double launch, call; /* ns, medians over chunks of them */
	int count;
};

static double median(double *v, int count)
{
	qsort(v, (size_t)count, sizeof(*v), compare);
	return v[count / 2];
}

static struct measured measure(handle f, handle stream, int64_t length)
{
	static double chunk[CHUNKS_MAX], call[CHUNKS_MAX];
	int64_t from = now() + SETTLE_NS, end = from + length, begin;
	int at, count = 0;
	handle context;

	do {
		at = count < CHUNKS_MAX ? count : CHUNKS_MAX - 1;
		begin = now();
		for (int i = 0; i < CALLS; i++)
			CHECK(cu.get_current(&context));
		call[at] = (double)(now() - begin) / CALLS;
		begin = now();
		for (int i = 0; i < LAUNCHES; i++)
			CHECK(cu.launch(f, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
		chunk[at] = (double)(now() - begin) / LAUNCHES;
		CHECK(cu.wait(stream));
		count += begin >= from && count < CHUNKS_MAX;
	} while (!count || now() < end);
	return (struct measured){ median(chunk, count), median(call, count), count };
}

static uint64_t kinds_of(const char *text)
{
	uint64_t kinds = 0;

	for (; *text && *text != '+'; text += strcspn(text, ","), text += *text == ',')
		kinds |= 1ull << (strtoul(text, NULL, 10) & 63);
	return kinds;
}

static int change(const char *phase, const char *libcupti)
{
	if (!strcmp(phase, "open"))
		return cupti_alone_open(libcupti);
	if (!strcmp(phase, "subscribe"))
		return cupti_alone_subscribe();
	if (!strncmp(phase, "on=", 3))
		return cupti_alone_on(kinds_of(phase + 3), strchr(phase, '+') ?
						      CUPTI_ALONE_KINDS : CUPTI_ALONE_NONE);
	if (!strcmp(phase, "off"))
		return cupti_alone_off();
	if (!strcmp(phase, "finalize"))
		return cupti_alone_finalize();
	return strcmp(phase, "rest") && strcmp(phase, "busy") ? -1 : 0;
}

int main(int argc, char **argv)
{
	handle context, module, f, stream;
	struct measured m;
	char phase[64];
	int status;

	if (argc != 2) {
		fprintf(stderr, "usage: cupti_cost LIBCUPTI <PHASES\n");
		return 2;
	}
	load();
	CHECK(cu.init(0));
	CHECK(cu.retain(&context, 0));
	CHECK(cu.set_current(context));
	CHECK(cu.load(&module, ptx));
	CHECK(cu.function(&f, module, "gbpf_empty"));
	CHECK(cu.stream(&stream, 1));
	(void)measure(f, stream, PHASE_NS);
	while (fgets(phase, sizeof(phase), stdin)) {
		phase[strcspn(phase, "\n")] = '\0';
		status = change(phase, argv[1]);
		m = measure(f, stream, strcmp(phase, "busy") ? PHASE_NS : BUSY_NS);
		printf("{\"phase\": \"%s\", \"status\": %d, \"ns\": %.1f, \"call_ns\": %.2f, "
		       "\"n\": %d}\n", phase, status, m.launch, m.call, m.count);
		fflush(stdout);
	}
	return 0;
}
