/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef GBPF_DIAGNOSE_COMPARE_PRIVATE_H
#define GBPF_DIAGNOSE_COMPARE_PRIVATE_H

#include "diagnose/compare.h"

/* Fills changes; steps: of all recordings of each side, 0 where they have none. 0 or -ENOMEM. */
int compare_changes(const struct session *const *before, const struct session *const *after,
		    size_t n, const size_t steps[2], struct comparison *out);

#endif
