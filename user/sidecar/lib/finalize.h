/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CUPTI taken out of the process again, so that no call of the job goes through it any more.
 * session.control is held.
 */
#ifndef GBPF_SIDECAR_LIB_FINALIZE_H
#define GBPF_SIDECAR_LIB_FINALIZE_H

#include <stdbool.h>

#include "session.h"

/*
 * Where that is known to be safe, and nobody else uses CUPTI. Waits a moment for the job to
 * make a call, as CUPTI wants to be finalized at the end of one. Was it done?
 */
bool finalize(struct session *s);

#endif
