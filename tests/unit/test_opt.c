/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "util/opt.h"
#include "util/wrap.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct fields {
	bool quick, verbose, no_follow;
	const char *output;
	uint64_t top;
	int64_t duration;
	int format;
	struct opt_list pids;
	bool secret;
};

static const char *const formats[] = {"table", "csv", "json", NULL};

#define AT(f) .offset = offsetof(struct fields, f)

static const struct opt opts[] = {
	{.name = "quick", .letter = 'q', .type = OPT_FLAG, .help = "Be quick.", AT(quick)},
	{.name = "verbose", .letter = 'v', .type = OPT_FLAG, .help = "Say more.", AT(verbose)},
	{.name = "no-follow", .type = OPT_FLAG, .help = "Leave children alone.", AT(no_follow)},
	{.name = "output", .letter = 'o', .type = OPT_STRING, .arg = "FILE",
	 .help = "Write to FILE.", AT(output)},
	{.name = "top", .type = OPT_UINT, .arg = "N",
	 .help = "At most N rows, the costliest first, which is a sentence long enough that it "
		 "must be wrapped.", AT(top)},
	{.name = "duration", .letter = 'd', .type = OPT_DURATION, .arg = "TIME",
	 .help = "How long.", AT(duration)},
	{.name = "format", .letter = 'f', .type = OPT_CHOICE, .arg = "FORMAT",
	 .choices = formats, .help = "How to print.", AT(format)},
	{.name = "pid", .letter = 'p', .type = OPT_LIST, .arg = "PID", .help = "Which process.",
	 AT(pids)},
	{.name = "secret", .type = OPT_FLAG, .help = "Never shown.", .hidden = true, AT(secret)},
	{0},
};

static const struct opt_example examples[] = {
	{"gbpf demo -d 5 FILE", "Five seconds."},
	{0},
};

static const struct command demo = {
	.name = "demo",
	.summary = "show how options work",
	.usage = "[OPTION…] [FILE…]",
	.description = "One paragraph with it's quote.\n\n.Another that starts with a dot.",
	.opts = opts,
	.examples = examples,
	.exit_status = "0 success; 2 wrong usage.",
};

static const struct command runner = {
	.name = "runner", .usage = "[OPTION…] -- COMMAND [ARG…]", .opts = opts,
};

#define MAX_WORDS 12

struct parsed {
	int status, first, argc;
	char *argv[MAX_WORDS + 1];
	struct fields f;
};

/* Parses words separated by blanks; what is printed meanwhile goes to /dev/null. */
static void parse(struct parsed *p, const struct command *cmd, const char *line)
{
	static char words[400];
	int saved = dup(STDERR_FILENO);

	memset(p, 0, sizeof(*p));
	snprintf(words, sizeof(words), "%s", line);
	for (char *w = strtok(words, " "); w && p->argc < MAX_WORDS; w = strtok(NULL, " "))
		p->argv[p->argc++] = w;
	assert_non_null(freopen("/dev/null", "w", stderr));
	p->status = opt_parse(cmd, &p->f, p->argc, p->argv, &p->first);
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
}

static void flags_and_values(void **state)
{
	struct parsed p;

	parse(&p, &demo, "demo --quick -o out --top=7 --duration 250ms -fjson --no-follow");
	assert_int_equal(p.status, OPT_OK);
	assert_int_equal(p.first, p.argc);
	assert_true(p.f.quick);
	assert_false(p.f.verbose);
	assert_true(p.f.no_follow);
	assert_string_equal(p.f.output, "out");
	assert_int_equal(p.f.top, 7);
	assert_int_equal(p.f.duration, 250000000);
	assert_int_equal(p.f.format, 2);
}

static void letters_in_a_row(void **state)
{
	struct parsed p;

	parse(&p, &demo, "demo -qvoout");
	assert_int_equal(p.status, OPT_OK);
	assert_true(p.f.quick && p.f.verbose);
	assert_string_equal(p.f.output, "out");
	parse(&p, &demo, "demo -qo out");
	assert_int_equal(p.status, OPT_OK);
	assert_string_equal(p.f.output, "out");
}

static void operands_move_to_the_end(void **state)
{
	struct parsed p;

	parse(&p, &demo, "demo a -q b --top 3 - c");
	assert_int_equal(p.status, OPT_OK);
	assert_int_equal(p.argc - p.first, 4);
	assert_string_equal(p.argv[p.first], "a");
	assert_string_equal(p.argv[p.first + 1], "b");
	assert_string_equal(p.argv[p.first + 2], "-");
	assert_string_equal(p.argv[p.first + 3], "c");
	assert_true(p.f.quick);
	assert_int_equal(p.f.top, 3);
}

static void dashes_end_the_options(void **state)
{
	struct parsed p;

	parse(&p, &demo, "demo a -- -q --top");
	assert_int_equal(p.status, OPT_OK);
	assert_false(p.f.quick);
	assert_int_equal(p.argc - p.first, 3);
	assert_string_equal(p.argv[p.first + 1], "-q");
}

static void a_command_keeps_its_own_options(void **state)
{
	struct parsed p;

	parse(&p, &runner, "runner -q -- prog -v -- x");
	assert_int_equal(p.status, OPT_OK);
	assert_true(p.f.quick);
	assert_false(p.f.verbose);
	assert_int_equal(p.argc - p.first, 4);
	assert_string_equal(p.argv[p.first], "prog");
	assert_string_equal(p.argv[p.first + 1], "-v");
	assert_string_equal(p.argv[p.first + 2], "--");

	parse(&p, &runner, "runner prog -v");
	assert_int_equal(p.argc - p.first, 2);
	assert_false(p.f.verbose);
}

static void lists_grow(void **state)
{
	struct parsed p;

	parse(&p, &demo, "demo -p 1 --pid=2,3 -p4");
	assert_int_equal(p.status, OPT_OK);
	assert_int_equal(p.f.pids.count, 3);
	assert_string_equal(p.f.pids.items[0], "1");
	assert_string_equal(p.f.pids.items[1], "2,3");
	assert_string_equal(p.f.pids.items[2], "4");
	opt_free(&demo, &p.f);
	assert_null(p.f.pids.items);
	opt_free(&demo, &p.f);
}

static void errors(void **state)
{
	static const char *const lines[] = {
		"demo --nope",	    "demo -x",		"demo -qx",	   "demo --top",
		"demo --top x",	    "demo --top -1",	"demo --top 1x",   "demo --quick=1",
		"demo -f xml",	    "demo --format=",	"demo -d ten",	   "demo -d 1.2.3",
		"demo -d 5x",	    "demo -d -5",	"demo -d .",	   "demo -p 1 --nope",
		"demo --top=",	    "demo --to 1",	"demo -o",	   "demo --=x",
		"demo --top 99999999999999999999999", "demo -d 99999999999h",
	};
	struct parsed p;

	for (size_t i = 0; i < COUNT(lines); i++) {
		parse(&p, &demo, lines[i]);
		assert_int_equal(p.status, OPT_ERROR);
		assert_null(p.f.pids.items);
	}
}

static void durations(void **state)
{
	static const struct {
		const char *line;
		int64_t ns;
	} cases[] = {
		{"demo -d 10", 10000000000},	 {"demo -d 0", 0},
		{"demo -d 2.5", 2500000000},	 {"demo -d 10s", 10000000000},
		{"demo -d 250ms", 250000000},	 {"demo -d 5m", 300000000000},
		{"demo -d 1h", 3600000000000},	 {"demo -d 3us", 3000},
		{"demo -d 7ns", 7},		 {"demo -d .5ms", 500000},
	};
	struct parsed p;

	for (size_t i = 0; i < COUNT(cases); i++) {
		parse(&p, &demo, cases[i].line);
		assert_int_equal(p.status, OPT_OK);
		assert_int_equal(p.f.duration, cases[i].ns);
	}
}

static char *stderr_of(const char *line)
{
	char name[] = "/tmp/test_opt.XXXXXX", *text = calloc(1, 2000);
	int fd = mkstemp(name), saved = dup(STDERR_FILENO);
	char *argv[] = {"demo", (char *)line, NULL};
	struct fields f = {0};
	int first;
	ssize_t n;

	assert_true(fd >= 0 && text);
	unlink(name);
	fflush(stderr);
	dup2(fd, STDERR_FILENO);
	assert_int_equal(opt_parse(&demo, &f, 2, argv, &first), OPT_ERROR);
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
	n = pread(fd, text, 1999, 0);
	assert_true(n > 0);
	close(fd);
	return text;
}

static void error_text(void **state)
{
	static const struct {
		const char *word, *text;
	} cases[] = {
		{"--duratoin", "gbpf: demo: unknown option '--duratoin'; did you mean "
			       "'--duration'?\n  try: gbpf demo --help\n"},
		{"--zzzzz", "gbpf: demo: unknown option '--zzzzz'\n  try: gbpf demo --help\n"},
		{"--secre", "gbpf: demo: unknown option '--secre'\n  try: gbpf demo --help\n"},
		{"-fcvs", "gbpf: demo: --format 'cvs' is not known; did you mean 'csv'? "
			  "(one of: table, csv, json)\n  try: gbpf demo --help\n"},
		{"--\x1b[2J", "gbpf: demo: unknown option '--\\x1b[2J'\n  try: gbpf demo --help\n"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		char *text = stderr_of(cases[i].word);

		assert_string_equal(text, cases[i].text);
		free(text);
	}
}

static const char golden[] =
	"Usage: gbpf demo [OPTION…] [FILE…]\n"
	"\n"
	"One paragraph with it's quote.\n"
	"\n"
	".Another that starts with a dot.\n"
	"\n"
	"Options:\n"
	"  -q, --quick             Be quick.\n"
	"  -v, --verbose           Say more.\n"
	"      --no-follow         Leave children alone.\n"
	"  -o, --output FILE       Write to FILE.\n"
	"      --top N             At most N rows, the costliest first,\n"
	"                          which is a sentence long enough that it\n"
	"                          must be wrapped.\n"
	"  -d, --duration TIME     How long.\n"
	"  -f, --format FORMAT     How to print. One of: table, csv, json.\n"
	"  -p, --pid PID           Which process. May be given several\n"
	"                          times.\n"
	"  -h, --help              Print this and exit.\n"
	"\n"
	"Examples:\n"
	"  gbpf demo -d 5 FILE\n"
	"      Five seconds.\n"
	"\n"
	"Exit status:\n"
	"  0 success; 2 wrong usage.\n";

static void help_is_golden(void **state)
{
	char *printed;
	size_t size;
	FILE *out = tmpfile();

	assert_non_null(out);
	setenv("COLUMNS", "66", 1);
	opt_print_help(&demo, out);
	unsetenv("COLUMNS");
	size = (size_t)ftell(out);
	printed = calloc(1, size + 1);
	rewind(out);
	assert_int_equal(fread(printed, 1, size, out), size);
	fclose(out);
	assert_string_equal(printed, golden);
	free(printed);
}

static char *man_page(void)
{
	char *printed;
	size_t size;
	FILE *out = open_memstream(&printed, &size);

	opt_print_man(&demo, out, "1.2.3");
	fclose(out);
	return printed;
}

static void man_page_escapes_and_hides(void **state)
{
	char *page = man_page();

	assert_non_null(strstr(page, ".TH GBPF-DEMO 1 \"\" \"gbpf 1.2.3\" \"User Commands\"\n"));
	assert_non_null(strstr(page, "\n\\&.Another that starts with a dot.\n"));
	assert_non_null(strstr(page, "\n\\fB\\-\\-no\\-follow\\fR\n"));
	assert_non_null(strstr(page, "\n\\fB\\-d\\fR, \\fB\\-\\-duration\\fR \\fITIME\\fR\n"));
	assert_null(strstr(page, "secret"));
	free(page);
}

static void completions_hold_every_option(void **state)
{
	static const char *const shells[] = {"bash", "zsh", "fish"};
	const struct command *const commands[] = {&demo, NULL};

	for (size_t i = 0; i < COUNT(shells); i++) {
		char *printed;
		size_t size;
		FILE *out = open_memstream(&printed, &size);

		assert_int_equal(opt_print_completion(commands, shells[i], out), 0);
		fclose(out);
		for (const struct opt *o = opts; o->name; o++) {
			if (o->hidden)
				assert_null(strstr(printed, o->name));
			else
				assert_non_null(strstr(printed, o->name));
		}
		assert_non_null(strstr(printed, "table csv json"));
		free(printed);
	}
	assert_true(opt_print_completion(commands, "tcsh", stdout) < 0);
}

static void wrapped(unsigned width, const char *text, const char *expected)
{
	char *printed;
	size_t size;
	FILE *out = open_memstream(&printed, &size);

	wrap_print(out, text, 0, 2, width);
	fclose(out);
	assert_string_equal(printed, expected);
	free(printed);
}

static void wrapping(void **state)
{
	wrapped(10, "aaa bbb ccc", "  aaa bbb\n  ccc\n");
	wrapped(9, "aaa bbb ccc", "  aaa bbb\n  ccc\n");
	wrapped(8, "aaa bbb ccc", "  aaa\n  bbb\n  ccc\n");
	wrapped(4, "longest words", "  longest\n  words\n");
	wrapped(20, "one\n\ntwo", "  one\n\n  two\n");
	wrapped(7, "µµ µµ µµ", "  µµ µµ\n  µµ\n");
	wrapped(20, "", "  \n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flags_and_values),
		cmocka_unit_test(letters_in_a_row),
		cmocka_unit_test(operands_move_to_the_end),
		cmocka_unit_test(dashes_end_the_options),
		cmocka_unit_test(a_command_keeps_its_own_options),
		cmocka_unit_test(lists_grow),
		cmocka_unit_test(errors),
		cmocka_unit_test(durations),
		cmocka_unit_test(error_text),
		cmocka_unit_test(help_is_golden),
		cmocka_unit_test(man_page_escapes_and_hides),
		cmocka_unit_test(completions_hold_every_option),
		cmocka_unit_test(wrapping),
	};

	return cmocka_run_group_tests_name("opt", tests, NULL, NULL);
}
