/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/report.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/session_file.h"
#include "util/err.h"
#include "util/term.h"

struct options {
	const char *view, *sort, *filter;
	uint64_t top;
	int format, names, timeunit;
};

static const struct opt opts[] = {
	{.name = "view",
	 .letter = 'v',
	 .type = OPT_STRING,
	 .arg = "NAME",
	 .offset = offsetof(struct options, view),
	 .help = "Which table: summary (the default), api_sum (each function), launch_sum (each "
		 "kernel, grid and block), sync_sum (waiting), copy_sum (copies and sets), "
		 "thread_sum (each thread: dispatching, waiting, elsewhere), cold_sum (first "
		 "calls), open_sum (calls that had not returned when the trace ended), "
		 "proc_sum (each process), gpu_sum (each GPU: clocks, power, temperature), "
		 "step_sum (steps, found in the order of calls), sync_sites (waits by what came "
		 "before), mem_sum (memory), leak_sum (what was not freed); and of what trace "
		 "--gpu-time recorded: variation_sum (kernels whose times vary), kern_sum (each "
		 "kernel), kern_gb_sum (by grid and "
		 "block), kern_exec_sum (launch, queue and kernel), gpu_mem_sum (copies and sets), "
		 "api_gpu_sum (calls beside them), gpu_trace (each by time), gap_sum (when a GPU "
		 "had nothing to do, and why), stream_sum (each stream). nsys's names do too."},
	{.name = "format",
	 .letter = 'f',
	 .type = OPT_CHOICE,
	 .arg = "FORMAT",
	 .choices = report_format_words,
	 .offset = offsetof(struct options, format),
	 .help = "How to print: table (the default) for people, the others for programs, with "
		 "whole names and times in ns."},
	{.name = "sort",
	 .letter = 's',
	 .type = OPT_STRING,
	 .arg = "COLUMN",
	 .offset = offsetof(struct options, sort),
	 .help = "Sort by this column, by its name in csv and json; +COLUMN smallest first, "
		 "-COLUMN (the default) largest first."},
	{.name = "top",
	 .letter = 'n',
	 .type = OPT_UINT,
	 .arg = "N",
	 .offset = offsetof(struct options, top),
	 .help = "Print the first N rows only; 0 (the default) prints all."},
	{.name = "filter",
	 .letter = 'F',
	 .type = OPT_STRING,
	 .arg = "EXPR",
	 .offset = offsetof(struct options, filter),
	 .help = report_filter_help},
	{.name = "names",
	 .type = OPT_CHOICE,
	 .arg = "STYLE",
	 .choices = report_names_words,
	 .offset = offsetof(struct options, names),
	 .help = "How to write the names of kernels: demangled (the default), base (the function "
		 "without scope and arguments) or mangled."},
	{.name = "timeunit",
	 .letter = 't',
	 .type = OPT_CHOICE,
	 .arg = "UNIT",
	 .choices = report_timeunit_words,
	 .offset = offsetof(struct options, timeunit),
	 .help = "Unit of the times in tables; auto (the default) suits each column."},
	{0},
};

static int print(const struct session *s, const struct options *o, const char *file)
{
	bool table = o->format == REPORT_TABLE;
	struct report_options ro = {
		.view = o->view,
		.format = (enum report_format)o->format,
		.sort = o->sort,
		.top = o->top,
		.filter = o->filter,
		.names = (enum report_names)o->names,
		.timeunit = (enum report_timeunit)o->timeunit,
		.width = table && term_is_tty(STDOUT_FILENO) ? term_width(STDOUT_FILENO, 0) : 0,
		.colour = table && term_colour(STDOUT_FILENO),
		.file = file,
	};
	char why[512] = "";
	int err = report_print(s, &ro, stdout, why, sizeof(why));

	if (err == -EINVAL) {
		err_report("report: %s", why);
		err_hint("gbpf report --help");
		return EXIT_USAGE;
	}
	if (err)
		err_report("report: %s", strerror(-err));
	return err ? EXIT_FAILED : EXIT_OK;
}

static int report(const struct options *o, const char *given)
{
	const char *path = given;
	struct session *s;
	int status;

	if (session_file_load(&s, &path))
		return EXIT_FAILED;
	status = print(s, o, strcmp(path, SESSION_FILE) ? path : NULL);
	session_free(s);
	return status;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct options o = {.format = REPORT_TABLE};
	int first, err;

	err = opt_parse(self, &o, argc, argv, &first);
	if (err != OPT_OK)
		return err == OPT_HELP ? EXIT_OK : EXIT_USAGE;
	if (argc - first > 1) {
		err_report("report: one FILE at a time; '%s' is one too many", argv[first + 1]);
		err_hint("gbpf report --help");
		return EXIT_USAGE;
	}
	return report(&o, first < argc ? argv[first] : NULL);
}

static const struct opt_example examples[] = {
	{"gbpf report", "The summary of trace.gbpf."},
	{"gbpf report --view api_sum --top 10", "The ten functions that took the most time."},
	{"gbpf report -v launch_sum -f json job.gbpf", "Every kernel of job.gbpf, for a program."},
	{"gbpf report -v sync_sum --sort max_ns", "Where threads waited, the longest wait first."},
	{0},
};

const struct command cmd_report = {
	.name = "report",
	.summary = "print tables of what was recorded",
	.usage = "[OPTION…] [FILE]",
	.description =
		"Prints one view of a recording that gbpf trace made. Without FILE it reads "
		"trace.gbpf in this directory or, if there is only that, trace.gbpf.part: a "
		"recording that is under way or ended in a crash. A file cut anywhere is read up "
		"to its last whole chunk, and what is missing is said on stderr.\n\n"
		"Every header has its unit and every percentage its base: % listed is the share "
		"of what the table lists, % wall of the time the trace covers. What gbpf cannot "
		"know is n/a. In the json format a view is one object with view, rows and "
		"quality; quality holds events, losses by cause, the windows covered, the cost "
		"of a probe and what was not hooked.\n\n"
		"Called through sudo, it opens the file and then continues as the user who "
		"called: a recording holds names from other programs.",
	.opts = opts,
	.examples = examples,
	.exit_status = "0 success; 1 the file cannot be read or the output not be written; 2 wrong "
		       "usage, also a view, column or filter that does not exist.",
	.run = run,
};
