/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The frame of a .gbpf file: its header, the headers of its chunks, the index
 * and the trailer. docs/format.md describes the same bytes in words.
 */
#ifndef GBPF_RECORD_CHUNK_H
#define GBPF_RECORD_CHUNK_H

#include <stddef.h>
#include <stdint.h>

#define FORMAT_MAJOR 1
#define FORMAT_MINOR 4

#define FILE_HEADER_SIZE 32
#define FILE_HEADER_MAX 4096 /* a newer minor version may need more than ours */
#define CHUNK_HEADER_SIZE 48
#define CHUNK_RAW_MAX (32u << 20)
#define CHUNK_RECORDS_MAX 65536u
#define CHUNK_INDEX 255 /* the chunk kind that is no record kind */
#define INDEX_ENTRY_SIZE 40
#define INDEX_ENTRIES_MAX 16384u
#define TRAILER_SIZE 16

enum compression {
	COMPRESSION_NONE = 0,
	COMPRESSION_ZSTD = 1,
};

struct file_header {
	uint16_t major, minor;
	uint32_t size;
	int64_t realtime; /* CLOCK_REALTIME ns at which the file was begun */
};

struct chunk {
	uint8_t kind;	     /* enum record_kind, or CHUNK_INDEX */
	uint8_t compression; /* enum compression */
	uint32_t stored;     /* bytes of content in the file */
	uint32_t raw;	     /* bytes once decompressed */
	uint32_t count;	     /* records */
	uint32_t crc;	     /* CRC-32 of the stored bytes */
	int64_t first, last; /* earliest and latest ns inside; first > last: none */
};

/* One or more neighbouring chunks, as the index lists them. */
struct index_entry {
	uint64_t offset;     /* of the first chunk */
	int64_t first, last; /* ns, as in struct chunk */
	uint32_t chunks;
	uint32_t kinds; /* bit per kind */
	uint64_t records;
};

/* Writes FILE_HEADER_SIZE bytes. */
void file_header_put(uint8_t *out, const struct file_header *h);

/* -EBADMSG: not a .gbpf file, or a damaged header; -EPROTO: other major version. */
int file_header_get(struct file_header *h, const uint8_t *in);

/* Writes CHUNK_HEADER_SIZE bytes. */
void chunk_header_put(uint8_t *out, const struct chunk *c);

/* -EBADMSG: not a chunk header, damaged, or sizes beyond the format's limits. */
int chunk_header_get(struct chunk *c, const uint8_t *in);

void index_entry_put(uint8_t *out, const struct index_entry *e);
void index_entry_get(struct index_entry *e, const uint8_t *in);

/* The last TRAILER_SIZE bytes of a whole file: where the index chunk begins. */
void trailer_put(uint8_t *out, uint64_t index_offset);
int trailer_get(uint64_t *index_offset, const uint8_t *in);

/* CRC-32 as in gzip. */
uint32_t chunk_crc(const uint8_t *data, size_t size);

#endif
