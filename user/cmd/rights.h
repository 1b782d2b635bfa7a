/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef GBPF_CMD_RIGHTS_H
#define GBPF_CMD_RIGHTS_H

/*
 * Root by way of sudo, about to parse what others wrote: becomes the user who
 * called sudo (SUDO_UID, SUDO_GID), for good. Does nothing for anybody else,
 * and for root who called as root. Returns 0, or -errno with the old rights
 * possibly still there: do not go on.
 */
int rights_become_invoker(void);

#endif
