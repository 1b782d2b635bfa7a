/* SPDX-License-Identifier: BSD-2-Clause */
/* An interval of the monitor, printed: for people and for programs. */
#ifndef GBPF_REPORT_LIVE_H
#define GBPF_REPORT_LIVE_H

#include <stdio.h>

#include "monitor/snapshot.h"

/* One JSON object and a newline; docs/monitoring.md lists its keys. */
void live_json(const struct snapshot *s, FILE *out);
/* A block of lines for an interval; width: columns to fill, colour: may be used. */
void live_table(const struct snapshot *s, FILE *out, unsigned width, bool colour);

#endif
