/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that somebody else made: of other versions, or to harm. */
#include "record_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <zstd.h>

#include "record/chunk.h"

#define PART_MAX 16384

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

/* A kernel's name of so many bytes, all of them there. */
static enum reader_end end_of_name(uint16_t len)
{
	static const char numbers[] = CONST("\1") CONST("\2") CONST("\1") CONST("\3");
	uint8_t content[9000] = {0};
	size_t at = sizeof(numbers) - 1;
	struct outcome o;
	struct part p;
	char *text;

	memcpy(content, numbers, at);
	content[at + 1] = (uint8_t)len;
	content[at + 2] = (uint8_t)(len >> 8);
	put_file_header(&p, FORMAT_MAJOR, 0, 32);
	put_plain(&p, RECORD_NAME, 1, content, at + 9 + len + 1);
	o = read_part(&p, &text);
	free(text);
	return o.end;
}

static void longest_name(void **state)
{
	assert_int_equal(end_of_name(8191), READER_END_CUT);
	assert_int_equal(end_of_name(8192), READER_END_DAMAGED);
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
	/* A second frame, though an empty one. */
	c.stored = n + (uint32_t)ZSTD_compress(frame + n, 100, "", 0, 1);
	assert_true(c.stored > n);
	assert_int_equal(end_of(c, frame), READER_END_DAMAGED);
	c.stored = n;
	c.compression = 2;
	assert_int_equal(end_of(c, frame), READER_END_DAMAGED);
	frame[0] ^= 1; /* not a frame at all */
	assert_int_equal(end_of(c, frame), READER_END_DAMAGED);
	c.stored = 0;
	assert_int_equal(end_of(c, frame), READER_END_DAMAGED);
}

/* What is not compressed has one size. */
static void two_sizes(void **state)
{
	char content[64] = INFO_CONTENT;
	uint32_t size = sizeof(INFO_CONTENT) - 1;
	struct chunk c = {.kind = RECORD_INFO, .stored = size, .raw = size, .count = 1};

	assert_int_equal(end_of(c, content), READER_END_CUT);
	c.raw = size + 4;
	assert_int_equal(end_of(c, content), READER_END_DAMAGED);
	c.raw = size;
	c.stored = size + 4;
	assert_int_equal(end_of(c, content), READER_END_DAMAGED);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions),	cmocka_unit_test(says_version),
		cmocka_unit_test(content_lies), cmocka_unit_test(content_true),
		cmocka_unit_test(two_sizes),	cmocka_unit_test(compression_lies),
		cmocka_unit_test(promises),	cmocka_unit_test(not_ours),
		cmocka_unit_test(header_only),	cmocka_unit_test(longest_name),
	};

	return cmocka_run_group_tests_name("record foreign", tests, NULL, NULL);
}
