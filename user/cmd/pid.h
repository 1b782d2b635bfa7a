/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef GBPF_CMD_PID_H
#define GBPF_CMD_PID_H

#include <stddef.h>
#include <stdint.h>

#include "util/opt.h"

/*
 * The host's process that a user means by this number, which may be a
 * container's own: then the mapping is said on stderr. EXIT_OK, or
 * EXIT_USAGE or EXIT_FAILED with the reason reported.
 */
int pid_find(unsigned long number, uint32_t *pid);

/*
 * What was given with -p: "12,34" and several times alike. At most max, in pids;
 * returns as pid_find().
 */
int pids_parse(const struct opt_list *list, uint32_t *pids, size_t max, size_t *count);

#endif
