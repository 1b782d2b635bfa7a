/* SPDX-License-Identifier: BSD-2-Clause */
/* The last values of each process, bounded in time and in number. */
#ifndef GBPF_TOP_HISTORY_H
#define GBPF_TOP_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "monitor/snapshot.h"

#define HISTORY_SAMPLES 300
#define HISTORY_PROCESSES 1000 /* that are remembered; those gone longest are forgotten first */

enum history_of { HISTORY_LAUNCHES = 0, HISTORY_DISPATCH, HISTORY_SYNC, HISTORY_SERIES };

struct history;

struct history *history_new(void); /* NULL: out of memory */
void history_free(struct history *h); /* NULL is accepted */

/* Processes for which there is no memory have no history. */
void history_add(struct history *h, const struct snapshot *s);

/* Samples added so far: their numbers are below. */
uint64_t history_next(const struct history *h);

/*
 * Values of a process from sample *first to the one before until, oldest first,
 * NAN where not known; out has room for HISTORY_SAMPLES. Returns how many, 0 if
 * it is not remembered.
 */
size_t history_get(const struct history *h, uint32_t pid, int64_t start, enum history_of what,
		   uint64_t until, float *out, uint64_t *first);

/* Time that the count samples before until span, ns. */
int64_t history_span(const struct history *h, uint64_t until, size_t count);

size_t history_processes(const struct history *h);

#endif
