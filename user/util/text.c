/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct range {
	uint32_t first, last;
};

static bool in_ranges(uint32_t c, const struct range *r, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (c >= r[i].first && c <= r[i].last)
			return true;
	}
	return false;
}

#define IN_RANGES(c, table) in_ranges(c, table, sizeof(table) / sizeof((table)[0]))

/* Combining marks and joiners: no column of their own. */
static const struct range zero_width[] = {
	{0x300, 0x36f},	  {0x483, 0x489},   {0x591, 0x5bd},   {0x610, 0x61a},
	{0x64b, 0x65f},	  {0x200b, 0x200d}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f},
	{0xfe20, 0xfe2f}, {0xe0100, 0xe01ef},
};

/* East Asian wide and fullwidth blocks, and emoji. */
static const struct range double_width[] = {
	{0x1100, 0x115f}, {0x2e80, 0x303e}, {0x3041, 0x4dbf},	{0x4e00, 0xa4cf},
	{0xac00, 0xd7a3}, {0xf900, 0xfaff}, {0xfe30, 0xfe6f},	{0xff00, 0xff60},
	{0xffe0, 0xffe6}, {0x1f300, 0x1f64f}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd},
};

/* What could move the cursor, reorder the line or hide in it. */
static const struct range unprintable[] = {
	{0x0, 0x1f},	  {0x7f, 0x9f},	    {0x61c, 0x61c},   {0x180e, 0x180e}, {0x200b, 0x200f},
	{0x2028, 0x202e}, {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
};

size_t text_utf8_length(const char *s, size_t len)
{
	const unsigned char *u = (const unsigned char *)s;
	size_t n;

	if (len == 0)
		return 0;
	if (u[0] < 0x80)
		return 1;
	if (u[0] < 0xc2 || u[0] > 0xf4)
		return 0;
	n = u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;
	if (len < n)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((u[i] & 0xc0) != 0x80)
			return 0;
	}
	if ((u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xed && u[1] > 0x9f) ||
	    (u[0] == 0xf0 && u[1] < 0x90) || (u[0] == 0xf4 && u[1] > 0x8f))
		return 0; /* overlong, a surrogate, or above U+10FFFF */
	return n;
}

static uint32_t code_point(const char *s, size_t n)
{
	const unsigned char *u = (const unsigned char *)s;
	uint32_t c = n == 1 ? u[0] : u[0] & (0xffu >> (n + 1));

	for (size_t i = 1; i < n; i++)
		c = c << 6 | (u[i] & 0x3f);
	return c;
}

static size_t columns(uint32_t c)
{
	if (c < 0x300)
		return 1;
	if (IN_RANGES(c, zero_width))
		return 0;
	return IN_RANGES(c, double_width) ? 2 : 1;
}

size_t text_width(const char *s)
{
	size_t left = strlen(s), width = 0;

	while (left > 0) {
		size_t n = text_utf8_length(s, left);

		width += n ? columns(code_point(s, n)) : 1;
		n = n ? n : 1;
		s += n;
		left -= n;
	}
	return width;
}

/* One character of src as it may be shown: its bytes in out, their number and columns. */
struct shown {
	char bytes[20];
	size_t len, columns, consumed;
};

static struct shown show(const char *src, size_t left)
{
	struct shown r = {.consumed = text_utf8_length(src, left)};
	bool ok = r.consumed > 0;
	uint32_t c = ok ? code_point(src, r.consumed) : 0;

	if (ok && !IN_RANGES(c, unprintable)) {
		memcpy(r.bytes, src, r.consumed);
		r.len = r.consumed;
		r.columns = columns(c);
		return r;
	}
	if (!ok)
		r.consumed = 1;
	for (size_t i = 0; i < r.consumed; i++)
		snprintf(r.bytes + 4 * i, sizeof(r.bytes) - 4 * i, "\\x%02x",
			 (unsigned char)src[i]);
	r.len = r.columns = 4 * r.consumed;
	return r;
}

#define ELLIPSIS "…"

const char *text_printable(const char *src, char *buf, size_t size, size_t max_columns)
{
	size_t left = strlen(src), len = 0, width = 0, cut = 0;

	if (size == 0)
		return buf;
	while (left > 0) {
		struct shown s = show(src, left);

		if (len + s.len >= size || (max_columns && width + s.columns > max_columns)) {
			if (cut + sizeof(ELLIPSIS) <= size) {
				memcpy(buf + cut, ELLIPSIS, sizeof(ELLIPSIS));
				return buf;
			}
			len = 0;
			break;
		}
		memcpy(buf + len, s.bytes, s.len);
		len += s.len;
		width += s.columns;
		/* The last place from where an ellipsis still fits. */
		if (len + sizeof(ELLIPSIS) <= size && (!max_columns || width < max_columns))
			cut = len;
		src += s.consumed;
		left -= s.consumed;
	}
	buf[len] = '\0';
	return buf;
}

void text_csv(FILE *out, const char *s)
{
	if (!s[strcspn(s, ",\"\r\n")]) {
		fputs(s, out);
		return;
	}
	putc('"', out);
	for (; *s; s++) {
		if (*s == '"')
			putc('"', out);
		putc(*s, out);
	}
	putc('"', out);
}

const char *text_duration(int64_t ns, char *buf, size_t size)
{
	static const struct {
		uint64_t ns;
		const char *name;
	} units[] = {{1000, "µs"}, {1000000, "ms"}, {1000000000, "s"}};
	uint64_t v = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
	const char *sign = ns < 0 ? "-" : "";
	uint64_t thousandths = 0;
	size_t u = 0;

	if (v < 1000) {
		snprintf(buf, size, "%s%" PRIu64 " ns", sign, v);
		return buf;
	}
	for (;; u++) {
		uint64_t step = units[u].ns / 1000;

		thousandths = v / step + (v % step * 2 >= step && step > 1);
		if (thousandths < 1000000 || u == 2)
			break;
	}
	snprintf(buf, size, "%s%" PRIu64 ".%03u %s", sign, thousandths / 1000,
		 (unsigned)(thousandths % 1000), units[u].name);
	return buf;
}

const char *text_bytes(uint64_t bytes, char *buf, size_t size)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double v = (double)bytes;
	size_t u = 0;

	if (bytes < 1024) {
		snprintf(buf, size, "%" PRIu64 " B", bytes);
		return buf;
	}
	while (v >= 1023.95 && u < 6) {
		v /= 1024;
		u++;
	}
	snprintf(buf, size, "%.1f %s", v, units[u]);
	return buf;
}

const char *text_count(uint64_t n, char *buf, size_t size)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64, n);
	size_t at = 0;

	for (int i = 0; i < len && at + 2 < size; i++) {
		if (i > 0 && (len - i) % 3 == 0)
			buf[at++] = ',';
		buf[at++] = digits[i];
	}
	if (size > 0)
		buf[at] = '\0';
	return buf;
}
