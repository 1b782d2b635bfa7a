/* SPDX-License-Identifier: BSD-2-Clause */
/* --keep and --trigger of gbpf trace: what was asked for, how it goes, and how it went. */
#ifndef GBPF_CMD_TRACE_KEEP_H
#define GBPF_CMD_TRACE_KEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/tracer.h"
#include "util/opt.h"

#define KEEP_MIB 256
#define KEEP_FILES 10
#define KEEP_AFTER 1000000000LL

/* The options, as they were given. */
struct keep_wish {
	int64_t keep, after; /* ns; keep 0: not asked for */
	uint64_t mib, most;
	struct opt_list triggers;
	bool last;
};

bool keep_asked(const struct keep_wish *w); /* any of them was given */
/*
 * What they mean together, into out, of which path, who and quiet are the caller's and the rest
 * is 0. 0: keep_release() what it holds; -EINVAL: a sentence is in why.
 */
int keep_prepare(const struct keep_wish *w, const struct selection *selection, bool entry_only,
		 struct recorder_options *out, char *why, size_t size);
void keep_release(struct recorder_options *o); /* idempotent */

/* "keeps 30 s in 12.3 MiB, 2 fired": for the status line. */
const char *keep_words(const struct recorder_options *o, const struct recorder_stats *s, char *buf,
		       size_t size);
/*
 * Says what came of a recording that ended well. Whether gbpf did what was asked: the files
 * that were to be written were, and a trigger fired if there are any.
 */
bool keep_finish(const struct recorder_options *o, const struct tracer_stats *stats);

#endif
