/* SPDX-License-Identifier: BSD-2-Clause */
/* The sidecar's side of wire.h, played by a test in its own process. */
#ifndef GBPF_TESTS_SIDECAR_PEER_H
#define GBPF_TESTS_SIDECAR_PEER_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "sidecar/wire.h"

struct peer {
	int fd;
	struct wire_ring *ring;
	uint8_t *data;
};

static inline int64_t peer_clock(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Takes a message; a descriptor that comes with it is mapped as the ring. Its type, 0: none. */
static inline uint32_t peer_receive(struct peer *p, struct wire_message *m)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec part = { m, sizeof(*m) };
	struct msghdr h = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes,
			    .msg_controllen = sizeof(control.bytes) };
	struct cmsghdr *c;
	void *at;
	int fd;

	if (recvmsg(p->fd, &h, MSG_DONTWAIT) != sizeof(*m))
		return 0;
	c = CMSG_FIRSTHDR(&h);
	if (c) {
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
		at = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		close(fd);
		if (at == MAP_FAILED)
			return 0;
		p->ring = at;
		p->data = (uint8_t *)at + WIRE_RING_HEADER;
	}
	return m->type;
}

/* The tightest of a few readings, as the sidecar does: one may lose its CPU in between. */
static inline void peer_read_clock(struct wire_message *m, int64_t ahead)
{
	m->before = 0;
	m->after = INT64_MAX;
	for (int i = 0; i < 8; i++) {
		int64_t before = peer_clock(CLOCK_MONOTONIC);
		int64_t stamp = peer_clock(CLOCK_REALTIME) + ahead;
		int64_t after = peer_clock(CLOCK_MONOTONIC);

		if (after - before >= m->after - m->before)
			continue;
		m->before = before;
		m->stamp = stamp;
		m->after = after;
	}
}

static inline int peer_say(struct peer *p, struct wire_message *m)
{
	m->version = WIRE_VERSION;
	return send(p->fd, m, sizeof(*m), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(*m) ? 0 : -1;
}

/* As the sidecar puts it there: whole, a WIRE_SKIP before it if need be. */
static inline int peer_put(struct peer *p, const void *record)
{
	struct wire_record r, skip = { 0, WIRE_SKIP };
	uint64_t head, left;

	if (!p->ring)
		return -1;
	head = p->ring->head;
	memcpy(&r, record, sizeof(r));
	left = WIRE_RING_BYTES - head % WIRE_RING_BYTES;
	if (head + r.size + (left < r.size ? left : 0) - p->ring->tail > WIRE_RING_BYTES)
		return -1;
	if (left < r.size) {
		skip.size = (uint32_t)left;
		memcpy(p->data + head % WIRE_RING_BYTES, &skip, sizeof(skip));
		head += left;
	}
	memcpy(p->data + head % WIRE_RING_BYTES, record, r.size);
	__atomic_store_n(&p->ring->head, head + r.size, __ATOMIC_RELEASE);
	return 0;
}

static inline void peer_close(struct peer *p)
{
	if (p->ring)
		munmap(p->ring, WIRE_RING_HEADER + WIRE_RING_BYTES);
	if (p->fd >= 0)
		close(p->fd);
	p->ring = NULL;
	p->fd = -1;
}

#endif
