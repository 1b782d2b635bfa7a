/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef GBPF_RECORD_READER_H
#define GBPF_RECORD_READER_H

#include <stdbool.h>

#include "record/record.h"

struct reader;

/* How a file ended; every state but WHOLE is readable up to its last whole chunk. */
enum reader_end {
	READER_END_UNKNOWN = 0, /* not read that far yet */
	READER_END_WHOLE,	/* index found: closed properly */
	READER_END_CUT,		/* stops at or inside a chunk, without an index */
	READER_END_DAMAGED,	/* a chunk fails its checksum or lies about its content */
};

/*
 * Opens path, a regular file ("-" is not special). Errors: -errno of open(2);
 * -EISDIR; -ESPIPE: neither file nor directory; -EBADMSG: not a .gbpf file, or
 * its first 32 bytes are incomplete or damaged; -EPROTO: written by another,
 * incompatible version; -ENOMEM.
 */
int reader_open(struct reader **out, const char *path);

/*
 * Gives the next record: 1, or 0 at the end, or -errno (-ENOMEM, -EIO). What
 * it points to is valid until the next call. Damage is not an error: the
 * reader stops there and reader_end() says so.
 */
int reader_next(struct reader *r, struct record *record);

enum reader_end reader_end(const struct reader *r);

/* Bytes after the last readable chunk, known once reader_next() returned 0. */
uint64_t reader_lost_bytes(const struct reader *r);

/* CLOCK_REALTIME ns at which the file was begun. */
int64_t reader_realtime(const struct reader *r);

/* The version of the format that the file says it has; neither may be NULL. */
void reader_version(const struct reader *r, unsigned int *major, unsigned int *minor);

void reader_close(struct reader *r); /* NULL is accepted */

#endif
