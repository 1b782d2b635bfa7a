/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace/idset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static size_t slot_of(const struct idset *s, uint64_t id)
{
	size_t i = id * 0x9e3779b97f4a7c15ULL >> 20 & (s->room - 1);

	while (s->slots[i] && s->slots[i] != id)
		i = (i + 1) & (s->room - 1);
	return i;
}

static int rehash(struct idset *s, size_t room)
{
	struct idset bigger = {.slots = calloc(room, sizeof(uint64_t)), .room = room};
	size_t i;

	if (!bigger.slots)
		return -ENOMEM;
	for (i = 0; i < s->room; i++)
		if (s->slots[i]) {
			bigger.slots[slot_of(&bigger, s->slots[i])] = s->slots[i];
			bigger.count++;
		}
	free(s->slots);
	*s = bigger;
	return 0;
}

int idset_add(struct idset *s, uint64_t id)
{
	size_t i;
	int err;

	if (2 * (s->count + 1) > s->room) {
		err = rehash(s, s->room ? 2 * s->room : 256);
		if (err)
			return err;
	}
	i = slot_of(s, id);
	if (s->slots[i])
		return 0;
	s->slots[i] = id;
	s->count++;
	return 1;
}

bool idset_has(const struct idset *s, uint64_t id)
{
	return s->room && s->slots[slot_of(s, id)] == id;
}

size_t idset_remove_if(struct idset *s, bool (*remove)(uint64_t id, void *ctx), void *ctx)
{
	size_t removed = 0, i;

	for (i = 0; i < s->room; i++)
		if (s->slots[i] && remove(s->slots[i], ctx)) {
			s->slots[i] = 0;
			removed++;
		}
	/* holes break the chains behind them; without memory they stay as they were cut */
	if (removed && rehash(s, s->room)) {
		s->count -= removed;
		return removed;
	}
	return removed;
}

void idset_free(struct idset *s)
{
	free(s->slots);
	memset(s, 0, sizeof(*s));
}
