/* SPDX-License-Identifier: BSD-2-Clause */
/* Where this process has code, and whose. */
#ifndef GBPF_SIDECAR_LIB_CODE_H
#define GBPF_SIDECAR_LIB_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "neighbour.h"

/* Code that is neither CUDA's, nor libc's, nor this library's; in order. */
struct code {
	struct address_range *ranges; /* NEIGHBOUR_RANGES, mapped */
	size_t count;
};

/* self: an address in this library. -E2BIG: more pieces than fit; else -errno. */
int code_read(struct code *c, uintptr_t self);
void code_free(struct code *c);
bool code_foreign(const struct code *c, uintptr_t address);
/* The file name of the library that address is in, for people. */
void code_name(uintptr_t address, char *name, size_t size);

/*
 * Reads one line of /proc/self/maps. True: it is executable, and in from..to; path points
 * into line, "" where there is none. A line cut short is none.
 */
bool code_line(const char *line, uintptr_t *from, uintptr_t *to, const char **path);

#endif
