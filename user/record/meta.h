/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The content of every chunk that does not hold events: one table says which
 * fields a kind of record has, in which order; docs/format.md, "Other kinds".
 */
#ifndef GBPF_RECORD_META_H
#define GBPF_RECORD_META_H

#include <stdbool.h>

#include "record/chunk.h"
#include "record/columns.h"
#include "record/record.h"

#define META_KINDS RECORD_KINDS
#define META_FIELDS_MAX 22
#define META_STRING_MAX 65535u /* bytes without the NUL; longer ones are cut */
#define META_NAME_MAX 8191u    /* the same, for a kernel's name */
#define META_BATCH_RECORDS 512u
#define META_BATCH_STRINGS (512u << 10)

/* Records of one kind that wait for their chunk; the strings are copies. */
struct meta_batch {
	struct record *records; /* META_BATCH_RECORDS */
	char *strings;		/* META_BATCH_STRINGS bytes */
	size_t count, used;
};

/* Whether kind is one that this module knows (all but EVENTS). */
bool meta_known(unsigned int kind);

int meta_batch_new(struct meta_batch *b); /* 0 or -ENOMEM */
void meta_batch_free(struct meta_batch *b);
void meta_batch_clear(struct meta_batch *b);

/* Copies a record of a known kind; -ENOSPC: full, nothing was copied. NULL strings become "". */
int meta_batch_add(struct meta_batch *b, const struct record *record);

/*
 * A copy of a record of a known kind with its strings behind it, cut as in a file: one piece
 * of *size bytes for free(). NULL: no memory.
 */
struct record *meta_copy(const struct record *record, size_t *size);

/* Widens first..last (ns) by the record's own times, if it has any. */
void meta_times(const struct record *record, int64_t *first, int64_t *last);

/* Bytes that meta_encode() needs at most for any batch. */
size_t meta_bound(void);

/* Writes a batch of one or more records of one kind; scratch has room for their number. */
size_t meta_encode(const struct meta_batch *b, uint64_t *scratch, uint8_t *out);

/* Records as they were decoded. All zero is a valid empty state. */
struct meta_records {
	struct record *items;
	size_t count, room;
	uint64_t *column; /* scratch: one field of a chunk's records */
	size_t column_room;
};

/*
 * Appends the records of a chunk, which point into its bytes. -EBADMSG: the bytes are not
 * such content; -ENOMEM. Nothing was appended then.
 */
int meta_decode(struct meta_records *m, enum record_kind kind, const uint8_t *in, size_t size,
		size_t count);

void meta_records_free(struct meta_records *m); /* may be repeated */

#endif
