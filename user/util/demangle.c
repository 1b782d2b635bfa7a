/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/text.h"

#define MAX_MANGLED 8192
#define MAX_DEMANGLED 32768

/*
 * libstdc++'s demangler handing its result over in pieces. __cxa_demangle is
 * the same code with a buffer that grows without limit, and a name of a few
 * hundred bytes can ask for gigabytes: here the first byte too many ends it.
 * It keeps its working memory on the stack, so leaving by longjmp is clean.
 */
int __gcclibcxx_demangle_callback(const char *mangled,
				  void (*piece)(const char *text, size_t len, void *ctx),
				  void *ctx);

struct demangled {
	jmp_buf too_long;
	size_t len;
	char text[MAX_DEMANGLED];
};

static void append(const char *text, size_t len, void *ctx)
{
	struct demangled *d = ctx;

	if (len >= sizeof(d->text) - d->len)
		longjmp(d->too_long, 1);
	memcpy(d->text + d->len, text, len);
	d->len += len;
}

char *text_demangle(const char *mangled)
{
	struct demangled *d;
	char *result = NULL;

	if (strncmp(mangled, "_Z", 2) != 0 || strlen(mangled) > MAX_MANGLED)
		return strdup(mangled);
	d = malloc(sizeof(*d));
	if (!d)
		return NULL;
	d->len = 0;
	if (setjmp(d->too_long) == 0 &&
	    __gcclibcxx_demangle_callback(mangled, append, d) == 0)
		result = strndup(d->text, d->len);
	else
		result = strdup(mangled);
	free(d);
	return result;
}

/* Past the bracket that closes the one at s; the end of the string if none does. */
static const char *skip_nested(const char *s)
{
	unsigned depth = 0;

	for (; *s; s++) {
		if (strchr("(<[{", *s))
			depth++;
		else if (*s == '>' && s[-1] == '-')
			continue; /* an arrow */
		else if (strchr(")>]}", *s) && --depth == 0)
			return s + 1;
	}
	return s;
}

static bool is_identifier(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* Past an operator's name at s ("operator()", "operator<<", "operator bool"), or s if none. */
static const char *skip_operator(const char *s)
{
	const char *p = s + strlen("operator");

	if (strncmp(s, "operator", strlen("operator")) != 0 || is_identifier(*p))
		return s;
	if (*p == '(' && p[1] == ')')
		return p + 2;
	if (*p == ' ')
		return p + strcspn(p, "(<");
	return p + strspn(p, "<>=!+-*/%^&|~,[]");
}

/*
 * libstdc++ refuses names over 1023 bytes, which CUDA template libraries exceed
 * with ease. Their scope still reads off the front ("_ZN2at6kernelI…": lengths
 * and identifiers, Itanium C++ ABI 5.1.2); the last one is the short name.
 */
static char *mangled_short_name(const char *mangled)
{
	const char *s = mangled + 2, *name = mangled;
	size_t len = strlen(mangled);

	if (*s == 'N')
		s += 1 + strspn(s + 1, "rVK");
	for (;;) {
		char *after;
		unsigned long n;

		if (*s == 'L')
			s++;
		if (!isdigit((unsigned char)*s))
			break;
		n = strtoul(s, &after, 10);
		if (n == 0 || n > strlen(after))
			break;
		name = after;
		len = n;
		s = after + n;
	}
	return strndup(name, len);
}

/*
 * The last component before the parameter list: at the top level a blank ends
 * the return type, "::" a scope, and "<" the name itself.
 */
char *text_short_name(const char *demangled)
{
	const char *start = demangled, *end = NULL, *s = demangled;

	if (!strncmp(demangled, "_Z", 2))
		return mangled_short_name(demangled);
	while (*s) {
		const char *after = s == start ? skip_operator(s) : s;

		if (after != s) {
			s = end = after;
		} else if (*s == '(' && s != start && strncmp(start, "decltype", 8) != 0) {
			break;
		} else if (strchr("(<[{", *s)) {
			if (*s == '<' && !end)
				end = s;
			s = skip_nested(s);
		} else if (*s == ' ' && s == end && s[1] == '<') {
			s++; /* "operator< <int>" */
		} else if (*s == ' ' || *s == ':') {
			start = ++s;
			end = NULL;
		} else {
			s++;
		}
	}
	if (!end)
		end = s;
	return end > start ? strndup(start, (size_t)(end - start)) : strdup(demangled);
}
