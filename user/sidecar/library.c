// SPDX-License-Identifier: BSD-2-Clause
#include "sidecar/library.h"

#ifndef SIDECAR_LIBRARY
#define SIDECAR_LIBRARY "/dev/null" /* where this file is only looked at */
#endif

__asm__(".pushsection .rodata\n"
	".globl sidecar_library\n"
	".globl sidecar_library_size\n"
	".balign 16\n"
	"sidecar_library:\n"
	".incbin \"" SIDECAR_LIBRARY "\"\n"
	"1:\n"
	".balign 8\n"
	"sidecar_library_size:\n"
	".quad 1b - sidecar_library\n"
	".popsection\n");
