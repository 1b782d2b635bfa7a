/* SPDX-License-Identifier: BSD-2-Clause */
/* What kept events may refer to: names, threads, processes, … For keep.c. */
#ifndef GBPF_RECORD_NOTES_H
#define GBPF_RECORD_NOTES_H

#include <stdbool.h>

#include "record/writer.h"

struct notes;

int notes_new(struct notes **out, uint64_t bytes); /* at most so many; 0 or -ENOMEM */
void notes_free(struct notes *n);		   /* NULL is accepted */

/* Whether records of this kind belong here. */
bool notes_take(enum record_kind kind);
/*
 * A copy; what says the same as one before is not kept again. now: the time of those that
 * have none, ns. 0; -ENOSPC: no room; -ENOMEM.
 */
int notes_add(struct notes *n, const struct record *record, int64_t now);
/* Threads of which ended() says so: they are kept as those of an ended process are. */
void notes_threads_ended(struct notes *n, bool (*ended)(uint32_t pid, uint32_t tid, void *ctx),
			 void *ctx, int64_t now);
/* Frees those that were replaced, or whose process ended, at or before this time, ns. */
void notes_forget(struct notes *n, int64_t before);
uint64_t notes_bytes(const struct notes *n);

/*
 * Writes what was so in [begin, end): what was said before begin is said at begin, and a
 * process that came before it was there already. 0 or the writer's failure.
 */
int notes_write(const struct notes *n, struct writer *w, int64_t begin, int64_t end);

#endif
