/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Perf's records in a ring, as linux/perf_event.h lays them out for an event
 * with sample_id_all and PERF_SAMPLE_TID | PERF_SAMPLE_TIME: header, body, then
 * { u32 pid, tid; u64 time; }. All lengths are multiples of 8 bytes.
 */
#ifndef GBPF_TARGET_WATCH_RECORD_H
#define GBPF_TARGET_WATCH_RECORD_H

#include "target/target.h"

#define WATCH_RECORD_MAX 65536 /* perf_event_header.size has 16 bits */

/* A ring's data, size a power of two, and a range of it that the kernel has filled. */
struct watch_range {
	const unsigned char *data;
	uint64_t size, tail, head;
};

/*
 * Looks at the record at tail without copying it. 0: *bytes and *ts are set;
 * -EAGAIN: nothing there; -EBADMSG: the range cannot be what perf writes.
 */
int watch_record_peek(const struct watch_range *r, uint64_t *bytes, int64_t *ts);

/*
 * Decodes the record at tail, after watch_record_peek() accepted it. True if
 * it is worth a notice. The notice points into the ring or into scratch
 * (WATCH_RECORD_MAX bytes). Mappings that want() refuses are dropped before
 * anything else is done with them; NULL takes all.
 */
bool watch_record_decode(const struct watch_range *r, unsigned char *scratch,
			 bool (*want)(const char *path, void *ctx), void *ctx,
			 struct watch_notice *out);

/* watch_new() with rings of this many bytes, pages to a power of two: overflow can be tested. */
int watch_new_sized(struct watch **out, size_t ring_size);

#endif
