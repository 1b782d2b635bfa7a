/* SPDX-License-Identifier: BSD-2-Clause */
/* Text and styles on the screen. */
#include <curses.h>
#include <string.h>
#include <wchar.h>

#include "top/screen_private.h"
#include "util/text.h"

#define MAX_TEXT 512 /* characters of one screen_text() */

void screen_clear(struct screen *s)
{
	erase();
}

void screen_repaint(struct screen *s)
{
	clearok(curscr, TRUE);
}

static attr_t attributes(const struct screen *s, enum style style, short *pair)
{
	*pair = 0;
	switch (style) {
	case STYLE_BOLD:
		return A_BOLD;
	case STYLE_DIM:
		return s->colour ? A_DIM : A_NORMAL;
	case STYLE_BAR:
		*pair = s->colour ? 4 : 0;
		return s->colour ? A_NORMAL : A_REVERSE;
	case STYLE_SELECTED:
		*pair = s->colour ? 5 : 0;
		return s->colour ? A_NORMAL : A_REVERSE;
	case STYLE_GOOD:
		*pair = s->colour ? 1 : 0;
		return A_NORMAL;
	case STYLE_WARN:
		*pair = s->colour ? 2 : 0;
		return A_NORMAL;
	case STYLE_BAD:
		*pair = s->colour ? 3 : 0;
		return A_BOLD;
	case STYLE_PLAIN:
		break;
	}
	return A_NORMAL;
}

static wchar_t in_ascii(uint32_t c)
{
	switch (c) {
	case 0xb5:
		return L'u'; /* µ */
	case 0x2026:
		return L'~'; /* … */
	case 0xb0:
		return L' '; /* ° */
	default:
		return L'?';
	}
}

static uint32_t decode(const char *text, size_t n)
{
	const unsigned char *u = (const unsigned char *)text;
	uint32_t c = n == 1 ? u[0] : u[0] & (0xffu >> (n + 1));

	for (size_t i = 1; i < n; i++)
		c = c << 6 | (u[i] & 0x3f);
	return c;
}

int screen_text(struct screen *s, int row, int column, int width, enum style style,
		const char *text)
{
	wchar_t wide[MAX_TEXT];
	size_t count = 0, left = strlen(text);
	int used = 0;
	short pair;
	attr_t attr = attributes(s, style, &pair);

	if (row < 0 || row >= s->rows || column < 0 || column >= s->columns)
		return 0;
	if (width > s->columns - column)
		width = s->columns - column;
	while (left > 0 && count < MAX_TEXT) {
		size_t n = text_utf8_length(text, left);
		uint32_t c = n ? decode(text, n) : '?';
		wchar_t w = c < 0x80 || s->utf8 ? (wchar_t)c : in_ascii(c);
		int cells = wcwidth(w);

		if (cells < 0) {
			w = L'?';
			cells = 1;
		}
		if (used + cells > width)
			break;
		if (cells || count)
			wide[count++] = w;
		used += cells;
		n = n ? n : 1;
		text += n;
		left -= n;
	}
	attr_set(attr, pair, NULL);
	mvaddnwstr(row, column, wide, (int)count);
	attr_set(A_NORMAL, 0, NULL);
	return used;
}

void screen_paint(struct screen *s, int row, int column, int width, enum style style)
{
	short pair;
	attr_t attr = attributes(s, style, &pair);

	mvchgat(row, column, width, attr, pair, NULL);
}
