/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "util/opt.h"

/*
 * len bytes of s between single quotes of a shell. Bytes of special get a
 * backslash; quote is how a single quote is written.
 */
static void put_quoted(const char *s, size_t len, const char *special, const char *quote, FILE *out)
{
	for (size_t i = 0; i < len; i++) {
		if (s[i] == '\'') {
			fputs(quote, out);
			continue;
		}
		if (strchr(special, s[i]))
			putc('\\', out);
		putc(s[i], out);
	}
}

static void zsh_quoted(const char *s, size_t len, FILE *out)
{
	put_quoted(s, len, "[]:\\", "'\\''", out);
}

static void fish_quoted(const char *s, size_t len, FILE *out)
{
	put_quoted(s, len, "\\", "\\'", out);
}

/* Menus have room for the first sentence of a help text. */
static size_t first_sentence(const char *help)
{
	const char *end = strstr(help, ". ");
	size_t len = strlen(help);

	if (end)
		return (size_t)(end - help);
	return len > 0 && help[len - 1] == '.' ? len - 1 : len;
}

static void put_choices(const struct opt *o, FILE *out)
{
	for (int i = 0; o->choices[i]; i++)
		fprintf(out, "%s%s", i ? " " : "", o->choices[i]);
}

static void bash_command(const struct command *cmd, FILE *out)
{
	fprintf(out, "\t%s)\n\t\tcase $prev in\n", cmd->name);
	for (const struct opt *o = cmd->opts; o->name; o++) {
		if (o->hidden || o->type == OPT_FLAG)
			continue;
		fprintf(out, "\t\t--%s", o->name);
		if (o->letter)
			fprintf(out, " | -%c", o->letter);
		fputs(")\n\t\t\t", out);
		if (o->type == OPT_CHOICE) {
			fputs("mapfile -t COMPREPLY < <(compgen -W '", out);
			put_choices(o, out);
			fputs("' -- \"$cur\")\n\t\t\treturn\n", out);
		} else {
			fputs("mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n\t\t\treturn\n",
			      out);
		}
		fputs("\t\t\t;;\n", out);
	}
	fputs("\t\t*) ;;\n\t\tesac\n\t\twords='--help", out);
	for (const struct opt *o = cmd->opts; o->name; o++) {
		if (!o->hidden)
			fprintf(out, " --%s", o->name);
	}
	fputs("'\n\t\t;;\n", out);
}

static void print_bash(const struct command *const *commands, FILE *out)
{
	fputs("# shellcheck shell=bash\n"
	      "# Completion of gbpf for bash, written by gbpf --print-completion bash.\n"
	      "_gbpf()\n{\n"
	      "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} words=\n\n"
	      "\tCOMPREPLY=()\n"
	      "\tif ((COMP_CWORD == 1)); then\n"
	      "\t\tmapfile -t COMPREPLY < <(compgen -W '--help --version", out);
	for (size_t i = 0; commands[i]; i++)
		fprintf(out, " %s", commands[i]->name);
	fputs("' -- \"$cur\")\n\t\treturn\n\tfi\n\tcase ${COMP_WORDS[1]} in\n", out);
	for (size_t i = 0; commands[i]; i++)
		bash_command(commands[i], out);
	fputs("\t*) ;;\n\tesac\n"
	      "\tif [[ $cur == -* ]]; then\n"
	      "\t\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
	      "\telse\n"
	      "\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
	      "\tfi\n}\n"
	      "complete -o filenames -F _gbpf gbpf\n", out);
}

/* '(-d --duration)'{-d,--duration}'[help]:SECONDS:' as _arguments wants it. */
static void zsh_opt(const struct opt *o, FILE *out)
{
	fputs(" \\\n\t\t\t", out);
	if (o->type == OPT_LIST && o->letter)
		fprintf(out, "'*'{-%c,--%s}", o->letter, o->name);
	else if (o->type == OPT_LIST)
		fprintf(out, "'*'--%s", o->name);
	else if (o->letter)
		fprintf(out, "'(-%c --%s)'{-%c,--%s}", o->letter, o->name, o->letter, o->name);
	else
		fprintf(out, "--%s", o->name);
	fputs("'[", out);
	zsh_quoted(o->help, first_sentence(o->help), out);
	putc(']', out);
	if (o->type != OPT_FLAG) {
		putc(':', out);
		zsh_quoted(o->arg, strlen(o->arg), out);
		putc(':', out);
		if (o->type == OPT_CHOICE) {
			putc('(', out);
			put_choices(o, out);
			putc(')', out);
		} else {
			fputs("_files", out);
		}
	}
	putc('\'', out);
}

static void print_zsh(const struct command *const *commands, FILE *out)
{
	fputs("#compdef gbpf\n"
	      "# Completion of gbpf for zsh, written by gbpf --print-completion zsh.\n"
	      "_gbpf()\n{\n\tlocal -a commands=(", out);
	for (size_t i = 0; commands[i]; i++) {
		fprintf(out, "\n\t\t'%s:", commands[i]->name);
		zsh_quoted(commands[i]->summary, strlen(commands[i]->summary), out);
		putc('\'', out);
	}
	fputs("\n\t)\n"
	      "\tif ((CURRENT == 2)); then\n"
	      "\t\t_describe command commands\n"
	      "\t\treturn\n\tfi\n"
	      "\tlocal command=$words[2]\n"
	      "\tshift words\n\t((CURRENT--))\n"
	      "\tcase $command in\n", out);
	for (size_t i = 0; commands[i]; i++) {
		fprintf(out, "\t%s)\n\t\t_arguments -s '(-h --help)'{-h,--help}'[print help]'",
			commands[i]->name);
		for (const struct opt *o = commands[i]->opts; o->name; o++) {
			if (!o->hidden)
				zsh_opt(o, out);
		}
		fputs(" \\\n\t\t\t'*:file:_files'\n\t\t;;\n", out);
	}
	fputs("\tesac\n}\n_gbpf \"$@\"\n", out);
}

static void fish_opt(const struct command *cmd, const struct opt *o, FILE *out)
{
	fprintf(out, "complete -c gbpf -n '__fish_seen_subcommand_from %s' -l %s", cmd->name,
		o->name);
	if (o->letter)
		fprintf(out, " -s %c", o->letter);
	if (o->type == OPT_CHOICE) {
		fputs(" -x -a '", out);
		put_choices(o, out);
		putc('\'', out);
	} else if (o->type != OPT_FLAG) {
		fputs(" -r", out);
	}
	fputs(" -d '", out);
	fish_quoted(o->help, first_sentence(o->help), out);
	fputs("'\n", out);
}

static void print_fish(const struct command *const *commands, FILE *out)
{
	fputs("# Completion of gbpf for fish, written by gbpf --print-completion fish.\n"
	      "complete -c gbpf -s h -l help -d 'Print help'\n", out);
	for (size_t i = 0; commands[i]; i++) {
		fprintf(out, "complete -c gbpf -n __fish_use_subcommand -f -a %s -d '",
			commands[i]->name);
		fish_quoted(commands[i]->summary, strlen(commands[i]->summary), out);
		fputs("'\n", out);
		for (const struct opt *o = commands[i]->opts; o->name; o++) {
			if (!o->hidden)
				fish_opt(commands[i], o, out);
		}
	}
}

int opt_print_completion(const struct command *const *commands, const char *shell, FILE *out)
{
	if (!strcmp(shell, "bash"))
		print_bash(commands, out);
	else if (!strcmp(shell, "zsh"))
		print_zsh(commands, out);
	else if (!strcmp(shell, "fish"))
		print_fish(commands, out);
	else
		return -EINVAL;
	return 0;
}
