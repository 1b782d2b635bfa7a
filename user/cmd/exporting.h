/* SPDX-License-Identifier: BSD-2-Clause */
/* Writing trace files of a session, for the commands that do. */
#ifndef GBPF_CMD_EXPORTING_H
#define GBPF_CMD_EXPORTING_H

#include "export/trace.h"

/*
 * Writes s to path, or with split, and where the format holds one process only, what
 * belongs to each process to PATH with ".PID" before its ending. Says on stderr what went
 * wrong and what the files lack, on stdout (unless quiet) what was written. Ctrl-C takes
 * back the file at hand. Returns the exit status.
 */
int exporting_write(const struct session *s, const struct export_options *o,
		    const struct export_writer *w, const char *path, bool split, bool quiet);

/*
 * Of a recording's name that is a trace file's, such as run.pftrace: the recording's own
 * beside it, run.gbpf. Allocated; NULL if path is none, or out of memory.
 */
char *exporting_recording(const char *path);

/* Reads the recording and writes the trace file. Goes on as the user who called sudo. */
int exporting_beside(const char *recording, const char *path, bool quiet);

#endif
