/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the lists of facts in tests/data. Include after cmocka.h. */
#ifndef GBPF_TESTS_LINES_H
#define GBPF_TESTS_LINES_H

#include <stdio.h>
#include <string.h>

#define DATA "tests/data/"

/* Calls each with every line that is no comment, cut at its end. Returns the lines. */
static inline size_t each_line(const char *path, void (*each)(char *line, void *ctx), void *ctx)
{
	char line[4096];
	size_t lines = 0;
	FILE *f = fopen(path, "r");

	if (!f)
		fail_msg("cannot open %s: run this from the top of the source tree", path);
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (!line[0] || line[0] == '#')
			continue;
		each(line, ctx);
		lines++;
	}
	fclose(f);
	return lines;
}

#endif
