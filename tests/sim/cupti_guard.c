/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client that asked for it, with simCuptiGuard(), must not be harmed while it
 * records. With the real CUPTI it then saw no records and its process crashed
 * at exit; here the process aborts at exit, and says why.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "cupti.h"


static const char *_Atomic harm;

static const void *module_of(const void *address)
{
	Dl_info info;

	return dladdr(address, &info) ? info.dli_fbase : NULL;
}

static bool recording(void)
{
	return cupti.guarded && cupti.guard_kinds;
}

static bool other(const void *caller)
{
	return module_of(caller) != cupti.guard;
}

/* From now on complete's owner, the calling module, is guarded; NULL: nobody. */
SIM_EXPORT void simCuptiGuard(cupti_complete_fn complete)
{
	pthread_mutex_lock(&cupti.lock);
	cupti.guarded = complete;
	cupti.guard = complete ? module_of(__builtin_return_address(0)) : NULL;
	cupti.guard_kinds = 0;
	pthread_mutex_unlock(&cupti.lock);
}

/* What was done to the guarded client, NULL: nothing. */
SIM_EXPORT const char *simCuptiHarm(void)
{
	return atomic_load(&harm);
}

void cupti_guard_register(cupti_complete_fn complete, const void *caller)
{
	if (recording() && complete != cupti.guarded)
		atomic_store(&harm, "its callbacks were replaced");
}

void cupti_guard_enable(uint32_t kind, bool on, const void *caller)
{
	uint64_t bit = 1ull << kind;

	if (!cupti.guarded)
		return;
	if (!other(caller))
		cupti.guard_kinds = on ? cupti.guard_kinds | bit : cupti.guard_kinds & ~bit;
	else if (!on && (cupti.guard_kinds & bit))
		atomic_store(&harm, "its records were switched off");
}

/* Before 12.6 that crashed programs with graphs. */
void cupti_guard_finalize(const void *caller)
{
	if (cupti.any_graph) { /* seen with 13.0; some say that 12.6 mended it */
		fputs("sim: CUPTI was finalized in a program with graphs\n", stderr);
		abort();
	}
	if (recording() && other(caller))
		atomic_store(&harm, "CUPTI was finalized");
	cupti.guard_kinds = 0;
}

void cupti_guard_clock(const void *caller)
{
	if (recording() && other(caller))
		atomic_store(&harm, "its clock was replaced");
}

__attribute__((destructor)) static void at_exit(void)
{
	const char *what = atomic_load(&harm);

	if (!what)
		return;
	fprintf(stderr, "sim: a client of CUPTI was recording when %s\n", what);
	abort();
}
