/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "util/text.h"

void json_init(struct json *j, FILE *out)
{
	j->out = out;
	j->depth = 0;
	j->comma[0] = false;
	j->after_key = false;
	j->used = 0; /* the buffer is set where it is used: it need not be cleared */
}

static void flush(struct json *j)
{
	fwrite_unlocked(j->buffer, 1, j->used, j->out);
	j->used = 0;
}

static void put(struct json *j, char c)
{
	if (j->used == JSON_BUFFER)
		flush(j);
	j->buffer[j->used++] = c;
}

static void put_n(struct json *j, const char *s, size_t len)
{
	while (len) {
		size_t room = JSON_BUFFER - j->used, n = len < room ? len : room;

		memcpy(j->buffer + j->used, s, n);
		j->used += n;
		s += n;
		len -= n;
		if (j->used == JSON_BUFFER)
			flush(j);
	}
}

static void put_text(struct json *j, const char *s)
{
	put_n(j, s, strlen(s));
}

__attribute__((format(printf, 2, 3)))
static void put_printed(struct json *j, const char *format, ...)
{
	char text[512]; /* the longest double has 309 digits before its point */
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (n > 0)
		put_n(j, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

static void before_value(struct json *j)
{
	if (!j->after_key && j->comma[j->depth])
		put(j, ',');
	j->comma[j->depth] = true;
	j->after_key = false;
}

static void after_value(struct json *j)
{
	if (!j->depth)
		flush(j);
}

static void open_level(struct json *j, char bracket)
{
	before_value(j);
	assert(j->depth + 1 < JSON_MAX_DEPTH);
	j->comma[++j->depth] = false;
	put(j, bracket);
}

static void close_level(struct json *j, char bracket)
{
	assert(j->depth > 0);
	j->depth--;
	put(j, bracket);
	after_value(j);
}

void json_begin_object(struct json *j)
{
	open_level(j, '{');
}

void json_end_object(struct json *j)
{
	close_level(j, '}');
}

void json_begin_array(struct json *j)
{
	open_level(j, '[');
}

void json_end_array(struct json *j)
{
	close_level(j, ']');
}

static void put_ascii(struct json *j, unsigned char c)
{
	switch (c) {
	case '"':
		put_text(j, "\\\"");
		break;
	case '\\':
		put_text(j, "\\\\");
		break;
	case '\n':
		put_text(j, "\\n");
		break;
	case '\t':
		put_text(j, "\\t");
		break;
	case '\r':
		put_text(j, "\\r");
		break;
	default:
		if (c < 0x20 || c == 0x7f)
			put_printed(j, "\\u%04x", c);
		else
			put(j, (char)c);
	}
}

/* Line separators end a statement where JSON is read as JavaScript. */
static bool is_line_separator(const char *s)
{
	return !memcmp(s, "\xe2\x80\xa8", 3) || !memcmp(s, "\xe2\x80\xa9", 3);
}

/* How many bytes from here stand for themselves. */
static size_t plain_length(const char *s, size_t len)
{
	size_t n = 0;

	while (n < len && s[n] >= ' ' && s[n] < 0x7f && s[n] != '"' && s[n] != '\\')
		n++;
	return n;
}

static void put_escaped(struct json *j, const char *s, size_t len)
{
	for (size_t i = 0; i < len;) {
		size_t n = plain_length(s + i, len - i);

		if (n) {
			put_n(j, s + i, n);
			i += n;
			continue;
		}
		n = text_utf8_length(s + i, len - i);

		if (n == 0) {
			put_text(j, "\\ufffd");
			n = 1;
		} else if (n == 1) {
			put_ascii(j, (unsigned char)s[i]);
		} else if (n == 3 && is_line_separator(s + i)) {
			put_printed(j, "\\u202%c", s[i + 2] == '\xa8' ? '8' : '9');
		} else {
			put_n(j, s + i, n);
		}
		i += n;
	}
}

static void put_quoted(struct json *j, const char *s, size_t len)
{
	before_value(j);
	put(j, '"');
	put_escaped(j, s, len);
	put(j, '"');
}

void json_string_n(struct json *j, const char *s, size_t len)
{
	put_quoted(j, s, len);
	after_value(j);
}

void json_string(struct json *j, const char *s)
{
	if (s)
		json_string_n(j, s, strlen(s));
	else
		json_null(j);
}

void json_key(struct json *j, const char *key)
{
	put_quoted(j, key, strlen(key));
	put(j, ':');
	j->after_key = true;
}

/* At least so many digits; where thousands of numbers are written a second, printf() is felt. */
static void put_digits(struct json *j, uint64_t v, int least)
{
	char digits[24];
	size_t at = sizeof(digits);

	for (; v || least > 0; v /= 10, least--)
		digits[--at] = (char)('0' + v % 10);
	put_n(j, digits + at, sizeof(digits) - at);
}

void json_int(struct json *j, int64_t v)
{
	before_value(j);
	if (v < 0)
		put(j, '-');
	put_digits(j, v < 0 ? 0 - (uint64_t)v : (uint64_t)v, 1);
	after_value(j);
}

void json_uint(struct json *j, uint64_t v)
{
	before_value(j);
	put_digits(j, v, 1);
	after_value(j);
}

/* As "%.*f" does, where that is certain: not too large, not near the middle of two. */
static bool put_fixed(struct json *j, double v, int decimals)
{
	static const uint64_t powers[] = {1, 10, 100, 1000, 10000, 100000, 1000000};
	double scaled, whole, part;
	uint64_t units;

	if (decimals < 0 || decimals > 6)
		return false;
	scaled = fabs(v) * (double)powers[decimals];
	if (scaled > 1e12)
		return false;
	whole = floor(scaled);
	part = scaled - whole;
	if (fabs(part - 0.5) < 1e-3)
		return false;
	units = (uint64_t)whole + (part > 0.5);
	if (signbit(v))
		put(j, '-');
	put_digits(j, units / powers[decimals], 1);
	if (!decimals)
		return true;
	put(j, '.');
	put_digits(j, units % powers[decimals], decimals);
	return true;
}

void json_double(struct json *j, double v, int decimals)
{
	if (!isfinite(v)) {
		json_null(j);
		return;
	}
	before_value(j);
	if (!put_fixed(j, v, decimals))
		put_printed(j, "%.*f", decimals, v);
	after_value(j);
}

void json_bool(struct json *j, bool v)
{
	before_value(j);
	put_text(j, v ? "true" : "false");
	after_value(j);
}

void json_null(struct json *j)
{
	before_value(j);
	put_text(j, "null");
	after_value(j);
}
