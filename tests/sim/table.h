/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of function pointers, filled through the dynamic symbols. */
#ifndef SIM_TABLE_H
#define SIM_TABLE_H

#include <dlfcn.h>
#include <stdio.h>

#include "driver.h"
#include "nccl.h"
#include "runtime.h"
#include "truth.h"

#define TABLE_MEMBER(name) __typeof__(name) *(name);
#define TABLE_NAME(name) #name,

struct driver_table {
	TRUTH_DRIVER(TABLE_MEMBER)
};

struct runtime_table {
	TRUTH_RUNTIME(TABLE_MEMBER)
};

struct nccl_table {
	TRUTH_NCCL(TABLE_MEMBER)
};

/* slots: a table of that many pointers, in the order of names. -1: one is missing, and said. */
static inline int table_fill(void *handle, void **slots, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		slots[i] = dlsym(handle, names[i]);
		if (!slots[i]) {
			fprintf(stderr, "sim: no %s\n", names[i]);
			return -1;
		}
	}
	return 0;
}

static inline int table_driver(struct driver_table *t, void *handle)
{
	static const char *const names[] = { TRUTH_DRIVER(TABLE_NAME) };

	return table_fill(handle, (void **)t, names, sizeof(names) / sizeof(*names));
}

static inline int table_runtime(struct runtime_table *t, void *handle)
{
	static const char *const names[] = { TRUTH_RUNTIME(TABLE_NAME) };

	return table_fill(handle, (void **)t, names, sizeof(names) / sizeof(*names));
}

static inline int table_nccl(struct nccl_table *t, void *handle)
{
	static const char *const names[] = { TRUTH_NCCL(TABLE_NAME) };

	return table_fill(handle, (void **)t, names, sizeof(names) / sizeof(*names));
}

#endif
