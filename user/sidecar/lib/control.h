/* SPDX-License-Identifier: BSD-2-Clause */
/* What the loader says, and what is due by the clock. */
#ifndef GBPF_SIDECAR_LIB_CONTROL_H
#define GBPF_SIDECAR_LIB_CONTROL_H

#include <stdbool.h>

#include "session.h"

/* Names the thread that takes the steps from now on, which is ours. */
void control_thread(void);
/*
 * Waits for a message of the loader for at most that long, and does what is due. False: the
 * session is over.
 */
bool control_step(struct session *s, int most_ms);
/* Leaves nothing on; closes the socket. Takes and gives session.control. */
void control_end(struct session *s);
/* The process exits: ends a window. session.control is held. */
void control_exit(struct session *s);

/* Says REFUSED on a socket that is not the session's, and closes it. */
void control_refuse(int fd, const char *why);

#endif
