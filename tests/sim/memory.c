/* SPDX-License-Identifier: BSD-2-Clause */
/* Which addresses are the device's, and which of the host's are pinned. */
#include <stdlib.h>
#include <string.h>

#include "device.h"

struct range {
	uintptr_t from, to;
	enum sim_memory kind;
	uint8_t device;
	uint32_t context;
};

/* Sorted. Nobody copies so often that a search under a lock matters. */
static struct {
	pthread_mutex_t lock;
	struct range *at;
	size_t count, room;
} ranges = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* A child may be forked while another thread holds it. */
static void unlock_in_child(void)
{
	pthread_mutex_init(&ranges.lock, NULL);
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, unlock_in_child);
}

/* The first range that begins after address. */
static size_t after(uintptr_t address)
{
	size_t low = 0, high = ranges.count;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (ranges.at[mid].from > address)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

static bool make_room(void)
{
	size_t room = ranges.room ? 2 * ranges.room : 256;
	struct range *grown;

	if (ranges.count < ranges.room)
		return true;
	grown = realloc(ranges.at, room * sizeof(*grown));
	if (!grown)
		return false;
	ranges.at = grown;
	ranges.room = room;
	return true;
}

void sim_memory_add(const void *at, size_t bytes, enum sim_memory kind)
{
	struct sim_context *ctx = sim_context();
	uintptr_t from = (uintptr_t)at;
	uint32_t context = sim_context_id(ctx);
	size_t i;

	pthread_mutex_lock(&ranges.lock);
	if (make_room()) {
		i = after(from);
		memmove(&ranges.at[i + 1], &ranges.at[i], (ranges.count - i) * sizeof(*ranges.at));
		ranges.at[i] = (struct range){ from, from + bytes, kind, (uint8_t)ctx->device,
						 context };
		ranges.count++;
	}
	pthread_mutex_unlock(&ranges.lock);
}

void sim_memory_remove(const void *at)
{
	size_t i;

	pthread_mutex_lock(&ranges.lock);
	i = after((uintptr_t)at);
	if (i && ranges.at[i - 1].from == (uintptr_t)at) {
		memmove(&ranges.at[i - 1], &ranges.at[i], (ranges.count - i) * sizeof(*ranges.at));
		ranges.count--;
	}
	pthread_mutex_unlock(&ranges.lock);
}

enum sim_memory sim_memory_kind(const void *at, uint8_t *device, uint32_t *context)
{
	enum sim_memory kind = MEMORY_PAGEABLE;
	size_t i;

	pthread_mutex_lock(&ranges.lock);
	i = after((uintptr_t)at);
	if (i && (uintptr_t)at < ranges.at[i - 1].to) {
		kind = ranges.at[i - 1].kind;
		*device = ranges.at[i - 1].device;
		*context = ranges.at[i - 1].context;
	}
	pthread_mutex_unlock(&ranges.lock);
	return kind;
}

unsigned sim_copy_kind(enum sim_memory from, enum sim_memory to)
{
	enum { HTOD = 1, DTOH = 2, DTOD = 8, HTOH = 9 };
	bool from_host = from == MEMORY_PAGEABLE || from == MEMORY_PINNED;
	bool to_host = to == MEMORY_PAGEABLE || to == MEMORY_PINNED;

	if (from_host)
		return to_host ? HTOH : HTOD;
	return to_host ? DTOH : DTOD;
}
