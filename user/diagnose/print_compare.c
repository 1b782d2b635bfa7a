// SPDX-License-Identifier: BSD-2-Clause
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/compare.h"
#include "util/json.h"
#include "util/text.h"

#define SHOWN 20 /* changes in text */

static const char *const titles[MEASURES] = {
	[MEASURE_DISPATCH] = "dispatch time, median", [MEASURE_STEP] = "step",
	[MEASURE_LAUNCH_RATE] = "launches a second", [MEASURE_WAIT] = "waiting, a launch",
	[MEASURE_KERNEL] = "GPU time of a kernel, mean",
};

static const char *value_text(enum measure m, double v, char *buf, size_t size)
{
	if (m != MEASURE_LAUNCH_RATE)
		return text_duration((int64_t)v, buf, size);
	snprintf(buf, size, "%.4g", v);
	return buf;
}

static void difference(const struct comparison *c, enum measure m, FILE *out)
{
	const struct difference *d = &c->of[m];
	char before[32], after[32];

	if (!d->known)
		return;
	fprintf(out, "%-28s %14s %14s  %+6.1f %%  (%+.1f to %+.1f)  ", titles[m],
		value_text(m, d->before, before, sizeof(before)),
		value_text(m, d->after, after, sizeof(after)), 100 * d->change, 100 * d->low,
		100 * d->high);
	if (d->differs)
		fprintf(out, "%s\n", d->change > 0 ? "more" : "less");
	else
		fprintf(out, "no difference; %.1f %% would have been seen\n",
			100 * d->detectable);
}

static void changes(const struct comparison *c, FILE *out)
{
	size_t n = c->changes_count < SHOWN ? c->changes_count : SHOWN;

	if (!n)
		return;
	fprintf(out, "\nCalled more or less often, %s:\n",
		c->per_step ? "times a step" : "times in a thousand launches");
	for (size_t i = 0; i < n; i++) {
		const struct change *v = &c->changes[i];
		char name[256];
		char *readable = v->kernel ? text_demangle(v->name) : NULL;

		fprintf(out, "%10.2f -> %-10.2f %s %s\n", v->before, v->after,
			v->kernel ? "kernel" : "      ",
			text_printable(readable ? readable : v->name, name, sizeof(name), 80));
		free(readable);
	}
	if (n < c->changes_count)
		fprintf(out, "and %zu more (--format json has all)\n", c->changes_count - n);
}

void comparison_text(const struct comparison *c, FILE *out)
{
	bool any = false, differs = false;

	for (int m = 0; m < MEASURES; m++) {
		any = any || c->of[m].known;
		differs = differs || c->of[m].differs;
	}
	if (!any) {
		fputs("Nothing to compare: too few launches in one of the recordings.\n", out);
		return;
	}
	fputs(differs ? "There is a difference.\n" : "No difference.\n", out);
	fprintf(out, "\n%-28s %14s %14s  %8s  %s\n", "", "before", "after", "change",
		"(95 % interval, over all measures)");
	for (int m = 0; m < MEASURES; m++)
		difference(c, (enum measure)m, out);
	if (c->recordings == 1)
		fprintf(out,
			"\nOne recording of each: that times drift by %.0f %% between recordings "
			"of the same job is assumed.\nSeveral in turn (before after before "
			"after) show how much they really do.\n", 200 * COMPARE_DRIFT);
	changes(c, out);
}

static void number(struct json *j, const char *key, double v)
{
	json_key(j, key);
	json_double(j, v, 6);
}

static void json_difference(struct json *j, const struct comparison *c, enum measure m)
{
	const struct difference *d = &c->of[m];

	json_key(j, measure_words[m]);
	if (!d->known) {
		json_null(j);
		return;
	}
	json_begin_object(j);
	number(j, "before", d->before);
	number(j, "after", d->after);
	number(j, "change", d->change);
	json_key(j, "change_ci");
	json_begin_array(j);
	json_double(j, d->low, 6);
	json_double(j, d->high, 6);
	json_end_array(j);
	number(j, "detectable_change", d->detectable);
	json_key(j, "differs");
	json_bool(j, d->differs);
	json_end_object(j);
}

void comparison_json(const struct comparison *c, FILE *out)
{
	bool differs = false;
	struct json j;

	for (int m = 0; m < MEASURES; m++)
		differs = differs || c->of[m].differs;
	json_init(&j, out);
	json_begin_object(&j);
	json_key(&j, "differs");
	json_bool(&j, differs);
	json_key(&j, "recordings");
	json_uint(&j, c->recordings);
	json_key(&j, "measures");
	json_begin_object(&j);
	for (int m = 0; m < MEASURES; m++)
		json_difference(&j, c, (enum measure)m);
	json_end_object(&j);
	json_key(&j, "unit");
	json_string(&j, c->per_step ? "step" : "thousand_launches");
	json_key(&j, "changes");
	json_begin_array(&j);
	for (size_t i = 0; i < c->changes_count; i++) {
		const struct change *v = &c->changes[i];

		json_begin_object(&j);
		json_key(&j, "name");
		json_string(&j, v->name);
		json_key(&j, "kind");
		json_string(&j, v->kernel ? "kernel" : "function");
		number(&j, "before_calls", v->before);
		number(&j, "after_calls", v->after);
		number(&j, "before_avg_ns", v->before_ns);
		number(&j, "after_avg_ns", v->after_ns);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_end_object(&j);
	fputc('\n', out);
}
