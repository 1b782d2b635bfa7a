/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util/text.h"

__attribute__((format(printf, 2, 0)))
static void print_line(const char *prefix, const char *fmt, va_list args)
{
	char raw[1024], shown[4096];

	vsnprintf(raw, sizeof(raw), fmt, args);
	fprintf(stderr, "%s%s\n", prefix, text_printable(raw, shown, sizeof(shown), 0));
}

void err_report(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	print_line("gbpf: ", fmt, args);
	va_end(args);
}

void err_hint(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	print_line("  try: ", fmt, args);
	va_end(args);
}

int err_flush_stdout(int status)
{
	int failed = ferror(stdout);

	errno = 0;
	if (fflush(stdout) != 0)
		failed = 1;
	if (!failed)
		return status;
	err_report("cannot write to stdout: %s", errno ? strerror(errno) : "output error");
	return status ? status : 1;
}
