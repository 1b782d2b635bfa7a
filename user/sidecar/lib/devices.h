/* SPDX-License-Identifier: BSD-2-Clause */
/* The process's CUDA devices, through the libcuda that it has loaded itself. */
#ifndef GBPF_SIDECAR_LIB_DEVICES_H
#define GBPF_SIDECAR_LIB_DEVICES_H

#include <stdbool.h>

#include "session.h"

/* Has the process loaded libcuda? */
bool devices_cuda(void);
/*
 * Puts a WIRE_DEVICE for each into the ring. False: CUDA is not initialized yet, and is left
 * so; ask again later.
 */
bool devices_tell(struct session *s);

#endif
