/* SPDX-License-Identifier: BSD-2-Clause */
/* Views as strings, and fields of them. */
#ifndef GBPF_TESTS_VIEW_H
#define GBPF_TESTS_VIEW_H

#include "feed.h"

#include <stdio.h>

#include "report/row.h"

/* Prints a view into a string that the caller frees. */
static inline char *print_view(const struct session *s, struct report_options o)
{
	char err[1024] = "", *text = NULL, *copy;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	if (report_print(s, &o, out, err, sizeof(err)))
		fail_msg("%s: %s", o.view, err);
	fclose(out);
	copy = strdup(text);
	assert_non_null(copy);
	free(text);
	return copy;
}

/* Field of a csv row (row 0 is the header); into buf. Quotes are not expected. */
static inline const char *csv_field(const char *csv, size_t row, const char *key, char *buf,
				    size_t size)
{
	const char *head = csv, *line = csv;
	size_t column = 0, len;

	while (strncmp(head, key, strlen(key)) || !strchr(",\n", head[strlen(key)])) {
		len = strcspn(head, ",\n");
		if (head[len] != ',')
			fail_msg("no column %s", key);
		head += len + 1;
		column++;
	}
	for (size_t i = 0; i < row; i++) {
		line = strchr(line, '\n');
		assert_non_null(line);
		line++;
	}
	for (size_t i = 0; i < column; i++)
		line += strcspn(line, ",") + 1;
	len = strcspn(line, ",\n");
	snprintf(buf, size, "%.*s", (int)len, line);
	return buf;
}

static inline void assert_field(const struct session *s, const char *view, size_t row,
				const char *key,
			 const char *expected)
{
	struct report_options o = { .view = view, .format = REPORT_CSV, .names = REPORT_BASE };
	char *csv = print_view(s, o), buf[256];

	assert_string_equal(csv_field(csv, row, key, buf, sizeof(buf)), expected);
	free(csv);
}

static inline size_t lines_of(const char *text)
{
	size_t lines = 0;

	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

/* Whole file, malloc'ed; the paths of tests begin at the top of the tree. */
static inline char *read_file(const char *path)
{
	FILE *in = fopen(path, "r");
	char *text = NULL;
	size_t size = 0;
	ssize_t got;

	if (!in)
		fail_msg("cannot open %s; tests run from the top of the tree", path);
	got = getdelim(&text, &size, '\0', in);
	fclose(in);
	assert_true(got > 0);
	return text;
}

#endif
