/* SPDX-License-Identifier: BSD-2-Clause */
#include "top/cell.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "util/text.h"

struct cell cell_estimate(enum cell_kind kind, const struct estimate *e)
{
	bool finite = isfinite(e->value) && isfinite(e->low) && isfinite(e->high);

	return (struct cell){.kind = kind, .known = e->known && finite, .value = e->value,
			     .low = e->low, .high = e->high};
}

struct cell cell_value(enum cell_kind kind, double value)
{
	return (struct cell){
		.kind = kind, .known = true, .value = value, .low = value, .high = value};
}

struct cell cell_if_known(enum cell_kind kind, double value)
{
	struct cell c = cell_value(kind, value);

	c.known = value >= 0 && isfinite(value);
	return c;
}

struct cell cell_text(const char *text)
{
	return (struct cell){.kind = CELL_TEXT, .known = *text != '\0', .text = text};
}

const char *cell_string(const struct cell *c)
{
	return c->text ? c->text : c->own;
}

#define LEAST_OFF 0.1 /* percent: what is estimated never reads as exact */

/* Three digits that count, of a value of 0 to 1000. */
static int digits(double value)
{
	return value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
}

const char *format_short(double value, char *buf, size_t size)
{
	static const char units[] = "kMGTPE";
	size_t u = 0;

	if (value < 999.5 || !isfinite(value)) {
		bool whole = fabs(value - round(value)) < 1e-9;

		snprintf(buf, size, "%.*f", whole ? 0 : digits(value), value);
		return buf;
	}
	for (value /= 1000; value >= 999.5 && u < sizeof(units) - 2; u++)
		value /= 1000;
	snprintf(buf, size, "%.*f%c", digits(value), value, units[u]);
	return buf;
}

const char *format_duration(double ns, bool utf8, char *buf, size_t size)
{
	static const char *const units[] = {"µs", "ms", "s", "min", "h", "d"};
	static const double steps[] = {1000, 1000, 1000, 60, 60, 24};
	size_t u = 0;

	if (ns < 999.5) {
		snprintf(buf, size, "%.0f ns", ns);
		return buf;
	}
	for (ns /= 1000; ns >= 999.5 && u < 5; u++)
		ns /= steps[u + 1];
	snprintf(buf, size, "%.*f %s", digits(ns), ns, u || utf8 ? units[u] : "us");
	return buf;
}

const char *format_bytes(double bytes, char *buf, size_t size)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	size_t u = 0;

	if (bytes < 1023.5) {
		snprintf(buf, size, "%.0f B", bytes);
		return buf;
	}
	for (bytes /= 1024; bytes >= 1023.5 && u < 5; u++)
		bytes /= 1024;
	snprintf(buf, size, "%.*f %s", digits(bytes), bytes, units[u]);
	return buf;
}

/* Half of an interval, as far as it reaches on its longer side. */
static double half(const struct cell *c)
{
	return fmax(c->high - c->value, c->value - c->low);
}

static void number(double value, bool bytes, char *buf, size_t size)
{
	if (bytes)
		format_bytes(value, buf, size);
	else
		format_short(value, buf, size);
}

/* Bounds instead of a value and how far off it is, where that is far. */
static void format_rate_range(const struct cell *c, size_t width, bool bytes, bool utf8, char *buf,
			      size_t size)
{
	char low[24], high[24];

	number(c->low, bytes, low, sizeof(low));
	number(c->high, bytes, high, sizeof(high));
	snprintf(buf, size, "%s%s%s", low, utf8 ? "–" : "-", high);
	if (c->low <= 0 || text_width(buf) > width)
		snprintf(buf, size, "%s%s", utf8 ? "≤" : "<=", high);
}

static void format_rate(const struct cell *c, size_t width, bool bytes, bool utf8, char *buf,
			size_t size)
{
	double off = half(c), relative = c->value > 0 ? 100 * off / c->value : INFINITY;
	char text[24];

	number(c->value, bytes, text, sizeof(text));
	if (off <= 0)
		snprintf(buf, size, "%s", text);
	else if (relative >= 99.5)
		format_rate_range(c, width, bytes, utf8, buf, size);
	else
		snprintf(buf, size, "%s %s%.*f %%", text, utf8 ? "±" : "+-", relative < 0.95,
			 fmax(relative, LEAST_OFF));
}

static void format_share(const struct cell *c, bool utf8, char *buf, size_t size)
{
	double value = 100 * c->value, off = 100 * half(c);
	int decimals = value < 9.95 && off < 0.95;

	if (off <= 0)
		snprintf(buf, size, "%.*f", value < 9.95, value);
	else if (off >= value || value + off > 100.05) /* there is less room on one side */
		snprintf(buf, size, "%.*f%s%.*f", c->low < 0.0995 && c->low > 0, 100 * c->low,
			 utf8 ? "–" : "-", c->high < 0.0995, 100 * c->high);
	else
		snprintf(buf, size, "%.*f %s%.*f", decimals, value, utf8 ? "±" : "+-", off < 0.95,
			 fmax(off, LEAST_OFF));
}

static void format_text(const char *text, size_t width, bool utf8, char *buf, size_t size)
{
	text_printable(text, buf, size, width);
	if (utf8)
		return;
	/* In ASCII the ellipsis is one '~', and other characters are told by the screen. */
	for (char *p = strstr(buf, "…"); p; p = strstr(p, "…")) {
		*p = '~';
		memmove(p + 1, p + strlen("…"), strlen(p + strlen("…")) + 1);
	}
}

static void format_known(const struct cell *c, size_t width, bool utf8, char *buf, size_t size)
{
	switch (c->kind) {
	case CELL_EMPTY:
	case CELL_DRAWN:
		buf[0] = '\0';
		break;
	case CELL_TEXT:
		format_text(cell_string(c), width, utf8, buf, size);
		break;
	case CELL_COUNT:
		if (c->value < 9999999.5)
			text_count((uint64_t)llround(c->value), buf, size);
		else
			format_short(c->value, buf, size);
		break;
	case CELL_NUMBER:
		snprintf(buf, size, "%.0f", c->value);
		break;
	case CELL_RATE:
	case CELL_BYTE_RATE:
		format_rate(c, width, c->kind == CELL_BYTE_RATE, utf8, buf, size);
		break;
	case CELL_SHARE:
		format_share(c, utf8, buf, size);
		break;
	case CELL_PERCENT:
		snprintf(buf, size, "%.*f", digits(c->value), c->value);
		break;
	case CELL_DURATION:
		format_duration(c->value, utf8, buf, size);
		break;
	case CELL_BYTES:
		format_bytes(c->value, buf, size);
		break;
	}
}

const char *cell_format(const struct cell *c, size_t width, bool utf8, char *buf, size_t size)
{
	if (c->kind == CELL_EMPTY)
		buf[0] = '\0';
	else if (!c->known)
		snprintf(buf, size, "%s", c->kind == CELL_TEXT ? "-" : "n/a");
	else
		format_known(c, width, utf8, buf, size);
	if (c->kind != CELL_TEXT && width < size && text_width(buf) > width) {
		memset(buf, '#', width);
		buf[width] = '\0';
	}
	return buf;
}

int cell_compare(const struct cell *a, const struct cell *b)
{
	if (!a->known || !b->known)
		return a->known - b->known;
	if (a->kind == CELL_TEXT)
		return strcasecmp(cell_string(a), cell_string(b));
	return (a->value > b->value) - (a->value < b->value);
}
