// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/cmd.h"
#include "cmd/exporting.h"
#include "cmd/session_file.h"
#include "util/err.h"

#define PIDS_MAX 64

struct options {
	const char *output, *from, *to;
	struct opt_list pids;
	int format;
	bool split, compat, quiet;
};

static const char *const formats[] = {"auto", "perfetto", "kineto", "sqlite", "csv", NULL};

#define FIELD(f) .offset = offsetof(struct options, f)
static const struct opt opts[] = {
	{.name = "format", .letter = 'f', .type = OPT_CHOICE, .arg = "FORMAT", .choices = formats,
	 FIELD(format),
	 .help = "What to write: perfetto for ui.perfetto.dev, kineto for what reads the JSON of "
		 "torch.profiler, sqlite for what reads the tables of nsys, csv for everything "
		 "else. Without it the ending of OUT says so (.pftrace, .json, .sqlite, .csv); "
		 "without that, too, perfetto."},
	{.name = "output", .letter = 'o', .type = OPT_STRING, .arg = "OUT", FIELD(output),
	 .help = "Where to write. A name that ends in .gz is compressed, which the viewers read. "
		 "The default is FILE with the format's ending in place of .gbpf. A file that is "
		 "there is replaced once the new one is whole."},
	{.name = "from", .type = OPT_STRING, .arg = "T", FIELD(from),
	 .help = "Only what touches the time from here on: seconds since the trace began (2.5, "
		 "250ms, 1m), or @N for N ns of CLOCK_MONOTONIC, as the files have it."},
	{.name = "to", .type = OPT_STRING, .arg = "T", FIELD(to),
	 .help = "Only what touches the time up to here, given like --from. Calls and kernels "
		 "are never cut: those on the border are there whole."},
	{.name = "pid", .letter = 'p', .type = OPT_LIST, .arg = "PID[,PID…]", FIELD(pids),
	 .help = "Only these processes."},
	{.name = "split-by-process", .type = OPT_FLAG, FIELD(split),
	 .help = "A file for each process: OUT with .PID before its ending. Always so for kineto, "
		 "whose files hold one process."},
	{.name = "perfetto-compat", .type = OPT_FLAG, FIELD(compat),
	 .help = "Perfetto: GPU work as plain slices with plain arrows, for a trace_processor or "
		 "viewer of before May 2026 (version 56)."},
	{.name = "quiet", .letter = 'q', .type = OPT_FLAG, FIELD(quiet),
	 .help = "Say nothing of what was written; problems are still told."},
	{0},
};

static int usage(const char *what, const char *word)
{
	err_report("export: %s%s", what, word);
	err_hint("gbpf export --help");
	return EXIT_USAGE;
}

/* Number and unit, ns. -EINVAL. */
static int duration(const char *text, int64_t *ns)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"m", 60e9}};
	char *end;
	double v;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	v = strtod(text, &end);
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (strcmp(end, units[i].unit) != 0)
			continue;
		v *= units[i].ns;
		if (!(v < 9e18))
			return -EINVAL;
		*ns = (int64_t)(v + 0.5);
		return 0;
	}
	return -EINVAL;
}

/* NULL leaves *at as it is. */
static int time_parse(const char *text, int64_t begin, int64_t *at)
{
	int64_t ns;
	char *end;

	if (!text)
		return 0;
	if (*text == '@' && text[1] >= '0' && text[1] <= '9') {
		errno = 0;
		*at = strtoll(text + 1, &end, 10);
		return errno || *end ? -EINVAL : 0;
	}
	if (duration(text, &ns) || __builtin_add_overflow(begin, ns, at))
		return -EINVAL;
	return 0;
}

static int times_parse(const struct options *o, const struct session *s, struct export_options *e)
{
	if (time_parse(o->from, s->begin, &e->from))
		return usage("--from wants seconds, such as 2.5 or 250ms, or @ns, and not ",
			     o->from);
	if (time_parse(o->to, s->begin, &e->to))
		return usage("--to wants seconds, such as 2.5 or 250ms, or @ns, and not ", o->to);
	return e->from < e->to ? EXIT_OK : usage("--from must be before --to", "");
}

static int choose_one(const struct session *s, const char *word, bool *chosen)
{
	char *end;
	unsigned long pid = strtoul(word, &end, 10);
	bool found = false;

	if (*word < '0' || *word > '9' || *end)
		return usage("not a PID: ", word);
	for (size_t i = 0; i < s->processes_count; i++) {
		if (s->processes[i].pid != pid)
			continue;
		chosen[i] = true;
		found = true;
	}
	if (found)
		return EXIT_OK;
	err_report("export: there is no process %lu in the recording", pid);
	err_hint("gbpf report --view proc_sum");
	return EXIT_FAILED;
}

/* Into chosen, by index; several may be in one word. */
static int pids_choose(const struct options *o, const struct session *s, bool *chosen)
{
	int status = EXIT_OK;

	for (size_t i = 0; i < o->pids.count && status == EXIT_OK; i++) {
		char *words = strdup(o->pids.items[i]), *rest = words, *word;

		if (!words)
			return EXIT_FAILED;
		while (status == EXIT_OK && (word = strsep(&rest, ",")))
			status = choose_one(s, word, chosen);
		free(words);
	}
	return status;
}

static const struct export_writer *writer_choose(const struct options *o)
{
	const struct export_writer *w = NULL;

	if (o->format)
		return export_writer_named(formats[o->format]);
	if (o->output)
		w = export_writer_of(o->output);
	return w ? w : export_writer_named("perfetto");
}

/* The recording's name with another ending. */
static char *output_name(const char *file, const struct export_writer *w)
{
	static const char *const ours[] = {".gbpf.part", ".gbpf", ".gbpf.old"};
	size_t len = strlen(file);
	char *name;

	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++) {
		size_t n = strlen(ours[i]);

		if (len > n && !strcmp(file + len - n, ours[i])) {
			len -= n;
			break;
		}
	}
	return asprintf(&name, "%.*s%s", (int)len, file, w->endings[0]) < 0 ? NULL : name;
}

static bool same_file(const char *a, const char *b)
{
	struct stat sa, sb;

	return !stat(a, &sa) && !stat(b, &sb) && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

static int export_session(const struct options *o, const struct session *s, const char *file)
{
	const struct export_writer *w = writer_choose(o);
	struct export_options e = EXPORT_ALL;
	bool *chosen = calloc(s->processes_count + 1, sizeof(*chosen));
	char *made = o->output ? NULL : output_name(file, w);
	const char *path = o->output ? o->output : made;
	int status = EXIT_OK;

	e.compat = o->compat;
	e.processes = o->pids.count ? chosen : NULL;
	if (!chosen || !path) {
		err_report("export: %s", strerror(ENOMEM));
		status = EXIT_FAILED;
	}
	if (status == EXIT_OK)
		status = times_parse(o, s, &e);
	if (status == EXIT_OK)
		status = pids_choose(o, s, chosen);
	if (status == EXIT_OK && same_file(path, file))
		status = usage("OUT is the recording itself: ", path);
	if (status == EXIT_OK)
		status = exporting_write(s, &e, w, path, o->split, o->quiet);
	free(made);
	free(chosen);
	return status;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct options o = {.format = 0};
	struct session *s = NULL;
	const char *file;
	int first, status;

	status = opt_parse(self, &o, argc, argv, &first);
	if (status != OPT_OK)
		return status == OPT_HELP ? EXIT_OK : EXIT_USAGE;
	file = first < argc ? argv[first] : NULL;
	if (argc - first > 1)
		status = usage("one FILE at a time; this is one too many: ", argv[first + 1]);
	else if (session_file_load(&s, &file))
		status = EXIT_FAILED;
	else
		status = export_session(&o, s, file);
	session_free(s);
	opt_free(self, &o);
	return status;
}

static const struct opt_example examples[] = {
	{"gbpf export", "trace.gbpf as trace.pftrace, to be opened in ui.perfetto.dev"},
	{"gbpf export job.gbpf -o job.pftrace.gz --from 10 --to 12", "two seconds of it"},
	{"gbpf export job.gbpf -f csv -o job.csv", "every call and kernel as a table"},
	{0},
};

const struct command cmd_export = {
	.name = "export",
	.summary = "write a recording as a trace file for other programs",
	.usage = "[OPTION…] [FILE]",
	.description =
		"Writes a recording that gbpf trace made as a file that other programs open: "
		"Perfetto's viewer, what reads torch.profiler's or nsys's files, spreadsheets. "
		"Without FILE it reads trace.gbpf in this directory.\n\n"
		"The file appears under its name when it is whole, and not at all if something "
		"goes wrong. Where nothing is left of the recording, by time or process, "
		"nothing is written. docs/traces.md says what the files hold.\n\n"
		"Called through sudo, it opens the recording and then continues as the user who "
		"called, whose file it is.",
	.opts = opts,
	.examples = examples,
	.exit_status = "0 success; 1 the recording cannot be read, nothing of it is left, or the "
		       "file not be written; 2 wrong usage.",
	.run = run,
};
