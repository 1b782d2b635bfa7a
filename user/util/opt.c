/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/opt.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "util/err.h"
#include "util/nearest.h"

struct parser {
	const struct command *cmd;
	void *fields;
	int argc;
	char **argv;
	int at;		 /* the word being parsed */
	char **operands; /* met so far, in order; room for argc */
	int operand_count;
	int kept; /* argv[1..kept) are options and their values, moved together */
};

static void *field(const struct parser *p, const struct opt *o)
{
	return (char *)p->fields + o->offset;
}

/* Prints the reason and where to read more. */
__attribute__((format(printf, 2, 3)))
static int fail(const struct parser *p, const char *fmt, ...)
{
	char reason[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(reason, sizeof(reason), fmt, args);
	va_end(args);
	err_report("%s: %s", p->cmd->name, reason);
	err_hint("gbpf %s --help", p->cmd->name);
	return OPT_ERROR;
}

static bool parse_uint(const char *text, uint64_t *out)
{
	char *end;

	/* strtoull takes blanks and signs, which are no count of anything. */
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*out = strtoull(text, &end, 10);
	return errno == 0 && *end == '\0';
}

/* "10", "2.5s", "250ms", … as ns. */
bool opt_duration(const char *text, int64_t *out)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"", 1e9},	 {"s", 1e9},   {"ms", 1e6}, {"us", 1e3},
		     {"ns", 1},	 {"m", 60e9}, {"h", 3600e9}};
	size_t digits = strspn(text, "0123456789.");
	char number[32], *end;

	if (digits == 0 || digits >= sizeof(number))
		return false;
	memcpy(number, text, digits);
	number[digits] = '\0';
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		double v;

		if (strcmp(text + digits, units[i].name) != 0)
			continue;
		v = strtod(number, &end) * units[i].ns;
		if (*end || end == number || !(v < 9.2e18))
			return false;
		*out = (int64_t)llround(v);
		return true;
	}
	return false;
}

static int choose(const struct parser *p, const struct opt *o, const char *value)
{
	struct nearest near;
	char all[256] = "";

	nearest_init(&near, value);
	for (int i = 0; o->choices[i]; i++) {
		size_t len = strlen(all);

		if (!strcmp(o->choices[i], value)) {
			*(int *)field(p, o) = i;
			return OPT_OK;
		}
		nearest_offer(&near, o->choices[i]);
		snprintf(all + len, sizeof(all) - len, "%s%s", i ? ", " : "", o->choices[i]);
	}
	if (near.best)
		return fail(p, "--%s '%s' is not known; did you mean '%s'? (one of: %s)", o->name,
			    value, near.best, all);
	return fail(p, "--%s '%s' is not known (one of: %s)", o->name, value, all);
}

static int append(const struct parser *p, const struct opt *o, const char *value)
{
	struct opt_list *list = field(p, o);
	const char **grown;

	grown = realloc(list->items, (list->count + 1) * sizeof(*grown));
	if (!grown)
		return fail(p, "out of memory");
	grown[list->count++] = value;
	list->items = grown;
	return OPT_OK;
}

static int store(const struct parser *p, const struct opt *o, const char *value)
{
	switch (o->type) {
	case OPT_FLAG:
		*(bool *)field(p, o) = true;
		return OPT_OK;
	case OPT_STRING:
		*(const char **)field(p, o) = value;
		return OPT_OK;
	case OPT_UINT:
		if (parse_uint(value, field(p, o)))
			return OPT_OK;
		return fail(p, "--%s wants a whole number, not '%s'", o->name, value);
	case OPT_DURATION:
		if (opt_duration(value, field(p, o)))
			return OPT_OK;
		return fail(p, "--%s wants a time such as 10, 2.5s, 250ms or 5m, not '%s'",
			    o->name, value);
	case OPT_CHOICE:
		return choose(p, o, value);
	case OPT_LIST:
		return append(p, o, value);
	}
	return OPT_ERROR;
}

/* The value of an option: attached (may be NULL), or else the next word. */
static int take_value(struct parser *p, const struct opt *o, const char *attached)
{
	if (attached)
		return store(p, o, attached);
	if (p->at + 1 >= p->argc)
		return fail(p, "--%s wants a value (%s)", o->name, o->arg);
	p->at++;
	p->argv[p->kept++] = p->argv[p->at];
	return store(p, o, p->argv[p->at]);
}

static const struct opt *find_long(const struct command *cmd, const char *name, size_t len)
{
	for (const struct opt *o = cmd->opts; o->name; o++) {
		if (strlen(o->name) == len && !strncmp(o->name, name, len))
			return o;
	}
	return NULL;
}

static const struct opt *find_letter(const struct command *cmd, char letter)
{
	for (const struct opt *o = cmd->opts; o->name; o++) {
		if (o->letter && o->letter == letter)
			return o;
	}
	return NULL;
}

static int unknown_long(const struct parser *p, const char *name, size_t len)
{
	char word[64];
	struct nearest near;

	snprintf(word, sizeof(word), "%.*s", (int)(len < 60 ? len : 60), name);
	nearest_init(&near, word);
	nearest_offer(&near, "help");
	for (const struct opt *o = p->cmd->opts; o->name; o++) {
		if (!o->hidden)
			nearest_offer(&near, o->name);
	}
	if (near.best)
		return fail(p, "unknown option '--%s'; did you mean '--%s'?", word, near.best);
	return fail(p, "unknown option '--%s'", word);
}

static int parse_long(struct parser *p, const char *name)
{
	const char *equals = strchr(name, '=');
	size_t len = equals ? (size_t)(equals - name) : strlen(name);
	const struct opt *o = find_long(p->cmd, name, len);

	if (!o && !strcmp(name, "help"))
		return OPT_HELP;
	if (!o)
		return unknown_long(p, name, len);
	if (o->type != OPT_FLAG)
		return take_value(p, o, equals ? equals + 1 : NULL);
	if (equals)
		return fail(p, "--%s takes no value", o->name);
	return store(p, o, NULL);
}

/* "-abVALUE": flags in a row, the last may take the rest or the next word. */
static int parse_letters(struct parser *p, const char *letters)
{
	for (; *letters; letters++) {
		const struct opt *o = find_letter(p->cmd, *letters);
		int err;

		if (!o && *letters == 'h')
			return OPT_HELP;
		if (!o)
			return fail(p, "unknown option '-%c'", *letters);
		if (o->type != OPT_FLAG)
			return take_value(p, o, letters[1] ? letters + 1 : NULL);
		err = store(p, o, NULL);
		if (err)
			return err;
	}
	return OPT_OK;
}

static int parse_words(struct parser *p)
{
	bool stop = strstr(p->cmd->usage, "--") != NULL;
	bool only_operands = false;

	for (p->at = 1; p->at < p->argc; p->at++) {
		char *word = p->argv[p->at];
		int err;

		if (only_operands || word[0] != '-' || word[1] == '\0') {
			p->operands[p->operand_count++] = word;
			only_operands = only_operands || stop;
			continue;
		}
		p->argv[p->kept++] = word;
		if (!strcmp(word, "--")) {
			only_operands = true;
			continue;
		}
		err = word[1] == '-' ? parse_long(p, word + 2) : parse_letters(p, word + 1);
		if (err)
			return err;
	}
	return OPT_OK;
}

int opt_parse(const struct command *cmd, void *fields, int argc, char **argv, int *first)
{
	struct parser p = {.cmd = cmd, .fields = fields, .argc = argc, .argv = argv, .kept = 1};
	int err;

	*first = argc;
	p.operands = calloc((size_t)argc + 1, sizeof(*p.operands));
	if (!p.operands)
		return fail(&p, "out of memory");
	err = parse_words(&p);
	if (err == OPT_OK) {
		*first = p.kept < argc ? p.kept : argc;
		for (int i = 0; i < p.operand_count; i++)
			argv[p.kept + i] = p.operands[i];
	}
	free(p.operands);
	if (err == OPT_HELP)
		opt_print_help(cmd, stdout);
	if (err != OPT_OK)
		opt_free(cmd, fields);
	return err;
}

void opt_free(const struct command *cmd, void *fields)
{
	for (const struct opt *o = cmd->opts; o->name; o++) {
		struct opt_list *list = (struct opt_list *)((char *)fields + o->offset);

		if (o->type != OPT_LIST)
			continue;
		free(list->items);
		*list = (struct opt_list){0};
	}
}
