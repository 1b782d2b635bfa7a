/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "util/err.h"
#include "util/nearest.h"
#include "util/term.h"
#include "util/wrap.h"

#define SUMMARY                                                                                    \
	"measures what CUDA programs spend their CPU time on, while they run"

static const char description[] =
	"gbpf attaches to CUDA programs that are already running, without stopping or changing "
	"them, and measures how long their threads spend giving work to the GPU and waiting for "
	"it. It needs no GPU profiler, no restart and no change to the program: probes in the "
	"kernel (eBPF uprobes) watch the CUDA driver's own functions.";

static const char exit_status[] =
	"0 success; 1 failure; 2 wrong usage; gbpf trace -- COMMAND returns the command's own "
	"status, or 125 if gbpf itself failed.";

static const char environment[] =
	"NO_COLOR: no colours, whatever it holds. TERM=dumb: the same. COLUMNS: width of the "
	"output. SUDO_UID, SUDO_GID: set by sudo; files are written as that user's, and files "
	"are read with that user's rights.";

static void print_help(const struct command *const *commands)
{
	unsigned width = term_width(STDOUT_FILENO, 80);

	width = width > 100 ? 100 : width;
	puts("Usage: gbpf COMMAND [OPTION…]\n");
	wrap_print(stdout, description, 0, 0, width);
	puts("\nCommands:");
	for (size_t i = 0; commands[i]; i++) {
		unsigned at = (unsigned)printf("  %-10s", commands[i]->name);

		wrap_print(stdout, commands[i]->summary, at, 14, width);
	}
	puts("\nOptions:\n"
	     "  -h, --help  Print this; gbpf COMMAND --help says more about a command.\n"
	     "  --version   Print the version.\n"
	     "\nEnvironment:");
	wrap_print(stdout, environment, 0, 2, width);
	puts("\nExit status:");
	wrap_print(stdout, exit_status, 0, 2, width);
}

static void print_main_page(const struct command *const *commands)
{
	char text[4096];
	static const struct opt opts[] = {
		{.name = "version", .type = OPT_FLAG, .help = "Print the version and exit."},
		{0},
	};
	struct command page = {.name = "",
			       .summary = SUMMARY,
			       .usage = "COMMAND [OPTION…]",
			       .description = text,
			       .opts = opts,
			       .exit_status = exit_status};
	size_t len = (size_t)snprintf(text, sizeof(text), "%s", description);

	for (size_t i = 0; commands[i]; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "\n\ngbpf %s: %s.",
					commands[i]->name, commands[i]->summary);
	opt_print_man(&page, stdout, GBPF_VERSION);
	printf(".SH ENVIRONMENT\n%s\n.SH SEE ALSO\n", environment);
	for (size_t i = 0; commands[i]; i++)
		printf(".BR gbpf\\-%s (1)%s\n", commands[i]->name, commands[i + 1] ? "," : "");
}

static const struct command *find(const struct command *const *commands, const char *name)
{
	for (size_t i = 0; commands[i]; i++) {
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	}
	return NULL;
}

static int unknown(const struct command *const *commands, const char *word)
{
	const char *what = word[0] == '-' ? "option" : "command";
	struct nearest near;

	nearest_init(&near, word);
	for (size_t i = 0; commands[i]; i++)
		nearest_offer(&near, commands[i]->name);
	nearest_offer(&near, "--help");
	nearest_offer(&near, "--version");
	if (near.best)
		err_report("unknown %s '%s'; did you mean '%s'?", what, word, near.best);
	else
		err_report("unknown %s '%s'", what, word);
	err_hint("gbpf --help");
	return EXIT_USAGE;
}

/* What the build asks for. */
static int print_product(const struct command *const *commands, const char *option,
			 const char *which)
{
	const struct command *cmd = find(commands, which);

	if (!strcmp(option, "--print-completion")) {
		if (opt_print_completion(commands, which, stdout) == 0)
			return EXIT_OK;
		err_report("%s: not a shell with completions (bash, zsh, fish)", which);
		return EXIT_USAGE;
	}
	if (cmd)
		opt_print_man(cmd, stdout, GBPF_VERSION);
	else if (!strcmp(which, "gbpf"))
		print_main_page(commands);
	else
		return unknown(commands, which);
	return EXIT_OK;
}

static int dispatch(const struct command *const *commands, int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : NULL;
	const struct command *cmd;

	if (!word) {
		err_report("which command?");
		err_hint("gbpf --help");
		return EXIT_USAGE;
	}
	if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
		print_help(commands);
		return EXIT_OK;
	}
	if (!strcmp(word, "--version")) {
		puts("gbpf " GBPF_VERSION);
		return EXIT_OK;
	}
	if (argc == 3 && (!strcmp(word, "--print-man") || !strcmp(word, "--print-completion")))
		return print_product(commands, word, argv[2]);
	cmd = find(commands, word);
	return cmd ? cmd->run(cmd, argc - 1, argv + 1) : unknown(commands, word);
}

int cmd_dispatch(const struct command *const *commands, int argc, char **argv)
{
	return err_flush_stdout(dispatch(commands, argc, argv));
}
