/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "util/opt.h"

/* Text for roff: what it would take as its own becomes plain again. */
static void put_text(const char *s, FILE *out)
{
	bool line_start = true;

	for (; *s; s++) {
		if (s[0] == '\n' && s[1] == '\n') {
			fputs("\n.PP\n", out);
			s++;
			line_start = true;
			continue;
		}
		if (line_start && (*s == '.' || *s == '\''))
			fputs("\\&", out);
		line_start = *s == '\n';
		if (*s == '\\')
			fputs("\\e", out);
		else if (*s == '-')
			fputs("\\-", out);
		else
			putc(*s, out);
	}
	putc('\n', out);
}

static void put_title(const struct command *cmd, FILE *out, const char *version)
{
	fputs(".TH GBPF", out);
	if (*cmd->name)
		putc('-', out);
	for (const char *c = cmd->name; *c; c++)
		putc(toupper((unsigned char)*c), out);
	fprintf(out, " 1 \"\" \"gbpf %s\" \"User Commands\"\n", version);
	fprintf(out, ".SH NAME\ngbpf%s%s \\- ", *cmd->name ? "\\-" : "", cmd->name);
	put_text(cmd->summary, out);
	fprintf(out, ".SH SYNOPSIS\n.B gbpf%s%s\n", *cmd->name ? " " : "", cmd->name);
	put_text(cmd->usage, out);
	fputs(".SH DESCRIPTION\n", out);
	put_text(cmd->description, out);
}

static void put_opt(const struct opt *o, FILE *out)
{
	fputs(".TP\n", out);
	if (o->letter)
		fprintf(out, "\\fB\\-%c\\fR, ", o->letter);
	fputs("\\fB\\-\\-", out);
	for (const char *c = o->name; *c; c++)
		fprintf(out, "%s%c", *c == '-' ? "\\" : "", *c);
	fputs("\\fR", out);
	if (o->type != OPT_FLAG)
		fprintf(out, " \\fI%s\\fR", o->arg);
	putc('\n', out);
	put_text(o->help, out);
	if (o->type == OPT_CHOICE) {
		fputs("One of: ", out);
		for (int i = 0; o->choices[i]; i++)
			fprintf(out, "%s\\fB%s\\fR", i ? ", " : "", o->choices[i]);
		fputs(".\n", out);
	}
	if (o->type == OPT_LIST)
		fputs("May be given several times.\n", out);
}

void opt_print_man(const struct command *cmd, FILE *out, const char *version)
{
	put_title(cmd, out, version);
	fputs(".SH OPTIONS\n", out);
	for (const struct opt *o = cmd->opts; o->name; o++) {
		if (!o->hidden)
			put_opt(o, out);
	}
	fputs(".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\n"
	      "Print a summary of all this and exit.\n", out);
	if (cmd->exit_status) {
		fputs(".SH EXIT STATUS\n", out);
		put_text(cmd->exit_status, out);
	}
	if (cmd->examples && cmd->examples->line) {
		fputs(".SH EXAMPLES\n", out);
		for (const struct opt_example *e = cmd->examples; e->line; e++) {
			fputs(".TP\n.B ", out);
			put_text(e->line, out);
			put_text(e->what, out);
		}
	}
	if (*cmd->name)
		fputs(".SH SEE ALSO\n.BR gbpf (1)\n", out);
}
