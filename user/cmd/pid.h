/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef GBPF_CMD_PID_H
#define GBPF_CMD_PID_H

#include <stdint.h>

/*
 * The host's process that a user means by this number, which may be a
 * container's own: then the mapping is said on stderr. EXIT_OK, or
 * EXIT_USAGE or EXIT_FAILED with the reason reported.
 */
int pid_find(unsigned long number, uint32_t *pid);

#endif
