/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef GBPF_UTIL_SELECT_H
#define GBPF_UTIL_SELECT_H

#include <stddef.h>
#include <stdint.h>

/*
 * The value of the given rank (0-based, below count) of v, without sorting all of it: v is
 * reordered, what lies before v[rank] is not greater, what lies after not less.
 */
int64_t select_rank(int64_t *v, size_t count, size_t rank);

#endif
