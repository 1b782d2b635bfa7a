/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include <unistd.h>

#include "util/opt.h"
#include "util/term.h"
#include "util/text.h"
#include "util/wrap.h"

#define MAX_WIDTH 100
#define HELP_COLUMN 26

/* "  -d, --duration SECONDS"; returns its columns. */
static unsigned print_names(const struct opt *o, FILE *out)
{
	unsigned columns = 0;

	if (o->letter)
		columns += (unsigned)fprintf(out, "  -%c, --%s", o->letter, o->name);
	else
		columns += (unsigned)fprintf(out, "      --%s", o->name);
	if (o->type != OPT_FLAG) {
		fprintf(out, " %s", o->arg);
		columns += 1 + (unsigned)text_width(o->arg);
	}
	return columns;
}

/* The help sentence, and the choices behind it. */
static void print_opt(const struct opt *o, FILE *out, unsigned width)
{
	unsigned columns = print_names(o, out);
	char text[2048];
	size_t len;

	snprintf(text, sizeof(text), "%s", o->help);
	if (o->type == OPT_CHOICE) {
		for (int i = 0; o->choices[i]; i++) {
			len = strlen(text);
			snprintf(text + len, sizeof(text) - len, "%s%s%s", i ? ", " : " One of: ",
				 o->choices[i], o->choices[i + 1] ? "" : ".");
		}
	}
	if (o->type == OPT_LIST) {
		len = strlen(text);
		snprintf(text + len, sizeof(text) - len, " May be given several times.");
	}
	/* Two blanks at least between the names and what they mean. */
	if (columns + 2 > HELP_COLUMN) {
		putc('\n', out);
		columns = 0;
	}
	wrap_print(out, text, columns, HELP_COLUMN, width);
}

static void print_examples(const struct command *cmd, FILE *out, unsigned width)
{
	if (!cmd->examples || !cmd->examples->line)
		return;
	fputs("\nExamples:\n", out);
	for (const struct opt_example *e = cmd->examples; e->line; e++) {
		fprintf(out, "  %s\n", e->line);
		wrap_print(out, e->what, 0, 6, width);
	}
}

void opt_print_help(const struct command *cmd, FILE *out)
{
	static const struct opt help = {
		.name = "help", .letter = 'h', .type = OPT_FLAG, .help = "Print this and exit."};
	unsigned width = term_width(fileno(out), 80);

	width = width > MAX_WIDTH ? MAX_WIDTH : width;
	fprintf(out, "Usage: gbpf %s %s\n\n", cmd->name, cmd->usage);
	wrap_print(out, cmd->description, 0, 0, width);
	fputs("\nOptions:\n", out);
	for (const struct opt *o = cmd->opts; o->name; o++) {
		if (!o->hidden)
			print_opt(o, out, width);
	}
	print_opt(&help, out, width);
	print_examples(cmd, out, width);
	if (cmd->exit_status) {
		fputs("\nExit status:\n", out);
		wrap_print(out, cmd->exit_status, 0, 2, width);
	}
}
