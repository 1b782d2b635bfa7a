// SPDX-License-Identifier: BSD-2-Clause
#include "record/notes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record/meta.h"

#define BUCKETS_MIN 1024u
#define LIVES 1024u /* buckets of processes */

struct note {
	struct note *next;    /* of its bucket; the newest first */
	struct note *sibling; /* of its process */
	struct record *record;
	size_t size;
	uint64_t hash;
	int64_t gone; /* replaced, or its process ended, ns; INT64_MAX: not yet */
};

struct life {
	struct life *next;
	struct note *notes;
	int64_t ended; /* ns; INT64_MAX: not yet */
	uint32_t pid;
};

struct notes {
	struct note **items; /* in the order added */
	size_t count, room;
	struct note **buckets;
	size_t buckets_count; /* a power of two */
	struct life *lives[LIVES]; /* by pid */
	bool leaving; /* some are gone, or their process ended */
	uint64_t bytes, limit;
};

bool notes_take(enum record_kind kind)
{
	switch (kind) {
	case RECORD_NAME:
	case RECORD_PROCESS:
	case RECORD_THREAD:
	case RECORD_IMAGE:
	case RECORD_SITE:
	case RECORD_API:
	case RECORD_INFO:
	case RECORD_GPU:
	case RECORD_DEVICE:
	case RECORD_SHAPE:
	case RECORD_LABEL:
		return true;
	default:
		return false;
	}
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	return (hash ^ value) * 0x9e3779b97f4a7c15ULL;
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
	for (; text && *text; text++)
		hash = mix(hash, (unsigned char)*text);
	return hash;
}

/* The process that a note is of, 0: none. */
static uint32_t pid_of(const struct record *r)
{
	switch (r->kind) {
	case RECORD_NAME: return r->name.pid;
	case RECORD_PROCESS: return r->process.pid;
	case RECORD_THREAD: return r->thread.pid;
	case RECORD_LABEL: return r->label.pid;
	case RECORD_DEVICE: return r->device.pid;
	case RECORD_SHAPE: return r->shape.pid;
	default: return 0;
	}
}

/* Of what it says something: a later one of the same replaces it. */
static uint64_t subject_of(const struct record *r)
{
	uint64_t hash = mix(r->kind, pid_of(r));

	switch (r->kind) {
	case RECORD_NAME: hash = mix(hash, r->name.handle); break;
	case RECORD_THREAD: hash = mix(hash, r->thread.tid); break;
	case RECORD_LABEL: hash = mix_text(hash, r->label.key); break;
	case RECORD_DEVICE: hash = mix(hash, r->device.ordinal); break;
	case RECORD_SHAPE: hash = mix(hash, r->shape.id); break;
	case RECORD_INFO: hash = mix_text(hash, r->info.key); break;
	case RECORD_API: hash = mix(hash, r->api.id); break;
	case RECORD_GPU: hash = mix(hash, r->gpu.id); break;
	case RECORD_IMAGE: hash = mix(hash, r->image.id); break;
	case RECORD_SITE: hash = mix(mix(hash, r->site.image), r->site.offset); break;
	default: break;
	}
	return hash ^ hash >> 29;
}

static bool text_same(const char *a, const char *b)
{
	return !strcmp(a ? a : "", b ? b : "");
}

/* Exact, where the hash of its subject is the same. */
static bool same_subject(const struct record *a, const struct record *b)
{
	if (a->kind != b->kind || pid_of(a) != pid_of(b))
		return false;
	switch (a->kind) {
	case RECORD_NAME: return a->name.handle == b->name.handle;
	case RECORD_THREAD: return a->thread.tid == b->thread.tid;
	case RECORD_LABEL: return text_same(a->label.key, b->label.key);
	case RECORD_DEVICE: return a->device.ordinal == b->device.ordinal;
	case RECORD_SHAPE: return a->shape.id == b->shape.id;
	case RECORD_INFO: return text_same(a->info.key, b->info.key);
	case RECORD_API: return a->api.id == b->api.id;
	case RECORD_GPU: return a->gpu.id == b->gpu.id;
	case RECORD_IMAGE: return a->image.id == b->image.id;
	case RECORD_SITE:
		return a->site.image == b->site.image && a->site.offset == b->site.offset;
	default: return true;
	}
}

/* What comes again and again, and says nothing new. */
static bool same_content(const struct record *kept, const struct record *r)
{
	switch (r->kind) {
	case RECORD_NAME: {
		size_t len = r->name.len < META_NAME_MAX ? r->name.len : META_NAME_MAX;

		return r->name.name && kept->name.len == len &&
		       kept->name.source == r->name.source &&
		       !memcmp(kept->name.name, r->name.name, len);
	}
	case RECORD_THREAD:
		return kept->thread.ns_tid == r->thread.ns_tid &&
		       text_same(kept->thread.comm, r->thread.comm);
	case RECORD_LABEL: return text_same(kept->label.value, r->label.value);
	case RECORD_INFO: return text_same(kept->info.value, r->info.value);
	default: return false;
	}
}

/* Where its own time is; NULL: it has none. */
static int64_t *time_of(struct record *r)
{
	switch (r->kind) {
	case RECORD_NAME: return &r->name.ts;
	case RECORD_PROCESS: return &r->process.ts;
	case RECORD_LABEL: return &r->label.ts;
	default: return NULL;
	}
}

static struct life *life_find(const struct notes *n, uint32_t pid)
{
	struct life *l = n->lives[pid % LIVES];

	while (l && l->pid != pid)
		l = l->next;
	return l;
}

static struct life *life_new(struct notes *n, uint32_t pid)
{
	struct life *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	*l = (struct life){.next = n->lives[pid % LIVES], .ended = INT64_MAX, .pid = pid};
	n->lives[pid % LIVES] = l;
	n->bytes += sizeof(*l);
	return l;
}

static void leave(struct notes *n, struct note *note, int64_t when)
{
	n->leaving = true;
	if (when < note->gone)
		note->gone = when;
}

/* Another program's handles are not those of the one before. */
static void life_changes(struct notes *n, struct life *l, const struct record_process *p)
{
	bool exit = p->event == RECORD_PROCESS_EXIT;

	for (struct note *note = l->notes; note; note = note->sibling)
		if (exit || (p->event == RECORD_PROCESS_EXEC && note->record->kind == RECORD_NAME))
			leave(n, note, p->ts);
	l->ended = exit ? p->ts : INT64_MAX;
	n->leaving = n->leaving || exit;
}

static struct note *find(const struct notes *n, const struct record *r, uint64_t hash)
{
	struct note *note = n->buckets ? n->buckets[hash & (n->buckets_count - 1)] : NULL;

	for (; note; note = note->next)
		if (note->hash == hash && note->gone == INT64_MAX &&
		    same_subject(note->record, r))
			return note;
	return NULL;
}

/* Everything again, in order, so that each bucket has its newest first. */
static void hang_all(struct notes *n)
{
	memset(n->buckets, 0, n->buckets_count * sizeof(struct note *));
	for (size_t i = 0; i < n->count; i++) {
		struct note **bucket = &n->buckets[n->items[i]->hash & (n->buckets_count - 1)];

		n->items[i]->next = *bucket;
		*bucket = n->items[i];
	}
}

static int make_room(struct notes *n)
{
	size_t room = n->room ? 2 * n->room : BUCKETS_MIN;
	struct note **items, **buckets;

	if (n->count < n->room)
		return 0;
	items = realloc(n->items, room * sizeof(struct note *));
	if (!items)
		return -ENOMEM;
	n->items = items;
	buckets = malloc(room * sizeof(struct note *));
	if (!buckets)
		return -ENOMEM;
	free(n->buckets);
	n->buckets = buckets;
	n->buckets_count = room;
	n->bytes += 2 * (room - n->room) * sizeof(struct note *);
	n->room = room;
	hang_all(n);
	return 0;
}

static void hang(struct notes *n, struct note *note, struct life *l)
{
	struct note **bucket = &n->buckets[note->hash & (n->buckets_count - 1)];

	note->next = *bucket;
	*bucket = note;
	n->items[n->count++] = note;
	n->bytes += note->size;
	if (!l)
		return;
	note->sibling = l->notes;
	l->notes = note;
	if (l->ended != INT64_MAX)
		leave(n, note, l->ended);
}

static struct note *note_new(const struct record *r, uint64_t hash)
{
	struct note *note = calloc(1, sizeof(*note));

	if (!note)
		return NULL;
	note->record = meta_copy(r, &note->size);
	if (!note->record) {
		free(note);
		return NULL;
	}
	note->size += sizeof(*note);
	note->hash = hash;
	note->gone = INT64_MAX;
	return note;
}

int notes_add(struct notes *n, const struct record *r, int64_t now)
{
	uint64_t hash = subject_of(r);
	struct note *before = find(n, r, hash), *note;
	struct life *l = life_find(n, pid_of(r));
	int64_t *ts;

	if (before && same_content(before->record, r))
		return 0;
	if (l && r->kind == RECORD_PROCESS)
		life_changes(n, l, &r->process);
	if (n->bytes >= n->limit)
		return -ENOSPC;
	if (pid_of(r) && !l) {
		l = life_new(n, pid_of(r));
		if (!l)
			return -ENOMEM;
	}
	note = note_new(r, hash);
	if (!note || make_room(n)) {
		free(note ? note->record : NULL);
		free(note);
		return -ENOMEM;
	}
	ts = time_of(note->record);
	if (before)
		leave(n, before, ts ? *ts : now);
	hang(n, note, l);
	if (l && r->kind == RECORD_PROCESS && r->process.event == RECORD_PROCESS_EXIT)
		life_changes(n, l, &r->process);
	return 0;
}

void notes_threads_ended(struct notes *n, bool (*ended)(uint32_t pid, uint32_t tid, void *ctx),
			 void *ctx, int64_t now)
{
	for (size_t i = 0; i < n->count; i++) {
		const struct record *r = n->items[i]->record;

		if (r->kind == RECORD_THREAD && n->items[i]->gone == INT64_MAX &&
		    ended(r->thread.pid, r->thread.tid, ctx))
			leave(n, n->items[i], now);
	}
}

static struct note *siblings_left(struct note *note, int64_t before)
{
	struct note *first = NULL, **end = &first;

	for (; note; note = note->sibling) {
		if (note->gone <= before)
			continue;
		*end = note;
		end = &note->sibling;
	}
	*end = NULL;
	return first;
}

/* Those that ended at or before this time; n->leaving: others have ended since. */
static void lives_forget(struct notes *n, int64_t before)
{
	for (size_t i = 0; i < LIVES; i++) {
		struct life **at = &n->lives[i], *l;

		while ((l = *at)) {
			l->notes = siblings_left(l->notes, before);
			if (l->notes || l->ended > before) {
				n->leaving = n->leaving || l->ended != INT64_MAX;
				at = &l->next;
				continue;
			}
			*at = l->next;
			n->bytes -= sizeof(*l);
			free(l);
		}
	}
}

void notes_forget(struct notes *n, int64_t before)
{
	size_t kept = 0;

	if (!n->leaving)
		return;
	n->leaving = false;
	lives_forget(n, before);
	for (size_t i = 0; i < n->count; i++) {
		struct note *note = n->items[i];

		if (note->gone > before) {
			n->leaving = n->leaving || note->gone != INT64_MAX;
			n->items[kept++] = note;
			continue;
		}
		n->bytes -= note->size;
		free(note->record);
		free(note);
	}
	if (kept < n->count) {
		n->count = kept;
		hang_all(n);
	}
}

uint64_t notes_bytes(const struct notes *n)
{
	return n->bytes;
}

static int note_write(const struct note *note, struct writer *w, int64_t begin, int64_t end)
{
	struct record r = *note->record;
	int64_t *ts = time_of(&r);

	if (note->gone <= begin || (ts && *ts >= end))
		return 0;
	if (ts && *ts < begin) {
		*ts = begin;
		if (r.kind == RECORD_PROCESS)
			r.process.event = RECORD_PROCESS_SEEN;
	}
	return writer_add(w, &r);
}

int notes_write(const struct notes *n, struct writer *w, int64_t begin, int64_t end)
{
	int err = 0;

	for (size_t i = 0; !err && i < n->count; i++)
		err = note_write(n->items[i], w, begin, end);
	return err;
}

int notes_new(struct notes **out, uint64_t bytes)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->limit = bytes;
	return 0;
}

void notes_free(struct notes *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < n->count; i++) {
		free(n->items[i]->record);
		free(n->items[i]);
	}
	for (size_t i = 0; i < LIVES; i++) {
		while (n->lives[i]) {
			struct life *next = n->lives[i]->next;

			free(n->lives[i]);
			n->lives[i] = next;
		}
	}
	free(n->items);
	free(n->buckets);
	free(n);
}
