/* SPDX-License-Identifier: BSD-2-Clause */
/* What screen.c and paint.c share. */
#ifndef GBPF_TOP_SCREEN_PRIVATE_H
#define GBPF_TOP_SCREEN_PRIVATE_H

#include <curses.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <termios.h>

#include "top/screen.h"

/* <curses.h> has macros of names that are common words. */
#undef lines
#undef columns

struct screen {
	SCREEN *curses;
	WINDOW *keys; /* apart from stdscr: reading keys must not draw */
	FILE *to;     /* curses writes here: first the terminal, then the memory file */
	int memory, out;
	struct termios saved;
	bool changed, open, utf8, colour, gone;
	bool may_block; /* writing to out: it could not be opened anew */
	int rows, columns, cursor_row, cursor_column;
	char *pending; /* not taken by the terminal yet */
	size_t pending_size, pending_len, pending_sent;
};

#endif
