/* SPDX-License-Identifier: BSD-2-Clause */
/* What trace shows while it records, and in the end. */
#ifndef GBPF_CMD_SUMMARY_H
#define GBPF_CMD_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/tracer.h"

/* One line that is rewritten on a terminal; plain lines, fewer, elsewhere. On stderr. */
struct status_line {
	bool quiet, terminal, shown;
	int64_t last;	     /* when it was shown, ns */
	int64_t begin;	     /* of the rate's interval, ns */
	uint64_t events;     /* then */
	double rate;
	char words[128];     /* more to be said, "" if nothing */
};

int64_t clock_now(void); /* CLOCK_MONOTONIC ns */
void status_line_init(struct status_line *s, bool quiet);
/* until: end of the recording, ns; 0: none. */
void status_line_show(struct status_line *s, const struct tracer_stats *stats, int64_t now,
		      int64_t until);
void status_line_clear(struct status_line *s);

/*
 * Frees the tracer (NULL is accepted). Where that takes long, it says so, and
 * Ctrl-C leaves the rest to the kernel.
 */
void detach(struct tracer *t, bool quiet);

/* The lines that matter of a finished recording, and the next command. On stdout. */
void summary_print(const char *path, const struct tracer_stats *stats);

#endif
