/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands, one file each in this directory, and what chooses among them. */
#ifndef GBPF_CMD_CMD_H
#define GBPF_CMD_CMD_H

#include "util/opt.h"

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

extern const struct command cmd_trace;
extern const struct command cmd_report;
extern const struct command cmd_diagnose;
extern const struct command cmd_diff;
extern const struct command cmd_export;
extern const struct command cmd_merge;
extern const struct command cmd_monitor;
extern const struct command cmd_top;
extern const struct command cmd_doctor;
extern const struct command cmd_list;

/*
 * Runs the command that argv[1] names, out of the NULL-terminated table, and
 * the options that belong to none: --help, --version, and for the build
 * --print-man COMMAND ("gbpf" for the page about all) and --print-completion
 * SHELL. Returns the exit status, stdout having been flushed and checked.
 */
int cmd_dispatch(const struct command *const *commands, int argc, char **argv);

#endif
