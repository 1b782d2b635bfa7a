// SPDX-License-Identifier: BSD-2-Clause
#include "sidecar/tids.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "target/target.h"

#define LOOK_EVERY_NS 100000000LL

/* Where that cannot be seen, its threads are looked up one by one: right in both cases. */
static bool same_namespace(uint32_t pid)
{
	char path[40];
	struct stat own, its;

	snprintf(path, sizeof(path), "/proc/%u/ns/pid", pid);
	return !stat("/proc/self/ns/pid", &own) && !stat(path, &its) && own.st_ino == its.st_ino &&
	       own.st_dev == its.st_dev;
}

void tids_init(struct tids *t, uint32_t pid)
{
	*t = (struct tids){.pid = pid, .same = same_namespace(pid)};
}

void tids_free(struct tids *t)
{
	free(t->pairs);
	t->pairs = NULL;
	t->count = t->room = 0;
}

/* Where it is, or would have to be. */
static size_t place_of(const struct tids *t, uint32_t inner)
{
	size_t low = 0, high = t->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->pairs[middle].inner < inner)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_at(const struct tids *t, size_t at, uint32_t inner)
{
	return at < t->count && t->pairs[at].inner == inner;
}

static int pair_set(struct tids *t, uint32_t inner, uint32_t outer)
{
	size_t at = place_of(t, inner);
	struct tids_pair *grown;

	if (is_at(t, at, inner)) {
		t->pairs[at].outer = outer;
		return 0;
	}
	if (t->count == TIDS_MOST)
		return 1;
	if (t->count == t->room) {
		grown = realloc(t->pairs, (t->room ? 2 * t->room : 64) * sizeof(*grown));
		if (!grown)
			return 1;
		t->pairs = grown;
		t->room = t->room ? 2 * t->room : 64;
	}
	memmove(&t->pairs[at + 1], &t->pairs[at], (t->count - at) * sizeof(*t->pairs));
	t->pairs[at] = (struct tids_pair){inner, outer};
	t->count++;
	return 0;
}

static int on_thread(uint32_t tid, void *ctx)
{
	struct tids *t = ctx;
	uint32_t inner = process_thread_ns_tid(t->pid, tid);

	return inner ? pair_set(t, inner, tid) : 0;
}

uint32_t tids_outer(struct tids *t, uint32_t inner, int64_t now)
{
	size_t at;

	if (!inner || t->same)
		return inner;
	at = place_of(t, inner);
	if (is_at(t, at, inner) && t->pairs[at].outer)
		return t->pairs[at].outer;
	if (t->looked && now - t->looked < LOOK_EVERY_NS)
		return 0;
	t->looked = now;
	if (t->count == TIDS_MOST)
		t->count = 0; /* all those numbers cannot be in use any more */
	process_each_thread(t->pid, on_thread, t);
	at = place_of(t, inner);
	return is_at(t, at, inner) ? t->pairs[at].outer : 0;
}
