/* SPDX-License-Identifier: BSD-2-Clause */
#include "diagnose/compare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/session_file.h"
#include "util/err.h"

enum format { FORMAT_TEXT, FORMAT_JSON };
static const char *const formats[] = { "text", "json", NULL };

struct options {
	int format;
};

static const struct opt opts[] = {
	{.name = "format",
	 .letter = 'f',
	 .type = OPT_CHOICE,
	 .arg = "FORMAT",
	 .choices = formats,
	 .offset = offsetof(struct options, format),
	 .help = "How to print: text (the default) or json, for programs."},
	{0},
};

/* Those at even places are before, those at odd ones after. */
static int load(char **paths, size_t n, struct session **before, struct session **after)
{
	for (size_t i = 0; i < 2 * n; i++) {
		const char *path = paths[i];

		if (session_file_load(i % 2 ? &after[i / 2] : &before[i / 2], &path))
			return EXIT_FAILED;
	}
	return EXIT_OK;
}

static int diff(const struct options *o, char **paths, size_t n)
{
	struct session **sessions = calloc(2 * n, sizeof(*sessions));
	struct comparison c = { 0 };
	int status, err;

	if (!sessions) {
		err_report("diff: %s", strerror(ENOMEM));
		return EXIT_FAILED;
	}
	status = load(paths, n, sessions, sessions + n);
	if (status == EXIT_OK) {
		err = compare((const struct session *const *)sessions,
			      (const struct session *const *)sessions + n, n, &c);
		if (err) {
			err_report("diff: %s", strerror(-err));
			status = EXIT_FAILED;
		} else if (o->format == FORMAT_JSON) {
			comparison_json(&c, stdout);
		} else {
			comparison_text(&c, stdout);
		}
	}
	comparison_free(&c);
	for (size_t i = 0; i < 2 * n; i++)
		session_free(sessions[i]);
	free(sessions);
	return status;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct options o = {.format = FORMAT_TEXT};
	int first, err = opt_parse(self, &o, argc, argv, &first);

	if (err != OPT_OK)
		return err == OPT_HELP ? EXIT_OK : EXIT_USAGE;
	if (argc - first < 2 || (argc - first) % 2) {
		err_report("diff: give recordings in pairs: BEFORE AFTER [BEFORE AFTER...]");
		err_hint("gbpf diff --help");
		return EXIT_USAGE;
	}
	return diff(&o, argv + first, (size_t)(argc - first) / 2);
}

static const struct opt_example examples[] = {
	{"gbpf diff before.gbpf after.gbpf", "What a change did."},
	{"gbpf diff a1.gbpf b1.gbpf a2.gbpf b2.gbpf a3.gbpf b3.gbpf",
	 "The same from recordings taken in turn, which tells small changes from noise."},
	{0},
};

const struct command cmd_diff = {
	.name = "diff",
	.summary = "compare recordings before and after a change",
	.usage = "[OPTION…] BEFORE AFTER [BEFORE AFTER…]",
	.description =
		"Compares recordings that gbpf trace made of a job before and after a change: "
		"dispatch time, length of a step, launches, waiting, and GPU time of kernels "
		"where it was recorded; and what is called more or less often.\n\n"
		"Each change has its 95 % interval, and is called a difference only if 0 is "
		"outside. Recordings of the same job differ, too: from several of each, taken in "
		"turn, how much is known; from one of each, 10 % is assumed. Where there is no "
		"difference, the change that would have been seen is said.",
	.opts = opts,
	.examples = examples,
	.exit_status = "0 success, whether there is a difference or not; 1 a file cannot be read "
		       "or the output not be written; 2 wrong usage.",
	.run = run,
};
