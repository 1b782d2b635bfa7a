/* SPDX-License-Identifier: BSD-2-Clause */
/* What the two halves of doctor's table share. */
#ifndef GBPF_CMD_DOCTOR_PRINT_H
#define GBPF_CMD_DOCTOR_PRINT_H

#include "cmd/doctor.h"

#define DOCTOR_INDENT 30 /* where the text of a line begins */

unsigned doctor_width(void); /* columns to wrap at */
void doctor_title(const char *text);
/* Two letters of a result (0: blanks), a name, and text that is wrapped. All printable. */
void doctor_line(enum doctor_result result, const char *name, const char *text);
/* The same without wrapping, for what is copied: paths and the like. */
void doctor_line_long(const char *name, const char *text);

const char *doctor_kind_name(const struct doctor_image *i); /* "driver", … */

/* The sites of one reason, in the order in which reasons first appear. */
struct doctor_reason {
	const char *reason;
	size_t count;
	const char *first; /* the name of one of them */
};
size_t doctor_reasons(const struct image *i, struct doctor_reason *out, size_t max);

#endif
