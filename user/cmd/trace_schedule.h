/* SPDX-License-Identifier: BSD-2-Clause */
/* --wait --warmup --active --repeat of gbpf trace: what was asked for, and how it goes. */
#ifndef GBPF_CMD_TRACE_SCHEDULE_H
#define GBPF_CMD_TRACE_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/scheduled.h"

/* The options, as they were given; NULL: not. */
struct schedule_wish {
	const char *wait, *warmup, *active, *marker;
	uint64_t repeat;
	bool steps, seconds;
};

bool schedule_asked(const struct schedule_wish *w);
/*
 * What they mean together. 0: out is set, or nothing was asked for; -EINVAL: a sentence
 * is in why.
 */
int schedule_prepare(const struct schedule_wish *w, struct schedule_options *out, char *why,
		     size_t size);
/* "active, step 14 of 12 to 20, window 2 of 3": for the status line. "" without a schedule. */
const char *schedule_words(const struct schedule_stats *s, uint64_t repeat, char *buf,
			   size_t size);

#endif
