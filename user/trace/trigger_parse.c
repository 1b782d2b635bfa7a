// SPDX-License-Identifier: BSD-2-Clause
/* The language of triggers: WHAT(SUBJECT) COMPARE NUMBER[UNIT] [over TIME] [min CALLS]. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "record/record.h"
#include "trace/trigger.h"
#include "util/nearest.h"

#define TEXT_MAX 200
#define OVER_MIN INT64_C(100000000)
#define OVER_MAX (3600 * INT64_C(1000000000))
#define LEAST_MAX 1000000000u

struct unit {
	const char *name;
	int64_t scale;
};

static const struct unit times[] = {
	{"ns", 1}, {"us", 1000}, {"µs", 1000}, {"ms", 1000000}, {"s", 1000000000},
	{"m", 60 * INT64_C(1000000000)}, {0},
};
static const struct unit plain[] = {{"", 1}, {0}};
static const struct unit rates[] = {{"/s", 1000}, {"", 1000}, {0}};
static const struct unit sizes[] = {
	{"", 1}, {"B", 1}, {"kB", 1000}, {"KB", 1000}, {"MB", 1000000}, {"GB", 1000000000},
	{"TB", INT64_C(1000000000000)}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30},
	{"TiB", INT64_C(1) << 40}, {0},
};

static const struct form {
	const char *name;
	const struct unit *units;
	const char *want; /* what its number looks like */
	unsigned unit;	  /* enum record_trigger_unit */
	uint64_t least;	  /* below that a quantile is not one */
} forms[] = {
	[TRIGGER_P50] = {"p50", times, "a time such as 5ms", RECORD_TRIGGER_NS, 10},
	[TRIGGER_P90] = {"p90", times, "a time such as 5ms", RECORD_TRIGGER_NS, 20},
	[TRIGGER_P99] = {"p99", times, "a time such as 5ms", RECORD_TRIGGER_NS, 100},
	[TRIGGER_MAX] = {"max", times, "a time such as 5ms", RECORD_TRIGGER_NS, 1},
	[TRIGGER_AVG] = {"avg", times, "a time such as 5ms", RECORD_TRIGGER_NS, 10},
	[TRIGGER_COUNT] = {"count", plain, "a number", RECORD_TRIGGER_COUNT, 0},
	[TRIGGER_ERRORS] = {"errors", plain, "a number", RECORD_TRIGGER_COUNT, 0},
	[TRIGGER_RATE] = {"rate", rates, "calls a second such as 100/s",
			  RECORD_TRIGGER_MILLI_PER_S, 0},
	[TRIGGER_BYTES] = {"bytes", sizes, "bytes such as 2GiB", RECORD_TRIGGER_BYTES, 0},
};
#define FORMS (sizeof(forms) / sizeof(forms[0]))

struct parse {
	const char *at;
	char *why;
	size_t size;
};

__attribute__((format(printf, 2, 3)))
static int fail(struct parse *p, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(p->why, p->size, format, args);
	va_end(args);
	return -EINVAL;
}

static void blanks(struct parse *p)
{
	p->at += strspn(p->at, " \t");
}

static bool literal(struct parse *p, const char *text)
{
	size_t len = strlen(text);

	blanks(p);
	if (strncmp(p->at, text, len))
		return false;
	p->at += len;
	return true;
}

/* A word of letters, digits and _ into buf, cut to its size; its whole length. */
static size_t word(struct parse *p, char *buf, size_t size)
{
	size_t len = 0;

	blanks(p);
	while (isalnum((unsigned char)p->at[len]) || p->at[len] == '_')
		len++;
	snprintf(buf, size, "%.*s", (int)(len < size ? len : size - 1), p->at);
	p->at += len;
	return len;
}

static int parse_what(struct parse *p, struct trigger *t)
{
	struct nearest near;
	char name[TRIGGER_SUBJECT];

	word(p, name, sizeof(name));
	nearest_init(&near, name);
	for (size_t i = 0; i < FORMS; i++) {
		if (!strcmp(name, forms[i].name)) {
			t->what = (enum trigger_what)i;
			return 0;
		}
		nearest_offer(&near, forms[i].name);
	}
	return fail(p, "'%s' is nothing to watch%s%s%s; these are: p50, p90, p99, max, avg, count, "
		       "errors, rate, bytes",
		    name, near.best ? " (did you mean '" : "", near.best ? near.best : "",
		    near.best ? "'?)" : "");
}

static int parse_subject(struct parse *p, struct trigger *t)
{
	size_t len;

	if (!literal(p, "("))
		return fail(p, "after %s comes what it is of, in parentheses, as in "
			       "%s(cuStreamSynchronize)",
			    forms[t->what].name, forms[t->what].name);
	len = word(p, t->subject, sizeof(t->subject));
	if (!len || len >= sizeof(t->subject))
		return fail(p, "in parentheses goes a function such as cuStreamSynchronize, or a "
			       "kind such as sync");
	if (!literal(p, ")"))
		return fail(p, "a ')' is missing after %s", t->subject);
	return 0;
}

static int parse_compare(struct parse *p, struct trigger *t)
{
	if (literal(p, ">="))
		t->compare = TRIGGER_AT_LEAST;
	else if (literal(p, ">"))
		t->compare = TRIGGER_ABOVE;
	else if (literal(p, "<="))
		t->compare = TRIGGER_AT_MOST;
	else if (literal(p, "<"))
		t->compare = TRIGGER_BELOW;
	else
		return fail(p, "after %s(%s) comes >, >=, < or <=", forms[t->what].name,
			    t->subject);
	return 0;
}

static const struct unit *find_unit(const struct unit *units, const char *name, size_t len)
{
	for (; units->name; units++)
		if (strlen(units->name) == len && !strncmp(units->name, name, len))
			return units;
	return NULL;
}

static unsigned digit(char c)
{
	return (unsigned)(c - '0');
}

/* Digits, a point and at most nine digits, and a unit; exact but for what is below one. */
static int parse_number(struct parse *p, const struct unit *units, int64_t *out)
{
	int64_t whole = 0, fraction = 0, scale = 1;
	const struct unit *unit;
	size_t len;

	blanks(p);
	if (*p->at < '0' || *p->at > '9')
		return -EINVAL;
	for (; *p->at >= '0' && *p->at <= '9'; p->at++)
		if (__builtin_mul_overflow(whole, 10, &whole) ||
		    __builtin_add_overflow(whole, digit(*p->at), &whole))
			return -ERANGE;
	if (*p->at == '.')
		for (p->at++; *p->at >= '0' && *p->at <= '9'; p->at++) {
			if (scale >= 1000000000)
				return -ERANGE;
			fraction = fraction * 10 + digit(*p->at);
			scale *= 10;
		}
	blanks(p);
	len = strcspn(p->at, " \t");
	unit = find_unit(units, p->at, len);
	if (!unit)
		unit = find_unit(units, "", len = 0);
	if (!unit)
		return -EINVAL;
	p->at += len;
	if (__builtin_mul_overflow(whole, unit->scale, &whole))
		return -ERANGE;
	fraction = (int64_t)((double)fraction / (double)scale * (double)unit->scale + 0.5);
	return __builtin_add_overflow(whole, fraction, out) ? -ERANGE : 0;
}

static int parse_over(struct parse *p, struct trigger *t)
{
	if (!parse_number(p, times, &t->over) && t->over >= OVER_MIN && t->over <= OVER_MAX)
		return 0;
	return fail(p, "over wants a time from 100ms to 60m");
}

static int parse_least(struct parse *p, struct trigger *t)
{
	int64_t least;

	if (parse_number(p, plain, &least) || least < 1 || least > LEAST_MAX)
		return fail(p, "min wants a number of calls, from 1 on");
	t->least = (uint64_t)least;
	return 0;
}

/* "over TIME" and "min CALLS", each once at most. */
static int parse_rest(struct parse *p, struct trigger *t)
{
	bool over = false, least = false;
	int err = 0;

	for (blanks(p); !err && *p->at; blanks(p)) {
		const char *from = p->at;
		char name[16];

		word(p, name, sizeof(name));
		if (!strcmp(name, "over") && !over) {
			over = true;
			err = parse_over(p, t);
		} else if (!strcmp(name, "min") && !least) {
			least = true;
			err = parse_least(p, t);
		} else {
			err = fail(p, "'%.40s' is not understood; what may follow is: over TIME, "
				      "min CALLS", from);
		}
	}
	return err;
}

static int check(struct parse *p, const struct trigger *t)
{
	if (t->threshold == 0 && (t->compare == TRIGGER_BELOW || t->compare == TRIGGER_AT_LEAST))
		return fail(p, "%s 0 is %s", t->compare == TRIGGER_BELOW ? "<" : ">=",
			    t->compare == TRIGGER_BELOW ? "never so" : "always so");
	return 0;
}

int trigger_parse(struct trigger *out, const char *text, char *why, size_t size)
{
	struct parse p = {text, why, size};
	int err;

	*out = (struct trigger){.text = text, .over = TRIGGER_OVER};
	if (strlen(text) > TEXT_MAX)
		return fail(&p, "it has more than %d bytes", TEXT_MAX);
	err = parse_what(&p, out);
	if (!err)
		err = parse_subject(&p, out);
	if (!err)
		err = parse_compare(&p, out);
	if (err)
		return err;
	out->least = forms[out->what].least;
	err = parse_number(&p, forms[out->what].units, &out->threshold);
	if (err)
		return fail(&p, err == -ERANGE ? "%s is compared with %s; that is too large, or "
						 "too exact" : "%s is compared with %s",
			    forms[out->what].name, forms[out->what].want);
	err = parse_rest(&p, out);
	return err ? err : check(&p, out);
}

unsigned trigger_unit(const struct trigger *t)
{
	return forms[t->what].unit;
}
