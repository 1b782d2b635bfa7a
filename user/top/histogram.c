/* SPDX-License-Identifier: BSD-2-Clause */
/* How long the calls of one API took: a bar for each range of durations. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "top/bars.h"
#include "top/internal.h"
#include "util/text.h"

#define MAX_BARS 260
#define RANGE 21 /* columns of "1.02 ms - 2.05 ms" */
#define RIGHT 26 /* of share, count and marks */

struct chart {
	struct bar bars[MAX_BARS];
	size_t count, p50, p99;
	uint64_t largest, total;
};

static void make_chart(struct chart *c, const struct histogram *h, size_t rows)
{
	c->count = bars_make(h, c->bars, rows < MAX_BARS ? rows : MAX_BARS);
	c->largest = c->total = 0;
	for (size_t i = 0; i < c->count; i++) {
		c->total += c->bars[i].count;
		if (c->bars[i].count > c->largest)
			c->largest = c->bars[i].count;
	}
	c->p50 = bars_find(c->bars, c->count, snapshot_quantile(h, 0.5));
	c->p99 = bars_find(c->bars, c->count, snapshot_quantile(h, 0.99));
}

static const char *duration(const struct top *t, int64_t ns, char *buf, size_t size)
{
	return format_duration((double)ns, screen_utf8(t->screen), buf, size);
}

static void range(const struct top *t, const struct bar *b, char *buf, size_t size)
{
	char low[24], high[24];

	duration(t, b->low, low, sizeof(low));
	if (b->high == INT64_MAX)
		snprintf(buf, size, "%s and more", low);
	else
		snprintf(buf, size, "%s - %s", low, duration(t, b->high, high, sizeof(high)));
}

static void draw_bar(struct top *t, const struct chart *c, size_t i, int row)
{
	int width = screen_columns(t->screen) - RANGE - RIGHT - 4;
	char text[FIELD_BYTES], number[16];
	const struct bar *b = &c->bars[i];
	int column;

	range(t, b, text, sizeof(text));
	column = RANGE - (int)text_width(text);
	screen_text(t->screen, row, column > 0 ? column : 0, RANGE, STYLE_PLAIN, text);
	screen_text(t->screen, row, RANGE + 1, 1, STYLE_DIM, "|");
	width = width > TABLE_WIDTH ? TABLE_WIDTH : width;
	bars_draw(bars_length(b->count, c->largest, (size_t)width, t->log_counts),
		  screen_utf8(t->screen), text, sizeof(text));
	screen_text(t->screen, row, RANGE + 2, width, STYLE_GOOD, text);
	column = RANGE + 2 + width + 1;
	snprintf(text, sizeof(text), "%5.1f %% %8s %s%s", 100 * (double)b->count / (double)c->total,
		 format_short((double)b->count, number, sizeof(number)), i == c->p50 ? " p50" : "",
		 i == c->p99 ? " p99" : "");
	if (b->count || i == c->p50 || i == c->p99)
		screen_text(t->screen, row, column, RIGHT, STYLE_PLAIN, text);
}

static void add_duration(struct top *t, struct line *l, const char *label, int64_t ns)
{
	char text[24];

	line_add(l, label, STYLE_PLAIN, ns < 0 ? "n/a" : duration(t, ns, text, sizeof(text)));
}

static void draw_summary(struct top *t, const struct snapshot_api *a, const struct histogram *h,
			 int row)
{
	struct line l = line_begin(t, row, 1);
	char text[96], number[32], span[24];
	int64_t max;

	line_add(&l, "", STYLE_BOLD, api_label(a->api, text, sizeof(text)));
	text_count(h->count, number, sizeof(number));
	if (t->ever || t->process->recent_ns <= 0)
		snprintf(text, sizeof(text), "%s calls %s", number,
			 t->ever ? "since first seen" : "of late");
	else
		snprintf(text, sizeof(text), "%s calls in %s", number,
			 duration(t, t->process->recent_ns, span, sizeof(span)));
	line_add(&l, "", STYLE_PLAIN, text);
	add_duration(t, &l, "p50", snapshot_quantile(h, 0.5));
	add_duration(t, &l, "p99", snapshot_quantile(h, 0.99));
	max = t->ever ? (int64_t)h->max_ns : a->max_ns;
	if (max > 0)
		add_duration(t, &l, "max", max);
	line_add(&l, "", STYLE_PLAIN, a->sampled ? "sampled" : "all counted");
}

void draw_histogram(struct top *t, int row, int rows)
{
	const struct snapshot_api *a = top_api(t);
	struct histogram h;
	struct chart chart;
	char text[160], name[96];

	if (!a) {
		draw_notice(t, row + 1, STYLE_DIM, "no call was seen yet");
		return;
	}
	if (!copy_histogram(t->copy, t->process, a, t->ever, &h)) {
		snprintf(text, sizeof(text), t->ever ?
			 "only recent calls of %s are kept: + shows them" :
			 "no recent call of %s was seen: + shows those before",
			 api_label(a->api, name, sizeof(name)));
		draw_notice(t, row + 1, STYLE_DIM, text);
		return;
	}
	draw_summary(t, a, &h, row++);
	make_chart(&chart, &h, (size_t)(rows > 1 ? rows - 1 : 0));
	for (size_t i = 0; i < chart.count; i++)
		draw_bar(t, &chart, i, row + (int)i);
}
