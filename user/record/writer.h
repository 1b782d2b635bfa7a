/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef GBPF_RECORD_WRITER_H
#define GBPF_RECORD_WRITER_H

#include "record/record.h"

struct chunk;
struct writer;

/*
 * Starts a file on fd, which must be empty, and owns fd from here on (also
 * when it fails). realtime is CLOCK_REALTIME ns. Returns 0 or -errno (-EEXIST:
 * the file was not empty). The caller ignores SIGXFSZ, or a file size limit
 * ends the process instead of being an error.
 */
int writer_new(struct writer **out, int fd, int64_t realtime);

/*
 * Takes a whole chunk: its header and its content, size bytes in all, valid during the call.
 * 0, or a failure, which becomes the writer's.
 */
typedef int (*writer_sink)(void *ctx, const struct chunk *c, const uint8_t *bytes, size_t size);

/* A writer whose chunks go to sink, without a file around them. 0 or -ENOMEM. */
int writer_new_sink(struct writer **out, writer_sink sink, void *ctx);

/* Adds a chunk that a sink was given, after all that was added before. 0 or the first failure. */
int writer_chunk(struct writer *w, const struct chunk *c, const uint8_t *bytes, size_t size);

/*
 * Adds events, count of them in one go: the hot path, no allocation and no
 * system call but one write(2) a chunk. Adding after a failure returns that
 * first failure again, so a caller may check once a batch. -EINVAL: one of them
 * has no known kind or args; none was added, and the writer goes on. Fields
 * that do not belong to an event's kind are not kept.
 */
int writer_events(struct writer *w, const struct event *events, size_t count);

/*
 * Adds any record (RECORD_EVENTS included). Strings are copied, and cut after
 * 65535 bytes (a kernel's name after 8191); NULL is "". Records other than
 * events are read back no later than events added after them, in the order
 * added among those of their kind. -EINVAL: no such kind.
 */
int writer_add(struct writer *w, const struct record *record);

/*
 * Hands what is buffered to the kernel, so that it outlives this process (a
 * power cut is another matter: no fsync(2)). Returns 0 or the first failure.
 */
int writer_flush(struct writer *w);

/* Bytes written so far. */
uint64_t writer_size(const struct writer *w);
/* Events in them: those that a reader will find, whatever happens from here on. */
uint64_t writer_written(const struct writer *w);

/*
 * Flushes, writes the index and closes. The first error of the writer's life
 * is returned. The writer is gone afterwards, whatever the result; NULL is
 * accepted.
 */
int writer_close(struct writer *w);

#endif
