/* SPDX-License-Identifier: BSD-2-Clause */
/* Buffers for CUPTI, and what comes back in them. */
#ifndef GBPF_SIDECAR_LIB_BUFFERS_H
#define GBPF_SIDECAR_LIB_BUFFERS_H

#include <stddef.h>
#include <stdint.h>

#include "session.h"

/* CUPTI calls these two from any thread; they find the session by themselves. */
void buffers_request(uint8_t **buffer, size_t *size, size_t *max_records);
void buffers_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);

/* Allocates what is missing. 0, or -ENOMEM: not even one. */
int pool_fill(struct pool *p);
/* Gives back the pages of those that CUPTI has not got, and keeps the addresses. */
void pool_rest(struct pool *p);
/* Somebody else gets what CUPTI has now. How many those are. */
unsigned pool_lose(struct pool *p);

/* Of those that CUPTI has now, how many it has begun to fill. */
unsigned pool_filling(struct pool *p);

/* All records of a buffer go to the ring. */
void buffers_take(struct session *s, uint8_t *buffer, size_t valid);
/* One record of at most size bytes does. */
void buffers_record(struct session *s, const void *record, size_t size);

#endif
