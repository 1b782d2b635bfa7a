// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/exporting.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/session_file.h"
#include "util/err.h"
#include "util/term.h"
#include "util/text.h"

#define SECOND 1000000000LL

/* Shown after a second, on terminals. */
struct progress_line {
	const char *path;
	int64_t next;
	bool terminal, shown, interrupted;
};

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * SECOND + t.tv_nsec;
}

/* Blocked signals wait here, so that a file is taken back before we end. */
static bool signalled(void)
{
	sigset_t pending;

	return !sigpending(&pending) &&
	       (sigismember(&pending, SIGINT) || sigismember(&pending, SIGTERM) ||
		sigismember(&pending, SIGHUP));
}

static bool on_progress(void *ctx, double share)
{
	struct progress_line *line = ctx;
	int64_t now;

	line->interrupted = signalled();
	if (line->interrupted || !line->terminal)
		return !line->interrupted;
	now = now_ns();
	if (now < line->next)
		return true;
	line->next = now + SECOND / 4;
	line->shown = true;
	fprintf(stderr, "\r\033[Kgbpf: %s %.0f %%", line->path, 100 * share);
	fflush(stderr);
	return true;
}

static void signals_block(sigset_t *before)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, before);
	signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of write(2) */
}

static int failed(const char *path, int err, const char *why)
{
	if (err == -EINTR)
		err_report("interrupted; %s was not written", path);
	else if (err == -EINVAL && !*why)
		err_report("%s is not a regular file; give another name with -o", path);
	else if (*why)
		err_report("%s was not written: %s", path, why);
	else
		err_report("%s was not written: %s", path, strerror(-err));
	return EXIT_FAILED;
}

static void told(const char *path, uint64_t bytes, const struct export_counts *counts)
{
	char size[32], calls[32], works[32];

	printf("%s: %s, %s calls", path, text_bytes(bytes, size, sizeof(size)),
	       text_count(counts->calls, calls, sizeof(calls)));
	if (counts->works)
		printf(", %s kernels, copies and sets",
		       text_count(counts->works, works, sizeof(works)));
	printf("\n");
}

static int write_one(const struct session *s, const struct export_options *given,
		     const struct export_writer *w, const char *path, bool quiet)
{
	struct progress_line line = {.path = path, .next = now_ns() + SECOND,
				     .terminal = !quiet && term_is_tty(STDERR_FILENO)};
	struct export_options o = *given;
	struct export_counts counts;
	struct export_file *file;
	char why[512] = "";
	int err = export_open(&file, path, w->quick);

	if (err)
		return failed(path, err, why);
	o.progress = on_progress;
	o.progress_ctx = &line;
	err = w->write(s, &o, file, why, sizeof(why));
	if (line.shown)
		fputs("\r\033[K", stderr);
	if (!err && signalled())
		err = -EINTR;
	if (!err)
		err = export_commit(file);
	if (!err && !quiet) {
		export_count(s, given, &counts);
		told(path, export_size(file), &counts);
	}
	export_close(file);
	return err ? failed(path, err, why) : EXIT_OK;
}

/* PATH.PID.ending; for the second process of a pid PATH.PID-2.ending, and so on. */
static char *name_of(const struct session *s, uint32_t process, const char *path)
{
	int stem = (int)export_stem(path);
	unsigned nth = 1;
	char *name;

	for (uint32_t i = 0; i < process; i++)
		nth += s->processes[i].pid == s->processes[process].pid;
	if (nth == 1 ? asprintf(&name, "%.*s.%u%s", stem, path, s->processes[process].pid,
				path + stem) < 0
		     : asprintf(&name, "%.*s.%u-%u%s", stem, path, s->processes[process].pid, nth,
				path + stem) < 0)
		return NULL;
	return name;
}

static int write_each(const struct session *s, const struct export_options *given,
		      const struct export_writer *w, const char *path, bool quiet)
{
	struct export_options o = *given;
	bool *only = calloc(s->processes_count + 1, sizeof(*only));
	int status = only ? EXIT_OK : failed(path, -ENOMEM, "");

	o.processes = only;
	for (uint32_t i = 0; i < s->processes_count && status == EXIT_OK; i++) {
		struct export_counts counts;
		char *name;

		if (!export_wants_process(given, i))
			continue;
		only[i] = true;
		export_count(s, &o, &counts);
		if (counts.calls || counts.works) {
			name = name_of(s, i, path);
			status = name ? write_one(s, &o, w, name, quiet)
				      : failed(path, -ENOMEM, "");
			free(name);
		}
		only[i] = false;
	}
	free(only);
	return status;
}

/* ---- what is missing ---- */

static void warn_lost(const struct session *s)
{
	uint64_t lost = 0;
	char count[32];

	for (int i = 0; i < 8; i++)
		if (i != RECORD_LOSS_NAME)
			lost += s->quality.losses[i];
	if (lost)
		err_report("%s events were lost while recording: calls are missing",
			   text_count(lost, count, sizeof(count)));
}

static void warn_works(const struct session *s, const struct export_counts *counts)
{
	char without[32], works[32];

	if (counts->works > counts->arrows)
		err_report("%s of %s kernels, copies and sets have no call: they are there without "
			   "an arrow", text_count(counts->works - counts->arrows, without,
						  sizeof(without)),
			   text_count(counts->works, works, sizeof(works)));
	if (s->join.dropped || s->join.bad)
		err_report("%" PRIu64 " records of GPU work were lost, %" PRIu64 " made no sense",
			   s->join.dropped, s->join.bad);
}

/* Helpers that a rank forks have its environment, but call nothing. */
static const char *rank_of(const struct session *s, const struct export_options *o, uint32_t i)
{
	bool calls = false;

	for (size_t k = 0; k < s->threads_count && !calls; k++)
		calls = s->threads[k].process == i && s->threads[k].calls;
	return calls && export_wants_process(o, i) ? session_label(s, i, "rank") : NULL;
}

static void warn_ranks(const struct session *s, const struct export_options *o)
{
	for (uint32_t i = 0; i < s->processes_count; i++) {
		const char *rank = rank_of(s, o, i), *other;

		for (uint32_t k = 0; k < i && rank; k++) {
			other = rank_of(s, o, k);
			if (!other || strcmp(rank, other) != 0)
				continue;
			err_report("processes %u and %u both say that they are rank %s",
				   s->processes[k].pid, s->processes[i].pid, rank);
			break;
		}
	}
}

static int nothing(const struct session *s, const struct export_options *o, const char *path)
{
	double seconds = (double)(s->end - s->begin) / SECOND;

	if (!s->calls_count && !s->works_count)
		err_report("the recording holds no calls; %s was not written", path);
	else if (o->from > s->begin || o->to < s->end)
		err_report("nothing lies in this time: the trace covers 0 to %.3f s; %s was not "
			   "written", seconds, path);
	else
		err_report("there is nothing of these processes; %s was not written", path);
	return EXIT_FAILED;
}

int exporting_write(const struct session *s, const struct export_options *o,
		    const struct export_writer *w, const char *path, bool split, bool quiet)
{
	struct export_counts counts;
	sigset_t before;
	int status;

	export_count(s, o, &counts);
	if (!counts.calls && !counts.works)
		return nothing(s, o, path);
	signals_block(&before);
	if (split || (w->one_process && counts.processes > 1))
		status = write_each(s, o, w, path, quiet);
	else
		status = write_one(s, o, w, path, quiet);
	if (status == EXIT_OK) {
		warn_lost(s);
		warn_works(s, &counts);
		warn_ranks(s, o);
	}
	if (!signalled()) /* else it would end us, with no word of what was done */
		sigprocmask(SIG_SETMASK, &before, NULL);
	return status;
}

/* ---- beside a recording ---- */

char *exporting_recording(const char *path)
{
	char *name;

	if (!export_writer_of(path) ||
	    asprintf(&name, "%.*s.gbpf", (int)export_stem(path), path) < 0)
		return NULL;
	return name;
}

int exporting_beside(const char *recording, const char *path, bool quiet)
{
	const struct export_options all = EXPORT_ALL;
	struct session *s;
	int status;

	if (session_file_load(&s, &recording))
		return EXIT_FAILED;
	status = exporting_write(s, &all, export_writer_of(path), path, false, quiet);
	session_free(s);
	return status;
}
