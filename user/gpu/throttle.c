// SPDX-License-Identifier: BSD-2-Clause
/* Why clocks are lower than they could be: bits of nvmlClocksEventReasons, NVML 13. */
#include <inttypes.h>
#include <stdio.h>

#include "gpu/gpu.h"

static const char *const words[] = {
	[1] = "clocks set by an application",
	[2] = "power cap",
	[3] = "hardware slowdown",
	[4] = "sync boost",
	[5] = "thermal slowdown",
	[6] = "hardware thermal slowdown",
	[7] = "hardware power brake",
	[8] = "display clocks",
};
#define WORDS (sizeof(words) / sizeof(words[0]))

const char *gpu_throttle_reason(unsigned bit)
{
	return bit < WORDS ? words[bit] : NULL;
}

const char *gpu_throttle_text(uint64_t bits, char *buf, size_t size)
{
	size_t used = 0;

	snprintf(buf, size, "%s", gpu_throttled(bits) ? "" : "none");
	for (unsigned bit = 1; (bits >>= 1) && used < size; bit++) {
		const char *comma = used ? ", " : "";
		int n;

		if (!(bits & 1))
			continue;
		if (gpu_throttle_reason(bit))
			n = snprintf(buf + used, size - used, "%s%s", comma, words[bit]);
		else
			n = snprintf(buf + used, size - used, "%sreason 0x%" PRIx64, comma,
				     UINT64_C(1) << bit);
		used += (size_t)n;
	}
	return buf;
}
