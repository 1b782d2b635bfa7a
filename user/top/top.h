/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The screen of `gbpf top`: what the monitor knows of an interval, drawn in a
 * terminal, with keys to sort, filter and look into a process. Everything shown
 * comes from struct snapshot; nothing is measured here.
 *
 * In a loop, with t made by top_new():
 *
 *	while (running && top_step(t, time_until_the_next_interval)) {
 *		...the monitor's own work; at the end of an interval:
 *		top_update(t, snapshot);
 *	}
 *	top_free(t);
 *
 * Nothing here waits for the terminal: what a slow one has not taken yet is kept,
 * and frames are left out until it has. Signals are the caller's. SIGINT, SIGTERM
 * and SIGHUP should end the loop above, so that top_free() restores the terminal;
 * SIGTSTP should be ignored, as probes would stay attached while gbpf is stopped
 * (^Z is switched off in the terminal). SIGWINCH needs no handler; one that does
 * nothing makes resizing quicker. The locale of LC_CTYPE is set from the environment.
 */
#ifndef GBPF_TOP_TOP_H
#define GBPF_TOP_TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "monitor/snapshot.h"

struct top_options {
	const char *version; /* of gbpf, for the help; NULL: not shown */
	const char *host;    /* name of this machine; NULL: not shown */
	int64_t interval_ns; /* as asked for; 0: not shown */
	const char *sort;    /* column to sort by, as top_sort_names() has it; NULL: launches */
	const char *filter;  /* to begin with; NULL: none */
};

struct top;

/*
 * What can be known beforehand to be wrong: -ENOTTY: stdin or stdout is no terminal;
 * -EINVAL: no such column. To be asked before anything dear is begun; changes nothing.
 */
int top_check(const struct top_options *options, char *why, size_t size);

/*
 * Takes over the terminal on stdin and stdout. Strings of options are copied.
 * -ENOTTY: there is none; -EINVAL: no such column; -ENOENT: a terminal of unknown
 * type; -ENOMEM. why (size bytes) says it in a sentence, with what to do.
 */
int top_new(struct top **out, const struct top_options *options, char *why, size_t size);

/*
 * Shows s, and remembers of it what sparklines need. What is shown is copied: s
 * may go when this returns. NULL is ignored.
 */
void top_update(struct top *t, const struct snapshot *s);

/*
 * Handles keys, a new size and drawing for max_ns (0: what there is to do now),
 * or until a signal comes. False: the user wants to quit, or the terminal is gone.
 */
bool top_step(struct top *t, int64_t max_ns);

/* Readable when a key was pressed, for callers that wait in a poll of their own. */
int top_fd(const struct top *t);

/*
 * Gives the terminal back as it was; may be called again. To be called before
 * anything is written to stderr; top_step() returns false from then on.
 */
void top_close(struct top *t);

/* Closes and frees. NULL is accepted. */
void top_free(struct top *t);

/* "pid, command, gpu, …": what options.sort accepts. Into buf. */
const char *top_sort_names(char *buf, size_t size);

#endif
