/* SPDX-License-Identifier: BSD-2-Clause */
/* An interval of the monitor, printed: for people and for programs. */
#ifndef GBPF_REPORT_LIVE_H
#define GBPF_REPORT_LIVE_H

#include <stdio.h>

#include "monitor/snapshot.h"

/* Rows that are null where nobody asked for them: they take most of the space and time. */
enum live_rows { LIVE_APIS = 1, LIVE_KERNELS = 2 };

/*
 * One JSON object and a newline; docs/monitoring.md lists its keys. rows: a set of enum
 * live_rows, which the snapshot must have been made with.
 */
void live_json(const struct snapshot *s, unsigned rows, FILE *out);
/* A block of lines for an interval; width: columns to fill, colour: may be used. */
void live_table(const struct snapshot *s, FILE *out, unsigned width, bool colour);

#endif
