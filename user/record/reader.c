/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "record/bytes.h"
#include "record/chunk.h"
#include "record/events.h"
#include "record/meta.h"
#include "util/beside.h"

/* Of a batch of several chunks, at most; of one there may be more. */
#define BATCH_BYTES (4u << 20) /* once decompressed */
#define BATCH_RECORDS 16384    /* but events */
#define BATCH_WORTH (64u << 10) /* bytes; of fewer a thread costs more than it saves */

struct buffer {
	uint8_t *data;
	size_t size;
};

/* What is decoded at once: neighbouring chunks, of which only the last may be of events. */
struct batch {
	struct buffer raw; /* the chunks' contents: records point into it */
	size_t used;
	struct meta_records metas;
	size_t at; /* the record that comes next */
	struct buffer events;
	size_t events_count;
	int result; /* what comes then: 1 another batch, 0 the end, -errno */
};

/* Records are given from one batch while the other one is filled. */
struct reader {
	int fd;
	uint64_t size; /* of the file, when it was opened */
	struct file_header header;
	struct batch batches[2];
	unsigned int now; /* the batch that records are given from */
	bool over;	  /* they all were */
	struct beside ahead;

	/* of who fills a batch */
	uint64_t offset; /* end of the last chunk that was whole */
	enum reader_end end;
	uint64_t chunks; /* read so far, for comparison with the index */
	struct buffer stored;
	ZSTD_DCtx *zstd;
	struct events_codec *codec;
};

/* Reads exactly size bytes at offset; -ENODATA: the file ends before. */
static int read_at(const struct reader *r, void *to, size_t size, uint64_t offset)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = pread(r->fd, (char *)to + done, size - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return -ENODATA;
		done += (size_t)n;
	}
	return 0;
}

static int reserve(struct buffer *b, size_t size)
{
	if (size <= b->size)
		return 0;
	free(b->data);
	b->data = malloc(size);
	b->size = b->data ? size : 0;
	return b->data ? 0 : -ENOMEM;
}

static int open_regular(struct reader *r, const char *path)
{
	struct stat st;

	/* O_NONBLOCK: a FIFO would keep us waiting for its writer. */
	r->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (r->fd < 0 || fstat(r->fd, &st))
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode))
		return -ESPIPE;
	r->size = (uint64_t)st.st_size;
	return 0;
}

static int read_header(struct reader *r)
{
	uint8_t bytes[FILE_HEADER_SIZE];
	int err = read_at(r, bytes, sizeof(bytes), 0);

	if (!err)
		err = file_header_get(&r->header, bytes);
	if (!err && r->header.size > r->size)
		err = -EBADMSG;
	r->offset = r->header.size;
	r->batches[0].result = 1;
	return err == -ENODATA ? -EBADMSG : err;
}

int reader_open(struct reader **out, const char *path)
{
	struct reader *r = calloc(1, sizeof(*r));
	int err;

	*out = NULL;
	if (!r)
		return -ENOMEM;
	err = open_regular(r, path);
	if (!err)
		err = read_header(r);
	if (!err) {
		r->zstd = ZSTD_createDCtx();
		err = r->zstd ? 0 : -ENOMEM;
	}
	if (err)
		reader_close(r);
	else
		*out = r;
	return err;
}

/* What the rest of the file being shorter than asked for, or wrong, means. */
static int stop(struct reader *r, int err)
{
	if (err == -ENODATA)
		r->end = READER_END_CUT;
	else if (err == -EBADMSG)
		r->end = READER_END_DAMAGED;
	else
		return err;
	return 0;
}

/* Exactly one frame of today's format: the library also takes old ones, and several. */
static bool is_frame(const struct buffer *b, const struct chunk *c)
{
	return c->stored >= 4 && get_u32(b->data) == ZSTD_MAGICNUMBER &&
	       ZSTD_findFrameCompressedSize(b->data, c->stored) == c->stored &&
	       ZSTD_getFrameContentSize(b->data, c->stored) == c->raw;
}

/* Fills c->raw bytes with a chunk's content; -EBADMSG when it is not what the header says. */
static int decompress(struct reader *r, const struct chunk *c, uint8_t *raw)
{
	size_t n;

	if (c->compression == COMPRESSION_NONE && c->stored == c->raw) {
		memcpy(raw, r->stored.data, c->raw);
		return 0;
	}
	if (c->compression != COMPRESSION_ZSTD || !is_frame(&r->stored, c))
		return -EBADMSG;
	n = ZSTD_decompressDCtx(r->zstd, raw, c->raw, r->stored.data, c->stored);
	return ZSTD_isError(n) || n != c->raw ? -EBADMSG : 0;
}

/* The header of the chunk at r->offset, of which the file has all. */
static int read_chunk_header(const struct reader *r, struct chunk *c)
{
	uint8_t header[CHUNK_HEADER_SIZE];
	uint64_t left = r->size - r->offset;
	int err;

	if (left < sizeof(header))
		return -ENODATA;
	err = read_at(r, header, sizeof(header), r->offset);
	if (!err)
		err = chunk_header_get(c, header);
	if (!err && left - sizeof(header) < c->stored)
		err = -ENODATA;
	return err;
}

/* Its bytes, checked, in r->stored. */
static int read_chunk(struct reader *r, const struct chunk *c)
{
	int err = reserve(&r->stored, c->stored ? c->stored : 1);

	if (!err)
		err = read_at(r, r->stored.data, c->stored, r->offset + CHUNK_HEADER_SIZE);
	if (!err && chunk_crc(r->stored.data, c->stored) != c->crc)
		err = -EBADMSG;
	return err;
}

static int decode_events(struct reader *r, struct batch *b, const struct chunk *c,
			 const uint8_t *raw)
{
	int err;

	if (!c->count || c->count > CHUNK_RECORDS_MAX)
		return c->count ? -EBADMSG : 0;
	err = events_codec_reserve(&r->codec, c->count);
	if (!err)
		err = reserve(&b->events, c->count * sizeof(struct event));
	if (!err)
		err = events_decode(r->codec, raw, c->raw, (struct event *)b->events.data,
				    c->count);
	b->events_count = err ? 0 : c->count;
	return err;
}

/* The index must speak of the chunks that came before it, all of them. */
static int check_index(const struct reader *r, const struct chunk *c, const uint8_t *raw)
{
	uint64_t chunks = 0;

	if (c->count > INDEX_ENTRIES_MAX || c->raw < c->count * INDEX_ENTRY_SIZE)
		return -EBADMSG;
	for (size_t i = 0; i < c->count; i++) {
		struct index_entry e;

		index_entry_get(&e, raw + i * INDEX_ENTRY_SIZE);
		chunks += e.chunks;
	}
	return chunks == r->chunks ? 0 : -EBADMSG;
}

/* After an index that began at the given offset: the trailer, and nothing else. */
static int check_trailer(const struct reader *r, uint64_t index_offset)
{
	uint8_t bytes[TRAILER_SIZE];
	uint64_t offset;
	int err;

	if (r->size - r->offset < TRAILER_SIZE)
		return -ENODATA;
	err = read_at(r, bytes, sizeof(bytes), r->offset);
	if (!err)
		err = trailer_get(&offset, bytes);
	if (!err && (offset != index_offset || r->size - r->offset != TRAILER_SIZE))
		err = -EBADMSG;
	return err;
}

static int finish(struct reader *r, const struct chunk *c, const uint8_t *raw)
{
	uint64_t index_offset = r->offset;
	int err = check_index(r, c, raw);

	if (err)
		return stop(r, err);
	r->offset += CHUNK_HEADER_SIZE + c->stored;
	err = check_trailer(r, index_offset);
	if (err)
		return stop(r, err);
	r->offset += TRAILER_SIZE;
	r->end = READER_END_WHOLE;
	return 0;
}

/* A batch with something in it does not move: records point into it. */
static bool has_room(const struct batch *b, const struct chunk *c)
{
	return !b->used || (c->raw <= b->raw.size - b->used &&
			    b->metas.count + c->count <= BATCH_RECORDS);
}

static int decode(struct reader *r, struct batch *b, const struct chunk *c, uint8_t *raw)
{
	int err = decompress(r, c, raw);

	if (!err && c->kind == RECORD_EVENTS)
		return decode_events(r, b, c, raw);
	if (!err && c->kind != CHUNK_INDEX)
		err = meta_decode(&b->metas, (enum record_kind)c->kind, raw, c->raw, c->count);
	return err;
}

/* Adds the next chunk, if there is room: 1, or 0 at the end, or -errno. */
static int next_chunk(struct reader *r, struct batch *b, bool *full)
{
	struct chunk c = {0};
	uint8_t *raw = NULL;
	bool known;
	int err = read_chunk_header(r, &c);

	if (err)
		return stop(r, err);
	*full = !has_room(b, &c);
	if (*full)
		return 1;
	err = read_chunk(r, &c);
	if (!err && !b->used)
		err = reserve(&b->raw, c.raw > BATCH_BYTES ? c.raw : BATCH_BYTES);
	if (!err)
		raw = b->raw.data + b->used;
	known = c.kind == CHUNK_INDEX || c.kind == RECORD_EVENTS || meta_known(c.kind);
	if (!err && known)
		err = decode(r, b, &c, raw);
	if (!err && c.kind == CHUNK_INDEX)
		return finish(r, &c, raw);
	if (err)
		return stop(r, err);
	b->used += known ? c.raw : 0;
	r->chunks++;
	r->offset += CHUNK_HEADER_SIZE + c.stored;
	return 1;
}

/* Fills the batch that no records are given from. */
static int fill(void *reader)
{
	struct reader *r = reader;
	struct batch *b = &r->batches[!r->now];
	bool full = false;

	b->used = b->metas.count = b->at = b->events_count = 0;
	do
		b->result = next_chunk(r, b, &full);
	while (b->result > 0 && !full && !b->events_count);
	return 0;
}

/* Goes on with the batch that was filled meanwhile, if it was begun, and has the next filled. */
static void next_batch(struct reader *r)
{
	const struct batch *b;

	if (!r->ahead.run)
		beside_begin(&r->ahead, fill, r, false);
	beside_end(&r->ahead);
	r->now = !r->now;
	b = &r->batches[r->now];
	if (b->result > 0)
		beside_begin(&r->ahead, fill, r, b->used >= BATCH_WORTH);
}

static bool batch_next(struct batch *b, struct record *record)
{
	if (b->at < b->metas.count) {
		*record = b->metas.items[b->at++];
		return true;
	}
	if (!b->events_count)
		return false;
	record->kind = RECORD_EVENTS;
	record->events.events = (const struct event *)b->events.data;
	record->events.count = b->events_count;
	b->events_count = 0;
	return true;
}

int reader_next(struct reader *r, struct record *record)
{
	while (!batch_next(&r->batches[r->now], record)) {
		int result = r->batches[r->now].result;

		r->over = !result;
		if (result <= 0)
			return result;
		next_batch(r);
	}
	return 1;
}

enum reader_end reader_end(const struct reader *r)
{
	return r->over ? r->end : READER_END_UNKNOWN;
}

uint64_t reader_lost_bytes(const struct reader *r)
{
	return r->over ? r->size - r->offset : 0;
}

int64_t reader_realtime(const struct reader *r)
{
	return r->header.realtime;
}

void reader_version(const struct reader *r, unsigned int *major, unsigned int *minor)
{
	*major = r->header.major;
	*minor = r->header.minor;
}

static void batch_free(struct batch *b)
{
	free(b->raw.data);
	free(b->events.data);
	meta_records_free(&b->metas);
}

void reader_close(struct reader *r)
{
	if (!r)
		return;
	beside_end(&r->ahead);
	if (r->fd >= 0)
		close(r->fd);
	batch_free(&r->batches[0]);
	batch_free(&r->batches[1]);
	free(r->stored.data);
	events_codec_free(r->codec);
	ZSTD_freeDCtx(r->zstd);
	free(r);
}
