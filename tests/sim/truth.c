/* SPDX-License-Identifier: BSD-2-Clause */
#include "truth.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_SLOTS (1u << 17)

/* The file is the process's, like its threads: what follows is its only state. */
static struct {
	char *base;
	uint64_t bytes; /* of the mapping */
	int fd;
	unsigned generation; /* counts truth_open(): a fork's child opens its own */
	struct truth_room room;
	pthread_mutex_t lock;
	uint32_t name_slot[NAME_SLOTS]; /* ids by hash, never removed */
} file = { .fd = -1, .lock = PTHREAD_MUTEX_INITIALIZER };

static _Thread_local struct truth_thread self;
static _Thread_local unsigned self_generation;

#define NAME_OF(name) #name "\0"
static const char api_names[] = TRUTH_DRIVER(NAME_OF) TRUTH_RUNTIME(NAME_OF) TRUTH_NCCL(NAME_OF);

static struct truth_header *header(void)
{
	return (struct truth_header *)file.base;
}

static char *names(char *base)
{
	return base + TRUTH_CHUNK;
}

static void expand(char *out, size_t size, const char *path)
{
	const char *at = strstr(path, "%p");

	if (at)
		snprintf(out, size, "%.*s%d%s", (int)(at - path), path, getpid(), at + 2);
	else
		snprintf(out, size, "%s", path);
}

static uint32_t line_chunks(const struct truth_room *room)
{
	return room->line_ns ? truth_line_chunks(TRUTH_CHUNK, room->line_ns, room->bin_ns) : 0;
}

static void start_header(uint64_t bytes, const char *before)
{
	struct truth_header *h = header();
	const struct truth_header *old = (const void *)before;

	h->limit = (uint32_t)(bytes / TRUTH_CHUNK);
	h->pid = (uint32_t)getpid();
	h->parent = (uint32_t)getppid();
	h->opened = truth_now();
	h->api_count = TRUTH_APIS;
	memcpy(h->api_names, api_names, sizeof(api_names));
	h->name_used = old ? old->name_used : 0;
	if (old)
		memcpy(names(file.base), names((char *)before), old->name_used);
	atomic_store(&h->chunks, 1 + TRUTH_NAME_CHUNKS);
	h->magic = TRUTH_MAGIC;
}

int truth_open(const char *path, const struct truth_room *room)
{
	uint64_t chunks = (room->bytes ? room->bytes : 1024 * TRUTH_CHUNK) / TRUTH_CHUNK +
			  (uint64_t)room->lines * line_chunks(room);
	uint64_t size = chunks * TRUTH_CHUNK;
	char name[4096];
	char *base, *before;
	int fd;

	expand(name, sizeof(name), path);
	fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)size) < 0 ||
	    (base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0)) ==
		    MAP_FAILED) {
		int err = -errno;

		close(fd);
		return err;
	}
	if (file.fd >= 0)
		close(file.fd);
	before = file.base;
	file.base = base;
	file.bytes = size;
	file.fd = fd;
	file.room = *room;
	file.generation++;
	pthread_mutex_init(&file.lock, NULL);
	start_header(size, before);
	return 0;
}

/* Other threads may still be in calls: the mapping stays, within the file's new size. */
void truth_close(void)
{
	struct truth_header *h = header();

	if (!file.base)
		return;
	h->closed = truth_now();
	/* Threads still running may take a few chunks more. */
	h->limit = atomic_load(&h->chunks) + 64;
	if (ftruncate(file.fd, (off_t)h->limit * TRUTH_CHUNK) < 0)
		perror("truth: truncate");
	close(file.fd);
	file.fd = -1;
}

/* count chunks in a row, or NULL. */
static void *chunk_new(enum truth_chunk_kind kind, uint32_t tid, uint32_t count)
{
	struct truth_header *h = header();
	uint32_t n = atomic_load(&h->chunks);
	struct truth_chunk *c;

	do {
		if (count > h->limit || n > h->limit - count)
			return NULL;
	} while (!atomic_compare_exchange_weak(&h->chunks, &n, n + count));
	c = (struct truth_chunk *)(file.base + (uint64_t)n * TRUTH_CHUNK);
	c->tid = tid;
	c->kind = kind;
	return c;
}

static struct truth_call *next_call(struct truth_thread *t)
{
	struct truth_chunk *c = t->calls;

	if (!file.room.bytes)
		return &t->spare[t->depth % 128];
	if (!c || c->count == TRUTH_CALLS_PER_CHUNK) {
		c = chunk_new(TRUTH_CALLS, t->tid, 1);
		if (!c) {
			atomic_fetch_add(&header()->unwritten, 1);
			return &t->spare[t->depth % 128];
		}
		t->calls = c;
	}
	return (struct truth_call *)(c + 1) + c->count++;
}

static void begin_line(struct truth_thread *t)
{
	const struct truth_room *room = &file.room;
	void *at;

	if (!room->line_ns)
		return;
	at = chunk_new(TRUTH_LINE, t->tid, line_chunks(room));
	if (!at) {
		atomic_fetch_add(&header()->unlined, 1);
		return;
	}
	truth_line_begin(&t->own, at, TRUTH_CHUNK, room->line_ns, room->bin_ns, header()->opened);
	t->line = &t->own;
}

void truth_note(enum truth_what what, int64_t begin, int64_t end, uint32_t value)
{
	struct truth_thread *t = truth_self();
	struct truth_chunk *c = t ? t->notes : NULL;

	if (t && (!c || c->count == TRUTH_NOTES_PER_CHUNK))
		c = t->notes = chunk_new(TRUTH_NOTES, t->tid, 1);
	if (!c)
		return;
	((struct truth_note *)(c + 1))[c->count] = (struct truth_note){ begin, end, what, value };
	c->count++;
}

/* A call that was not kept is in no chunk. */
static uint64_t place(const struct truth_call *c)
{
	uint64_t at = (uint64_t)(const char *)c - (uint64_t)file.base;

	return c && at < file.bytes ? at : 0;
}

void truth_work(struct truth_work *w)
{
	struct truth_thread *t = file.room.bytes ? truth_self() : NULL;
	struct truth_chunk *c = t ? t->works : NULL;

	if (!t)
		return;
	if (!c || c->count == TRUTH_WORKS_PER_CHUNK)
		c = t->works = chunk_new(TRUTH_WORKS, t->tid, 1);
	if (!c) {
		atomic_fetch_add(&header()->unworked, 1);
		return;
	}
	w->tid = t->tid;
	w->call = place(t->depth ? t->open[(t->depth - 1) % 128] : NULL);
	((struct truth_work *)(c + 1))[c->count] = *w;
	c->count++;
}

struct truth_thread *truth_self(void)
{
	if (!file.base)
		return NULL;
	if (self_generation != file.generation) {
		memset(&self, 0, sizeof(self));
		self.next = next_call;
		self.tid = (uint32_t)gettid();
		self.totals = chunk_new(TRUTH_TOTALS, self.tid, 1);
		if (!self.totals) {
			fprintf(stderr, "truth: no room for another thread\n");
			abort();
		}
		self.totals->head.count = TRUTH_APIS;
		begin_line(&self);
		self_generation = file.generation;
	}
	return &self;
}

static uint32_t *name_slot(const char *name, uint32_t len)
{
	uint64_t hash = 14695981039346656037ull;

	for (uint32_t i = 0; i < len; i++)
		hash = (hash ^ (uint8_t)name[i]) * 1099511628211ull;
	for (uint32_t i = 0; i < NAME_SLOTS; i++) {
		uint32_t *slot = &file.name_slot[(hash + i) % NAME_SLOTS];
		const char *at = names(file.base) + *slot - 1;

		if (!*slot || (!memcmp(at + 4, &len, 4) && !memcmp(at + 8, name, len)))
			return slot;
	}
	return NULL;
}

/* An entry is its id, its length and its bytes; the id is its place in the region, and one. */
uint32_t truth_name(const char *name, uint32_t len)
{
	uint32_t need = 8 + ((len + 7) & ~7u), id = 0;
	struct truth_header *h = header();
	uint32_t *slot;
	char *at;

	if (!h)
		return 0;
	pthread_mutex_lock(&file.lock);
	slot = name_slot(name, len);
	if (slot && !*slot && need <= TRUTH_NAME_CHUNKS * TRUTH_CHUNK - h->name_used) {
		at = names(file.base) + h->name_used;
		*slot = h->name_used + 1;
		memcpy(at, slot, 4);
		memcpy(at + 4, &len, 4);
		memcpy(at + 8, name, len);
		h->name_used += need;
	}
	id = slot ? *slot : 0;
	pthread_mutex_unlock(&file.lock);
	return id;
}
