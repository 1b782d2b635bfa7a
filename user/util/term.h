/* SPDX-License-Identifier: BSD-2-Clause */
/* What the terminal behind a file descriptor can do. */
#ifndef GBPF_UTIL_TERM_H
#define GBPF_UTIL_TERM_H

#include <stdbool.h>

bool term_is_tty(int fd);

/* Columns of the terminal, COLUMNS if that is set, fallback if neither is known. */
unsigned term_width(int fd, unsigned fallback);

/*
 * May colours be used? Only on a terminal, not with TERM=dumb, and not when
 * NO_COLOR holds anything (https://no-color.org). A colour never says what the
 * text does not say too.
 */
bool term_colour(int fd);

enum term_style { TERM_PLAIN = 0, TERM_BOLD, TERM_DIM, TERM_RED, TERM_GREEN, TERM_YELLOW };

/* The escape that switches to style (TERM_PLAIN switches back), "" unless colour. */
const char *term_style(bool colour, enum term_style style);

#endif
