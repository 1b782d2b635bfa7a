/* SPDX-License-Identifier: BSD-2-Clause */
/* A terminal's screen and keys. The only room for curses. */
#ifndef GBPF_TOP_SCREEN_H
#define GBPF_TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum style {
	STYLE_PLAIN = 0,
	STYLE_BOLD,
	STYLE_DIM,
	STYLE_BAR, /* heads of tables, the line of keys */
	STYLE_SELECTED,
	STYLE_GOOD,
	STYLE_WARN,
	STYLE_BAD,
};

/* Keys that are no characters. */
enum screen_key {
	SCREEN_NONE = 0, /* nothing was pressed */
	SCREEN_UP = 0x110000,
	SCREEN_DOWN,
	SCREEN_LEFT,
	SCREEN_RIGHT,
	SCREEN_PAGE_UP,
	SCREEN_PAGE_DOWN,
	SCREEN_HOME,
	SCREEN_END,
	SCREEN_ENTER,
	SCREEN_ESCAPE,
	SCREEN_BACKSPACE,
	SCREEN_TAB,
	SCREEN_BACK_TAB,
	SCREEN_F1, /* … F12 follow */
	SCREEN_F12 = SCREEN_F1 + 11,
	SCREEN_OTHER,
};

struct screen;

/* Is there a terminal on stdin and stdout? Errors as top_check(). */
int screen_check(char *why, size_t size);
/* Takes that terminal over; errors as top_new(). */
int screen_open(struct screen **out, char *why, size_t size);
/* Restores the terminal; may be called again. NULL is accepted. */
void screen_close(struct screen *s);
void screen_free(struct screen *s);

/* Follows the terminal's size; true if it changed. */
bool screen_resize(struct screen *s);
int screen_rows(const struct screen *s);
int screen_columns(const struct screen *s);
bool screen_utf8(const struct screen *s); /* else: ASCII only */
int screen_fd(const struct screen *s);	  /* where keys come from */

/* A character or an enum screen_key. Never waits longer than an escape sequence may take. */
uint32_t screen_key(struct screen *s);

void screen_clear(struct screen *s);
/* Repaints everything at the next screen_show(). */
void screen_repaint(struct screen *s);
/*
 * Text, cut at width columns and at the edge. What the locale cannot show becomes
 * '?', a control byte too. Returns the columns used.
 */
int screen_text(struct screen *s, int row, int column, int width, enum style style,
		const char *text);
/* Gives columns of a row a style, keeping the text. */
void screen_paint(struct screen *s, int row, int column, int width, enum style style);
/* Shows a cursor there at the next screen_show(); row -1: none. */
void screen_cursor(struct screen *s, int row, int column);

/* False while the terminal has not taken the last frame: do not draw another. */
bool screen_ready(struct screen *s);
/* Sends what changed, as far as the terminal takes it now. */
void screen_show(struct screen *s);
/*
 * Waits for a key, at most ns, sending meanwhile what is left of a frame. -EINTR: a
 * signal came; -EIO: the terminal is gone.
 */
int screen_wait(struct screen *s, int64_t ns);

#endif
