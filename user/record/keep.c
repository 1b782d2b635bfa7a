// SPDX-License-Identifier: BSD-2-Clause
#include "record/keep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "record/chunk.h"
#include "record/events.h"
#include "record/meta.h"
#include "record/notes.h"

#define SEAL_NS 1000000000LL /* a chunk holds no longer time than that */
#define ROOM_MIN 64u

struct kept {
	struct chunk chunk;
	size_t size; /* bytes[], header and content */
	uint8_t bytes[];
};

struct keep {
	struct keep_options options;
	struct writer *memory; /* makes the chunks */
	struct notes *notes;
	int64_t sealed, now;   /* ns */
	struct kept **ring;    /* room is a power of two */
	size_t room, count;
	uint64_t first;	       /* number of the oldest, from 0 when the recording began */
	uint64_t bytes, events, refused;
	int64_t complete;
	bool short_of;

	struct writer *out; /* NULL: nothing is being written */
	int out_err;
	uint64_t next, end; /* numbers of the chunks that are to be written */
	int64_t from, to;
	struct events_codec *codec;
	ZSTD_DCtx *zstd;
	uint8_t *raw;
	size_t raw_size;
	struct event *decoded;
	struct meta_records metas;
};

static struct kept *at(const struct keep *k, uint64_t number)
{
	return k->ring[number & (k->room - 1)];
}

/* The oldest goes; if it is still to be written, that is done first. */
static void drop_first(struct keep *k)
{
	struct kept *oldest = at(k, k->first);

	while (k->out && k->next <= k->first && keep_write_step(k) > 0)
		;
	if (oldest->chunk.first <= oldest->chunk.last && oldest->chunk.last >= k->complete)
		k->complete = oldest->chunk.last + (oldest->chunk.last < INT64_MAX);
	if (oldest->chunk.kind == RECORD_EVENTS)
		k->events -= oldest->chunk.count;
	k->bytes -= sizeof(*oldest) + oldest->size;
	k->first++;
	k->count--;
	free(oldest);
}

static int make_room(struct keep *k)
{
	size_t room = k->room ? 2 * k->room : ROOM_MIN;
	struct kept **ring;

	if (k->count < k->room)
		return 0;
	ring = malloc(room * sizeof(struct kept *));
	if (!ring)
		return -ENOMEM;
	for (uint64_t i = k->first; i < k->first + k->count; i++)
		ring[i & (room - 1)] = at(k, i);
	free(k->ring);
	k->bytes += (room - k->room) * sizeof(struct kept *);
	k->ring = ring;
	k->room = room;
	return 0;
}

static bool too_large(const struct keep *k)
{
	return k->bytes + notes_bytes(k->notes) > k->options.bytes;
}

static int on_chunk(void *ctx, const struct chunk *c, const uint8_t *bytes, size_t size)
{
	struct keep *k = ctx;
	struct kept *kept;

	if (make_room(k))
		return -ENOMEM;
	kept = malloc(sizeof(*kept) + size);
	if (!kept)
		return -ENOMEM;
	kept->chunk = *c;
	kept->size = size;
	memcpy(kept->bytes, bytes, size);
	k->ring[(k->first + k->count++) & (k->room - 1)] = kept;
	k->bytes += sizeof(*kept) + size;
	k->events += c->kind == RECORD_EVENTS ? c->count : 0;
	while (too_large(k) && k->count > 1) {
		k->short_of = true;
		drop_first(k);
	}
	return 0;
}

int keep_new(struct keep **out, const struct keep_options *o)
{
	struct keep *k = calloc(1, sizeof(*k));
	int err;

	*out = NULL;
	if (!k)
		return -ENOMEM;
	k->options = *o;
	k->complete = INT64_MIN;
	err = notes_new(&k->notes, o->bytes / 2);
	if (!err)
		err = writer_new_sink(&k->memory, on_chunk, k);
	if (err) {
		keep_free(k);
		return err;
	}
	*out = k;
	return 0;
}

void keep_free(struct keep *k)
{
	if (!k)
		return;
	keep_write_stop(k);
	writer_close(k->memory);
	while (k->count)
		drop_first(k);
	notes_free(k->notes);
	free(k->ring);
	free(k);
}

int keep_events(struct keep *k, const struct event *events, size_t count)
{
	return writer_events(k->memory, events, count);
}

int keep_add(struct keep *k, const struct record *record)
{
	int err;

	if (!notes_take(record->kind))
		return writer_add(k->memory, record);
	err = notes_add(k->notes, record, k->now);
	if (err != -ENOSPC)
		return err;
	k->refused++;
	return 0;
}

void keep_threads_ended(struct keep *k, bool (*ended)(uint32_t pid, uint32_t tid, void *ctx),
			void *ctx)
{
	notes_threads_ended(k->notes, ended, ctx, k->now);
}

int keep_round(struct keep *k, int64_t now)
{
	int64_t before = now - k->options.ns;
	int err = 0;

	k->now = now;
	if (now - k->sealed >= SEAL_NS) {
		err = writer_flush(k->memory);
		k->sealed = now;
		notes_forget(k->notes, before);
	}
	while (k->count && at(k, k->first)->chunk.last < before)
		drop_first(k);
	return err;
}

void keep_stats(const struct keep *k, struct keep_stats *out)
{
	*out = (struct keep_stats){
		.bytes = k->bytes + notes_bytes(k->notes),
		.events = k->events,
		.refused = k->refused,
		.complete = k->complete,
		.short_of = k->short_of,
	};
}

int keep_write(struct keep *k, struct writer *w, int64_t *begin, int64_t end)
{
	int err = writer_flush(k->memory);

	if (err)
		return err;
	keep_write_stop(k);
	if (*begin < k->complete)
		*begin = k->complete;
	k->from = *begin;
	k->to = end;
	k->next = k->first;
	k->end = k->first + k->count;
	k->out = w;
	k->out_err = notes_write(k->notes, w, *begin, end);
	return k->out_err;
}

/* What the chunk holds, uncompressed; NULL: no memory. */
static const uint8_t *content(struct keep *k, const struct kept *c)
{
	const uint8_t *stored = c->bytes + CHUNK_HEADER_SIZE;

	if (c->chunk.compression == COMPRESSION_NONE)
		return stored;
	if (!k->zstd)
		k->zstd = ZSTD_createDCtx();
	if (k->raw_size < c->chunk.raw) {
		free(k->raw);
		k->raw = malloc(c->chunk.raw);
		k->raw_size = k->raw ? c->chunk.raw : 0;
	}
	if (!k->zstd || !k->raw ||
	    ZSTD_decompressDCtx(k->zstd, k->raw, c->chunk.raw, stored, c->chunk.stored) !=
		    c->chunk.raw)
		return NULL;
	return k->raw;
}

/* Losses count however late they were noticed, and clocks around all others are welcome. */
static bool is_late(const struct keep *k, int64_t ts, uint8_t kind)
{
	return ts >= k->to && kind != RECORD_LOSS && kind != RECORD_CLOCK;
}

static int write_events(struct keep *k, const struct kept *c, const uint8_t *raw)
{
	size_t count = c->chunk.count, kept = 0;
	int err;

	if (!k->decoded)
		k->decoded = malloc(CHUNK_RECORDS_MAX * sizeof(*k->decoded));
	err = k->decoded ? events_codec_reserve(&k->codec, count) : -ENOMEM;
	if (!err)
		err = events_decode(k->codec, raw, c->chunk.raw, k->decoded, count);
	if (err)
		return err;
	for (size_t i = 0; i < count; i++)
		if (k->decoded[i].ts >= k->from && k->decoded[i].ts < k->to)
			k->decoded[kept++] = k->decoded[i];
	return writer_events(k->out, k->decoded, kept);
}

static int write_records(struct keep *k, const struct kept *c, const uint8_t *raw)
{
	int err;

	k->metas.count = 0;
	err = meta_decode(&k->metas, (enum record_kind)c->chunk.kind, raw, c->chunk.raw,
			  c->chunk.count);
	for (size_t i = 0; i < k->metas.count && !err; i++) {
		const struct record *r = &k->metas.items[i];
		int64_t first = INT64_MAX, last = INT64_MIN;

		meta_times(r, &first, &last);
		if (last >= k->from && !is_late(k, first, c->chunk.kind))
			err = writer_add(k->out, r);
	}
	return err;
}

static int write_kept(struct keep *k, const struct kept *c)
{
	const uint8_t *raw;

	if (c->chunk.last < k->from || is_late(k, c->chunk.first, c->chunk.kind))
		return 0;
	if (c->chunk.first >= k->from && !is_late(k, c->chunk.last, c->chunk.kind))
		return writer_chunk(k->out, &c->chunk, c->bytes, c->size);
	raw = content(k, c);
	if (!raw)
		return -ENOMEM;
	if (c->chunk.kind == RECORD_EVENTS)
		return write_events(k, c, raw);
	return write_records(k, c, raw);
}

int keep_write_step(struct keep *k)
{
	if (!k->out)
		return 0;
	if (!k->out_err && k->next < k->end)
		k->out_err = write_kept(k, at(k, k->next++));
	if (k->out_err)
		k->next = k->end;
	if (k->out_err)
		return k->out_err;
	return k->next < k->end;
}

void keep_write_stop(struct keep *k)
{
	k->out = NULL;
	k->out_err = 0;
	events_codec_free(k->codec);
	k->codec = NULL;
	ZSTD_freeDCtx(k->zstd);
	k->zstd = NULL;
	free(k->raw);
	k->raw = NULL;
	k->raw_size = 0;
	free(k->decoded);
	k->decoded = NULL;
	meta_records_free(&k->metas);
}
