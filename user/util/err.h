/* SPDX-License-Identifier: BSD-2-Clause */
/* How gbpf says on stderr that something went wrong: a line, and what to do. */
#ifndef GBPF_UTIL_ERR_H
#define GBPF_UTIL_ERR_H

/*
 * "gbpf: …" as one line. Whatever the arguments bring along (control bytes,
 * escapes, newlines) is made printable; over 1 KiB is cut.
 */
void err_report(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* "  try: …", the line after. */
void err_hint(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * Flushes stdout. Returns status, or 1 if status was 0 and what was printed
 * could not be written, which is reported.
 */
int err_flush_stdout(int status);

#endif
