/* SPDX-License-Identifier: BSD-2-Clause */
/* Which APIs to hook: --api driver|runtime|all|NAME,… */
#ifndef GBPF_PROBE_SELECTION_H
#define GBPF_PROBE_SELECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/gbpf.h"

struct selection {
	uint8_t wanted[GBPF_MAX_API]; /* by catalogue id */
	size_t count;
};

/*
 * driver: the default set of driver functions and NCCL's. runtime: these and
 * the runtime's. all: the whole catalogue. Anything else is an exported name.
 * Items are joined by commas and added up. -EINVAL with a sentence in why.
 */
int selection_parse(struct selection *out, const char *spec, char *why, size_t size);
bool selection_wants_library(const struct selection *s, unsigned library);

#endif
