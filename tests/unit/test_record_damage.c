/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that were cut, damaged, made by somebody else, or made to harm. */
#include "record_example.h"
#include "record_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
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

/* ---- files made by hand ---- */

#define PART_MAX 4096

struct part {
	uint8_t data[PART_MAX];
	size_t size;
};

static void put_file_header(struct part *p, uint16_t major, uint16_t minor, uint32_t size)
{
	struct file_header h = {major, minor, size, 0};

	memset(p, 0, sizeof(*p));
	file_header_put(p->data, &h);
	p->size = size;
}

/* A chunk with a right checksum, whatever its content. */
static void put_chunk(struct part *p, struct chunk c, const void *content)
{
	c.crc = chunk_crc(content, c.stored);
	chunk_header_put(p->data + p->size, &c);
	memcpy(p->data + p->size + CHUNK_HEADER_SIZE, content, c.stored);
	p->size += CHUNK_HEADER_SIZE + c.stored;
}

static void put_plain(struct part *p, uint8_t kind, uint32_t count, const void *content,
		      size_t size)
{
	struct chunk c = {.kind = kind, .stored = (uint32_t)size, .raw = (uint32_t)size,
			  .count = count};

	put_chunk(p, c, content);
}

static struct outcome read_part(const struct part *p, char **text)
{
	int fd = file_of(p->data, p->size);
	struct outcome o;
	struct log log;

	log_new(&log);
	o = file_read(fd, log.file);
	*text = strdup(log_text(&log));
	log_free(&log);
	close(fd);
	return o;
}

#define ZERO8 "\0\0\0\0\0\0\0\0"
#define INFO_CONTENT "\0\1\0\0\0\0\0\0\0k\0\0\1\0\0\0\0\0\0\0v\0"
#define INFO_TEXT "info 1:6b 1:76\n"
#define BYTES(s) (s), sizeof(s) - 1

static void versions(void **state)
{
	struct part p;
	char *text;

	put_file_header(&p, FORMAT_MAJOR, 7, 64); /* what a newer minor version may do */
	put_plain(&p, 200, 99, BYTES("of a kind to come"));
	put_plain(&p, RECORD_INFO, 1, BYTES(INFO_CONTENT "and a new column"));
	assert_int_equal(read_part(&p, &text).end, READER_END_CUT);
	assert_string_equal(text, INFO_TEXT);
	free(text);
	put_file_header(&p, FORMAT_MAJOR + 1, 0, 32);
	assert_int_equal(read_part(&p, &text).err, -EPROTO);
	free(text);
	put_file_header(&p, 0, 9, 32);
	assert_int_equal(read_part(&p, &text).err, -EPROTO);
	free(text);
	put_file_header(&p, FORMAT_MAJOR, 0, 31);
	p.size = 32;
	assert_int_equal(read_part(&p, &text).err, -EBADMSG);
	free(text);
	put_file_header(&p, FORMAT_MAJOR, 0, 100);
	p.size = 99;
	assert_int_equal(read_part(&p, &text).err, -EBADMSG);
	free(text);
}

static void says_version(void **state)
{
	unsigned int major = 0, minor = 0;
	struct reader *r;
	struct part p;
	int fd;

	put_file_header(&p, FORMAT_MAJOR, 7, 64);
	fd = file_of(p.data, p.size);
	assert_int_equal(file_open(&r, fd), 0);
	reader_version(r, &major, &minor);
	assert_int_equal(major, FORMAT_MAJOR);
	assert_int_equal(minor, 7);
	reader_close(r);
	close(fd);
}

/* One event: a base, one thread (1, 2), thread 0, form, then the form's columns. */
#define EVENT_HEAD ZERO8 "\1\0\0\0\0\1\0\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0"
#define CONST(c) "\0" c "\0\0\0\0\0\0\0"

static const struct {
	const char *what;
	uint8_t kind;
	uint32_t count;
	const char *content;
	size_t size;
} lies[] = {
	{"events: nothing", RECORD_EVENTS, 1, BYTES("")},
	{"events: no columns", RECORD_EVENTS, 1, BYTES(ZERO8 "\1\0\0\0")},
	{"events: no thread", RECORD_EVENTS, 1, BYTES(ZERO8 "\0\0\0\0" CONST("\0") CONST("\0"))},
	{"events: threads", RECORD_EVENTS, 1, BYTES(ZERO8 "\2\0\0\0" CONST("\0") CONST("\0"))},
	{"events: threads", RECORD_EVENTS, 1, BYTES(ZERO8 "\377\377\377\377" CONST("\0"))},
	{"events: thread 1 of 1", RECORD_EVENTS, 1,
	 BYTES(EVENT_HEAD CONST("\1") CONST("\0") CONST("\0") CONST("\0"))},
	{"events: form 7", RECORD_EVENTS, 1,
	 BYTES(EVENT_HEAD CONST("\0") CONST("\7") CONST("\0") CONST("\0"))},
	{"events: no ends", RECORD_EVENTS, 1, BYTES(EVENT_HEAD CONST("\0") CONST("\3"))},
	{"events: sp too wide", RECORD_EVENTS, 1,
	 BYTES(EVENT_HEAD CONST("\0") CONST("\0") CONST("\0") "\0\0\0\0\0\1\0\0\0")},
	{"events: more than told", RECORD_EVENTS, 2,
	 BYTES(EVENT_HEAD "\1\0" CONST("\0") CONST("\0") CONST("\0"))},
	{"events: beyond the limit", RECORD_EVENTS, 65537,
	 BYTES(EVENT_HEAD CONST("\0") CONST("\0") CONST("\0") CONST("\0"))},
	{"records: beyond the limit", RECORD_WINDOW, 65537, BYTES(CONST("\1") CONST("\2"))},
	{"records: beyond any limit", RECORD_WINDOW, UINT32_MAX, BYTES(CONST("\1") CONST("\2"))},
	{"column: no such form", RECORD_WINDOW, 1, BYTES("\12" ZERO8 CONST("\2"))},
	{"column: planes missing", RECORD_WINDOW, 9, BYTES("\10" ZERO8)},
	{"column: too wide", RECORD_THREAD, 1, BYTES("\5" ZERO8 ZERO8 ZERO8 ZERO8 ZERO8)},
	{"column: constant missing", RECORD_WINDOW, 1, BYTES("\0\0\0")},
	{"column: empty table", RECORD_WINDOW, 1, BYTES("\11")},
	{"column: table missing", RECORD_WINDOW, 1, BYTES("\11\377" ZERO8)},
	{"column: index beyond", RECORD_WINDOW, 2, BYTES("\11\0" ZERO8 "\0\1" CONST("\2"))},
	{"column: table too wide", RECORD_THREAD, 1,
	 BYTES("\11\0\377\377\377\377\377\0\0\0\0" ZERO8 ZERO8 ZERO8 ZERO8)},
	{"string: longer than all", RECORD_INFO, 1, BYTES("\0\377\0\0\0\0\0\0\0k\0")},
	{"string: longer than allowed", RECORD_INFO, 1, BYTES("\0\0\0\1\0\0\0\0\0k\0")},
	{"string: no end", RECORD_INFO, 1, BYTES("\0\1\0\0\0\0\0\0\0kk" CONST("\0") "\0")},
	{"string: none", RECORD_INFO, 1, BYTES("\0\0\0\0\0\0\0\0\0")},
};

static void content_lies(void **state)
{
	for (size_t i = 0; i < COUNT(lies); i++) {
		struct outcome o;
		struct part p;
		char *text;

		put_file_header(&p, FORMAT_MAJOR, 0, 32);
		put_plain(&p, lies[i].kind, lies[i].count, lies[i].content, lies[i].size);
		o = read_part(&p, &text);
		if (o.end != READER_END_DAMAGED || *text)
			fail_msg("%s: end %d, \"%s\"", lies[i].what, o.end, text);
		assert_int_equal(o.lost, p.size - 32);
		free(text);
	}
}

/* The lies above are lies: told truly, the same content is read. */
static void content_true(void **state)
{
	struct part p;
	char *text;

	put_file_header(&p, FORMAT_MAJOR, 0, 32);
	put_plain(&p, RECORD_EVENTS, 1,
		  BYTES(EVENT_HEAD CONST("\0") CONST("\0") "\1\12" CONST("\0")));
	put_plain(&p, RECORD_WINDOW, 2, BYTES("\11\0" ZERO8 "\0\0" "\1\7\10"));
	put_plain(&p, RECORD_WINDOW, 0, BYTES(""));
	put_plain(&p, RECORD_INFO, 1, BYTES(INFO_CONTENT));
	assert_int_equal(read_part(&p, &text).end, READER_END_CUT);
	assert_string_equal(text, "event 5 1 2 0 0 0 1\nwindow 0 7\nwindow 0 8\n" INFO_TEXT);
	free(text);
}

static enum reader_end end_of(struct chunk c, const void *content)
{
	struct outcome o;
	struct part p;
	char *text;

	put_file_header(&p, FORMAT_MAJOR, 0, 32);
	put_chunk(&p, c, content);
	o = read_part(&p, &text);
	assert_true(o.end == READER_END_CUT ? !strcmp(text, INFO_TEXT) : !*text);
	free(text);
	return o.end;
}

static void compression_lies(void **state)
{
	uint8_t frame[200];
	uint32_t n = (uint32_t)ZSTD_compress(frame, 100, BYTES(INFO_CONTENT), 1);
	uint32_t raw = sizeof(INFO_CONTENT) - 1;
	struct chunk c = {.kind = RECORD_INFO, .compression = COMPRESSION_ZSTD, .stored = n,
			  .raw = raw, .count = 1};

	assert_int_equal(end_of(c, frame), READER_END_CUT);
	c.raw = raw + 1; /* not what the frame says */
	assert_int_equal(end_of(c, frame), READER_END_DAMAGED);
	c.raw = CHUNK_RAW_MAX + 1;
	assert_int_equal(end_of(c, frame), READER_END_DAMAGED);
	c.raw = raw;
	c.stored = n - 1;
	assert_int_equal(end_of(c, frame), READER_END_DAMAGED);
	memcpy(frame + n, frame, n); /* two frames */
	c.stored = 2 * n;
	assert_int_equal(end_of(c, frame), READER_END_DAMAGED);
	c.stored = n;
	c.compression = 2;
	assert_int_equal(end_of(c, frame), READER_END_DAMAGED);
	c.compression = COMPRESSION_NONE; /* stored and raw differ */
	assert_int_equal(end_of(c, frame), READER_END_DAMAGED);
	c.compression = COMPRESSION_ZSTD;
	frame[0] ^= 1; /* not a frame at all */
	assert_int_equal(end_of(c, frame), READER_END_DAMAGED);
	c.stored = 0;
	assert_int_equal(end_of(c, frame), READER_END_DAMAGED);
}

/* A header that promises 32 MiB in a file of a few bytes. */
static void promises(void **state)
{
	struct chunk c = {.kind = RECORD_INFO, .stored = CHUNK_RAW_MAX, .raw = CHUNK_RAW_MAX};
	struct outcome o;
	struct part p;
	char *text;

	put_file_header(&p, FORMAT_MAJOR, 0, 32);
	chunk_header_put(p.data + 32, &c);
	p.size = 32 + CHUNK_HEADER_SIZE;
	o = read_part(&p, &text);
	assert_int_equal(o.end, READER_END_CUT);
	assert_int_equal(o.lost, CHUNK_HEADER_SIZE);
	free(text);
}

/* ---- what is no file of ours ---- */

static void not_ours(void **state)
{
	char path[] = "/tmp/gbpf-test-XXXXXX";
	struct reader *r;
	int fd = file_new();

	assert_int_equal(file_open(&r, fd), -EBADMSG); /* empty */
	assert_int_equal(pwrite(fd, "#!/bin/sh\necho a text that is long enough\n", 42, 0), 42);
	assert_int_equal(file_open(&r, fd), -EBADMSG);
	close(fd);
	assert_int_equal(reader_open(&r, "/"), -EISDIR);
	assert_int_equal(reader_open(&r, "/dev/null"), -ESPIPE);
	assert_int_equal(reader_open(&r, "/nowhere/at/all"), -ENOENT);
	assert_non_null(mkdtemp(path));
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(reader_open(&r, path), -ESPIPE); /* and does not wait */
	assert_int_equal(unlink(path), 0);
	assert_null(r);
	reader_close(NULL);
}

static void header_only(void **state)
{
	struct outcome o;
	struct part p;
	char *text;

	put_file_header(&p, FORMAT_MAJOR, 0, 32);
	o = read_part(&p, &text);
	assert_int_equal(o.err, 0);
	assert_int_equal(o.end, READER_END_CUT);
	assert_int_equal(o.lost, 0);
	assert_string_equal(text, "");
	free(text);
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
		cmocka_unit_test(cut),		cmocka_unit_test(flipped),
		cmocka_unit_test(spliced),	cmocka_unit_test(versions),
		cmocka_unit_test(says_version), cmocka_unit_test(content_lies),
		cmocka_unit_test(content_true), cmocka_unit_test(compression_lies),
		cmocka_unit_test(promises),	cmocka_unit_test(not_ours),
		cmocka_unit_test(header_only),	cmocka_unit_test(long_index),
		cmocka_unit_test(example),
	};

	return cmocka_run_group_tests_name("record damage", tests, NULL, NULL);
}
