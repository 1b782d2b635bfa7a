/* SPDX-License-Identifier: BSD-2-Clause */
/* CUPTI's numbers of API functions, as files of PyTorch and nsys have them. */
#ifndef GBPF_EXPORT_CBID_H
#define GBPF_EXPORT_CBID_H

#include <stdint.h>

/*
 * The callback id of an exported function of libcuda or libcudart, 0 if not known. Of
 * functions whose number changed with their signature, the newest. From the enumerations
 * of cupti_driver_cbid.h and cupti_runtime_cbid.h, CUDA 12.9 and 13.
 */
uint32_t cbid_of(const char *name);

#endif
