/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/chunk.h"

#include <errno.h>
#include <zlib.h>

#include "record/bytes.h"

/* The line ends show a transfer that took the file for text. */
static const uint8_t file_magic[8] = {'G', 'B', 'P', 'F', '\r', '\n', 0x1a, '\n'};
static const uint8_t chunk_magic[4] = {'C', 'H', 'N', 'K'};
static const uint8_t trailer_magic[8] = {'G', 'B', 'P', 'F', '-', 'E', 'N', 'D'};

uint32_t chunk_crc(const uint8_t *data, size_t size)
{
	return (uint32_t)crc32_z(0, data, size);
}

void file_header_put(uint8_t *out, const struct file_header *h)
{
	memcpy(out, file_magic, sizeof(file_magic));
	put_u16(out + 8, h->major);
	put_u16(out + 10, h->minor);
	put_u32(out + 12, h->size);
	put_u64(out + 16, (uint64_t)h->realtime);
	put_u32(out + 24, 0);
	put_u32(out + 28, chunk_crc(out, 28));
}

int file_header_get(struct file_header *h, const uint8_t *in)
{
	if (memcmp(in, file_magic, sizeof(file_magic)) != 0)
		return -EBADMSG;
	h->major = get_u16(in + 8);
	h->minor = get_u16(in + 10);
	/* Nothing behind these numbers is known of another major version. */
	if (h->major != FORMAT_MAJOR)
		return -EPROTO;
	h->size = get_u32(in + 12);
	h->realtime = (int64_t)get_u64(in + 16);
	if (get_u32(in + 28) != chunk_crc(in, 28))
		return -EBADMSG;
	return h->size < FILE_HEADER_SIZE || h->size > FILE_HEADER_MAX ? -EBADMSG : 0;
}

void chunk_header_put(uint8_t *out, const struct chunk *c)
{
	memcpy(out, chunk_magic, sizeof(chunk_magic));
	out[4] = c->kind;
	out[5] = c->compression;
	put_u16(out + 6, 0);
	put_u32(out + 8, c->stored);
	put_u32(out + 12, c->raw);
	put_u32(out + 16, c->count);
	put_u32(out + 20, c->crc);
	put_u64(out + 24, (uint64_t)c->first);
	put_u64(out + 32, (uint64_t)c->last);
	put_u32(out + 40, 0);
	put_u32(out + 44, chunk_crc(out, 44));
}

int chunk_header_get(struct chunk *c, const uint8_t *in)
{
	if (memcmp(in, chunk_magic, sizeof(chunk_magic)) != 0 ||
	    get_u32(in + 44) != chunk_crc(in, 44))
		return -EBADMSG;
	c->kind = in[4];
	c->compression = in[5];
	c->stored = get_u32(in + 8);
	c->raw = get_u32(in + 12);
	c->count = get_u32(in + 16);
	c->crc = get_u32(in + 20);
	c->first = (int64_t)get_u64(in + 24);
	c->last = (int64_t)get_u64(in + 32);
	if (c->stored > CHUNK_RAW_MAX || c->raw > CHUNK_RAW_MAX)
		return -EBADMSG;
	return 0;
}

void index_entry_put(uint8_t *out, const struct index_entry *e)
{
	put_u64(out, e->offset);
	put_u64(out + 8, (uint64_t)e->first);
	put_u64(out + 16, (uint64_t)e->last);
	put_u32(out + 24, e->chunks);
	put_u32(out + 28, e->kinds);
	put_u64(out + 32, e->records);
}

void index_entry_get(struct index_entry *e, const uint8_t *in)
{
	e->offset = get_u64(in);
	e->first = (int64_t)get_u64(in + 8);
	e->last = (int64_t)get_u64(in + 16);
	e->chunks = get_u32(in + 24);
	e->kinds = get_u32(in + 28);
	e->records = get_u64(in + 32);
}

void trailer_put(uint8_t *out, uint64_t index_offset)
{
	put_u64(out, index_offset);
	memcpy(out + 8, trailer_magic, sizeof(trailer_magic));
}

int trailer_get(uint64_t *index_offset, const uint8_t *in)
{
	if (memcmp(in + 8, trailer_magic, sizeof(trailer_magic)) != 0)
		return -EBADMSG;
	*index_offset = get_u64(in);
	return 0;
}
