/* SPDX-License-Identifier: BSD-2-Clause */
/* A set of 64-bit ids: open addressing, grows, forgets. */
#ifndef GBPF_TRACE_IDSET_H
#define GBPF_TRACE_IDSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct idset {
	uint64_t *slots; /* 0: free */
	size_t room, count;
};

/* 1: added, 0: was there, -ENOMEM. id is not 0. */
int idset_add(struct idset *s, uint64_t id);
bool idset_has(const struct idset *s, uint64_t id);
/* Takes out what remove() says; returns how many. */
size_t idset_remove_if(struct idset *s, bool (*remove)(uint64_t id, void *ctx), void *ctx);
void idset_free(struct idset *s);

#endif
