// SPDX-License-Identifier: BSD-2-Clause
#include "report/filter_value.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct suffix {
	const char *word;
	double factor;
};

static const struct suffix time_suffixes[] = {
	{ "", 1 },    { "ns", 1 },    { "us", 1e3 },   { "µs", 1e3 }, { "ms", 1e6 },
	{ "s", 1e9 }, { "min", 6e10 }, { "h", 3.6e12 }, { NULL, 0 },
};
static const struct suffix byte_suffixes[] = {
	{ "", 1 },	   { "B", 1 },	      { "KB", 1e3 },	       { "MB", 1e6 },
	{ "GB", 1e9 },	   { "KiB", 1024 },   { "MiB", 1024 * 1024 },  { "GiB", 1073741824 },
	{ NULL, 0 },
};
static const struct suffix percent_suffixes[] = { { "", 1e3 }, { "%", 1e3 }, { NULL, 0 } };
static const struct suffix milli_suffixes[] = {
	{ "", 1e3 }, { "/s", 1e3 }, { "k", 1e6 }, { "M", 1e9 }, { NULL, 0 }
};
static const struct suffix count_suffixes[] = {
	{ "", 1 }, { "k", 1e3 }, { "M", 1e6 }, { NULL, 0 }
};

static const struct suffix *suffixes_of(const struct column *c, const char **expected)
{
	switch (c->unit) {
	case UNIT_NS:
		*expected = "a time such as 10us";
		return time_suffixes;
	case UNIT_BYTES:
		*expected = "a size such as 64KiB";
		return byte_suffixes;
	case UNIT_PERCENT:
		*expected = "a percentage such as 2.5";
		return percent_suffixes;
	case UNIT_MILLI:
		*expected = "a number such as 2.5";
		return milli_suffixes;
	case UNIT_NONE:
	case UNIT_ID:
		break;
	}
	*expected = "a number such as 100";
	return count_suffixes;
}

static bool read_number(const struct column *c, const char *word, int64_t *out,
			const char **expected)
{
	const struct suffix *s = suffixes_of(c, expected);
	char *end, *whole_end;
	double v;

	/* Decimal only: strtod would also read hexadecimal, nan and inf. */
	if (!isdigit((unsigned char)word[*word == '-']) && word[*word == '-'] != '.')
		return false;
	if (strpbrk(word, "xXpP"))
		return false;
	v = strtod(word, &end);
	if (end == word)
		return false;
	for (; s->word; s++)
		if (!strcmp(end, s->word))
			break;
	if (!s->word || fabs(v * s->factor) > 9e18)
		return false;
	/* Large whole numbers lose nothing: a double holds 53 bits, ids need more. */
	*out = strtoll(word, &whole_end, 10);
	if (whole_end != end || s->factor != 1)
		*out = llround(v * s->factor);
	return true;
}

static bool read_hex(const char *word, int64_t *out)
{
	char *end;

	if (strncmp(word, "0x", 2) && !isdigit((unsigned char)*word))
		return false;
	*out = (int64_t)strtoull(word, &end, 0);
	return end != word && !*end;
}

/* 8x4x1, 8×4×1 or 8,4,1; what is left out is 1. */
static bool read_dim3(const char *word, int64_t out[3])
{
	char *end;

	out[1] = out[2] = 1;
	for (int i = 0; i < 3; i++) {
		if (!isdigit((unsigned char)*word))
			return false;
		out[i] = (int64_t)strtoul(word, &end, 10);
		word = end;
		if (!*word)
			return true;
		if (*word == 'x' || *word == ',')
			word++;
		else if (!strncmp(word, "×", strlen("×")))
			word += strlen("×");
		else
			return false;
	}
	return false;
}

bool filter_value(const struct column *c, enum filter_op op, const char *word,
		  struct filter_value *out, char *expected, size_t size)
{
	const char *what = "";
	bool ok = true;

	*out = (struct filter_value){ .text = word };
	out->none = !strcmp(word, "n/a") && (op == FILTER_EQ || op == FILTER_NE);
	if (out->none || c->type == COLUMN_TEXT)
		return true;
	if (c->type == COLUMN_DIM3) {
		what = "a size such as 8x1x1";
		ok = read_dim3(word, out->dim);
	} else if (c->type == COLUMN_HEX) {
		what = "a handle such as 0x7f0012345678";
		ok = read_hex(word, &out->number);
	} else {
		ok = read_number(c, word, &out->number, &what);
	}
	if (!ok)
		snprintf(expected, size, "%s", what);
	return ok;
}

bool filter_glob(const char *pattern, const char *text)
{
	const char *star = NULL, *retry = NULL;

	while (*text) {
		if (*pattern == '*') {
			star = pattern++;
			retry = text;
		} else if (*pattern == '?' || *pattern == *text) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star + 1;
			text = ++retry;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

static bool compare_text(enum filter_op op, const char *value, const char *text)
{
	if (op == FILTER_LIKE)
		return strpbrk(value, "*?") ? filter_glob(value, text) :
					      strstr(text, value) != NULL;
	return !strcmp(text, value) == (op == FILTER_EQ);
}

bool filter_compare(const struct column *c, enum filter_op op, const struct filter_value *v,
		    const struct row *r)
{
	bool known = column_known(c, r);
	int64_t number;

	if (v->none)
		return known == (op == FILTER_NE);
	if (!known)
		return false;
	if (c->type == COLUMN_TEXT)
		return compare_text(op, v->text, column_text(c, r));
	if (c->type == COLUMN_DIM3)
		return !memcmp(column_dim3(c, r), v->dim, sizeof(v->dim)) == (op == FILTER_EQ);
	number = column_int(c, r);
	switch (op) {
	case FILTER_EQ: return number == v->number;
	case FILTER_NE: return number != v->number;
	case FILTER_LT: return number < v->number;
	case FILTER_LE: return number <= v->number;
	case FILTER_GT: return number > v->number;
	case FILTER_GE: return number >= v->number;
	case FILTER_LIKE: break;
	}
	return false;
}
