/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Options as a table: parsing, --help, man pages and shell completions all
 * come from it, so none can say what another does not.
 */
#ifndef GBPF_UTIL_OPT_H
#define GBPF_UTIL_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum opt_type {
	OPT_FLAG,     /* bool */
	OPT_STRING,   /* const char *, pointing into argv */
	OPT_UINT,     /* uint64_t */
	OPT_DURATION, /* int64_t ns; "10", "10s", "250ms", "5m": plain numbers are seconds */
	OPT_CHOICE,   /* int, index into choices */
	OPT_LIST,     /* struct opt_list: may be given several times */
};

struct opt_list {
	const char **items; /* grown by the parser, freed by opt_free() */
	size_t count;
};

struct opt {
	const char *name; /* long name without dashes */
	char letter;	  /* 0: none */
	enum opt_type type;
	const char *arg;  /* placeholder in help, e.g. "SECONDS" */
	const char *help; /* one or more sentences, wrapped when printed */
	const char *const *choices; /* NULL-terminated, OPT_CHOICE only */
	size_t offset;	  /* of the field in the command's options struct */
	bool hidden;	  /* parsed, but not in help, man or completion */
};

struct opt_example {
	const char *line, *what;
};

struct command {
	const char *name;
	const char *summary;	 /* one line, for gbpf --help */
	const char *usage;	 /* "[OPTION…] [FILE]" */
	const char *description; /* paragraphs, separated by \n\n */
	const struct opt *opts;	 /* ends with .name = NULL */
	const struct opt_example *examples; /* ends with .line = NULL */
	const char *exit_status; /* what each status means */
	int (*run)(const struct command *self, int argc, char **argv);
};

enum { OPT_OK = 0, OPT_HELP = 1, OPT_ERROR = -1 };

/*
 * Parses argv into fields (the command's options struct, already holding
 * defaults) and leaves the operands in argv[*first..argc). Stops at the first
 * operand when the usage holds "--". On OPT_ERROR the reason was printed to
 * stderr; on OPT_HELP the help was printed to stdout.
 */
int opt_parse(const struct command *cmd, void *fields, int argc, char **argv, int *first);
void opt_free(const struct command *cmd, void *fields);
/* A time as OPT_DURATION has it, ns; false: it is none. */
bool opt_duration(const char *text, int64_t *out);

void opt_print_help(const struct command *cmd, FILE *out);
void opt_print_man(const struct command *cmd, FILE *out, const char *version);
/* shell: "bash", "zsh" or "fish"; commands ends with NULL. Returns -EINVAL for others. */
int opt_print_completion(const struct command *const *commands, const char *shell, FILE *out);

#endif
