/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/term.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool term_is_tty(int fd)
{
	return isatty(fd) == 1;
}

unsigned term_width(int fd, unsigned fallback)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;

	if (columns) {
		unsigned long n = strtoul(columns, NULL, 10);

		if (n >= 20 && n <= 10000)
			return (unsigned)n;
	}
	if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20)
		return size.ws_col;
	return fallback;
}

bool term_colour(int fd)
{
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	if (no_color && *no_color)
		return false;
	if (!term || !*term || !strcmp(term, "dumb"))
		return false;
	return term_is_tty(fd);
}

const char *term_style(bool colour, enum term_style style)
{
	static const char *const escapes[] = {
		[TERM_PLAIN] = "\x1b[0m", [TERM_BOLD] = "\x1b[1m",   [TERM_DIM] = "\x1b[2m",
		[TERM_RED] = "\x1b[31m",  [TERM_GREEN] = "\x1b[32m", [TERM_YELLOW] = "\x1b[33m",
	};

	return colour ? escapes[style] : "";
}
