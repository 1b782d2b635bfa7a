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

struct buffer {
	uint8_t *data;
	size_t size;
};

struct reader {
	int fd;
	uint64_t size;	 /* of the file, when it was opened */
	uint64_t offset; /* end of the last chunk that was whole */
	struct file_header header;
	enum reader_end end;
	uint64_t chunks; /* read so far, for comparison with the index */

	struct buffer stored, raw, events;
	ZSTD_DCtx *zstd;
	struct events_codec *codec;
	struct meta_reader meta;
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

/* Where a chunk's raw content is; -EBADMSG when it is not what the header says. */
static int decompress(struct reader *r, const struct chunk *c, const uint8_t **raw)
{
	size_t n;
	int err;

	*raw = r->stored.data;
	if (c->compression == COMPRESSION_NONE)
		return c->stored == c->raw ? 0 : -EBADMSG;
	if (c->compression != COMPRESSION_ZSTD || !is_frame(&r->stored, c))
		return -EBADMSG;
	err = reserve(&r->raw, c->raw);
	if (err)
		return err;
	*raw = r->raw.data;
	n = ZSTD_decompressDCtx(r->zstd, r->raw.data, c->raw, r->stored.data, c->stored);
	return ZSTD_isError(n) || n != c->raw ? -EBADMSG : 0;
}

/* The chunk at r->offset: its header, and its checked bytes in r->stored. */
static int read_chunk(struct reader *r, struct chunk *c)
{
	uint8_t header[CHUNK_HEADER_SIZE];
	uint64_t left = r->size - r->offset;
	int err;

	if (left < sizeof(header))
		return -ENODATA;
	err = read_at(r, header, sizeof(header), r->offset);
	if (!err)
		err = chunk_header_get(c, header);
	if (err)
		return err;
	/* Before memory is asked for: what is not in the file needs none. */
	if (left - sizeof(header) < c->stored)
		return -ENODATA;
	err = reserve(&r->stored, c->stored ? c->stored : 1);
	if (!err)
		err = read_at(r, r->stored.data, c->stored, r->offset + sizeof(header));
	if (!err && chunk_crc(r->stored.data, c->stored) != c->crc)
		err = -EBADMSG;
	return err;
}

static int decode_events(struct reader *r, const struct chunk *c, const uint8_t *raw)
{
	int err;

	if (!c->count || c->count > CHUNK_RECORDS_MAX)
		return c->count ? -EBADMSG : 0;
	err = events_codec_reserve(&r->codec, c->count);
	if (!err)
		err = reserve(&r->events, c->count * sizeof(struct event));
	if (err)
		return err;
	return events_decode(r->codec, raw, c->raw, (struct event *)r->events.data, c->count);
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

/* Begins the next chunk: 1, with its kind in *c, or what reader_next() returns. */
static int next_chunk(struct reader *r, struct chunk *c)
{
	const uint8_t *raw = NULL;
	int err = read_chunk(r, c);

	if (err)
		return stop(r, err);
	if (c->kind == CHUNK_INDEX || c->kind == RECORD_EVENTS || meta_known(c->kind))
		err = decompress(r, c, &raw);
	if (!err && c->kind == CHUNK_INDEX)
		return finish(r, c, raw);
	if (!err && c->kind == RECORD_EVENTS)
		err = decode_events(r, c, raw);
	else if (!err && meta_known(c->kind))
		err = meta_decode(&r->meta, (enum record_kind)c->kind, raw, c->raw, c->count);
	if (err)
		return stop(r, err);
	r->chunks++;
	r->offset += CHUNK_HEADER_SIZE + c->stored;
	return 1;
}

int reader_next(struct reader *r, struct record *record)
{
	while (!meta_next(&r->meta, record)) {
		struct chunk c = {0};
		int more;

		if (r->end != READER_END_UNKNOWN)
			return 0;
		more = next_chunk(r, &c);
		if (more <= 0)
			return more;
		if (c.kind != RECORD_EVENTS || !c.count)
			continue;
		record->kind = RECORD_EVENTS;
		record->events.events = (const struct event *)r->events.data;
		record->events.count = c.count;
		return 1;
	}
	return 1;
}

enum reader_end reader_end(const struct reader *r)
{
	return r->end;
}

uint64_t reader_lost_bytes(const struct reader *r)
{
	return r->size - r->offset;
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

void reader_close(struct reader *r)
{
	if (!r)
		return;
	if (r->fd >= 0)
		close(r->fd);
	meta_reader_free(&r->meta);
	events_codec_free(r->codec);
	ZSTD_freeDCtx(r->zstd);
	free(r->events.data);
	free(r->stored.data);
	free(r->raw.data);
	free(r);
}
