// SPDX-License-Identifier: BSD-2-Clause
/* Any bytes as a filter: refused with a reason, or parsed and applied to rows. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "report/filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void apply(const struct filter *f)
{
	struct row unknown, known;

	row_init(&unknown);
	row_init(&known);
	known.name = "cuLaunchKernel";
	known.kernel = "void gemm<float>(float*)";
	known.pid = known.calls = known.total = known.avg = known.listed_share = 1;
	known.stream = known.smem = known.rate = 0;
	known.grid[0] = known.grid[1] = known.grid[2] = 1;
	filter_match(f, &unknown);
	filter_match(f, &known);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct view *const views[] = { &view_launch, &view_open, &view_summary };
	char *text = malloc(size + 1), err[128];

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++) {
		struct filter *f = NULL;
		int result;

		memset(err, 0, sizeof(err));
		result = filter_parse(&f, text, views[i], err, sizeof(err));
		if (result == -EINVAL && (f || !*err || strnlen(err, sizeof(err)) == sizeof(err)))
			abort();
		if (!result)
			apply(f);
		filter_free(f);
	}
	free(text);
	return 0;
}
