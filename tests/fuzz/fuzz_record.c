/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The .gbpf reader, by libFuzzer. The first byte chooses: the rest is a file as
 * it is, or a list of chunks (kind, compression, count, raw size, size, then
 * so many bytes) that get right headers, so that checksums keep nothing from
 * being tried. Of one input in sixteen what was read is written again, which
 * is slow, and must read the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record/bytes.h"
#include "record/chunk.h"
#include "record/reader.h"
#include "record/writer.h"

#define RECORDS_MAX 200000u /* so that one input does not take seconds to write again */
#define PREFIX 10
#define COUNT_MAX 1000 /* a constant column has any number of values; more show nothing new */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(int holds)
{
	if (!holds)
		abort();
}

static int file_of(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	expect(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	return fd;
}

static int open_fd(struct reader **r, int fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return reader_open(r, path);
}

static int file_of_chunks(const uint8_t *data, size_t size)
{
	size_t most = FILE_HEADER_SIZE + size + (size / PREFIX + 1) * CHUNK_HEADER_SIZE;
	uint8_t *file = malloc(most);
	struct file_header h = {FORMAT_MAJOR, FORMAT_MINOR, FILE_HEADER_SIZE, 1};
	size_t at = FILE_HEADER_SIZE;
	int fd;

	expect(file != NULL);
	file_header_put(file, &h);
	while (size >= PREFIX) {
		struct chunk c = {.kind = data[0], .compression = data[1] % 3};
		size_t n = get_u16(data + 8);

		c.count = get_u16(data + 2) % COUNT_MAX;
		n = n < size - PREFIX ? n : size - PREFIX;
		c.stored = (uint32_t)n;
		c.raw = c.compression ? get_u32(data + 4) : c.stored;
		c.crc = chunk_crc(data + PREFIX, n);
		chunk_header_put(file + at, &c);
		memcpy(file + at + CHUNK_HEADER_SIZE, data + PREFIX, n);
		at += CHUNK_HEADER_SIZE + n;
		data += PREFIX + n;
		size -= PREFIX + n;
	}
	fd = file_of(file, at);
	free(file);
	return fd;
}

static size_t weight(const struct record *r)
{
	return r->kind == RECORD_EVENTS ? r->events.count : 1;
}

/* Copies the records to a new file; how many of each kind, in n. */
static void copy(int from, int to, size_t n[256])
{
	struct record record;
	struct reader *r;
	struct writer *w;
	size_t total = 0;

	expect(!writer_new(&w, dup(to), 1));
	expect(!open_fd(&r, from));
	while (total < RECORDS_MAX && reader_next(r, &record) == 1) {
		expect(!writer_add(w, &record));
		n[record.kind] += weight(&record);
		total += weight(&record);
	}
	reader_close(r);
	expect(!writer_close(w));
}

/* The events of both files, up to as many as the copy has, are the same bytes. */
static void compare_events(int a, int b)
{
	struct reader *r[2];
	struct record record[2];
	size_t at[2] = {0}, have[2] = {0};

	expect(!open_fd(&r[0], a) && !open_fd(&r[1], b));
	for (;;) {
		size_t n;

		for (int i = 0; i < 2; i++) {
			int more = 1;

			while (at[i] == have[i] && (more = reader_next(r[i], &record[i])) == 1) {
				at[i] = 0;
				have[i] = record[i].kind == RECORD_EVENTS ? weight(&record[i]) : 0;
			}
			if (more != 1)
				goto out;
		}
		n = have[0] - at[0] < have[1] - at[1] ? have[0] - at[0] : have[1] - at[1];
		expect(!memcmp(record[0].events.events + at[0], record[1].events.events + at[1],
			       n * sizeof(struct event)));
		at[0] += n;
		at[1] += n;
	}
out:
	reader_close(r[0]);
	reader_close(r[1]);
}

static void check_copy(int fd)
{
	size_t left[256] = {0};
	struct record record;
	struct reader *r;
	int again = file_of(NULL, 0);

	copy(fd, again, left);
	expect(!open_fd(&r, again));
	while (reader_next(r, &record) == 1)
		left[record.kind] -= weight(&record);
	expect(reader_end(r) == READER_END_WHOLE && !reader_lost_bytes(r));
	for (int i = 0; i < 256; i++)
		expect(!left[i]);
	reader_close(r);
	compare_events(fd, again);
	close(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct record record;
	struct reader *r;
	int fd;

	if (!size)
		return 0;
	fd = data[0] & 1 ? file_of_chunks(data + 1, size - 1) : file_of(data + 1, size - 1);
	if (!open_fd(&r, fd)) {
		while (reader_next(r, &record) == 1)
			expect(record.kind != RECORD_EVENTS || record.events.count > 0);
		expect(reader_end(r) != READER_END_UNKNOWN);
		reader_close(r);
		if (chunk_crc(data, size) % 16 == 0)
			check_copy(fd);
	}
	close(fd);
	return 0;
}
