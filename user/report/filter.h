/* SPDX-License-Identifier: BSD-2-Clause */
/* --filter: which rows to show. docs/metrics.md has the grammar. */
#ifndef GBPF_REPORT_FILTER_H
#define GBPF_REPORT_FILTER_H

#include "report/row.h"

#define FILTER_MAX_LENGTH 4096
#define FILTER_MAX_DEPTH 32

struct filter;

/*
 * Parses text for a view. 0; -EINVAL with the position and what was expected
 * in err; -ENOMEM.
 */
int filter_parse(struct filter **out, const char *text, const struct view *v, char *err,
		 size_t size);
bool filter_match(const struct filter *f, const struct row *r);
void filter_free(struct filter *f); /* NULL is accepted */

#endif
