// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "diagnose/html.h"
#include "diagnose/timeline.h"
#include "gpu/gpu.h"
#include "util/text.h"

#define WIDTH 900
#define LANE 22
#define PIECES 2000 /* of a timeline at most: what is narrower than a pixel says nothing */

static const char *const colours[CLASSES] = {
	[CLASS_GPU] = "--gpu", [CLASS_COMM] = "--comm", [CLASS_COPY] = "--copy",
	[CLASS_OVERHEAD] = "--overhead", [CLASS_SYNC] = "--sync", [CLASS_STARVED] = "--starved",
	[CLASS_BACK_PRESSURED] = "--back", [CLASS_COLD] = "--cold", [CLASS_OTHER] = "--other",
	[CLASS_SHARED] = "--shared",
};

void html_shares(const struct diag_process *p, FILE *out)
{
	int order[CLASSES], n = shares_order(p, order);
	double at = 0;

	fprintf(out, "<figure><svg viewBox=\"0 0 %d 30\" role=\"img\" aria-label=\"shares of the "
		     "window, listed below\">", WIDTH);
	for (int i = 0; i < n; i++) {
		double width = p->shares[order[i]] * WIDTH;

		fprintf(out, "<rect x=\"%.1f\" y=\"0\" width=\"%.1f\" height=\"30\" "
			     "style=\"fill:var(%s)\"/>", at, width, colours[order[i]]);
		at += width;
	}
	fputs("</svg></figure>\n<table><caption>Where the time went</caption><thead><tr>"
	      "<th scope=\"col\">share of the window</th><th class=\"l\" scope=\"col\">class</th>"
	      "<th class=\"l\" scope=\"col\">meaning</th></tr></thead><tbody>\n", out);
	for (int i = 0; i < n; i++)
		fprintf(out, "<tr><td>%.1f %%</td><td class=\"l\"><span aria-hidden=\"true\" "
			     "style=\"color:var(%s)\">&#9632;</span> %s</td><td class=\"l\">%s"
			     "</td></tr>\n", 100 * p->shares[order[i]], colours[order[i]],
			diag_class_words[order[i]],
			class_words((enum diag_class)order[i], p->basis));
	fputs("</tbody></table>\n", out);
}

struct drawing {
	FILE *out;
	int64_t begin, end;
	int y;
	size_t pieces;
};

static void piece(struct drawing *d, int64_t begin, int64_t end, const char *colour)
{
	double scale = (double)WIDTH / (double)(d->end - d->begin);
	double x = (double)((begin > d->begin ? begin : d->begin) - d->begin) * scale;
	double to = (double)((end < d->end ? end : d->end) - d->begin) * scale;

	if (to <= x || d->pieces >= PIECES)
		return;
	d->pieces++;
	fprintf(d->out, "<rect x=\"%.1f\" y=\"%d\" width=\"%.2f\" height=\"%d\" "
			"style=\"fill:var(%s)\"/>", x, d->y, to - x > 0.3 ? to - x : 0.3, LANE - 6,
		colour);
}

static void lane(struct drawing *d, const char *title)
{
	fprintf(d->out, "<text x=\"0\" y=\"%d\">%s</text>", d->y + 12, title);
	d->y += LANE - 4;
}

static int feed_lane(struct drawing *d, const struct session *s, uint32_t process)
{
	static const char *const by_state[FEED_STATES] = {
		[FEED_DISPATCH] = "--overhead", [FEED_COLD] = "--cold", [FEED_BLOCKED] = "--back",
		[FEED_COMM] = "--comm", [FEED_COPY] = "--copy", [FEED_WAIT] = "--sync",
		[FEED_AWAY] = "--bg",
	};
	struct feed_timeline feed;
	struct feeders feeders;
	int err = feeders_find(s, process, &feeders);

	if (err)
		return err;
	err = timeline_feed(s, &feeders, &feed);
	feeders_free(&feeders);
	if (err)
		return err;
	lane(d, "CPU: preparing, waiting, away (empty)");
	for (size_t i = 0; i < feed.count; i++)
		piece(d, feed.items[i].begin, feed.items[i].end, by_state[feed.items[i].state]);
	d->y += LANE;
	timeline_free(&feed);
	return 0;
}

static int device_lane(struct drawing *d, const struct session *s, uint32_t process,
		       uint32_t physical)
{
	static const struct {
		unsigned classes;
		const char *colour;
	} layers[] = { { WORK_CLASS_COPY, "--copy" }, { WORK_CLASS_COMM, "--comm" },
		       { WORK_CLASS_COMPUTE, "--gpu" } };
	char title[64];

	snprintf(title, sizeof(title), "GPU %" PRIu32 ": kernels, collectives, copies",
		 s->devices[physical].about.ordinal);
	lane(d, title);
	for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
		struct spans v;

		if (timeline_device(s, process, physical, layers[i].classes, &v))
			return -ENOMEM;
		for (size_t k = 0; k < v.count; k++)
			piece(d, v.items[k].begin, v.items[k].end, layers[i].colour);
		spans_free(&v);
	}
	d->y += LANE;
	return 0;
}

/* While it did none of this process's. */
static int others_lane(struct drawing *d, const struct session *s, uint32_t process,
		       uint32_t physical)
{
	struct neighbours v;
	char title[64];
	int err = neighbours_find(s, process, physical, &v);
	size_t k = 0;

	snprintf(title, sizeof(title), "GPU %" PRIu32 ": other processes' work",
		 s->devices[physical].about.ordinal);
	lane(d, title);
	for (size_t i = 0; !err && i < v.all.count; i++) {
		int64_t at = v.all.items[i].begin;

		while (k < v.own.count && v.own.items[k].end <= at)
			k++;
		for (size_t n = k; n < v.own.count && v.own.items[n].begin < v.all.items[i].end;
		     n++) {
			piece(d, at, v.own.items[n].begin, "--shared");
			at = v.own.items[n].end;
		}
		piece(d, at, v.all.items[i].end, "--shared");
	}
	d->y += LANE;
	neighbours_free(&v);
	return err;
}

static int device_lanes(struct drawing *d, const struct session *s, uint32_t process,
			uint32_t physical)
{
	int err = device_lane(d, s, process, physical);

	if (!err && timeline_shared(s, process, physical))
		err = others_lane(d, s, process, physical);
	return err;
}

int html_step(const struct session *s, const struct diag_process *p, const char *title,
	      int64_t begin, int64_t end, FILE *out)
{
	struct drawing d = { .out = out, .begin = begin, .end = end };
	int lanes = 1, err;
	char length[32];

	for (uint32_t i = 0; i < s->devices_count; i++)
		if (s->devices[i].physical == i && timeline_works_on(s, p->process, i))
			lanes += 1 + timeline_shared(s, p->process, i);
	text_duration(end - begin, length, sizeof(length));
	fprintf(out, "<figure><figcaption>%s: %s</figcaption><div class=\"scroll\" tabindex=\"0\" "
		     "role=\"group\" aria-label=\"timeline\"><svg viewBox=\"0 0 %d %d\" "
		     "role=\"img\" aria-label=\"%s of %s: what CPU and GPU did\">", title, length,
		WIDTH, lanes * (2 * LANE - 4), title, length);
	err = feed_lane(&d, s, p->process);
	for (uint32_t i = 0; !err && i < s->devices_count; i++)
		if (s->devices[i].physical == i && timeline_works_on(s, p->process, i))
			err = device_lanes(&d, s, p->process, i);
	fputs("</svg></div></figure>\n", out);
	return err;
}

#define BINS 40 /* of durations, from 2^0 ns */

static unsigned bin_of(int64_t ns)
{
	unsigned bin = 0;

	while (ns > 1 && bin < BINS - 1) {
		ns >>= 1;
		bin++;
	}
	return bin;
}

static void histogram(const char *title, const uint64_t bins[BINS], FILE *out)
{
	uint64_t most = 0, all = 0;

	for (size_t i = 0; i < BINS; i++) {
		most = bins[i] > most ? bins[i] : most;
		all += bins[i];
	}
	if (!all)
		return;
	fprintf(out, "<table><caption>%s</caption><thead><tr><th scope=\"col\">from</th>"
		     "<th scope=\"col\">number</th><th scope=\"col\">share</th>"
		     "<th class=\"l\" scope=\"col\" style=\"width:50%%\"></th></tr></thead>"
		     "<tbody>\n",
		title);
	for (size_t i = 0; i < BINS; i++) {
		char from[32], number[32];

		if (!bins[i])
			continue;
		fprintf(out, "<tr><td>%s</td><td>%s</td><td>%.1f %%</td><td class=\"l\">"
			     "<svg viewBox=\"0 0 100 6\" aria-hidden=\"true\" "
			     "preserveAspectRatio=\"none\" style=\"height:.8rem\">"
			     "<rect width=\"%.1f\" height=\"6\" "
			     "style=\"fill:var(--cold)\"/></svg></td></tr>\n",
			text_duration(INT64_C(1) << i, from, sizeof(from)),
			text_count(bins[i], number, sizeof(number)),
			100.0 * (double)bins[i] / (double)all,
			100.0 * (double)bins[i] / (double)most);
	}
	fputs("</tbody></table>\n", out);
}

int html_launches(const struct session *s, uint32_t process, FILE *out)
{
	uint64_t launches[BINS] = { 0 }, kernels[BINS] = { 0 };

	for (size_t i = 0; i < s->calls_count; i++) {
		const struct call *c = &s->calls[i];

		if (s->threads[c->thread].process == process && c->parent == CALL_NONE &&
		    s->apis[c->api].sorts & API_IS_LAUNCH && call_duration(c) >= 0)
			launches[bin_of(call_duration(c))]++;
	}
	for (size_t i = 0; i < s->works_count; i++) {
		const struct work *w = &s->works[i];

		if (s->streams[w->stream].process == process && !w->earlier &&
		    w->kind == RECORD_WORK_KERNEL)
			kernels[bin_of(w->end - w->begin)]++;
	}
	histogram("Dispatch time of launches", launches, out);
	histogram("GPU time of kernels", kernels, out);
	return 0;
}

/* Mean kernel time of the process in [from, to), ns; -1: none ran. */
static double kernel_mean(const struct session *s, uint32_t process, int64_t from, int64_t to)
{
	double sum = 0;
	size_t n = 0;

	for (size_t i = 0; i < s->streams_count; i++) {
		const struct session_stream *t = &s->streams[i];
		uint32_t low = t->first_work, high = t->first_work + t->works;

		while (t->process == process && low < high) {
			uint32_t middle = low + (high - low) / 2;

			if (s->works[middle].begin < from)
				low = middle + 1;
			else
				high = middle;
		}
		for (uint32_t k = low; t->process == process && k < t->first_work + t->works &&
				       s->works[k].begin < to; k++) {
			if (s->works[k].kind != RECORD_WORK_KERNEL)
				continue;
			sum += (double)(s->works[k].end - s->works[k].begin);
			n++;
		}
	}
	return n ? sum / (double)n : -1;
}

#define ROWS 40
void html_clocks(const struct session *s, uint32_t process, FILE *out)
{
	size_t step = s->gpu_samples_count / ROWS + 1;
	char mean[32];

	if (!s->gpu_samples_count)
		return;
	fputs("<table><caption>Clocks against kernel times</caption><thead><tr>"
	      "<th scope=\"col\">at</th><th scope=\"col\">GPU</th>"
	      "<th scope=\"col\">SM clock</th><th scope=\"col\">power</th>"
	      "<th scope=\"col\">temperature</th><th scope=\"col\">kernel, mean</th></tr></thead>"
	      "<tbody>\n", out);
	for (size_t i = 0; i < s->gpu_samples_count; i += step) {
		const struct record_gpu_sample *g = &s->gpu_samples[i];
		double ns = kernel_mean(s, process, g->ts, g->ts + 1000000000);

		fprintf(out, "<tr><td>%.1f s</td><td>%" PRIu32 "</td>",
			(double)(g->ts - s->begin) / 1e9, s->gpus[g->gpu].index);
		if (g->has & GPU_HAS_CLOCK_SM)
			fprintf(out, "<td>%" PRIu32 " MHz</td>", g->clock_sm_mhz);
		else
			fputs("<td>n/a</td>", out);
		if (g->has & GPU_HAS_POWER)
			fprintf(out, "<td>%.0f W</td>", g->power_mw / 1000.0);
		else
			fputs("<td>n/a</td>", out);
		if (g->has & GPU_HAS_TEMPERATURE)
			fprintf(out, "<td>%" PRIu32 " °C</td>", g->temperature_c);
		else
			fputs("<td>n/a</td>", out);
		fprintf(out, "<td>%s</td></tr>\n",
			ns < 0 ? "n/a" : text_duration((int64_t)ns, mean, sizeof(mean)));
	}
	fputs("</tbody></table>\n", out);
}
