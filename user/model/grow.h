/* SPDX-License-Identifier: BSD-2-Clause */
/* Arrays that grow by half, so that big ones move by remapping and not by copy. */
#ifndef GBPF_MODEL_GROW_H
#define GBPF_MODEL_GROW_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * Makes room for need elements of size bytes in the malloc'ed array that the
 * pointer at array holds. 0 or -ENOMEM; what was there stays valid either way.
 */
static inline int grow_array(void **array, size_t *cap, size_t need, size_t size)
{
	size_t want;
	void *moved;

	if (*array && need <= *cap)
		return 0;
	want = *cap + *cap / 2 + 16;
	if (want < need)
		want = need;
	if (want > SIZE_MAX / 2 / size)
		return -ENOMEM;
	moved = realloc(*array, want * size);
	if (!moved)
		return -ENOMEM;
	*array = moved;
	*cap = want;
	return 0;
}

#define GROW(array, cap, need) grow_array((void **)&(array), &(cap), (need), sizeof(*(array)))

#endif
