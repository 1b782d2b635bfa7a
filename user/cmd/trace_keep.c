// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/trace_keep.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "cmd/summary.h"
#include "record/keep.h"
#include "util/err.h"
#include "util/text.h"

#define KEEP_NS_MIN 100000000LL
#define KEEP_NS_MAX (24 * 3600 * 1000000000LL)
#define AFTER_MAX (600 * 1000000000LL)
#define MIB_MIN (KEEP_BYTES_MIN >> 20)
#define MIB_MAX (1u << 20)
#define FILES_MAX 1000000u

bool keep_asked(const struct keep_wish *w)
{
	return w->keep || w->triggers.count || w->last || w->mib != KEEP_MIB ||
	       w->most != KEEP_FILES || w->after != KEEP_AFTER;
}

static const char *senseless(const struct keep_wish *w)
{
	if (!w->keep)
		return "--trigger and its like need --keep: how much of what came before to write";
	if (w->keep < KEEP_NS_MIN || w->keep > KEEP_NS_MAX)
		return "--keep wants a time from 100ms to 24h";
	if (w->after > AFTER_MAX)
		return "--trigger-after wants 10m at the most";
	if (w->mib < MIB_MIN || w->mib > MIB_MAX)
		return "--keep-size wants 16 to 1048576 MiB";
	if (w->triggers.count > TRIGGERS_MAX)
		return "there are more than 16 triggers";
	if (!w->most || w->most > FILES_MAX)
		return "--trigger-max wants a number of files, from 1 to 1000000";
	if (w->last && !w->triggers.count)
		return "without --trigger the last part is written anyhow: leave out --keep-last";
	return NULL;
}

static int triggers_make(const struct keep_wish *w, const struct selection *selection,
			 bool entry_only, struct triggers **out, char *why, size_t size)
{
	struct trigger items[TRIGGERS_MAX];
	char reason[400];
	size_t i;

	for (i = 0; i < w->triggers.count; i++) {
		if (!trigger_parse(&items[i], w->triggers.items[i], reason, sizeof(reason)))
			continue;
		snprintf(why, size, "--trigger '%.100s': %s", w->triggers.items[i], reason);
		return -EINVAL;
	}
	if (triggers_new(out, items, w->triggers.count, selection, !entry_only, reason,
			 sizeof(reason))) {
		snprintf(why, size, "--trigger: %s", reason);
		return -EINVAL;
	}
	return 0;
}

int keep_prepare(const struct keep_wish *w, const struct selection *selection, bool entry_only,
		 struct recorder_options *out, char *why, size_t size)
{
	const char *no = keep_asked(w) ? senseless(w) : NULL;

	out->keep = w->keep;
	out->after = w->after;
	out->bytes = w->mib << 20;
	out->most = (uint32_t)w->most;
	out->at_end = w->last || !w->triggers.count;
	if (no) {
		snprintf(why, size, "%s", no);
		return -EINVAL;
	}
	if (!w->triggers.count)
		return 0;
	return triggers_make(w, selection, entry_only, &out->triggers, why, size);
}

void keep_release(struct recorder_options *o)
{
	triggers_free(o->triggers);
	o->triggers = NULL;
}

const char *keep_words(const struct recorder_options *o, const struct recorder_stats *s, char *buf,
		       size_t size)
{
	char span[32], bytes[32];
	size_t used;

	used = (size_t)snprintf(buf, size, "  keeps %s in %s",
				text_duration(o->keep, span, sizeof(span)),
				text_bytes(s->bytes, bytes, sizeof(bytes)));
	if (used < size && o->triggers)
		snprintf(buf + used, size - used, ", fired %" PRIu32 " time%s", s->fired,
			 s->fired == 1 ? "" : "s");
	return buf;
}

/* A trigger that never had the calls that it needs is told of: it looked at nothing. */
static void tell_starved(const struct triggers *triggers)
{
	char over[32];
	size_t i;

	for (i = 0; i < triggers_count(triggers); i++) {
		const struct trigger *t = triggers_get(triggers, i);
		uint64_t most;

		if (!triggers_starved(triggers, i, &most))
			continue;
		err_report("'%s' needs %" PRIu64 " calls in %s and never had more than %" PRIu64,
			   t->text, t->least, text_duration(t->over, over, sizeof(over)), most);
		err_hint("a longer time (over 1m) or fewer calls (min 10)");
	}
}

bool keep_finish(const struct recorder_options *o, const struct tracer_stats *stats)
{
	const struct recorder_stats *s = &stats->recorder;

	if (s->at_end && !o->quiet)
		summary_print(o->path, stats);
	if (o->triggers && !s->fired) {
		err_report("no trigger fired%s", s->files ? "" : "; nothing was written");
		tell_starved(o->triggers);
		return false;
	}
	return !s->failed;
}
