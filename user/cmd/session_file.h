/* SPDX-License-Identifier: BSD-2-Clause */
/* The recording that a command was given, or the one in this directory. */
#ifndef GBPF_CMD_SESSION_FILE_H
#define GBPF_CMD_SESSION_FILE_H

#include "model/session.h"

#define SESSION_FILE "trace.gbpf"

/*
 * Loads *path, or SESSION_FILE or what a crash left of it if *path is NULL; *path
 * becomes what was opened. Goes on with the rights of the user who called sudo: a
 * recording holds names from other programs. 0 or -errno; what went wrong, and what
 * of a damaged file is missing, was said on stderr. The session is the caller's.
 */
int session_file_load(struct session **out, const char **path);

#endif
