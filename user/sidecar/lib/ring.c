// SPDX-License-Identifier: BSD-2-Clause
#include "ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RING_MAX (1ull << 31)

int ring_map(struct ring *r, int fd, uint64_t size)
{
	off_t end = lseek(fd, 0, SEEK_END);
	uint64_t data = size - WIRE_RING_HEADER;
	void *at;

	if (end < 0)
		return -errno;
	if (size <= WIRE_RING_HEADER || data > RING_MAX || (data & (data - 1)) || data < 4096 ||
	    (uint64_t)end != size)
		return -EINVAL;
#ifdef F_ADD_SEALS
	/* A loader that cut it would kill the job; not every memfd takes seals. */
	(void)fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
#endif
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	(void)madvise(at, size, MADV_DONTFORK);
	r->shared = at;
	r->data = (uint8_t *)at + WIRE_RING_HEADER;
	r->size = data;
	r->head = 0;
	return 0;
}

void ring_unmap(struct ring *r)
{
	if (r->shared)
		munmap(r->shared, r->size + WIRE_RING_HEADER);
	memset(r, 0, sizeof(*r));
}

static int full(struct ring *r)
{
	__atomic_fetch_add(&r->shared->dropped, 1, __ATOMIC_RELAXED);
	return -ENOSPC;
}

int ring_put(struct ring *r, const void *record, size_t size, const void *rest, size_t rest_size)
{
	uint64_t tail = __atomic_load_n(&r->shared->tail, __ATOMIC_ACQUIRE);
	uint64_t at = r->head & (r->size - 1);
	uint64_t left = r->size - at, whole = size + rest_size;
	uint64_t skip = left < whole ? left : 0;
	uint64_t used = r->head - tail;

	/* Also where tail is ahead of head: used is huge then. */
	if (whole > r->size || used > r->size || r->size - used < whole + skip)
		return full(r);
	if (skip) {
		struct wire_record gap = { .size = (uint32_t)skip, .type = WIRE_SKIP };

		memcpy(r->data + at, &gap, sizeof(gap));
		at = 0;
	}
	memcpy(r->data + at, record, size);
	if (rest_size)
		memcpy(r->data + at + size, rest, rest_size);
	r->head += skip + whole;
	__atomic_store_n(&r->shared->head, r->head, __ATOMIC_RELEASE);
	return 0;
}

void ring_bad(struct ring *r, enum wire_bad how)
{
	__atomic_fetch_add(&r->shared->bad[how], 1, __ATOMIC_RELAXED);
}

void ring_running(struct ring *r)
{
	__atomic_fetch_add(&r->shared->running, 1, __ATOMIC_RELAXED);
}

void ring_dropped(struct ring *r, uint64_t count)
{
	__atomic_fetch_add(&r->shared->dropped, count, __ATOMIC_RELAXED);
}
