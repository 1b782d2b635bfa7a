/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of a session, for people and for programs. Reads the model only. */
#ifndef GBPF_REPORT_REPORT_H
#define GBPF_REPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "model/session.h"

enum report_format { REPORT_TABLE = 0, REPORT_CSV, REPORT_TSV, REPORT_JSON };
enum report_names { REPORT_DEMANGLED = 0, REPORT_BASE, REPORT_MANGLED };
enum report_timeunit { REPORT_AUTO = 0, REPORT_NS, REPORT_US, REPORT_MS, REPORT_S };

/* Words for the options above, in the order of the enums, NULL at the end. */
extern const char *const report_format_words[];
extern const char *const report_names_words[];
extern const char *const report_timeunit_words[];

/* All zero bytes are good defaults. */
struct report_options {
	const char *view;   /* a view's name or alias; NULL: summary */
	enum report_format format;
	const char *sort;   /* a column's key, + (ascending) or - before it, or NULL */
	uint64_t top;	    /* rows at most, 0: all */
	const char *filter; /* docs/metrics.md has the grammar; NULL: everything */
	enum report_names names; /* of kernels */
	enum report_timeunit timeunit; /* of tables; machines always get ns */
	unsigned width;	  /* columns of the terminal, 0: do not cut */
	bool colour;
	bool brief;	  /* of the summary, its three most telling lines and the next command */
	const char *file; /* what to name in a command to run next; NULL: the default file */
};

struct report_view {
	const char *name, *alias; /* alias: nsys's names for it, blanks between, or NULL */
	const char *summary;	  /* one line */
};

/* The views, in the order in which help lists them; NULL after the last. */
const struct report_view *report_view(size_t i);

/*
 * Prints one view. 0; -EINVAL if an option is wrong, with the reason and what
 * would be right in err; -ENOMEM. Nothing is printed unless it is 0. Whether
 * out could be written is the caller's to ask of out.
 */
int report_print(const struct session *s, const struct report_options *o, FILE *out, char *err,
		 size_t size);

/* The warnings that tables end with, for formats that have no place for them. */
void report_warn(const struct session *s, const struct report_options *o, FILE *out);

/* Calls each(view, key, header with unit) for every column of every view. */
void report_each_column(void (*each)(const char *view, const char *key, const char *header,
				     void *ctx),
			void *ctx);

/* How far the session can be trusted, as the value of "quality" in every JSON output. */
struct json;
void report_quality_json(const struct session *s, struct json *j);

/* The filter grammar in a few lines, for --help. */
extern const char report_filter_help[];

#endif
