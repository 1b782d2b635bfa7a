/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The content of an EVENTS chunk. Events are taken thread by thread, so that
 * what repeats in a thread stays together whatever other threads do between,
 * and split into columns; docs/format.md, "EVENTS".
 */
#ifndef GBPF_RECORD_EVENTS_H
#define GBPF_RECORD_EVENTS_H

#include <stdbool.h>

#include "record/chunk.h"
#include "record/record.h"

/* Scratch for coding and decoding; about 280 bytes an event that it has room for. */
struct events_codec;

/*
 * Makes room for count events (1..CHUNK_RECORDS_MAX) in *c, which may be NULL
 * at first. Returns 0, or -ENOMEM and *c is NULL.
 */
int events_codec_reserve(struct events_codec **c, size_t count);
void events_codec_free(struct events_codec *c); /* NULL is accepted */

/* Bytes that events_encode() needs at most for any chunk. */
size_t events_bound(void);

/* Whether the format has a place for such an event (its kind and args are known). */
bool events_valid(const struct event *e);

/* Writes count valid events, for which there is room, to out; returns their bytes. */
size_t events_encode(struct events_codec *c, const struct event *events, size_t count,
		     uint8_t *out);

/*
 * Reads exactly count events, for which there is room, from size bytes.
 * -EBADMSG: the bytes are not such content. Fields that do not belong to an
 * event's kind come out as 0.
 */
int events_decode(struct events_codec *c, const uint8_t *in, size_t size, struct event *events,
		  size_t count);

#endif
