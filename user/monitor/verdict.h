/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verdict of diagnose, live: from an interval's numbers and their intervals, with the
 * same classes and thresholds (util/verdict.h). docs/monitoring.md says what follows from what.
 */
#ifndef GBPF_MONITOR_VERDICT_H
#define GBPF_MONITOR_VERDICT_H

#include "monitor/snapshot.h"

/* Fills p->verdict; p is one of s, and everything else of it is filled. */
void verdict_live(const struct snapshot *s, struct snapshot_process *p);

#endif
