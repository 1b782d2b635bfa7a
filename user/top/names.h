/* SPDX-License-Identifier: BSD-2-Clause */
/* Short names of kernels, so that each is demangled once and not with every frame. */
#ifndef GBPF_TOP_NAMES_H
#define GBPF_TOP_NAMES_H

#include <stddef.h>

struct names;

struct names *names_new(void); /* NULL: out of memory */
void names_free(struct names *n); /* NULL is accepted */

/* The unqualified function of a mangled name, demangled. Into buf; hostile as the name. */
const char *names_short(struct names *n, const char *mangled, char *buf, size_t size);

#endif
