/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns records into a session; session_load() is a loop around it. */
#ifndef GBPF_MODEL_BUILDER_H
#define GBPF_MODEL_BUILDER_H

#include "model/session.h"

struct session_builder;

int session_builder_new(struct session_builder **out); /* 0 or -ENOMEM */

/*
 * Takes what the record holds; its strings are copied. Records may come in
 * any order, except that a process's records count in the order of their ts
 * and a thread's events may be only roughly sorted. 0, -ENOMEM or -EOVERFLOW.
 */
int session_builder_add(struct session_builder *b, const struct record *record);

/*
 * Pairs, nests and names everything added, and hands the session over. end
 * and lost_bytes say how the file ended. 0, -ENOMEM or -EOVERFLOW. The
 * builder stays the caller's to free, and can only be freed afterwards.
 */
int session_builder_finish(struct session_builder *b, enum reader_end end, uint64_t lost_bytes,
			   struct session **out);

void session_builder_free(struct session_builder *b); /* NULL is accepted */

#endif
