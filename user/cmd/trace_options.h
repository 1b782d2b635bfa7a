/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of gbpf trace: the table, their values, and what goes with what. */
#ifndef GBPF_CMD_TRACE_OPTIONS_H
#define GBPF_CMD_TRACE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/gpu_time.h"
#include "cmd/trace_keep.h"
#include "cmd/trace_schedule.h"
#include "util/opt.h"

struct trace_options {
	struct opt_list pids;
	const char *cgroup, *output, *api;
	bool all, no_follow, no_wait, allow_slow, quiet;
	int64_t duration; /* ns; -1: by the form */
	uint64_t buffer_mib;
	int rung;
	bool entry_only;
	struct gpu_time_wish gpu;
	struct schedule_wish schedule;
	struct keep_wish keep;
};

extern const struct opt trace_opts[];
extern const struct opt_example trace_examples[];

/* What they are where nobody says otherwise. */
void trace_options_init(struct trace_options *o);
/*
 * Whether they make sense together; command: with -- COMMAND. NULL if so, else a sentence
 * that is not the caller's to free.
 */
const char *trace_options_check(const struct trace_options *o, bool command);
/* How long to record, ns; 0: until it ends by itself. */
int64_t trace_options_duration(const struct trace_options *o, bool command);

#endif
