/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/cmd.h"

static const struct command *const commands[] = {
	&cmd_trace,
	&cmd_report,
	&cmd_diagnose,
	&cmd_diff,
	&cmd_export,
	&cmd_merge,
	&cmd_monitor,
	&cmd_top,
	&cmd_doctor,
	&cmd_list,
	NULL,
};

int main(int argc, char **argv)
{
	return cmd_dispatch(commands, argc, argv);
}
