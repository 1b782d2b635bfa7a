/* SPDX-License-Identifier: BSD-2-Clause */
/* Is this strictly JSON (RFC 8259) in valid UTF-8? Independent of the writer it checks. */
#ifndef GBPF_TESTS_JSON_CHECK_H
#define GBPF_TESTS_JSON_CHECK_H

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "util/text.h"

static inline const char *json_blank(const char *p)
{
	return p + strspn(p, " \t\r\n");
}

static inline const char *json_check_string(const char *p)
{
	if (*p++ != '"')
		return NULL;
	while (*p != '"') {
		size_t len = text_utf8_length(p, strlen(p));

		if (!len || (unsigned char)*p < 0x20)
			return NULL;
		if (*p == '\\' && p[1] == 'u') {
			for (int i = 2; i < 6; i++)
				if (!isxdigit((unsigned char)p[i]))
					return NULL;
			p += 6;
		} else if (*p == '\\') {
			if (!p[1] || !strchr("\"\\/bfnrt", p[1]))
				return NULL;
			p += 2;
		} else {
			p += len;
		}
	}
	return p + 1;
}

static inline const char *json_check_number(const char *p)
{
	p += *p == '-';
	if (*p == '0')
		p++;
	else if (isdigit((unsigned char)*p))
		p += strspn(p, "0123456789");
	else
		return NULL;
	if (*p == '.') {
		if (!isdigit((unsigned char)*++p))
			return NULL;
		p += strspn(p, "0123456789");
	}
	return p;
}

static inline const char *json_check_value(const char *p);

static inline const char *json_check_members(const char *p, bool object)
{
	const char close = object ? '}' : ']';

	p = json_blank(p + 1);
	if (*p == close)
		return p + 1;
	for (;;) {
		if (object) {
			p = json_check_string(json_blank(p));
			if (!p || *(p = json_blank(p)) != ':')
				return NULL;
			p++;
		}
		p = json_check_value(p);
		if (!p)
			return NULL;
		p = json_blank(p);
		if (*p == close)
			return p + 1;
		if (*p++ != ',')
			return NULL;
	}
}

/* Returns what follows the value, NULL if there is none. */
static inline const char *json_check_value(const char *p)
{
	p = json_blank(p);
	if (*p == '{' || *p == '[')
		return json_check_members(p, *p == '{');
	if (*p == '"')
		return json_check_string(p);
	if (!strncmp(p, "true", 4) || !strncmp(p, "null", 4))
		return p + 4;
	return strncmp(p, "false", 5) ? json_check_number(p) : p + 5;
}

static inline bool json_check(const char *text)
{
	const char *end = json_check_value(text);

	return end && !*json_blank(end);
}

#endif
