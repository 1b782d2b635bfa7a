// SPDX-License-Identifier: BSD-2-Clause
/*
 * A recursive descent parser for
 *
 *	or    := and { "or" and }
 *	and   := unary { "and" unary }
 *	unary := "not" unary | "(" or ")" | FIELD OPERATOR VALUE
 *
 * into nodes that point at each other by index.
 */
#include "report/filter.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "model/grow.h"
#include "report/filter_value.h"

const char report_filter_help[] =
	"An expression over the view's columns, by their JSON keys: FIELD OPERATOR VALUE, joined "
	"by and, or, not and parentheses. Operators: = != < <= > >=, and ~ for text (a part of "
	"it, or a pattern with * and ?). Values: numbers with an optional unit (ns us ms s min h, "
	"B KB MB GB KiB MiB GiB, k M, %), text bare or in quotes, grids as 8x1x1, and n/a. For "
	"example: pid=123 and name~cuMemcpy and avg_ns>10us";

enum node_kind { NODE_COMPARE, NODE_AND, NODE_OR, NODE_NOT };

struct node {
	enum node_kind kind;
	uint32_t left, right;
	const struct column *column;
	enum filter_op op;
	struct filter_value value; /* text points into the filter's copy */
};

struct filter {
	char *text;
	struct node *nodes;
	size_t count, cap;
	uint32_t root;
};

struct parser {
	struct filter *f;
	const struct view *view;
	const char *start, *at;
	char *err;
	size_t size;
	unsigned depth;
};

static int fail(struct parser *p, const char *at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int fail(struct parser *p, const char *at, const char *fmt, ...)
{
	va_list args;
	size_t used = (size_t)snprintf(p->err, p->size, "filter, at character %zu: ",
				       (size_t)(at - p->start) + 1);

	va_start(args, fmt);
	if (used < p->size)
		vsnprintf(p->err + used, p->size - used, fmt, args);
	va_end(args);
	return -EINVAL;
}

static void skip_blanks(struct parser *p)
{
	while (*p->at == ' ' || *p->at == '\t' || *p->at == '\n')
		p->at++;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Takes a keyword if it is next and not the beginning of a longer word. */
static bool take_keyword(struct parser *p, const char *word)
{
	size_t len = strlen(word);

	skip_blanks(p);
	if (strncmp(p->at, word, len) || is_word(p->at[len]))
		return false;
	p->at += len;
	return true;
}

static int node_add(struct parser *p, struct node n, uint32_t *out)
{
	struct filter *f = p->f;
	int err = GROW(f->nodes, f->cap, f->count + 1);

	if (err)
		return err;
	f->nodes[f->count] = n;
	*out = (uint32_t)f->count++;
	return 0;
}

static int parse_field(struct parser *p, const struct column **out)
{
	const char *from;
	char key[64], list[512];
	size_t len, used = 0;

	skip_blanks(p);
	from = p->at;
	while (is_word(*p->at))
		p->at++;
	len = (size_t)(p->at - from);
	if (!len)
		return fail(p, from, "expected a field, 'not' or '('");
	snprintf(key, sizeof(key), "%.*s", (int)(len < 63 ? len : 63), from);
	*out = column_find(p->view, key);
	if (*out)
		return 0;
	for (const struct column *c = p->view->columns; c->key && used < sizeof(list); c++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
					 used ? ", " : "", c->key);
	return fail(p, from, "%s has no field '%s'; expected one of %s", p->view->about.name, key,
		    list);
}

static int parse_operator(struct parser *p, const struct column *c, enum filter_op *op)
{
	static const struct {
		const char *text;
		enum filter_op op;
	} operators[] = {
		{ "!=", FILTER_NE }, { "<=", FILTER_LE }, { ">=", FILTER_GE }, { "==", FILTER_EQ },
		{ "=", FILTER_EQ },  { "<", FILTER_LT },  { ">", FILTER_GT },  { "~", FILTER_LIKE },
	};
	const char *from;

	skip_blanks(p);
	from = p->at;
	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
		size_t len = strlen(operators[i].text);

		if (strncmp(p->at, operators[i].text, len))
			continue;
		*op = operators[i].op;
		p->at += len;
		if (*op == FILTER_LIKE && c->type != COLUMN_TEXT)
			return fail(p, from, "~ is for text, and %s is a number", c->key);
		if (*op != FILTER_LIKE && *op != FILTER_EQ && *op != FILTER_NE &&
		    (c->type == COLUMN_TEXT || c->type == COLUMN_DIM3))
			return fail(p, from, "%s has no order; expected =, != or ~", c->key);
		return 0;
	}
	return fail(p, from, "expected one of = != < <= > >= ~ after '%s'", c->key);
}

/* A quoted text, or everything up to a blank or a parenthesis. Cuts it out of the copy. */
static int parse_word(struct parser *p, char **word, const char **from)
{
	size_t offset, len;
	char quote;

	skip_blanks(p);
	*from = p->at;
	quote = *p->at == '"' || *p->at == '\'' ? *p->at : 0;
	if (quote) {
		const char *close = strchr(p->at + 1, quote);

		if (!close)
			return fail(p, *from, "the quote is not closed");
		offset = (size_t)(p->at + 1 - p->start);
		len = (size_t)(close - p->at - 1);
		p->at = close + 1;
	} else {
		offset = (size_t)(p->at - p->start);
		len = strcspn(p->at, " \t\n()");
		p->at += len;
		if (!len)
			return fail(p, *from, "expected a value");
	}
	/* The copy is only read through words, so that their ends may be marked in it. */
	*word = p->f->text + offset;
	(*word)[len] = '\0';
	return 0;
}

static int parse_compare(struct parser *p, uint32_t *out)
{
	struct node n = { .kind = NODE_COMPARE };
	const char *from = NULL;
	char *word = NULL, expected[96];
	int err = parse_field(p, &n.column);

	if (!err)
		err = parse_operator(p, n.column, &n.op);
	if (!err)
		err = parse_word(p, &word, &from);
	if (err)
		return err;
	if (!filter_value(n.column, n.op, word, &n.value, expected, sizeof(expected)))
		return fail(p, from, "'%s' does not fit %s; expected %s", word, n.column->key,
			    expected);
	return node_add(p, n, out);
}

static int parse_or(struct parser *p, uint32_t *out);

static int parse_unary(struct parser *p, uint32_t *out)
{
	struct node n = { .kind = NODE_NOT };
	int err;

	skip_blanks(p);
	if (p->depth >= FILTER_MAX_DEPTH)
		return fail(p, p->at, "nested deeper than %d", FILTER_MAX_DEPTH);
	p->depth++;
	if (take_keyword(p, "not")) {
		err = parse_unary(p, &n.left);
		if (!err)
			err = node_add(p, n, out);
	} else if (*p->at == '(') {
		p->at++;
		err = parse_or(p, out);
		skip_blanks(p);
		if (!err && *p->at != ')')
			err = fail(p, p->at, "expected 'and', 'or' or ')'");
		else if (!err)
			p->at++;
	} else {
		err = parse_compare(p, out);
	}
	p->depth--;
	return err;
}

static int parse_chain(struct parser *p, const char *keyword, enum node_kind kind,
		       int (*part)(struct parser *, uint32_t *), uint32_t *out)
{
	int err = part(p, out);

	while (!err && take_keyword(p, keyword)) {
		struct node n = { .kind = kind, .left = *out };

		err = part(p, &n.right);
		if (!err)
			err = node_add(p, n, out);
	}
	return err;
}

static int parse_and(struct parser *p, uint32_t *out)
{
	return parse_chain(p, "and", NODE_AND, parse_unary, out);
}

static int parse_or(struct parser *p, uint32_t *out)
{
	return parse_chain(p, "or", NODE_OR, parse_and, out);
}

int filter_parse(struct filter **out, const char *text, const struct view *v, char *err,
		 size_t size)
{
	struct parser p = { .view = v, .start = text, .at = text, .err = err, .size = size };
	int result;

	if (strlen(text) > FILTER_MAX_LENGTH)
		return fail(&p, text, "longer than %d characters", FILTER_MAX_LENGTH);
	p.f = calloc(1, sizeof(*p.f));
	if (p.f)
		p.f->text = strdup(text);
	if (!p.f || !p.f->text) {
		filter_free(p.f);
		return -ENOMEM;
	}
	result = parse_or(&p, &p.f->root);
	skip_blanks(&p);
	if (!result && *p.at)
		result = fail(&p, p.at, "expected 'and', 'or' or the end");
	if (result)
		filter_free(p.f);
	else
		*out = p.f;
	return result;
}

/* As deep as the longest chain: FILTER_MAX_LENGTH bounds that to some hundreds. */
static bool node_match(const struct filter *f, uint32_t i, const struct row *r)
{
	const struct node *n = &f->nodes[i];

	switch (n->kind) {
	case NODE_NOT:
		return !node_match(f, n->left, r);
	case NODE_AND:
		return node_match(f, n->left, r) && node_match(f, n->right, r);
	case NODE_OR:
		return node_match(f, n->left, r) || node_match(f, n->right, r);
	case NODE_COMPARE:
		break;
	}
	return filter_compare(n->column, n->op, &n->value, r);
}

bool filter_match(const struct filter *f, const struct row *r)
{
	return node_match(f, f->root, r);
}

void filter_free(struct filter *f)
{
	if (!f)
		return;
	free(f->text);
	free(f->nodes);
	free(f);
}
