/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a recording goes: written beside under PATH.part, moved to PATH when
 * whole, the one before kept as PATH.old. Files belong to the user who called
 * sudo, and are made with that user's rights where these suffice.
 */
#ifndef GBPF_TRACE_OUTPUT_H
#define GBPF_TRACE_OUTPUT_H

#include <stddef.h>
#include <sys/types.h>

struct output;

/* Who runs us, through sudo or not: the owner of what we write and run. */
struct invoker {
	uid_t uid;
	gid_t gid;
	char name[64];
};
int invoker_get(struct invoker *out); /* -EINVAL: sudo's variables hold no numbers */

/*
 * Makes PATH.part. An unfinished one that nobody writes any more is kept as
 * PATH.old. -errno with a sentence in why: -EBUSY (another gbpf writes it),
 * -EINVAL (PATH is not a regular file), and those of open(2).
 */
int output_open(struct output **out, const char *path, const struct invoker *who, char *why,
		size_t size);
int output_fd(const struct output *o); /* a duplicate of its own for the writer, or -errno */
int output_commit(struct output *o);   /* PATH.part → PATH; -errno: PATH.part stays */
/* Removes PATH.part unless it was to be committed. NULL is accepted. */
void output_free(struct output *o);

#endif
