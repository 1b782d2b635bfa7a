/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef GBPF_DIAGNOSE_JOBS_H
#define GBPF_DIAGNOSE_JOBS_H

#include "diagnose/ranks.h"

/* Once its processes are judged: what they are together. 0 or -ENOMEM. */
int diag_jobs(const struct ranks *r, struct diagnosis *d);

#endif
