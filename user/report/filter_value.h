/* SPDX-License-Identifier: BSD-2-Clause */
/* The values of filters: read from text once, compared with every row. */
#ifndef GBPF_REPORT_FILTER_VALUE_H
#define GBPF_REPORT_FILTER_VALUE_H

#include "report/row.h"

enum filter_op {
	FILTER_EQ, FILTER_NE, FILTER_LT, FILTER_LE, FILTER_GT, FILTER_GE,
	FILTER_LIKE, /* part of the text, or a pattern with * and ? over all of it */
};

struct filter_value {
	bool none; /* n/a */
	int64_t number; /* in the column's unit; UNIT_PERCENT and UNIT_MILLI in thousandths */
	int64_t dim[3];
	const char *text;
};

/*
 * Reads word as a value to compare column c with. false: expected says, in
 * words, what would have fitted. text keeps pointing into word.
 */
bool filter_value(const struct column *c, enum filter_op op, const char *word,
		  struct filter_value *out, char *expected, size_t size);
/* What is not known matches only n/a. */
bool filter_compare(const struct column *c, enum filter_op op, const struct filter_value *v,
		    const struct row *r);
/* Does all of text match a pattern of literal bytes, * and ?. */
bool filter_glob(const char *pattern, const char *text);

#endif
