/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "util/text.h"

void json_init(struct json *j, FILE *out)
{
	*j = (struct json){.out = out};
}

static void before_value(struct json *j)
{
	if (!j->after_key && j->comma[j->depth])
		putc_unlocked(',', j->out);
	j->comma[j->depth] = true;
	j->after_key = false;
}

static void open_level(struct json *j, char bracket)
{
	before_value(j);
	assert(j->depth + 1 < JSON_MAX_DEPTH);
	j->comma[++j->depth] = false;
	putc_unlocked(bracket, j->out);
}

static void close_level(struct json *j, char bracket)
{
	assert(j->depth > 0);
	j->depth--;
	putc_unlocked(bracket, j->out);
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

static void put_ascii(FILE *out, unsigned char c)
{
	switch (c) {
	case '"':
		fputs("\\\"", out);
		break;
	case '\\':
		fputs("\\\\", out);
		break;
	case '\n':
		fputs("\\n", out);
		break;
	case '\t':
		fputs("\\t", out);
		break;
	case '\r':
		fputs("\\r", out);
		break;
	default:
		if (c < 0x20 || c == 0x7f)
			fprintf(out, "\\u%04x", c);
		else
			putc_unlocked(c, out);
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

static void put_escaped(FILE *out, const char *s, size_t len)
{
	for (size_t i = 0; i < len;) {
		size_t n = plain_length(s + i, len - i);

		if (n) {
			fwrite_unlocked(s + i, 1, n, out);
			i += n;
			continue;
		}
		n = text_utf8_length(s + i, len - i);

		if (n == 0) {
			fputs("\\ufffd", out);
			n = 1;
		} else if (n == 1) {
			put_ascii(out, (unsigned char)s[i]);
		} else if (n == 3 && is_line_separator(s + i)) {
			fprintf(out, "\\u202%c", s[i + 2] == '\xa8' ? '8' : '9');
		} else {
			fwrite(s + i, 1, n, out);
		}
		i += n;
	}
}

void json_string_n(struct json *j, const char *s, size_t len)
{
	before_value(j);
	putc_unlocked('"', j->out);
	put_escaped(j->out, s, len);
	putc_unlocked('"', j->out);
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
	json_string(j, key);
	putc_unlocked(':', j->out);
	j->after_key = true;
}

/* At least so many digits; where thousands of numbers are written a second, printf() is felt. */
static void put_digits(FILE *out, uint64_t v, int least)
{
	char digits[24];
	size_t at = sizeof(digits);

	for (; v || least > 0; v /= 10, least--)
		digits[--at] = (char)('0' + v % 10);
	fwrite_unlocked(digits + at, 1, sizeof(digits) - at, out);
}

void json_int(struct json *j, int64_t v)
{
	before_value(j);
	if (v < 0)
		putc_unlocked('-', j->out);
	put_digits(j->out, v < 0 ? 0 - (uint64_t)v : (uint64_t)v, 1);
}

void json_uint(struct json *j, uint64_t v)
{
	before_value(j);
	put_digits(j->out, v, 1);
}

/* As "%.*f" does, where that is certain: not too large, not near the middle of two. */
static bool put_fixed(FILE *out, double v, int decimals)
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
		putc_unlocked('-', out);
	put_digits(out, units / powers[decimals], 1);
	if (!decimals)
		return true;
	putc_unlocked('.', out);
	put_digits(out, units % powers[decimals], decimals);
	return true;
}

void json_double(struct json *j, double v, int decimals)
{
	if (!isfinite(v)) {
		json_null(j);
		return;
	}
	before_value(j);
	if (!put_fixed(j->out, v, decimals))
		fprintf(j->out, "%.*f", decimals, v);
}

void json_bool(struct json *j, bool v)
{
	before_value(j);
	fputs(v ? "true" : "false", j->out);
}

void json_null(struct json *j)
{
	before_value(j);
	fputs("null", j->out);
}
