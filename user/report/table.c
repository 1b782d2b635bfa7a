// SPDX-License-Identifier: BSD-2-Clause
/* Tables for people: aligned, one time unit a column, cut to the terminal. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/map.h"
#include "report/row.h"
#include "util/term.h"
#include "util/text.h"

#define CELL 128
#define GAP 2
#define MIN_TEXT 24 /* columns that a name keeps before optional columns go */
#define MAX_COLUMNS 40
#define SHOWN 512
#define MILLI_WHOLE 100000 /* from here on without decimals */

static const struct {
	const char *word;
	int64_t ns;
} time_units[] = {
	[REPORT_NS] = { "ns", 1 },
	[REPORT_US] = { "µs", 1000 },
	[REPORT_MS] = { "ms", 1000000 },
	[REPORT_S] = { "s", 1000000000 },
};

struct shown {
	const char *text;
	size_t column, width;
	char *cell; /* NULL: free */
};

struct layout {
	const struct column *columns[MAX_COLUMNS];
	enum report_timeunit unit[MAX_COLUMNS];
	size_t width[MAX_COLUMNS];
	size_t count;
	size_t hidden;
	const struct column *hidden_columns[MAX_COLUMNS];
	struct shown shown[SHOWN]; /* by column and text: names are few, and rows many */
};

const char *column_header(const struct column *c, enum report_timeunit unit, char *buf, size_t size)
{
	if (c->unit == UNIT_NS)
		snprintf(buf, size, "%s (%s)", c->title, time_units[unit].word);
	else if (c->unit == UNIT_BYTES)
		snprintf(buf, size, "%s (bytes)", c->title);
	else
		snprintf(buf, size, "%s", c->title);
	return buf;
}

/* The unit in which the largest value has one to four digits before the point. */
static enum report_timeunit pick_unit(const struct report_ctx *ctx, const struct column *c)
{
	struct column scale = *c;
	int64_t largest = 0;

	scale.offset = c->scale;
	if (ctx->o->timeunit != REPORT_AUTO || c->unit != UNIT_NS)
		return ctx->o->timeunit ? ctx->o->timeunit : REPORT_NS;
	for (size_t i = 0; i < ctx->rows.count; i++)
		if (column_int(&scale, &ctx->rows.items[i]) > largest)
			largest = column_int(&scale, &ctx->rows.items[i]);
	if (largest < 10000)
		return REPORT_NS;
	if (largest < 10000000)
		return REPORT_US;
	return largest < INT64_C(10000000000) ? REPORT_MS : REPORT_S;
}

static void format_time(int64_t v, enum report_timeunit unit, char *buf, size_t size)
{
	char count[32];
	uint64_t a = v < 0 ? (uint64_t)-v : (uint64_t)v;
	uint64_t scale = (uint64_t)time_units[unit].ns;

	text_count(a / scale, count, sizeof(count));
	if (unit == REPORT_NS)
		snprintf(buf, size, "%s%s", v < 0 ? "-" : "", count);
	else
		snprintf(buf, size, "%s%s.%03" PRIu64, v < 0 ? "-" : "", count,
			 a % scale / (scale / 1000));
}

/* Numbers and short things; texts go through text_printable(). */
static void format_cell(const struct column *c, enum report_timeunit unit, const struct row *r,
			char *buf, size_t size)
{
	const int64_t *dim;
	int64_t v = column_int(c, r);
	char count[32];

	if (c->type == COLUMN_DIM3) {
		dim = column_dim3(c, r);
		snprintf(buf, size, "%" PRId64 "×%" PRId64 "×%" PRId64, dim[0], dim[1], dim[2]);
	} else if (c->type == COLUMN_HEX) {
		snprintf(buf, size, "0x%" PRIx64, (uint64_t)v);
	} else if (c->unit == UNIT_NS) {
		format_time(v, unit, buf, size);
	} else if (c->unit == UNIT_PERCENT) {
		snprintf(buf, size, "%.1f", (double)v / 1000);
	} else if (c->unit == UNIT_MILLI) {
		snprintf(buf, size, "%.*f", v < MILLI_WHOLE ? 2 : 0, (double)v / 1000);
	} else if (c->unit == UNIT_ID || v < 0) {
		snprintf(buf, size, "%" PRId64, v);
	} else {
		snprintf(buf, size, "%s", text_count((uint64_t)v, count, sizeof(count)));
	}
}

/* A text as it may be shown, in at most columns columns (0: all of it); caller frees. */
static char *text_cell(const char *text, size_t columns)
{
	size_t size = strlen(text) * 4 + 8;
	char *buf = malloc(size);

	if (buf)
		text_printable(text, buf, size, columns);
	return buf;
}

static size_t number_width(const struct column *c, enum report_timeunit unit, int64_t v)
{
	struct column alone = *c;
	struct row r;
	char buf[CELL];

	alone.offset = offsetof(struct row, total);
	r.total = v;
	format_cell(&alone, unit, &r, buf, sizeof(buf));
	return strlen(buf);
}

/*
 * Numbers grow wider as they grow away from 0, except that a rate above
 * MILLI_WHOLE loses its decimals: a few of them say how wide all are.
 */
static size_t numbers_width(const struct report_ctx *ctx, const struct column *c,
			    enum report_timeunit unit)
{
	int64_t least = INT64_MAX, most = INT64_MIN, most_decimal = INT64_MIN;
	size_t width = 0, w;

	for (size_t i = 0; i < ctx->rows.count; i++) {
		int64_t v = column_int(c, &ctx->rows.items[i]);

		if (v == NA) {
			width = strlen("n/a");
			continue;
		}
		least = v < least ? v : least;
		most = v > most ? v : most;
		if (v < MILLI_WHOLE && v > most_decimal)
			most_decimal = v;
	}
	if (least > most)
		return width;
	w = number_width(c, unit, least);
	width = w > width ? w : width;
	w = number_width(c, unit, most);
	width = w > width ? w : width;
	w = most_decimal == INT64_MIN ? 0 : number_width(c, unit, most_decimal);
	return w > width ? w : width;
}

static size_t dims_width(const struct report_ctx *ctx, const struct column *c)
{
	size_t width = 0, w;

	for (size_t i = 0; i < ctx->rows.count; i++) {
		const int64_t *dim = column_dim3(c, &ctx->rows.items[i]);

		w = strlen("n/a");
		if (dim[0] != NA) {
			w = strlen("1x1x1");
			for (int d = 0; d < 3; d++)
				for (int64_t v = dim[d]; v >= 10; v /= 10)
					w++;
		}
		width = w > width ? w : width;
	}
	return width;
}

/* Names are few and shared by many rows: each is measured about once. */
static size_t texts_width(const struct report_ctx *ctx, const struct column *c)
{
	const char *measured[256] = { NULL };
	size_t width = 0, w;

	for (size_t i = 0; i < ctx->rows.count; i++) {
		const char *text = column_text(c, &ctx->rows.items[i]);
		const char **last = &measured[map_mix((uintptr_t)text) % 256];
		char *shown;

		if (text && *last == text)
			continue;
		shown = text_cell(text ? text : "n/a", 0);
		w = shown ? text_width(shown) : 0;
		free(shown);
		width = w > width ? w : width;
		*last = text;
	}
	return width;
}

static size_t column_width(const struct report_ctx *ctx, const struct column *c,
			   enum report_timeunit unit)
{
	char header[CELL];
	size_t title = text_width(column_header(c, unit, header, sizeof(header)));
	size_t width = c->type == COLUMN_TEXT	? texts_width(ctx, c)
		       : c->type == COLUMN_DIM3 ? dims_width(ctx, c)
						: numbers_width(ctx, c, unit);

	return width > title ? width : title;
}

/* Optional columns that say nothing in any row are left out without a word. */
static bool says_something(const struct report_ctx *ctx, const struct column *c)
{
	for (size_t i = 0; i < ctx->rows.count; i++)
		if (column_known(c, &ctx->rows.items[i]))
			return true;
	return !c->optional;
}

static size_t layout_total(const struct layout *l)
{
	size_t total = 0;

	for (size_t i = 0; i < l->count; i++)
		total += l->width[i] + (i ? GAP : 0);
	return total;
}

static void layout_hide(struct layout *l, size_t i)
{
	l->hidden_columns[l->hidden++] = l->columns[i];
	l->count--;
	for (; i < l->count; i++) {
		l->columns[i] = l->columns[i + 1];
		l->unit[i] = l->unit[i + 1];
		l->width[i] = l->width[i + 1];
	}
}

static size_t last_optional(const struct layout *l)
{
	size_t i = l->count;

	while (i > 0 && !l->columns[i - 1]->optional)
		i--;
	return i;
}

/* Makes the table as wide as the terminal: names give way first, then optional columns. */
static void layout_fit(struct layout *l, size_t width)
{
	size_t wanted, others, i;

	for (;;) {
		i = l->count - 1;
		wanted = l->width[i] < MIN_TEXT ? l->width[i] : MIN_TEXT;
		others = layout_total(l) - l->width[i];
		if (others + wanted <= width || !last_optional(l))
			break;
		layout_hide(l, last_optional(l) - 1);
	}
	if (others + l->width[i] > width)
		l->width[i] = others + wanted <= width ? width - others : wanted;
}

static void layout_make(const struct report_ctx *ctx, const struct view *v, struct layout *l)
{
	for (const struct column *c = v->columns; c->key && l->count < MAX_COLUMNS; c++) {
		if (!says_something(ctx, c))
			continue;
		l->columns[l->count] = c;
		l->unit[l->count] = pick_unit(ctx, c);
		l->width[l->count] = column_width(ctx, c, l->unit[l->count]);
		l->count++;
	}
	if (ctx->o->width)
		layout_fit(l, ctx->o->width);
}

static void pad(FILE *out, size_t used, size_t width)
{
	static const char spaces[] = "                                                ";
	size_t n;

	for (; used < width; used += n) {
		n = width - used < sizeof(spaces) - 1 ? width - used : sizeof(spaces) - 1;
		fwrite(spaces, 1, n, out);
	}
}

static void print_cell(const struct layout *l, size_t i, const char *text, size_t width, FILE *out)
{
	bool left = l->columns[i]->type == COLUMN_TEXT;

	if (i)
		pad(out, 0, GAP);
	if (!left)
		pad(out, width, l->width[i]);
	fputs(text, out);
	if (left && i + 1 < l->count)
		pad(out, width, l->width[i]);
}

static void print_text(struct layout *l, size_t i, const char *text, FILE *out)
{
	struct shown *s = &l->shown[map_hash((uintptr_t)text, i) % SHOWN];

	if (!s->cell || s->text != text || s->column != i) {
		free(s->cell);
		s->text = text;
		s->column = i;
		s->cell = text_cell(text ? text : "n/a", l->width[i]);
		s->width = s->cell ? text_width(s->cell) : 1;
	}
	print_cell(l, i, s->cell ? s->cell : "?", s->width, out);
}

static void print_row(struct layout *l, const struct row *r, FILE *out)
{
	char buf[CELL];

	for (size_t i = 0; i < l->count; i++) {
		const struct column *c = l->columns[i];

		if (c->type == COLUMN_TEXT) {
			print_text(l, i, column_text(c, r), out);
			continue;
		}
		if (column_known(c, r))
			format_cell(c, l->unit[i], r, buf, sizeof(buf));
		else
			snprintf(buf, sizeof(buf), "n/a");
		print_cell(l, i, buf, c->type == COLUMN_DIM3 ? text_width(buf) : strlen(buf), out);
	}
	fputc('\n', out);
}

static void print_header(const struct layout *l, size_t i, FILE *out)
{
	char header[CELL];

	column_header(l->columns[i], l->unit[i], header, sizeof(header));
	print_cell(l, i, header, text_width(header), out);
}

static void print_hidden(const struct layout *l, FILE *out)
{
	if (!l->hidden)
		return;
	fputs("not shown here for want of width: ", out);
	for (size_t i = l->hidden; i-- > 0;)
		fprintf(out, "%s%s", l->hidden_columns[i]->key, i ? ", " : "\n");
}

void print_table(const struct report_ctx *ctx, const struct view *v, FILE *out)
{
	struct layout l = { .count = 0 };

	layout_make(ctx, v, &l);
	fputs(term_style(ctx->o->colour, TERM_BOLD), out);
	for (size_t i = 0; i < l.count; i++)
		print_header(&l, i, out);
	fprintf(out, "%s\n", term_style(ctx->o->colour, TERM_PLAIN));
	for (size_t r = 0; r < ctx->rows.count; r++)
		print_row(&l, &ctx->rows.items[r], out);
	for (size_t i = 0; i < SHOWN; i++)
		free(l.shown[i].cell);
	if (!ctx->rows.count)
		fputs("(nothing to show)\n", out);
	print_hidden(&l, out);
	if (v->bases)
		fprintf(out, "%s\n", v->bases);
}
