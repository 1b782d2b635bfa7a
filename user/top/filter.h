/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef GBPF_TOP_FILTER_H
#define GBPF_TOP_FILTER_H

#include <stdbool.h>

#include "monitor/snapshot.h"

#define FILTER_SIZE 128

/*
 * Does every word of the filter occur in what is known of the process: its pid,
 * name, command line, GPU's UUID, container, pod, namespace, Slurm job or rank?
 * Upper and lower case are the same. "" matches all.
 */
bool filter_matches(const char *filter, const struct snapshot_process *p);

#endif
