/* SPDX-License-Identifier: BSD-2-Clause */
/* What monitor and top share: whom to watch, the budget, signals, rights. */
#ifndef GBPF_CMD_WATCHING_H
#define GBPF_CMD_WATCHING_H

#include <stdbool.h>
#include <stdint.h>

#include "monitor/monitor.h"
#include "util/opt.h"

struct watching_options {
	struct opt_list pids;
	bool all;
	const char *budget; /* "1%", "0.5"; NULL: 1 % */
	int64_t interval;   /* ns */
	int rung;
	bool apis, ever, detail; /* as in struct monitor_options */
	bool screen;	    /* messages wait until the screen is the user's again */
};

#define WATCHING_PIDS 256
#define WATCHING_HELD 16

struct watching {
	struct monitor *monitor;
	uint32_t pids[WATCHING_PIDS];
	size_t pids_count;
	int signals;
	bool interrupted, screen;
	char *held[WATCHING_HELD]; /* messages, until watching_end() */
	size_t held_count;
};

int64_t watching_now(void); /* CLOCK_MONOTONIC ns */

/*
 * Parses, loads, finds, attaches and gives up rights. An exit status; what went
 * wrong was reported. watching_end() is to be called in any case.
 */
int watching_start(struct watching *w, const struct command *command,
		   const struct watching_options *o);
/* As monitor_step(); takes signals as well. */
int watching_step(struct watching *w, int64_t max_ns);
/* Ctrl-C, or the last of the processes asked for has ended. */
bool watching_over(const struct watching *w);
void watching_end(struct watching *w);

#endif
