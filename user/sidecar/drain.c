// SPDX-License-Identifier: BSD-2-Clause
#include "sidecar/drain.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

_Static_assert(sizeof(struct wire_ring) <= WIRE_RING_HEADER, "the header fits its page");
_Static_assert((WIRE_RING_BYTES & (WIRE_RING_BYTES - 1)) == 0, "a power of two");

size_t drain_bytes(void)
{
	return WIRE_RING_HEADER + WIRE_RING_BYTES;
}

/* Sealed, or the target could cut it off under us, which would end us by a signal. */
int drain_new(struct drain *r)
{
	void *at;
	int err;

	memset(r, 0, sizeof(*r));
	r->fd = memfd_create("gbpf-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (r->fd < 0)
		return -errno;
	at = MAP_FAILED;
	if (!ftruncate(r->fd, (off_t)drain_bytes()) &&
	    !fcntl(r->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		at = mmap(NULL, drain_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	if (at == MAP_FAILED) {
		err = -errno;
		drain_free(r);
		return err;
	}
	r->shared = at;
	r->data = (const uint8_t *)at + WIRE_RING_HEADER;
	return 0;
}

void drain_free(struct drain *r)
{
	if (r->shared)
		munmap(r->shared, drain_bytes());
	if (r->fd >= 0)
		close(r->fd);
	r->shared = NULL;
	r->data = NULL;
	r->fd = -1;
}

void drain_sent(struct drain *r)
{
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
}

static bool size_fits(const struct wire_record *r)
{
	switch (r->type) {
	case WIRE_WORK:
		return r->size == sizeof(struct wire_work);
	case WIRE_CALL:
		return r->size == sizeof(struct wire_call);
	case WIRE_DEVICE:
		return r->size == sizeof(struct wire_device);
	case WIRE_OVERHEAD_RECORD:
		return r->size == sizeof(struct wire_overhead);
	case WIRE_SHAPE:
		return r->size > sizeof(struct wire_shape) && r->size < sizeof(union drain_record);
	default:
		return false;
	}
}

/* The texts end within the record. */
static bool texts_end(union drain_record *out, uint32_t size)
{
	if (out->r.type == WIRE_DEVICE)
		return memchr(out->device.name, '\0', sizeof(out->device.name));
	if (out->r.type != WIRE_SHAPE)
		return true;
	return out->shape.name_size && out->shape.name_size <= WIRE_NAME_MAX &&
	       out->shape.name_size <= size - sizeof(struct wire_shape) &&
	       !out->shape.name[out->shape.name_size - 1];
}

/* Size and type, in one reading: they cannot change between being looked at and used. */
static int header_take(struct drain *r, struct wire_record *out)
{
	uint64_t head = __atomic_load_n(&r->shared->head, __ATOMIC_ACQUIRE);
	uint64_t there = head - r->tail, at = r->tail % WIRE_RING_BYTES, word;

	if (!there)
		return 0;
	r->broken = there > WIRE_RING_BYTES || there % 8;
	if (r->broken)
		return 0;
	word = __atomic_load_n((const uint64_t *)(r->data + at), __ATOMIC_RELAXED);
	memcpy(out, &word, sizeof(*out));
	r->broken = out->size < sizeof(*out) || out->size % 8 || out->size > there ||
		    out->size > WIRE_RING_BYTES - at;
	return !r->broken;
}

int drain_next(struct drain *r, union drain_record *out)
{
	struct wire_record header;

	while (!r->broken && header_take(r, &header)) {
		const uint8_t *from = r->data + r->tail % WIRE_RING_BYTES;

		r->tail += header.size;
		if (header.type == WIRE_SKIP)
			continue;
		if (!size_fits(&header)) {
			r->malformed++;
			continue;
		}
		memcpy(out, from, header.size);
		out->r = header;
		if (texts_end(out, header.size))
			return 1;
		r->malformed++;
	}
	return 0;
}

void drain_release(struct drain *r)
{
	__atomic_store_n(&r->shared->tail, r->tail, __ATOMIC_RELEASE);
}
