// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/trace_schedule.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/steps.h"
#include "util/opt.h"

#define SECOND 1000000000LL
#define COUNT_MOST 1000000000 /* steps or seconds */

bool schedule_asked(const struct schedule_wish *w)
{
	return w->wait || w->warmup || w->active || w->marker || w->steps || w->seconds ||
	       w->repeat != 1;
}

struct length {
	int64_t count; /* -1: is no whole number */
	int64_t ns;
};

/* A whole number counts steps or seconds; "250ms" and "2.5" can only be times. */
static int length_parse(const char *name, const char *text, struct length *out, char *why,
			size_t size)
{
	*out = (struct length){0};
	if (!text)
		return 0;
	if (!opt_duration(text, &out->ns)) {
		snprintf(why, size, "--%s wants a number of steps or seconds, or a time such as "
				    "250ms, not '%.64s'", name, text);
		return -EINVAL;
	}
	out->count = text[strspn(text, "0123456789")] ? -1 : out->ns / SECOND;
	if (out->ns / SECOND <= COUNT_MOST)
		return 0;
	snprintf(why, size, "--%s %.64s is too long", name, text);
	return -EINVAL;
}

static const char *senseless(const struct schedule_wish *w, bool time)
{
	if (!w->active)
		return "a schedule needs --active: how many steps, or seconds, to record";
	if (w->steps && w->seconds)
		return "--steps and --seconds exclude each other";
	if (w->marker && w->seconds)
		return "--step-marker says what a step is, and --seconds asks for none";
	if (time && w->steps)
		return "--steps counts steps: --wait, --warmup and --active want whole numbers";
	if (time && w->marker)
		return "with --step-marker, --wait, --warmup and --active count steps: they want "
		       "whole numbers";
	return NULL;
}

/* How often each step fired the marker; of the first one the beginning may not have been seen. */
static void compare(const struct steps *v, const struct schedule_firing *f, size_t count,
		    struct schedule_learnt *out)
{
	uint64_t before = 0;
	size_t i, k = 0;

	for (i = 1; i < v->count; i++) {
		while (k < count && f[k].ts < v->begins[i])
			k++;
		if (k == count)
			break; /* it did not fire any more: nothing is known of this one */
		if (i > 1) {
			uint64_t times = f[k].number - before;

			out->uneven |= out->per_step && times != out->per_step;
			out->per_step = times;
			out->steps++;
		}
		before = f[k].number;
	}
	out->uneven |= !out->per_step && out->steps;
	out->base = out->per_step ? before % out->per_step : 0;
}

static int by_number(const void *pa, const void *pb)
{
	const struct schedule_firing *a = pa, *b = pb;

	return a->number < b->number ? -1 : a->number > b->number;
}

static int learn_session(const struct session *s, uint32_t pid, const struct schedule_firing *f,
			 size_t count, struct schedule_learnt *out)
{
	uint32_t i, process = UINT32_MAX;
	struct steps v;
	int err;

	for (i = 0; i < s->processes_count; i++)
		if (s->processes[i].pid == pid)
			process = i; /* the last of that number: it fired just now */
	if (process == UINT32_MAX)
		return 0;
	err = steps_find(s, process, &v);
	if (err)
		return err;
	if (v.count > 3)
		compare(&v, f, count, out);
	steps_free(&v);
	return 0;
}

static int learn(const char *path, uint32_t pid, const struct schedule_firing *firings,
		 size_t count, struct schedule_learnt *out)
{
	struct schedule_firing *sorted = calloc(count + 1, sizeof(*sorted));
	struct session *s;
	struct reader *r;
	int err = sorted ? reader_open(&r, path) : -ENOMEM;

	*out = (struct schedule_learnt){0};
	if (!err) {
		err = session_load(&s, r);
		reader_close(r);
	}
	if (err) {
		free(sorted);
		return err;
	}
	memcpy(sorted, firings, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), by_number);
	err = learn_session(s, pid, sorted, count, out);
	session_free(s);
	free(sorted);
	return err;
}

int schedule_prepare(const struct schedule_wish *w, struct schedule_options *out, char *why,
		     size_t size)
{
	struct length wait, warmup, active;
	const char *bad;
	bool time;

	*out = (struct schedule_options){.marker = w->marker, .learn = learn};
	if (!schedule_asked(w))
		return 0;
	if (length_parse("wait", w->wait, &wait, why, size) ||
	    length_parse("warmup", w->warmup, &warmup, why, size) ||
	    length_parse("active", w->active, &active, why, size))
		return -EINVAL;
	time = wait.count < 0 || warmup.count < 0 || active.count < 0;
	bad = senseless(w, time);
	if (!bad && !active.ns)
		bad = "--active 0 records nothing";
	if (bad) {
		snprintf(why, size, "%s", bad);
		return -EINVAL;
	}
	if (w->marker && !schedule_marker_ok(w->marker, why, size))
		return -EINVAL;
	out->unit = time || w->seconds ? SCHEDULE_TIME :
		    w->steps || w->marker ? SCHEDULE_STEPS : SCHEDULE_AUTO;
	out->time = (struct schedule_plan){wait.ns, warmup.ns, active.ns, w->repeat};
	out->steps = (struct schedule_plan){wait.count, warmup.count, active.count, w->repeat};
	return 0;
}

const char *schedule_words(const struct schedule_stats *s, uint64_t repeat, char *buf,
			   size_t size)
{
	char window[64] = "", left[64] = "";

	*buf = '\0';
	if (!s->asked)
		return buf;
	if (s->looking) {
		snprintf(buf, size, "  looking for steps");
		return buf;
	}
	if (repeat && s->phase != SCHEDULE_DONE)
		snprintf(window, sizeof(window), ", window %" PRIu64 " of %" PRIu64,
			 s->windows + 1, repeat);
	else if (s->phase != SCHEDULE_DONE)
		snprintf(window, sizeof(window), ", window %" PRIu64, s->windows + 1);
	if (s->phase == SCHEDULE_IDLE || s->phase == SCHEDULE_DONE || s->until < s->at)
		left[0] = '\0';
	else if (s->steps)
		snprintf(left, sizeof(left), ", %" PRId64 " steps left", s->until - s->at);
	else
		snprintf(left, sizeof(left), ", %.1f s left", (double)(s->until - s->at) / SECOND);
	snprintf(buf, size, "  %s%s%s", schedule_phase_name(s->phase), left, window);
	return buf;
}
