/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the programs of tools/bench. */
#ifndef GBPF_BENCH_H
#define GBPF_BENCH_H

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static inline int64_t bench_clock(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* The calling thread, to the n-th CPU of the machine (modulo their number). */
static inline void bench_pin(unsigned n)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(n % (unsigned)(cpus > 0 ? cpus : 1), &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static inline int bench_fail(const char *who, int err)
{
	fprintf(stderr, "%s: %s\n", who, strerror(-err));
	return 1;
}

#endif
