/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/pid.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmd/cmd.h"
#include "target/target.h"
#include "util/err.h"

#define PID_MOST 4194304 /* PID_MAX_LIMIT of linux/threads.h */

int pid_find(unsigned long number, uint32_t *pid)
{
	uint32_t found[4];
	size_t n;

	if (!number || number > PID_MOST) {
		err_report("%lu is not a process id", number);
		return EXIT_USAGE;
	}
	n = process_resolve((uint32_t)number, found, 4);
	if (!n) {
		err_report("no process %lu; gbpf list shows those that use CUDA", number);
		return EXIT_FAILED;
	}
	if (n > 1) {
		err_report("%lu is the number of several processes in containers: host pids %u "
			   "and %u%s; give the host's", number, found[0], found[1],
			   n > 2 ? " among them" : "");
		return EXIT_FAILED;
	}
	if (found[0] != number)
		fprintf(stderr, "gbpf: %lu in its container is pid %u here\n", number, found[0]);
	*pid = found[0];
	return EXIT_OK;
}

static int number_of(const char **at, unsigned long *number)
{
	char *end;

	errno = 0;
	*number = strtoul(*at, &end, 10);
	if (end == *at || errno || **at < '0' || **at > '9' || (*end && *end != ','))
		return -EINVAL;
	*at = *end ? end + 1 : end;
	return *end == ',' && !end[1] ? -EINVAL : 0;
}

int pids_parse(const struct opt_list *list, uint32_t *pids, size_t max, size_t *count)
{
	unsigned long number;
	const char *at;
	int status;
	size_t i;

	for (i = 0; i < list->count; i++) {
		at = list->items[i];
		do {
			if (number_of(&at, &number)) {
				err_report("'%s' is not a list of process ids", list->items[i]);
				return EXIT_USAGE;
			}
			if (*count == max) {
				err_report("more than %zu process ids; use --all", max);
				return EXIT_USAGE;
			}
			status = pid_find(number, &pids[*count]);
			if (status)
				return status;
			++*count;
		} while (*at);
	}
	return 0;
}
