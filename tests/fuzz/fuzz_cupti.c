// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any bytes as a buffer of CUPTI's, of any version: what reaches the ring is whole, has times
 * that can be, and shapes that were told before. The first two bytes choose version and
 * options; names are given their memory here, as CUPTI's own pointers have theirs.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sidecar/lib/buffers.h"
#include "sidecar/lib/cupti_abi.h"

#define DATA (64u << 10)
#define IDS 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint32_t versions[] = {
	CUPTI_11_8, CUPTI_12_4, CUPTI_12_8, CUPTI_13_0, CUPTI_13_1, CUPTI_13_3, CUPTI_13_4,
};
static char longest[WIRE_NAME_MAX + 2];
static const char *const names[] = { "_Z1kv", "", "k\n\"\xff", longest, NULL };

static void must(bool condition)
{
	if (!condition)
		abort();
}

/* CUPTI's own steps: by the size of the kind, which must fit. */
static int next(uint8_t *buffer, size_t valid, void **record)
{
	static const struct {
		uint32_t kind;
		size_t size;
	} kinds[] = {
		{ CUPTI_CONCURRENT_KERNEL, 232 }, { CUPTI_KERNEL, 232 }, { CUPTI_MEMCPY, 96 },
		{ CUPTI_MEMCPY_PEER, 96 }, { CUPTI_MEMSET, 88 }, { CUPTI_DRIVER, 40 },
		{ CUPTI_RUNTIME, 40 }, { CUPTI_OVERHEAD, 56 },
	};
	static size_t last;
	uint8_t *at = *record ? (uint8_t *)*record + last : buffer;
	uint32_t kind;

	if (at + sizeof(kind) > buffer + valid)
		return 12;
	memcpy(&kind, at, sizeof(kind));
	last = 8 + kind % 64 * 8;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (kinds[i].kind == kind)
			last = kinds[i].size;
	if ((kind == CUPTI_CONCURRENT_KERNEL || kind == CUPTI_KERNEL) &&
	    at + KERNEL_LEADING <= buffer + valid) {
		const char *name = names[at[KERNEL_NAME] % (sizeof(names) / sizeof(*names))];

		memcpy(at + KERNEL_NAME, &name, sizeof(name));
	}
	*record = at;
	return 0;
}

static void begin(void)
{
	int fd = memfd_create("ring", MFD_CLOEXEC);

	session.pid = getpid();
	session.cupti.next_record = next;
	must(!ftruncate(fd, WIRE_RING_HEADER + DATA));
	must(!ring_map(&session.ring, fd, WIRE_RING_HEADER + DATA));
	must(!shapes_init(&session.shapes));
	close(fd);
	session.taking = true;
	memset(longest, 'n', sizeof(longest) - 1);
}

static void check_work(const struct wire_work *w, const bool *told)
{
	must(w->r.size == sizeof(*w) && w->begin > 0 && w->end >= w->begin);
	must(w->kind >= WIRE_KERNEL && w->kind <= WIRE_SET);
	must(w->kind == WIRE_KERNEL ? told[w->shape % IDS] : !w->shape);
}

static void check_shape(const struct wire_shape *s, bool *told)
{
	const char *name = (const char *)(s + 1);

	must(s->name_size && s->name_size <= WIRE_NAME_MAX);
	must(s->r.size >= sizeof(*s) + s->name_size && s->r.size < sizeof(*s) + s->name_size + 8);
	must(strlen(name) + 1 == s->name_size);
	told[s->id % IDS] = true;
}

static void check_ring(const struct ring *r, uint64_t from, bool *told)
{
	struct wire_record h;

	for (uint64_t at = from; at < r->head; at += h.size) {
		const uint8_t *record = r->data + at % DATA;

		memcpy(&h, record, sizeof(h));
		must(h.size >= sizeof(h) && h.size % 8 == 0 && at % DATA + h.size <= DATA);
		if (h.type == WIRE_WORK)
			check_work((const struct wire_work *)record, told);
		else if (h.type == WIRE_SHAPE)
			check_shape((const struct wire_shape *)record, told);
		else if (h.type == WIRE_CALL)
			must(h.size == sizeof(struct wire_call));
		else if (h.type == WIRE_OVERHEAD_RECORD)
			must(h.size == sizeof(struct wire_overhead));
		else
			must(h.type == WIRE_SKIP);
	}
	must(r->shared->head == r->head);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool told[IDS];
	uint64_t from;
	uint8_t *copy;

	if (!session.ring.shared)
		begin();
	if (size < 2)
		return 0;
	session.layout = layout_of(versions[data[0] % (sizeof(versions) / sizeof(*versions))]);
	session.window.flags = data[1] & WIRE_ALL_API;
	if (data[1] & 2) {
		shapes_forget(&session.shapes);
		memset(told, 0, sizeof(told));
	}
	copy = malloc(size);
	must(copy != NULL);
	memcpy(copy, data + 2, size - 2);
	from = session.ring.head;
	session.ring.shared->tail = data[1] & 4 ? from - DATA : from;
	buffers_take(&session, copy, size - 2);
	must(session.ring.head - session.ring.shared->tail <= DATA);
	check_ring(&session.ring, from, told);
	free(copy);
	return 0;
}
