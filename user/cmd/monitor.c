/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/pid.h"
#include "cmd/rights.h"
#include "cmd/watching.h"
#include "export/serve.h"
#include "report/live.h"
#include "util/err.h"
#include "util/term.h"

enum { FORMAT_TABLE, FORMAT_JSON };

static const char *const formats[] = {"table", "json", NULL};
static const char *const rungs[] = {"auto", "session", "multi", "single", NULL};

struct options {
	struct watching_options watching;
	int format;
	bool once, quiet, pid_label;
	int64_t duration;
	const char *listen, *cert, *key, *auth;
};

/* The pages that are served, with --listen. */
struct served {
	struct metrics *metrics;
	struct serve *serve;
};

#define FIELD(f) .offset = offsetof(struct options, f)

static const struct opt opts[] = {
	{.name = "pid", .letter = 'p', .type = OPT_LIST, .arg = "PID[,PID…]",
	 FIELD(watching.pids), .help = "Only these processes and their descendants, present and "
				       "future."},
	{.name = "all", .letter = 'a', .type = OPT_FLAG, FIELD(watching.all),
	 .help = "Every process that uses CUDA, now and later, in containers too (the default)."},
	{.name = "max-overhead", .type = OPT_STRING, .arg = "PERCENT", FIELD(watching.budget),
	 .help = "What the probes may cost the thread they cost most, in percent of its time "
		 "(default 1%). What does not fit is probed in short windows, and estimated."},
	{.name = "interval", .letter = 'i', .type = OPT_DURATION, .arg = "TIME",
	 FIELD(watching.interval), .help = "One line a process every so often (default 1s)."},
	{.name = "duration", .letter = 'd', .type = OPT_DURATION, .arg = "TIME", FIELD(duration),
	 .help = "End after so long (default 0: never)."},
	{.name = "once", .type = OPT_FLAG, FIELD(once),
	 .help = "Wait for one full interval, print it, and end."},
	{.name = "format", .letter = 'f', .type = OPT_CHOICE, .arg = "FORMAT", .choices = formats,
	 FIELD(format), .help = "How to print: table (the default) for people, json (one object "
				"an interval, a line each) for programs."},
	{.name = "apis", .type = OPT_FLAG, FIELD(watching.apis),
	 .help = "With json: each function that a process calls, too, with its durations."},
	{.name = "kernels", .type = OPT_FLAG, FIELD(watching.detail),
	 .help = "With json: which kernels each process launches, too."},
	{.name = "quiet", .letter = 'q', .type = OPT_FLAG, FIELD(quiet),
	 .help = "Print nothing, only serve (--listen)."},
	{.name = "listen", .type = OPT_STRING, .arg = "ADDRESS:PORT", FIELD(listen),
	 .help = "Serve the numbers as OpenMetrics at /metrics, for Prometheus and its kin: "
		 "127.0.0.1:9477 for this machine only, :9477 for everybody."},
	{.name = "tls-cert", .type = OPT_STRING, .arg = "FILE", FIELD(cert),
	 .help = "Serve by TLS, with this certificate chain (PEM) and --tls-key."},
	{.name = "tls-key", .type = OPT_STRING, .arg = "FILE", FIELD(key),
	 .help = "The certificate's key (PEM), readable by its owner alone."},
	{.name = "auth", .type = OPT_STRING, .arg = "FILE", FIELD(auth),
	 .help = "Ask for a name and password: lines of USER:HASH, as htpasswd writes them, "
		 "readable by its owner alone."},
	{.name = "pid-label", .type = OPT_FLAG, FIELD(pid_label),
	 .help = "Serve each process under a label of its own number: more series, which come "
		 "and go."},
	{.name = "rung", .type = OPT_CHOICE, .arg = "RUNG", .choices = rungs,
	 FIELD(watching.rung), .hidden = true, .help = "Attach in this way only."},
	{0},
};

static void print(const struct options *o, const struct snapshot *s)
{
	unsigned rows = (o->watching.apis ? LIVE_APIS : 0) |
			(o->watching.detail ? LIVE_KERNELS : 0);

	if (o->quiet)
		return;
	if (o->format == FORMAT_JSON)
		live_json(s, rows, stdout);
	else
		live_table(s, stdout, term_width(STDOUT_FILENO, 100), term_colour(STDOUT_FILENO));
	fflush(stdout);
}

static int serve(const struct options *o, struct served *v)
{
	struct metrics_options mo = {.include_pid = o->pid_label};
	struct serve_options so = {
		.address = o->listen,
		.cert_file = o->cert,
		.key_file = o->key,
		.auth_file = o->auth,
	};
	char why[512] = "out of memory";

	if (!o->listen)
		return EXIT_OK;
	if (metrics_new(&v->metrics, &mo) ||
	    serve_new(&v->serve, &so, v->metrics, why, sizeof(why))) {
		err_report("%s", why);
		return EXIT_FAILED;
	}
	if (why[0])
		err_report("%s", why);
	fprintf(stderr, "serving %s\n", serve_url(v->serve));
	return EXIT_OK;
}

static int interval(const struct options *o, struct served *v, const struct snapshot *s)
{
	print(o, s);
	if (ferror(stdout))
		return -EPIPE;
	return v->metrics ? metrics_update(v->metrics, s) : 0;
}

static int watch(const struct options *o, struct watching *w, struct served *v)
{
	int64_t until = o->duration > 0 ? watching_now() + o->duration : INT64_MAX;
	int n = 0;

	while (n >= 0 && !watching_over(w) && watching_now() < until) {
		n = watching_step(w, until - watching_now());
		if (n <= 0)
			continue;
		n = interval(o, v, monitor_snapshot(w->monitor));
		if (o->once)
			break;
	}
	/* the last process has ended: what it did since the last interval is told, too */
	if (n >= 0 && !monitor_targets_alive(w->monitor)) {
		n = monitor_finish(w->monitor);
		n = n < 0 ? n : interval(o, v, monitor_snapshot(w->monitor));
	}
	if (n == -EPIPE)
		return EXIT_FAILED; /* nobody reads any more: err_flush_stdout() says so */
	if (n >= 0)
		return EXIT_OK;
	err_report("the monitor cannot go on: %s", strerror(-n));
	return EXIT_FAILED;
}

static int usage(const struct command *self, const char *why)
{
	err_report("%s", why);
	err_hint("gbpf %s --help", self->name);
	return EXIT_USAGE;
}

static int check(const struct command *self, const struct options *o)
{
	if (!o->cert != !o->key)
		return usage(self, "--tls-cert and --tls-key belong together");
	if (!o->listen && (o->cert || o->auth || o->pid_label))
		return usage(self, "--tls-cert, --auth and --pid-label are for what "
				   "--listen serves");
	if ((o->watching.apis || o->watching.detail) && (o->format != FORMAT_JSON || o->quiet))
		return usage(self, "--apis and --kernels are rows of --format json");
	if (o->quiet && !o->listen)
		return usage(self, "--quiet without --listen would do nothing");
	return EXIT_OK;
}

static int run_monitor(const struct command *self, int argc, char **argv)
{
	struct options o = {.watching = {.interval = 1000000000}};
	struct served served = {0};
	struct watching w = {.signals = -1};
	int first, status;

	status = opt_parse(self, &o, argc, argv, &first);
	if (status != OPT_OK)
		return status == OPT_HELP ? EXIT_OK : EXIT_USAGE;
	o.watching.ever = o.listen != NULL;
	status = check(self, &o);
	if (!status)
		status = serve(&o, &served);
	if (!status)
		status = watching_start(&w, self, &o.watching);
	if (!status)
		status = watch(&o, &w, &served);
	serve_free(served.serve);
	metrics_free(served.metrics);
	watching_end(&w);
	opt_free(self, &o);
	return status;
}

static const struct opt_example examples[] = {
	{"sudo gbpf monitor", "every CUDA process of this machine, every second"},
	{"sudo gbpf monitor -p 4242 --once --format json --apis",
	 "one second of one job, function by function, for a program"},
	{"sudo gbpf monitor --max-overhead 0.1%", "a tenth of the default cost"},
	{"sudo gbpf monitor -q --listen 127.0.0.1:9477", "for Prometheus on this machine"},
	{0},
};

const struct command cmd_monitor = {
	.name = "monitor",
	.summary = "watch every CUDA process of the machine, within a budget",
	.usage = "[OPTION…]",
	.description =
		"Prints, every interval, what each process that uses CUDA does: launches, how long "
		"they take to dispatch, where its launching thread's time goes, copies, memory, "
		"errors, what the GPUs say of themselves, and what gbpf itself costs.\n\n"
		"Calls are counted in the kernel. As long as probes on all of them cost the worst "
		"thread less than --max-overhead, all are counted; beyond that, the frequent ones "
		"are probed in short windows at random times, and their totals are estimates with "
		"95 % intervals. What was covered is always said.",
	.opts = opts,
	.examples = examples,
	.exit_status = "0 when it ran, 1 when it could not, 2 for wrong usage.",
	.run = run_monitor,
};
