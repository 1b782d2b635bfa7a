/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/summary.h"

#include <inttypes.h>
#include <stdio.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "diagnose/diagnose.h"
#include "report/report.h"
#include "util/err.h"
#include "util/term.h"
#include "util/text.h"

#define SECOND 1000000000LL

int64_t clock_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * SECOND + t.tv_nsec;
}

void status_line_init(struct status_line *s, bool quiet)
{
	*s = (struct status_line){.quiet = quiet, .terminal = term_is_tty(STDERR_FILENO)};
}

static void rate_update(struct status_line *s, uint64_t events, int64_t now)
{
	if (!s->begin) {
		s->begin = now;
		s->events = events;
	} else if (now - s->begin >= SECOND / 2) {
		s->rate = (double)(events - s->events) * SECOND / (double)(now - s->begin);
		s->begin = now;
		s->events = events;
	}
}

void status_line_show(struct status_line *s, const struct tracer_stats *stats, int64_t now,
		      int64_t until)
{
	int64_t every = s->terminal ? SECOND / 4 : 10 * SECOND;
	char events[32], rate[32], lost[32], left[48] = "";

	rate_update(s, stats->events, now);
	if (!s->last)
		s->last = s->terminal ? 0 : now; /* elsewhere the first line comes after a while */
	if (s->quiet || (s->last && now - s->last < every))
		return;
	s->last = now;
	if (until)
		snprintf(left, sizeof(left), " of %.0f s",
			 (double)(until - stats->begin) / SECOND);
	fprintf(stderr, "%s%.1f s%s  %s events  %s/s  %s lost  %u process%s%s%s",
		s->terminal ? "\r\033[K" : "gbpf: ", (double)(now - stats->begin) / SECOND, left,
		text_count(stats->events, events, sizeof(events)),
		text_count((uint64_t)s->rate, rate, sizeof(rate)),
		text_count(stats->lost, lost, sizeof(lost)), stats->targets,
		stats->targets == 1 ? "" : "es", s->words, s->terminal ? "" : "\n");
	fflush(stderr);
	s->shown = s->terminal;
}

void status_line_clear(struct status_line *s)
{
	if (s->shown)
		fputs("\r\033[K", stderr);
	s->shown = false;
}

void detach(struct tracer *t, bool quiet)
{
	struct tracer_stats stats;
	sigset_t set;

	if (!t)
		return;
	tracer_stats(t, &stats);
	if (stats.detach_s > 2 && !quiet)
		fprintf(stderr, "gbpf: this kernel takes the probes off %zu functions one by one: "
				"about %.0f s\n", stats.functions_hooked, stats.detach_s);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	tracer_free(t);
}

static void gpu_time_print(const struct tracer_stats *stats)
{
	const struct gpu_time_stats *g = &stats->gpu_time;
	char works[32], lost[32], running[32], error[32], stopped[32];

	if (!stats->gpu_time_asked)
		return;
	printf("Sidecar            %u process%s, %s kernels, copies and sets, %s lost",
	       g->processes, g->processes == 1 ? "" : "es",
	       text_count(g->works, works, sizeof(works)),
	       text_count(g->dropped + g->bad, lost, sizeof(lost)));
	if (g->running)
		printf(", %s still running at the end",
		       text_count(g->running, running, sizeof(running)));
	if (g->clock_error)
		printf(", times within %s", text_duration(g->clock_error, error, sizeof(error)));
	if (g->stopped_ns)
		printf(", stopped %s", text_duration(g->stopped_ns, stopped, sizeof(stopped)));
	if (g->refused)
		printf("; %u process%s without, or not to the end", g->refused,
		       g->refused == 1 ? "" : "es");
	putchar('\n');
}

static int session_open(struct session **out, const char *path)
{
	struct reader *r;
	int err = reader_open(&r, path);

	if (err)
		return err;
	err = session_load(out, r);
	reader_close(r);
	return err;
}

/* What the busiest thread paid: its calls, at what a hit was measured to cost here. ns. */
static double cost_worst(const struct session *s, const struct tracer_stats *stats)
{
	double worst = 0, cost;
	uint32_t i, k;

	for (i = 0; i < s->threads_count; i++) {
		const struct session_thread *t = &s->threads[i];

		cost = 0;
		for (k = t->first_call; k < t->first_call + t->calls; k++)
			cost += (double)(s->calls[k].flags & CALL_ARGS_LAUNCH
						 ? stats->cost.launch_ns
						 : stats->cost.pair_ns);
		if (cost > worst)
			worst = cost;
	}
	return worst;
}

static void cost_print(const struct session *s, const struct tracer_stats *stats)
{
	double window = (double)session_recorded(s, s->begin, s->end), share;
	char each[32];

	if (!stats->cost.launch_ns || window <= 0)
		return;
	share = 100 * cost_worst(s, stats) / window;
	printf("Tracing cost       about %.*f %% of the busiest thread's time (%s a launch, "
	       "measured here)\n",
	       share < 1 ? 2 : 1, share,
	       text_duration(stats->cost.launch_ns, each, sizeof(each)));
}

static void verdict_print(const struct session *s, const char *file)
{
	struct diagnosis d;
	int err = diagnose(s, file, &d);

	if (err)
		err_report("no verdict: %s", strerror(-err));
	else
		diagnosis_brief(&d, stdout);
	diagnosis_free(&d);
}

void summary_print(const char *path, const struct tracer_stats *stats)
{
	struct report_options o = {
		.width = term_width(STDOUT_FILENO, 0),
		.colour = term_colour(STDOUT_FILENO),
		.brief = true,
		.file = strcmp(path, "trace.gbpf") ? path : NULL,
	};
	char why[256] = "", size[32];
	struct session *s;
	int err = session_open(&s, path);

	if (err) {
		err_report("%s is written, but reading it back failed: %s", path, strerror(-err));
		return;
	}
	err = report_print(s, &o, stdout, why, sizeof(why));
	if (err)
		err_report("%s", *why ? why : strerror(-err));
	verdict_print(s, o.file);
	cost_print(s, stats);
	session_free(s);
	gpu_time_print(stats);
	printf("Recording          %s (%s)\n", path,
	       text_bytes(stats->bytes_written, size, sizeof(size)));
}
