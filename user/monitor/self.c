/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "monitor/private.h"

uint64_t self_cpu_ns(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000ULL +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000ULL;
}

uint64_t self_rss_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	unsigned long size, resident;
	int n = 0;

	if (f) {
		n = fscanf(f, "%lu %lu", &size, &resident);
		fclose(f);
	}
	return n == 2 ? (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}
