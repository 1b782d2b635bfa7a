/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/watching.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/pid.h"
#include "cmd/rights.h"
#include "target/target.h"
#include "util/err.h"

#define NICE (-15)
#define INTERVAL_MIN 100000000LL

int64_t watching_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* "1%", "0.5 %" and "2" are percent. */
static int budget_parse(const char *text, double *out)
{
	char *end;
	double v;

	if (!text) {
		*out = 0.01;
		return 0;
	}
	errno = 0;
	v = strtod(text, &end);
	while (*end == ' ')
		end++;
	if (*end == '%')
		end++;
	if (end == text || *end || errno || !(v >= 0 && v <= 100) ||
	    ((*text < '0' || *text > '9') && *text != '.'))
		return -EINVAL;
	*out = v / 100;
	return 0;
}

static int signals_take(struct watching *w)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	signal(SIGPIPE, SIG_IGN);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	w->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return w->signals < 0 ? -errno : 0;
}

static void signals_read(struct watching *w)
{
	struct signalfd_siginfo s;

	while (read(w->signals, &s, sizeof(s)) == sizeof(s)) {
		if (s.ssi_signo == SIGHUP)
			monitor_release_gpus(w->monitor);
		else
			w->interrupted = true;
	}
}

static void on_tell(void *ctx, const char *text)
{
	struct watching *w = ctx;

	if (!w->screen)
		err_report("%s", text);
	else if (w->held_count < WATCHING_HELD && (w->held[w->held_count] = strdup(text)))
		w->held_count++;
}

static int usage(const struct command *command, const char *why)
{
	err_report("%s", why);
	err_hint("gbpf %s --help", command->name);
	return EXIT_USAGE;
}

static int options_check(struct watching *w, const struct command *command,
			 const struct watching_options *o, double *budget)
{
	if (o->all && o->pids.count)
		return usage(command, "-a and -p exclude each other");
	if (budget_parse(o->budget, budget))
		return usage(command, "--max-overhead takes a percentage from 0 to 100, like 1% or "
				      "0.5%");
	if (o->interval < INTERVAL_MIN)
		return usage(command, "--interval must be 100ms or more");
	if (!process_host_namespace()) {
		err_report("gbpf sees only its own pid namespace; run it on the host, or in a "
			   "container with the host's (docker run --pid=host)");
		return EXIT_FAILED;
	}
	return pids_parse(&o->pids, w->pids, WATCHING_PIDS, &w->pids_count);
}

static int rights_give_up(const struct watching *w)
{
	struct rights rights = {.perf_uprobes = monitor_rung(w->monitor) == RUNG_SINGLE};

	return rights_keep(RIGHTS_WATCH, &rights);
}

int watching_start(struct watching *w, const struct command *command,
		   const struct watching_options *o)
{
	struct monitor_options mo = {.tell = on_tell, .tell_ctx = w};
	char why[512] = "";
	int status;

	memset(w, 0, sizeof(*w));
	w->signals = -1;
	w->screen = o->screen;
	mo.apis = o->apis;
	mo.ever = o->ever;
	mo.detail = o->detail || o->screen;
	status = options_check(w, command, o, &mo.max_overhead);
	if (status)
		return status;
	if (signals_take(w)) {
		err_report("cannot take signals");
		return EXIT_FAILED;
	}
	/* closing a window late costs the targets more than it may; where we may not, we try */
	setpriority(PRIO_PROCESS, 0, NICE);
	mo.interval_ns = o->interval;
	mo.probes.rung = (enum rung)o->rung;
	if (w->pids_count) {
		mo.pids = w->pids;
		mo.pids_count = w->pids_count;
	}
	if (monitor_new(&w->monitor, &mo, why, sizeof(why)) ||
	    monitor_start(w->monitor, why, sizeof(why))) {
		err_report("%s", why);
		return EXIT_FAILED;
	}
	if (rights_give_up(w)) {
		err_report("cannot give up rights");
		return EXIT_FAILED;
	}
	return EXIT_OK;
}

int watching_step(struct watching *w, int64_t max_ns)
{
	int n = monitor_step(w->monitor, max_ns);

	signals_read(w);
	return n;
}

bool watching_over(const struct watching *w)
{
	return w->interrupted || !monitor_targets_alive(w->monitor);
}

/* A second Ctrl-C leaves the rest to the kernel. */
static void signals_back(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

void watching_end(struct watching *w)
{
	double seconds = w->monitor ? monitor_detach_s(w->monitor) : 0;
	size_t i;

	if (seconds > 2) {
		err_report("this kernel takes the probes off one by one: about %.0f s", seconds);
		signals_back();
	}
	monitor_free(w->monitor);
	w->monitor = NULL;
	for (i = 0; i < w->held_count; i++) {
		err_report("%s", w->held[i]);
		free(w->held[i]);
	}
	w->held_count = 0;
	if (w->signals >= 0)
		close(w->signals);
	w->signals = -1;
}
