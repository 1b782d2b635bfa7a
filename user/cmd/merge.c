// SPDX-License-Identifier: BSD-2-Clause
#include "merge/merge.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/rights.h"
#include "export/trace.h"
#include "util/err.h"
#include "util/text.h"

struct options {
	const char *output;
	bool quiet;
};

#define FIELD(f) .offset = offsetof(struct options, f)
static const struct opt opts[] = {
	{.name = "output", .letter = 'o', .type = OPT_STRING, .arg = "OUT", FIELD(output),
	 .help = "Where to write. A file that is there is replaced once the new one is whole."},
	{.name = "quiet", .letter = 'q', .type = OPT_FLAG, FIELD(quiet),
	 .help = "Say nothing of what was merged; problems are still told."},
	{0},
};

static int usage(const char *what, const char *word)
{
	err_report("merge: %s%s", what, word);
	err_hint("gbpf merge --help");
	return EXIT_USAGE;
}

static void report_add(const char *path, int err)
{
	switch (err) {
	case -EBADMSG: err_report("%s: not a gbpf trace", path); break;
	case -EPROTO:
		err_report("%s: written by a newer gbpf than this " GBPF_VERSION, path);
		break;
	case -ESPIPE: err_report("%s: not a regular file", path); break;
	case -E2BIG: err_report("%s: more than %d files", path, MERGE_SOURCES); break;
	default: err_report("%s: %s", path, strerror(-err));
	}
}

static void told_rank(void *ctx, const char *text)
{
	err_report("%s", text);
}

/* What a source lacks, and how well its clock is known. */
static void tell_source(const struct merge_source *s)
{
	char time[32], bytes[32];

	if (s->finish == READER_END_CUT || s->finish == READER_END_DAMAGED)
		err_report("%s: %s; %s at its end are not in the result", s->path,
			   s->finish == READER_END_CUT ? "ends early" : "damaged",
			   text_bytes(s->lost_bytes, bytes, sizeof(bytes)));
	if (s->losses)
		err_report("%s: %" PRIu64 " events were lost while recording", s->path, s->losses);
	if (!s->events)
		err_report("%s: holds no calls", s->path);
	if (s->how == MERGE_BY_REALTIME_UNSURE)
		err_report("%s: times of %s were aligned by the hosts' clocks, and nobody says "
			   "how far these are apart: do not compare times across hosts", s->path,
			   s->host[0] ? s->host : "its host");
	else if (s->how == MERGE_BY_REALTIME && s->error_ns > 1000000)
		err_report("%s: times of %s can be off by %s", s->path,
			   s->host[0] ? s->host : "its host",
			   text_duration(s->error_ns, time, sizeof(time)));
}

static void print_source(const struct merge_source *s)
{
	char events[32], error[32], matched[32];

	printf("%s: host %s, %s events, ", s->path, s->host[0] ? s->host : "not known",
	       text_count(s->events, events, sizeof(events)));
	if (s->how == MERGE_SAME_CLOCK) {
		printf("on the clock of the result\n");
		return;
	}
	text_duration(s->error_ns, error, sizeof(error));
	if (s->how == MERGE_BY_COLLECTIVES)
		printf("aligned by %s collectives, at most %s off\n",
		       text_count(s->collectives, matched, sizeof(matched)), error);
	else if (s->how == MERGE_BY_REALTIME)
		printf("aligned by the hosts' clocks, at most %s off\n", error);
	else
		printf("aligned by the hosts' clocks, error not known\n");
}

static bool go_on(void *ctx, double share)
{
	sigset_t pending;

	return sigpending(&pending) ||
	       !(sigismember(&pending, SIGINT) || sigismember(&pending, SIGTERM) ||
		 sigismember(&pending, SIGHUP));
}

static void signals_block(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGXFSZ, SIG_IGN);
}

static int write_all(struct merge *m, const char *path, char *why, size_t size)
{
	struct export_file *file;
	int fd, err;

	signals_block();
	err = export_open(&file, path, false);
	if (err)
		return err;
	fd = open(export_path(file), O_RDWR | O_CLOEXEC);
	err = fd < 0 ? -errno : merge_write(m, fd, go_on, NULL, why, size);
	if (!err && !go_on(NULL, 1))
		err = -EINTR;
	if (!err)
		err = export_commit(file);
	export_close(file);
	return err;
}

static int merge(const struct options *o, char **paths, size_t count)
{
	char why[512] = "";
	struct merge *m;
	int err = rights_become_invoker();

	if (err) {
		err_report("cannot go back to the rights of the user who called sudo: %s",
			   strerror(-err));
		return EXIT_FAILED;
	}
	err = merge_new(&m);
	for (size_t i = 0; i < count && !err; i++) {
		err = merge_add(m, paths[i]);
		if (err) {
			report_add(paths[i], err);
			merge_free(m);
			return EXIT_FAILED;
		}
	}
	if (!err)
		err = merge_align(m, why, sizeof(why));
	if (!err)
		err = write_all(m, o->output, why, sizeof(why));
	for (size_t i = 0; !err && i < merge_count(m); i++)
		tell_source(merge_get(m, i));
	if (!err) {
		merge_tell_ranks(m, told_rank, NULL);
		for (size_t i = 0; i < count && !o->quiet; i++)
			print_source(merge_get(m, i));
	} else {
		err_report("%s was not written: %s", o->output,
			   *why ? why : err == -EINTR ? "interrupted" : strerror(-err));
	}
	merge_free(m);
	return err ? EXIT_FAILED : EXIT_OK;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct options o = {0};
	int first, status = opt_parse(self, &o, argc, argv, &first);
	size_t len;

	if (status != OPT_OK)
		return status == OPT_HELP ? EXIT_OK : EXIT_USAGE;
	if (!o.output)
		return usage("-o OUT is missing", "");
	len = strlen(o.output);
	if (len > 3 && !strcmp(o.output + len - 3, ".gz"))
		return usage("a recording is compressed already; give a name without .gz: ",
			     o.output);
	if (argc - first < 2)
		return usage("two FILEs at least", "");
	for (int i = first; i < argc; i++)
		if (!strcmp(argv[i], o.output))
			return usage("OUT is one of the sources: ", o.output);
	return merge(&o, argv + first, (size_t)(argc - first));
}

static const struct opt_example examples[] = {
	{"gbpf merge node1.gbpf node2.gbpf -o job.gbpf", "two nodes of a job as one recording"},
	{"gbpf export job.gbpf", "and that as one timeline"},
	{0},
};

const struct command cmd_merge = {
	.name = "merge",
	.summary = "put recordings of the ranks and nodes of a job on one timeline",
	.usage = "[OPTION…] FILE FILE… -o OUT",
	.description =
		"Makes one recording out of several of one job. Recordings of one boot of one "
		"host share a clock. Times of other hosts are shifted to the clock of the first "
		"FILE: by the hosts' clocks where both hosts say how far these can be off, and "
		"closer by collectives that ranks of both took part in, if GPU time was recorded. "
		"How far that can be off is said, also where nobody knows.\n\n"
		"Processes of other hosts get numbers of their own, larger by a multiple of "
		"4194304; report and export say which host's they are. Losses and windows of all "
		"sources are kept. docs/traces-merge.md says more.\n\n"
		"Called through sudo, it reads and writes as the user who called.",
	.opts = opts,
	.examples = examples,
	.exit_status = "0 success; 1 a recording cannot be read, they do not belong together, or "
		       "OUT cannot be written; 2 wrong usage.",
	.run = run,
};
