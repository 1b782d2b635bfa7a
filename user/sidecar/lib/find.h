/* SPDX-License-Identifier: BSD-2-Clause */
/* What is loaded in this process, and where libcupti could be. */
#ifndef GBPF_SIDECAR_LIB_FIND_H
#define GBPF_SIDECAR_LIB_FIND_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The path of a loaded library whose file name begins with prefix ("libcupti.so"), as
 * the dynamic linker has it. False: there is none.
 */
bool find_loaded(const char *prefix, char *path, size_t size);

/* How many such are loaded. */
unsigned find_count(const char *prefix);

/*
 * Calls try with paths where libcupti may be, best first, until it says true: beside the
 * loaded libcudart, in wheels next to it, in the toolkit. Does try get true?
 */
bool find_cupti(bool (*try)(void *user, const char *path), void *user);

#endif
