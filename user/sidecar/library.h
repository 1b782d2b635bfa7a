/* SPDX-License-Identifier: BSD-2-Clause */
/* libgbpf-cupti.so, carried in this program. */
#ifndef GBPF_SIDECAR_LIBRARY_H
#define GBPF_SIDECAR_LIBRARY_H

#include <stddef.h>

extern const unsigned char sidecar_library[];
extern const size_t sidecar_library_size; /* bytes */

#endif
