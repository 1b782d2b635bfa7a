/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A flight recorder: asked for in tracer_options. Only the last part of what is recorded is
 * kept, in memory; files of it are written when a trigger fires, when somebody asks, and at
 * the end. What goes wrong with one of them is told, and the recording goes on.
 */
#ifndef GBPF_TRACE_RECORDER_H
#define GBPF_TRACE_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/output.h"
#include "trace/trigger.h"

struct recorder_options {
	int64_t keep;	/* ns before the event that a file is written for */
	int64_t after;	/* ns after it */
	uint64_t bytes; /* of memory for that, at most */
	struct triggers *triggers; /* the caller's; NULL: none */
	uint32_t most;	/* files by triggers; then it is over */
	bool at_end;	/* a file, too, when the recording ends */
	bool quiet;	/* only trouble is told */
	const char *path; /* of the file at the end; the others have a number before ".gbpf" */
	const struct invoker *who;
};

struct recorder_stats {
	bool asked;	/* for a flight recorder */
	uint32_t fired; /* triggers */
	uint32_t files, failed;
	uint32_t by_triggers; /* of the files */
	bool at_end;	/* one of the files: it has the path itself */
	bool over;	/* as many files by triggers as were wanted */
	uint64_t bytes; /* of memory in use */
	uint64_t last_bytes, last_events; /* of the last file */
};

#endif
