/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that were cut or damaged, and what tells whole ones from them. */
#include "record_example.h"
#include "record_file.h"

#include <errno.h>
#include <zstd.h>

#include "record/bytes.h"
#include "record/chunk.h"
#include "tests/record_data.h"

/* ---- a small whole file, and where its chunks end ---- */

struct sample {
	uint8_t *data;
	size_t size;
	char *text;	     /* of all records */
	size_t ends[40];     /* ends of the header, of each chunk, and of the trailer */
	size_t text_end[40]; /* how much of the text is known by then */
	size_t count;
};

static size_t text_of_lines(const char *text, size_t lines)
{
	const char *at = text;

	while (lines--)
		at = strchr(at, '\n') + 1;
	return (size_t)(at - text);
}

/* Finds the chunks by what docs/format.md says, not by the reader's code. */
static void find_chunks(struct sample *s)
{
	size_t at = FILE_HEADER_SIZE, lines = 0;

	s->ends[0] = at;
	s->text_end[0] = 0;
	s->count = 1;
	while (s->size - at > TRAILER_SIZE) {
		lines += s->data[at + 4] == CHUNK_INDEX ? 0 : get_u32(s->data + at + 16);
		at += CHUNK_HEADER_SIZE + get_u32(s->data + at + 8);
		s->ends[s->count] = at;
		s->text_end[s->count++] = text_of_lines(s->text, lines);
	}
	assert_int_equal(s->size - at, TRAILER_SIZE);
	s->ends[s->count] = s->size;
	s->text_end[s->count++] = strlen(s->text);
}

static void add_records(struct writer *w, struct data *d, int round)
{
	struct record r[] = {
		{.kind = RECORD_INFO, .info = {"host", "node7"}},
		{.kind = RECORD_API, .api = {3, "cuLaunchKernel", "libcuda", "launch"}},
		{.kind = RECORD_NAME, .name = {5, 1, 1, 0x55d0, "_Z4gemmPf", 9}},
		{.kind = RECORD_LOSS, .loss = {77, RECORD_LOSS_RING_FULL, 12}},
	};

	for (size_t i = 0; i < COUNT(r); i++)
		if (i % 2 == (size_t)round % 2)
			assert_int_equal(writer_add(w, &r[i]), 0);
	for (int i = 0; i < 30; i++) {
		struct event e;

		data_next(d, &e);
		assert_int_equal(writer_events(w, &e, 1), 0);
	}
	assert_int_equal(writer_flush(w), 0);
}

static void sample_new(struct sample *s)
{
	struct writer *w;
	struct log log;
	struct data d;
	int fd = file_new();

	data_begin(&d, 11, 2, false);
	assert_int_equal(writer_new(&w, dup(fd), 12345), 0);
	for (int round = 0; round < 4; round++)
		add_records(w, &d, round);
	assert_int_equal(writer_close(w), 0);
	log_new(&log);
	assert_int_equal(file_read(fd, log.file).end, READER_END_WHOLE);
	s->data = file_bytes(fd, &s->size);
	s->text = strdup(log_text(&log));
	find_chunks(s);
	assert_true(s->count > 10);
	log_free(&log);
	close(fd);
}

static void sample_free(struct sample *s)
{
	free(s->data);
	free(s->text);
}

/* The records read are those of the first chunks, exactly. */
static void assert_prefix(const struct sample *s, size_t chunk, struct log *log)
{
	const char *text = log_text(log);

	assert_int_equal(log->size, s->text_end[chunk]);
	assert_memory_equal(text, s->text, log->size);
}

static void cut(void **state)
{
	struct sample s;
	size_t chunk = 0;

	sample_new(&s);
	for (size_t size = 0; size <= s.size; size++) {
		int fd = file_of(s.data, size);
		struct outcome o;
		struct log log;

		while (chunk + 1 < s.count && s.ends[chunk + 1] <= size)
			chunk++;
		log_new(&log);
		o = file_read(fd, log.file);
		assert_int_equal(o.err, size < FILE_HEADER_SIZE ? -EBADMSG : 0);
		if (!o.err) {
			assert_prefix(&s, chunk, &log);
			assert_int_equal(o.end, size == s.size ? READER_END_WHOLE :
								 READER_END_CUT);
			assert_int_equal(o.lost, size - s.ends[chunk]);
		}
		log_free(&log);
		close(fd);
	}
	sample_free(&s);
}

/* One bit wrong anywhere: nothing from there on is believed, all before it is. */
static void flipped(void **state)
{
	struct sample s;
	size_t chunk = 0;

	sample_new(&s);
	for (size_t at = 0; at < s.size; at++) {
		struct outcome o;
		struct log log;
		int fd;

		while (s.ends[chunk] <= at)
			chunk++;
		s.data[at] ^= (uint8_t)(1u << at % 8);
		fd = file_of(s.data, s.size);
		s.data[at] ^= (uint8_t)(1u << at % 8);
		log_new(&log);
		o = file_read(fd, log.file);
		if (!chunk) {
			assert_true(o.err == -EBADMSG || o.err == -EPROTO);
		} else {
			assert_int_equal(o.err, 0);
			assert_int_equal(o.end, READER_END_DAMAGED);
			assert_prefix(&s, chunk - 1, &log);
			assert_int_equal(o.lost, s.size - s.ends[chunk - 1]);
		}
		log_free(&log);
		close(fd);
	}
	sample_free(&s);
}

static void spliced(void **state)
{
	struct outcome o;
	struct sample s;
	struct log log;
	size_t tail;
	int fd;

	sample_new(&s);
	tail = s.size - s.ends[3];
	fd = file_of(s.data, s.ends[2]); /* the third chunk is left out */
	assert_int_equal(pwrite(fd, s.data + s.ends[3], tail, (off_t)s.ends[2]), tail);
	log_new(&log);
	o = file_read(fd, log.file);
	assert_int_equal(o.end, READER_END_DAMAGED);
	assert_true(o.lost > TRAILER_SIZE);
	log_free(&log);
	close(fd);
	fd = file_of(s.data, s.size);
	assert_int_equal(pwrite(fd, "x", 1, (off_t)s.size), 1);
	log_new(&log);
	o = file_read(fd, log.file);
	assert_int_equal(o.end, READER_END_DAMAGED);
	assert_int_equal(o.lost, TRAILER_SIZE + 1);
	assert_prefix(&s, s.count - 1, &log);
	log_free(&log);
	close(fd);
	sample_free(&s);
}

/* A file that was made without our writer. */
static void example(void **state)
{
	int fd = file_of(record_example, sizeof(record_example));
	struct log log;
	struct reader *r;

	log_new(&log);
	assert_int_equal(file_read(fd, log.file).end, READER_END_WHOLE);
	assert_string_equal(log_text(&log),
			    "info 4:686f7374 2:6e31\n"
			    "event 1000000 5 7 4096 3 2 1 launch 5500 0 0 4 1 1 256 1 1\n"
			    "event 1000900 5 7 4096 3 2 2 end 0 0 0\n");
	assert_int_equal(file_open(&r, fd), 0);
	assert_int_equal(reader_realtime(r), 1700000000000000000);
	reader_close(r);
	log_free(&log);
	close(fd);
}

/* ---- the index of a file with more chunks than the index has entries ---- */

static uint64_t check_entries(const uint8_t *file, const uint8_t *raw, uint32_t count)
{
	uint64_t chunks = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct index_entry e;
		struct chunk c;

		index_entry_get(&e, raw + (size_t)i * INDEX_ENTRY_SIZE);
		assert_int_equal(chunk_header_get(&c, file + e.offset), 0);
		assert_int_equal(e.first, (int64_t)chunks);
		assert_int_equal(e.last, (int64_t)(chunks + e.chunks - 1));
		assert_int_equal(c.first, e.first);
		assert_int_equal(e.kinds, 1u << RECORD_EVENTS);
		assert_int_equal(e.records, e.chunks);
		if (i + 1 < count)
			assert_int_equal(e.chunks, 4); /* halved twice */
		chunks += e.chunks;
	}
	return chunks;
}

static void long_index(void **state)
{
	const uint64_t chunks = 2 * INDEX_ENTRIES_MAX + 77;
	struct writer *w;
	struct chunk c;
	struct log log;
	uint64_t offset;
	uint8_t *file, *raw;
	size_t size;
	int fd = file_new();

	assert_int_equal(writer_new(&w, dup(fd), 0), 0);
	for (uint64_t i = 0; i < chunks; i++) {
		struct event e = {.kind = EVENT_BEGIN, .ts = (int64_t)i};

		assert_int_equal(writer_events(w, &e, 1), 0);
		assert_int_equal(writer_flush(w), 0);
	}
	assert_int_equal(writer_close(w), 0);
	log_new(&log);
	assert_int_equal(file_read(fd, log.file).end, READER_END_WHOLE);
	assert_true(text_of_lines(log_text(&log), chunks) == log.size);
	log_free(&log);
	file = file_bytes(fd, &size);
	assert_int_equal(trailer_get(&offset, file + size - TRAILER_SIZE), 0);
	assert_int_equal(chunk_header_get(&c, file + offset), 0);
	assert_in_range(c.count, INDEX_ENTRIES_MAX / 2, INDEX_ENTRIES_MAX);
	raw = malloc(c.raw);
	assert_int_equal(ZSTD_decompress(raw, c.raw, file + offset + CHUNK_HEADER_SIZE, c.stored),
			 c.raw);
	assert_int_equal(check_entries(file, raw, c.count), chunks);
	free(raw);
	free(file);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cut),	   cmocka_unit_test(flipped),
		cmocka_unit_test(spliced), cmocka_unit_test(example),
		cmocka_unit_test(long_index),
	};

	return cmocka_run_group_tests_name("record damage", tests, NULL, NULL);
}
