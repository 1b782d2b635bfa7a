/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef GBPF_INJECT_LOAD_H
#define GBPF_INJECT_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "inject/private.h"

struct loading {
	struct inject_plan *plan;
	struct tracee *tracee;
	const struct inject_options *options;
	struct inject_result *result;
	int64_t until; /* CLOCK_MONOTONIC, ns */
};

/*
 * Everything that the borrowed thread does. 0 or a negative error, why set; -EAGAIN: in
 * vain, with nothing done. *stands:
 * it is stopped, and to be released; else it has gone on or is gone.
 */
int load(struct loading *l, bool *stands);

#endif
