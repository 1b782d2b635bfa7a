/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "record/bytes.h"
#include "record/chunk.h"
#include "record/events.h"
#include "record/meta.h"

#define COMPRESSION_LEVEL 1

struct writer {
	int fd;
	int err;	 /* the first failure; nothing is written any more after it */
	uint64_t offset; /* end of the last whole chunk */
	uint64_t written; /* events in whole chunks */
	writer_sink sink; /* takes the chunks; NULL: the file does */
	void *sink_ctx;

	struct event *events; /* CHUNK_RECORDS_MAX */
	size_t count;
	struct meta_batch meta[META_KINDS]; /* by enum record_kind; EVENTS has none */

	struct index_entry *index; /* INDEX_ENTRIES_MAX */
	size_t entries;
	uint32_t stride; /* chunks that an index entry may stand for */

	struct events_codec *codec;
	ZSTD_CCtx *zstd;
	uint8_t *raw; /* a chunk's content */
	uint8_t *out; /* the same behind its header, compressed */
	size_t out_size;
};

/*
 * Records that others refer to come first. This is the order within one
 * flush; a chunk of events always follows what was added before it.
 */
static const enum record_kind meta_order[] = {
	RECORD_INFO,	RECORD_CLOCK,  RECORD_WINDOW, RECORD_API,  RECORD_IMAGE,
	RECORD_SITE,	RECORD_PROCESS, RECORD_THREAD, RECORD_NAME, RECORD_LOSS,
	RECORD_GPU,	RECORD_GPU_SAMPLE, RECORD_DEVICE, RECORD_SHAPE, RECORD_WORK_CALL,
	RECORD_WORK,	RECORD_OVERHEAD, RECORD_SIDECAR, RECORD_LABEL, RECORD_TRIGGER,
	RECORD_ACTIVE,
};

#define META_ORDER (sizeof(meta_order) / sizeof(meta_order[0]))

static size_t max_size(size_t a, size_t b)
{
	return a > b ? a : b;
}

static void writer_free(struct writer *w)
{
	if (w->fd >= 0)
		close(w->fd);
	for (size_t i = 0; i < META_KINDS; i++)
		meta_batch_free(&w->meta[i]);
	events_codec_free(w->codec);
	ZSTD_freeCCtx(w->zstd);
	free(w->events);
	free(w->index);
	free(w->raw);
	free(w->out);
	free(w);
}

static int allocate(struct writer *w)
{
	size_t raw = max_size(max_size(events_bound(), meta_bound()),
			      (size_t)INDEX_ENTRIES_MAX * INDEX_ENTRY_SIZE);
	int err = events_codec_reserve(&w->codec, CHUNK_RECORDS_MAX);

	for (size_t i = 0; !err && i < META_ORDER; i++)
		err = meta_batch_new(&w->meta[meta_order[i]]);
	if (err)
		return err;
	w->out_size = CHUNK_HEADER_SIZE + ZSTD_compressBound(raw);
	w->events = malloc(CHUNK_RECORDS_MAX * sizeof(*w->events));
	w->index = malloc(INDEX_ENTRIES_MAX * sizeof(*w->index));
	w->raw = malloc(raw);
	w->out = malloc(w->out_size);
	w->zstd = ZSTD_createCCtx();
	if (!w->events || !w->index || !w->raw || !w->out || !w->zstd)
		return -ENOMEM;
	if (ZSTD_isError(ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel,
						COMPRESSION_LEVEL)))
		return -ENOMEM;
	return 0;
}

/* Takes back what a failed write left, so that the file ends on a whole chunk. */
static void cut_back(struct writer *w)
{
	/* On a pipe neither works, and the reader finds the cut itself. */
	if (!ftruncate(w->fd, (off_t)w->offset))
		(void)lseek(w->fd, (off_t)w->offset, SEEK_SET);
}

/* Writes all of it, or nothing and remembers why. */
static int write_all(struct writer *w, const uint8_t *data, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = write(w->fd, data + done, size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			w->err = n < 0 ? -errno : -EIO;
			cut_back(w);
			return w->err;
		}
		done += (size_t)n;
	}
	w->offset += size;
	return 0;
}

/* Neighbours become one, so that the index stays small however long the trace. */
static void index_halve(struct writer *w)
{
	for (size_t i = 0; i < w->entries / 2; i++) {
		struct index_entry a = w->index[2 * i];
		const struct index_entry *b = &w->index[2 * i + 1];

		a.first = b->first < a.first ? b->first : a.first;
		a.last = b->last > a.last ? b->last : a.last;
		a.chunks += b->chunks;
		a.kinds |= b->kinds;
		a.records += b->records;
		w->index[i] = a;
	}
	w->entries /= 2;
	w->stride *= 2;
}

static void index_add(struct writer *w, const struct chunk *c)
{
	struct index_entry *e;

	if (!w->entries || w->index[w->entries - 1].chunks >= w->stride) {
		if (w->entries == INDEX_ENTRIES_MAX)
			index_halve(w);
		w->index[w->entries++] = (struct index_entry){
			.offset = w->offset, .first = INT64_MAX, .last = INT64_MIN};
	}
	e = &w->index[w->entries - 1];
	e->first = c->first < e->first ? c->first : e->first;
	e->last = c->last > e->last ? c->last : e->last;
	e->chunks++;
	e->kinds |= 1u << c->kind % 32;
	e->records += c->count;
}

static int hand_over(struct writer *w, const struct chunk *c, const uint8_t *bytes, size_t size)
{
	if (w->sink) {
		w->err = w->sink(w->sink_ctx, c, bytes, size);
		w->offset += w->err ? 0 : size;
		return w->err;
	}
	if (c->kind != CHUNK_INDEX)
		index_add(w, c);
	return write_all(w, bytes, size);
}

/* Compresses w->raw behind a header in w->out and writes both. */
static int put_chunk(struct writer *w, struct chunk *c)
{
	uint8_t *content = w->out + CHUNK_HEADER_SIZE;
	size_t size = ZSTD_compress2(w->zstd, content, w->out_size - CHUNK_HEADER_SIZE, w->raw,
				     c->raw);

	c->compression = COMPRESSION_ZSTD;
	if (ZSTD_isError(size) || size >= c->raw) {
		c->compression = COMPRESSION_NONE;
		size = c->raw;
		memcpy(content, w->raw, size);
	}
	c->stored = (uint32_t)size;
	c->crc = chunk_crc(content, size);
	chunk_header_put(w->out, c);
	return hand_over(w, c, w->out, CHUNK_HEADER_SIZE + size);
}

static int put_meta(struct writer *w, enum record_kind kind)
{
	struct meta_batch *b = &w->meta[kind];
	struct chunk c = {.kind = (uint8_t)kind, .first = INT64_MAX, .last = INT64_MIN};
	uint64_t scratch[META_BATCH_RECORDS];

	if (!b->count || w->err)
		return w->err;
	for (size_t i = 0; i < b->count; i++)
		meta_times(&b->records[i], &c.first, &c.last);
	c.count = (uint32_t)b->count;
	c.raw = (uint32_t)meta_encode(b, scratch, w->raw);
	meta_batch_clear(b);
	return put_chunk(w, &c);
}

static int put_all_meta(struct writer *w)
{
	for (size_t i = 0; i < META_ORDER; i++)
		put_meta(w, meta_order[i]);
	return w->err;
}

static int put_events(struct writer *w)
{
	struct chunk c = {.kind = RECORD_EVENTS, .first = INT64_MAX, .last = INT64_MIN};

	put_all_meta(w);
	if (!w->count || w->err)
		return w->err;
	for (size_t i = 0; i < w->count; i++) {
		int64_t ts = w->events[i].ts;

		c.first = ts < c.first ? ts : c.first;
		c.last = ts > c.last ? ts : c.last;
	}
	c.count = (uint32_t)w->count;
	c.raw = (uint32_t)events_encode(w->codec, w->events, w->count, w->raw);
	w->count = 0;
	if (!put_chunk(w, &c))
		w->written += c.count;
	return w->err;
}

static int put_header(struct writer *w, int64_t realtime)
{
	struct file_header h = {FORMAT_MAJOR, FORMAT_MINOR, FILE_HEADER_SIZE, realtime};
	uint8_t bytes[FILE_HEADER_SIZE];

	file_header_put(bytes, &h);
	return write_all(w, bytes, sizeof(bytes));
}

/* A file that held something would be given back by no reader, or lost. */
static int check_empty(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	return S_ISREG(st.st_mode) && st.st_size ? -EEXIST : 0;
}

int writer_new(struct writer **out, int fd, int64_t realtime)
{
	struct writer *w = calloc(1, sizeof(*w));
	int err;

	*out = NULL;
	if (!w) {
		close(fd);
		return -ENOMEM;
	}
	w->fd = fd;
	w->stride = 1;
	err = check_empty(fd);
	if (!err)
		err = allocate(w);
	if (!err)
		err = put_header(w, realtime);
	if (err)
		writer_free(w);
	else
		*out = w;
	return err;
}

int writer_new_sink(struct writer **out, writer_sink sink, void *ctx)
{
	struct writer *w = calloc(1, sizeof(*w));

	*out = NULL;
	if (!w)
		return -ENOMEM;
	w->fd = -1;
	w->stride = 1;
	w->sink = sink;
	w->sink_ctx = ctx;
	if (allocate(w)) {
		writer_free(w);
		return -ENOMEM;
	}
	*out = w;
	return 0;
}

int writer_chunk(struct writer *w, const struct chunk *c, const uint8_t *bytes, size_t size)
{
	if (put_events(w) || hand_over(w, c, bytes, size))
		return w->err;
	if (c->kind == RECORD_EVENTS)
		w->written += c->count;
	return 0;
}

int writer_events(struct writer *w, const struct event *events, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!events_valid(&events[i]))
			return w->err ? w->err : -EINVAL;
	while (count && !w->err) {
		size_t room = CHUNK_RECORDS_MAX - w->count;
		size_t n = count < room ? count : room;

		memcpy(w->events + w->count, events, n * sizeof(*events));
		w->count += n;
		events += n;
		count -= n;
		if (w->count == CHUNK_RECORDS_MAX)
			put_events(w);
	}
	return w->err;
}

int writer_add(struct writer *w, const struct record *record)
{
	if (record->kind == RECORD_EVENTS)
		return writer_events(w, record->events.events, record->events.count);
	if (w->err)
		return w->err;
	if (!meta_known(record->kind))
		return -EINVAL;
	if (!meta_batch_add(&w->meta[record->kind], record))
		return 0;
	if (put_all_meta(w))
		return w->err;
	return meta_batch_add(&w->meta[record->kind], record);
}

int writer_flush(struct writer *w)
{
	return put_events(w);
}

uint64_t writer_size(const struct writer *w)
{
	return w->offset;
}

uint64_t writer_written(const struct writer *w)
{
	return w->written;
}

static int put_index(struct writer *w)
{
	struct chunk c = {.kind = CHUNK_INDEX, .first = INT64_MAX, .last = INT64_MIN};
	uint64_t begin = w->offset;
	uint8_t trailer[TRAILER_SIZE];

	for (size_t i = 0; i < w->entries; i++)
		index_entry_put(w->raw + i * INDEX_ENTRY_SIZE, &w->index[i]);
	c.count = (uint32_t)w->entries;
	c.raw = (uint32_t)(w->entries * INDEX_ENTRY_SIZE);
	if (put_chunk(w, &c))
		return w->err;
	trailer_put(trailer, begin);
	return write_all(w, trailer, sizeof(trailer));
}

int writer_close(struct writer *w)
{
	int err;

	if (!w)
		return 0;
	err = put_events(w);
	if (!err && !w->sink)
		err = put_index(w);
	/* A network file system may say only now that it had no room. */
	if (w->fd >= 0 && close(w->fd) && !err)
		err = -errno;
	w->fd = -1;
	writer_free(w);
	return err;
}
