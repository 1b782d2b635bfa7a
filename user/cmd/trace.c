/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/exporting.h"
#include "cmd/gpu_time.h"
#include "cmd/pid.h"
#include "cmd/rights.h"
#include "cmd/summary.h"
#include "cmd/trace_options.h"
#include "target/target.h"
#include "trace/child.h"
#include "trace/output.h"
#include "trace/tracer.h"
#include "util/err.h"
#include "util/term.h"
#include "util/text.h"

#define EXIT_GBPF_FAILED 125 /* with -- CMD: gbpf's own failure, not the command's */
#define PIDS_MAX 256
#define SECOND 1000000000LL

/* What runs: all that one invocation needs, so that there is one place to undo it. */
struct run {
	struct trace_options options;
	struct selection selection;
	uint32_t pids[PIDS_MAX];
	size_t pids_count;
	char **command; /* argv of -- CMD, or NULL */
	struct child child;
	struct invoker invoker;
	struct output *output;
	struct tracer *tracer;
	char *command_line;
	struct gpu_time_setup gpu;
	struct schedule_options schedule;
	struct recorder_options recorder;
	int signals; /* signalfd */
	bool interrupted, written;
	const char *trace_file; /* to be exported beside the recording, or NULL */
	struct status_line status;
};

static int fail_status(const struct run *r)
{
	return r->command ? EXIT_GBPF_FAILED : EXIT_FAILED;
}

static int fail(const struct run *r, const char *why)
{
	err_report("%s", why);
	return fail_status(r);
}

static int usage(const char *why)
{
	err_report("%s", why);
	err_hint("gbpf trace --help");
	return EXIT_USAGE;
}

static int form_check(const struct run *r)
{
	const char *why = trace_options_check(&r->options, r->command != NULL);

	if (why)
		return usage(why);
	if (!process_host_namespace())
		return fail(r, "gbpf sees only its own pid namespace; run it on the host, or in "
			       "a container with the host's (docker run --pid=host)");
	return 0;
}

static char *join(int argc, char **argv)
{
	size_t size = 1;
	char *text, *at;
	int i;

	for (i = 0; i < argc; i++)
		size += strlen(argv[i]) + 1;
	text = at = malloc(size);
	if (!text)
		return NULL;
	*at = '\0';
	for (i = 0; i < argc; i++)
		at += sprintf(at, "%s%s", i ? " " : "", argv[i]);
	return text;
}

static void on_tell(void *ctx, const char *text)
{
	status_line_clear(ctx);
	err_report("%s", text);
}

/* The command is there from here on, but waits: its pid is a target like others. */
static int command_make(struct run *r)
{
	if (!r->command)
		return 0;
	if (gpu_time_child_start(&r->gpu, &r->child, r->command, &r->invoker))
		return fail(r, "cannot start another process");
	r->pids[r->pids_count++] = (uint32_t)r->child.pid;
	return 0;
}

static int tracer_make(struct run *r)
{
	char why[512] = "";
	struct tracer_options o = {
		.selection = &r->selection,
		.pids = r->pids,
		.pids_count = r->pids_count,
		.cgroup = r->options.cgroup,
		.all = r->options.all,
		.no_follow = r->options.no_follow,
		.command = r->command ? r->command[0] : NULL,
		.probes = {.rung = (enum rung)r->options.rung,
			   .buffer_bytes = r->options.buffer_mib << 20,
			   .entry_only = r->options.entry_only},
		.allow_slow = r->options.allow_slow,
		.default_selection = !r->options.api,
		.command_line = r->command_line,
		.gpu_time = r->options.gpu.asked ? &r->gpu.options : NULL,
		.schedule = schedule_asked(&r->options.schedule) ? &r->schedule : NULL,
		.recorder = r->options.keep.keep ? &r->recorder : NULL,
		.tell = on_tell,
		.tell_ctx = &r->status,
	};

	if (tracer_new(&r->tracer, &o, why, sizeof(why)))
		return fail(r, why);
	return 0;
}

/* Signals come through a descriptor, so that waiting for events and for them is one wait. */
static int signals_take(struct run *r)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	if (r->options.keep.keep)
		sigaddset(&set, SIGUSR1);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of write(2) */
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	r->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return r->signals < 0 ? -errno : 0;
}

static void signals_read(struct run *r)
{
	struct signalfd_siginfo s;

	while (read(r->signals, &s, sizeof(s)) == sizeof(s)) {
		if (s.ssi_signo == SIGCHLD)
			continue;
		if (s.ssi_signo == SIGUSR1) {
			tracer_write_now(r->tracer);
			continue;
		}
		/*
		 * A terminal sends ^C to the command as well: it decides when to
		 * end. Others sent us the signal alone: hand it on.
		 */
		if (!r->command || r->child.reaped)
			r->interrupted = true; /* what the command left behind may run on */
		else if (s.ssi_code <= 0 && r->child.pid > 0)
			kill(r->child.pid, (int)s.ssi_signo);
	}
}

static bool done(struct run *r, const struct tracer_stats *stats, int64_t now, int64_t until)
{
	if (r->interrupted)
		return true;
	if (until && now >= until)
		return true;
	if (stats->schedule.phase == SCHEDULE_DONE || stats->recorder.over)
		return true;
	if (r->command && child_ended(&r->child) && !stats->targets_alive)
		return true;
	return r->pids_count && !stats->targets_alive;
}

static int64_t duration_of(const struct run *r)
{
	return trace_options_duration(&r->options, r->command != NULL);
}

/* A quarter second for the status line, or what is left. */
static int64_t step_length(int64_t now, int64_t until)
{
	if (!until || until - now > SECOND / 4)
		return SECOND / 4;
	return until > now ? until - now : 0;
}

/* Records until the end that was asked for. 0, or -errno of the recording. */
static int record(struct run *r)
{
	int64_t duration = duration_of(r), until = 0, now;
	struct tracer_stats stats;
	bool told = false;
	int err;

	for (;;) {
		now = clock_now();
		err = tracer_step(r->tracer, step_length(now, until), r->signals);
		if (err)
			return err;
		signals_read(r);
		tracer_stats(r->tracer, &stats);
		now = clock_now();
		if (!stats.cuda_seen && !r->command && !r->interrupted) {
			if (r->options.no_wait)
				return 0;
			if (!told && !r->options.quiet)
				fprintf(stderr, "gbpf: no CUDA library in the target yet; waiting "
						"for it (Ctrl-C ends)\n");
			told = true;
		} else if (!until && duration) {
			until = (told ? now : stats.begin) + duration;
		}
		schedule_words(&stats.schedule, r->options.schedule.repeat, r->status.words,
			       sizeof(r->status.words));
		if (stats.recorder.asked)
			keep_words(&r->recorder, &stats.recorder, r->status.words,
				   sizeof(r->status.words));
		if (!stats.recorder.asked || r->status.terminal) /* no log of hours of nothing */
			status_line_show(&r->status, &stats, now, until);
		if (done(r, &stats, now, until))
			return 0;
	}
}

static int rights_drop(const struct run *r, enum rights_need need)
{
	struct rights rights = {
		.perf_uprobes = r->tracer && probes_rung(tracer_probes(r->tracer)) == RUNG_SINGLE,
		.command = r->command != NULL,
		.files = r->options.keep.keep != 0,
	};

	return rights_keep(need, &rights);
}

static int start(struct run *r)
{
	const char *path = r->options.output;
	char why[512] = "";
	int fd = -1, err;

	if (!r->options.keep.keep) { /* a recorder opens its files itself */
		if (output_open(&r->output, path, &r->invoker, why, sizeof(why)))
			return fail(r, why);
		fd = output_fd(r->output);
		if (fd < 0)
			return fail(r, strerror(-fd));
	}
	if (tracer_start(r->tracer, fd, why, sizeof(why)))
		return fail(r, why);
	if (rights_drop(r, RIGHTS_RECORD))
		return fail(r, "cannot give up rights");
	if (!r->command)
		return 0;
	err = child_go(&r->child);
	if (!err)
		return 0;
	err_report("cannot run %s: %s", r->command[0], strerror(-err));
	return err == -ENOENT ? 127 : 126;
}

/* The file could not be written on: what fit is kept, if there is any call in it. */
static int finish_early(struct run *r, const struct tracer_stats *stats, int why)
{
	r->written = r->output && stats->events_written && !output_commit(r->output);
	if (r->written)
		err_report("the recording ended early: %s; %s holds the first %" PRIu64 " events",
			   strerror(-why), r->options.output, stats->events_written);
	else
		err_report("the recording failed: %s", strerror(-why));
	return fail_status(r);
}

/* Ends the recording; says what came of it. */
static int finish(struct run *r, int err)
{
	struct tracer_stats stats;
	int stop_err;

	status_line_clear(&r->status);
	stop_err = tracer_stop(r->tracer);
	place_close(&r->gpu.place);
	tracer_stats(r->tracer, &stats); /* with what the last look into the rings brought */
	if (!err)
		err = stop_err;
	if (err)
		return finish_early(r, &stats, err);
	if (!stats.cuda_seen && !stats.events) {
		err_report("no CUDA call was seen, and no CUDA library in the target; nothing "
			   "was written");
		return r->command ? EXIT_OK : EXIT_FAILED;
	}
	if (stats.schedule.asked && !stats.schedule.opened) {
		err_report("%snothing was written", stats.schedule.failed ? "" :
			   "the recording ended before the first window began; ");
		return r->command && !stats.schedule.failed ? EXIT_OK : fail_status(r);
	}
	if (stats.recorder.asked)
		return keep_finish(&r->recorder, &stats) || (r->command && !stats.recorder.failed) ?
			       EXIT_OK : fail_status(r);
	err = output_commit(r->output);
	if (err) {
		err_report("cannot rename the recording to %s: %s; it is %s.part",
			   r->options.output, strerror(-err), r->options.output);
		return fail_status(r);
	}
	r->written = true;
	if (!r->options.quiet)
		summary_print(r->options.output, &stats);
	return EXIT_OK;
}

/* Nothing is attached any more: it may take its time. */
static int trace_file(const struct run *r, int status)
{
	if (!r->trace_file || !r->written ||
	    !exporting_beside(r->options.output, r->trace_file, r->options.quiet))
		return status;
	return fail_status(r);
}

/* The command's own status is the answer, unless gbpf failed; it runs on without probes. */
static int command_status(struct run *r, int status)
{
	struct pollfd p = {.fd = r->signals, .events = POLLIN};

	if (!r->command)
		return status;
	tracer_free(r->tracer);
	r->tracer = NULL;
	while (!child_ended(&r->child)) {
		poll(&p, 1, 1000);
		signals_read(r);
	}
	return status == EXIT_GBPF_FAILED ? status : child_exit_status(&r->child);
}

static int trace(struct run *r)
{
	int status = form_check(r), err;

	if (!status)
		status = pids_parse(&r->options.pids, r->pids, PIDS_MAX, &r->pids_count);
	if (!status)
		gpu_time_prepare(&r->gpu, &r->options.gpu, duration_of(r), r->command);
	if (!status && signals_take(r))
		status = fail(r, "cannot take signals");
	if (!status)
		status = command_make(r);
	if (!status && rights_drop(r, RIGHTS_ATTACH))
		status = fail(r, "cannot give up rights");
	if (!status)
		status = tracer_make(r);
	if (!status)
		status = start(r);
	if (status)
		return status;
	err = record(r);
	return command_status(r, finish(r, err));
}

static int run_trace(const struct command *self, int argc, char **argv)
{
	struct run r = {
		.signals = -1,
	};
	char why[256], *recording;
	int first, status;

	trace_options_init(&r.options);
	place_init(&r.gpu.place);
	r.child.go = r.child.failed = r.child.pidfd = -1;
	status = opt_parse(self, &r.options, argc, argv, &first);
	if (status != OPT_OK)
		return status == OPT_HELP ? EXIT_OK : EXIT_USAGE;
	recording = exporting_recording(r.options.output);
	if (recording) {
		r.trace_file = r.options.output;
		r.options.output = recording;
	}
	r.recorder.path = r.options.output;
	r.recorder.who = &r.invoker;
	r.recorder.quiet = r.options.quiet;
	r.command = first < argc ? argv + first : NULL;
	r.command_line = join(argc, argv);
	status_line_init(&r.status, r.options.quiet);
	if (recording && keep_asked(&r.options.keep))
		status = usage("with --keep, -o wants a .gbpf file, of which gbpf export makes "
			       "others");
	else if (selection_parse(&r.selection, r.options.api ? r.options.api : "driver", why,
			    sizeof(why)))
		status = usage(why);
	else if (schedule_prepare(&r.options.schedule, &r.schedule, why, sizeof(why)))
		status = usage(why);
	else if (keep_prepare(&r.options.keep, &r.selection, r.options.entry_only, &r.recorder, why,
			      sizeof(why)))
		status = usage(why);
	else if (invoker_get(&r.invoker))
		status = fail(&r, "SUDO_UID and SUDO_GID are not numbers; unset them or use sudo");
	else
		status = trace(&r);
	detach(r.tracer, r.options.quiet);
	output_free(r.output);
	child_free(&r.child);
	gpu_time_release(&r.gpu);
	keep_release(&r.recorder);
	if (r.signals >= 0)
		close(r.signals);
	status = trace_file(&r, status);
	free(recording);
	free(r.command_line);
	opt_free(self, &r.options);
	return status;
}

const struct command cmd_trace = {
	.name = "trace",
	.summary = "record the CUDA calls of running processes, or of a command",
	.usage = "-p PID[,PID…] | --cgroup PATH | -a | -- COMMAND [ARG…]",
	.description =
		"Attaches to processes without stopping, changing or restarting them, records "
		"when each CUDA call began and returned, on which thread and with which "
		"arguments, and detaches. Nothing stays behind in the target.\n\n"
		"Children and libraries loaded later are followed. Recording ends after "
		"--duration, at Ctrl-C, or when the last target exits. What was lost, and what "
		"could not be hooked, is part of the recording.",
	.opts = trace_opts,
	.examples = trace_examples,
	.exit_status = "0 when something was recorded, or with --trigger when one fired; 1 when "
		       "not, 2 for wrong usage. With -- COMMAND its own status, 128+n if "
		       "signal n ended it, 126 or 127 if it could not be run, 125 if gbpf itself "
		       "failed.",
	.run = run_trace,
};
