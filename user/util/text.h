/* SPDX-License-Identifier: BSD-2-Clause */
/* Strings of a target are hostile; these make them fit to be shown. */
#ifndef GBPF_UTIL_TEXT_H
#define GBPF_UTIL_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Copies src for a terminal: control bytes, escapes, bidirectional overrides
 * and invalid UTF-8 become \xNN; cut to max_columns (0: no limit) with "…".
 * Always terminates buf. Returns buf.
 */
const char *text_printable(const char *src, char *buf, size_t size, size_t max_columns);

/* Columns a terminal uses for this UTF-8 string. */
size_t text_width(const char *s);

/* One CSV field, quoted when RFC 4180 wants it; formulas (=, +, -, @) are not special. */
void text_csv(FILE *out, const char *s);

/* Length of the valid UTF-8 sequence at s (at most len bytes), 0 if invalid. */
size_t text_utf8_length(const char *s, size_t len);

/* 1234567 ns as "1.235 ms"; three significant decimals, always with its unit. */
const char *text_duration(int64_t ns, char *buf, size_t size);
/* 1536 as "1.5 KiB". */
const char *text_bytes(uint64_t bytes, char *buf, size_t size);
/* 1234567 as "1,234,567". */
const char *text_count(uint64_t n, char *buf, size_t size);

/*
 * Demangles a kernel's name with __cxa_demangle, bounded: names over 8 KiB and
 * names that do not demangle (libstdc++ refuses those over 1023 bytes) or would
 * become longer than 32 KiB come back as they are. short_name keeps only the
 * unqualified function ("base" of nsys), also of a name left mangled. The
 * result is malloc'ed, NULL if out of memory.
 */
char *text_demangle(const char *mangled);
char *text_short_name(const char *demangled);

#endif
