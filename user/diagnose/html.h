/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of the HTML report share. */
#ifndef GBPF_DIAGNOSE_HTML_H
#define GBPF_DIAGNOSE_HTML_H

#include "diagnose/words.h"

/* Text of a target for HTML: markup escaped, control bytes and invalid UTF-8 made visible. */
void html_text(const char *text, FILE *out);

/* html_charts.c: charts as inline SVG, each with its data as words for who cannot see it. */
void html_shares(const struct diag_process *p, FILE *out);
/* What threads and devices did in [begin, end). */
int html_step(const struct session *s, const struct diag_process *p, const char *title,
	      int64_t begin, int64_t end, FILE *out);
/* How long launches took, or kernels: doubling widths. */
int html_launches(const struct session *s, uint32_t process, FILE *out);
/* SM clock by NVML's samples, with mean kernel times of the same moments. */
void html_clocks(const struct session *s, uint32_t process, FILE *out);

/* html_tables.c: functions and kernels with most time. 0 or -ENOMEM. */
int html_tables(const struct session *s, uint32_t process, FILE *out);

#endif
