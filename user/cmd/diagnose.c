/* SPDX-License-Identifier: BSD-2-Clause */
#include "diagnose/diagnose.h"

#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/session_file.h"
#include "report/report.h"
#include "util/err.h"
#include "util/term.h"

enum format { FORMAT_TEXT, FORMAT_JSON, FORMAT_MARKDOWN, FORMAT_HTML };
static const char *const formats[] = { "text", "json", "markdown", "html", NULL };

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
	 .help = "How to print: text (the default), json for programs, markdown to paste, html for "
		 "one page with charts that needs nothing else."},
	{0},
};

static int print(const struct session *s, const struct options *o, const char *file)
{
	bool terminal = term_is_tty(STDOUT_FILENO);
	struct diag_look look = {
		.colour = term_colour(STDOUT_FILENO),
		.width = terminal ? term_width(STDOUT_FILENO, 0) : 0,
	};
	struct diagnosis d;
	int err = diagnose(s, file, &d);

	if (!err && o->format == FORMAT_HTML) {
		err = diagnosis_html(&d, stdout);
	} else if (!err && o->format == FORMAT_JSON) {
		diagnosis_json(&d, report_quality_json, stdout);
	} else if (!err && o->format == FORMAT_MARKDOWN) {
		diagnosis_markdown(&d, stdout);
	} else if (!err) {
		diagnosis_text(&d, &look, stdout);
	}
	if (err)
		err_report("diagnose: %s", strerror(-err));
	diagnosis_free(&d);
	return err ? EXIT_FAILED : EXIT_OK;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct options o = {.format = FORMAT_TEXT};
	const char *path = NULL;
	struct session *s;
	int first, status, err;

	err = opt_parse(self, &o, argc, argv, &first);
	if (err != OPT_OK)
		return err == OPT_HELP ? EXIT_OK : EXIT_USAGE;
	if (argc - first > 1) {
		err_report("diagnose: one FILE at a time; '%s' is one too many", argv[first + 1]);
		err_hint("gbpf diagnose --help");
		return EXIT_USAGE;
	}
	if (first < argc)
		path = argv[first];
	if (session_file_load(&s, &path))
		return EXIT_FAILED;
	status = print(s, &o, strcmp(path, SESSION_FILE) ? path : NULL);
	session_free(s);
	return status;
}

static const struct opt_example examples[] = {
	{"gbpf diagnose", "What trace.gbpf says of the job, and what to do."},
	{"gbpf diagnose --format json job.gbpf", "The same for a program."},
	{"gbpf diagnose --format html job.gbpf > job.html", "A page to look at, print or mail."},
	{0},
};

const struct command cmd_diagnose = {
	.name = "diagnose",
	.summary = "say what a job is bound by, why, and what to do",
	.usage = "[OPTION…] [FILE]",
	.description =
		"Reads a recording that gbpf trace made (trace.gbpf without FILE) and says of "
		"each process whether it is overhead-bound (the CPU cannot feed the GPU), "
		"GPU-bound (what torch.profiler's users call compute-bound), bound by copies, "
		"communication or waits, starved, or starting up; which share of the time each "
		"accounts for; what could be won; and what to do next, with the numbers behind "
		"it.\n\n"
		"Without GPU time (gbpf trace --gpu-time) only what the CPU's calls allow is "
		"claimed, and called suspected. Where events were lost, or too little was "
		"recorded, the verdict is inconclusive.",
	.opts = opts,
	.examples = examples,
	.exit_status = "0 success, whatever the verdict; 1 the file cannot be read or the output "
		       "not be written; 2 wrong usage.",
	.run = run,
};
