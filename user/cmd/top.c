/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/watching.h"
#include "top/top.h"
#include "util/err.h"

#define SECOND 1000000000LL
#define KEY_WAIT_NS 30000000LL /* how long a key may wait */

struct options {
	struct watching_options watching;
	const char *sort, *filter;
};

#define FIELD(f) .offset = offsetof(struct options, f)

static const struct opt opts[] = {
	{.name = "pid", .letter = 'p', .type = OPT_LIST, .arg = "PID[,PID…]",
	 FIELD(watching.pids), .help = "Only these processes and their descendants."},
	{.name = "max-overhead", .type = OPT_STRING, .arg = "PERCENT", FIELD(watching.budget),
	 .help = "What the probes may cost the thread they cost most (default 1%), as in gbpf "
		 "monitor."},
	{.name = "interval", .letter = 'i', .type = OPT_DURATION, .arg = "TIME",
	 FIELD(watching.interval), .help = "How often the numbers change (default 1s)."},
	{.name = "sort", .letter = 's', .type = OPT_STRING, .arg = "COLUMN", FIELD(sort),
	 .help = "Column to sort by (default launches); in the screen, s chooses."},
	{.name = "filter", .type = OPT_STRING, .arg = "TEXT", FIELD(filter),
	 .help = "Show only what contains TEXT; in the screen, / asks for it."},
	{0},
};

static int watch(struct watching *w, struct top *t)
{
	int n = 0;

	while (!watching_over(w) && top_step(t, 0)) {
		n = watching_step(w, KEY_WAIT_NS);
		if (n < 0)
			break;
		if (n)
			top_update(t, monitor_snapshot(w->monitor));
	}
	top_close(t);
	if (n >= 0)
		return EXIT_OK;
	err_report("the monitor cannot go on: %s", strerror(-n));
	return EXIT_FAILED;
}

static int run_top(const struct command *self, int argc, char **argv)
{
	struct options o = {.watching = {.interval = SECOND, .screen = true}};
	char host[256] = "", why[768] = "";
	struct top_options to = {.version = GBPF_VERSION, .host = host};
	struct top *t = NULL;
	struct watching w;
	int first, status;

	status = opt_parse(self, &o, argc, argv, &first);
	if (status != OPT_OK)
		return status == OPT_HELP ? EXIT_OK : EXIT_USAGE;
	gethostname(host, sizeof(host) - 1);
	to.interval_ns = o.watching.interval;
	to.sort = o.sort;
	to.filter = o.filter;
	if (top_check(&to, why, sizeof(why))) {
		err_report("%s", why);
		opt_free(self, &o);
		return EXIT_FAILED;
	}
	status = watching_start(&w, self, &o.watching);
	if (!status && top_new(&t, &to, why, sizeof(why))) {
		err_report("%s", why);
		status = EXIT_FAILED;
	}
	if (!status)
		status = watch(&w, t);
	top_free(t);
	watching_end(&w);
	opt_free(self, &o);
	return status;
}

static const struct opt_example examples[] = {
	{"sudo gbpf top", "every CUDA process of this machine, live"},
	{"sudo gbpf top -s p99 --filter train", "slowest launches first, of what is called train"},
	{0},
};

const struct command cmd_top = {
	.name = "top",
	.summary = "the same as monitor, live in a terminal",
	.usage = "[OPTION…]",
	.description =
		"Shows every process that uses CUDA, its launches and where its time goes, and "
		"the GPUs, as gbpf monitor measures them. Keys sort, filter and look into a "
		"process: its APIs, kernels, threads and histograms; h lists them.",
	.opts = opts,
	.examples = examples,
	.exit_status = "0 when it was left with q or Ctrl-C, 1 when it could not run, 2 for wrong "
		       "usage.",
	.run = run_top,
};
