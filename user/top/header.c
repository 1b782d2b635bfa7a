/* SPDX-License-Identifier: BSD-2-Clause */
/* What is said above the table of processes: of the machine, and of gbpf. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "top/internal.h"
#include "util/text.h"

#define NO_LIMIT 40 /* columns: as much as it takes */

const char *top_format(const struct top *t, struct cell c, char *buf)
{
	return cell_format(&c, NO_LIMIT, screen_utf8(t->screen), buf, VALUE);
}

struct estimate sum_estimates(const struct snapshot *s, size_t offset, size_t *unknown)
{
	struct estimate sum = {0};
	double below = 0, above = 0;

	*unknown = 0;
	for (size_t i = 0; i < s->processes_count; i++) {
		const struct estimate *e =
			(const void *)((const char *)&s->processes[i] + offset);

		if (!cell_estimate(CELL_RATE, e).known) {
			++*unknown;
			continue;
		}
		sum.known = true;
		sum.value += e->value;
		below += (e->value - e->low) * (e->value - e->low);
		above += (e->high - e->value) * (e->high - e->value);
	}
	sum.known |= s->processes_count == 0;
	sum.low = sum.value - sqrt(below);
	sum.high = sum.value + sqrt(above);
	return sum;
}

/* "214k ±2 % launches/s", of all processes but *unknown. */
static void add_sum(struct top *t, struct line *l, size_t offset, enum cell_kind kind,
		    const char *what, size_t expected)
{
	size_t unknown;
	struct estimate sum = sum_estimates(t->s, offset, &unknown);
	char value[VALUE], text[VALUE + 64];
	bool bad = offset == offsetof(struct snapshot_process, errors_per_s) && sum.known &&
		   sum.value > 0;

	top_format(t, cell_estimate(kind, &sum), value);
	if (unknown != expected && sum.known)
		snprintf(text, sizeof(text), "%s %s (%zu n/a)", value, what, unknown);
	else
		snprintf(text, sizeof(text), "%s %s", value, what);
	line_add(l, "", bad ? STYLE_BAD : STYLE_PLAIN, text);
}

void line_clock(struct top *t, struct line *l)
{
	char text[80] = "", clock[16] = "";
	time_t seconds;
	struct tm tm;

	if (t->s) {
		seconds = (time_t)(t->s->time_ns / 1000000000);
		if (localtime_r(&seconds, &tm))
			strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	}
	snprintf(text, sizeof(text), "%s%s", t->paused ? "PAUSED at " : "", clock);
	line_right(l, t->paused ? STYLE_BAD : STYLE_PLAIN, text);
	if (*t->host && screen_columns(t->screen) >= 100) {
		char host[VALUE];

		line_right(l, STYLE_DIM, text_printable(t->host, host, sizeof(host), 40));
	}
}

/* "3 processes (1 n/a)": of how many launches are not known. */
static void add_count(struct top *t, struct line *l, size_t unknown)
{
	char text[FILTER_SIZE * 4 + 64], filter[FILTER_SIZE * 4];
	size_t count = t->s->processes_count;

	if (*t->filter)
		snprintf(text, sizeof(text), "%zu of %zu processes match \"%s\"",
			 t->matching_count, count,
			 text_printable(t->filter, filter, sizeof(filter), 24));
	else if (unknown)
		snprintf(text, sizeof(text), "%zu process%s (%zu n/a)", count,
			 count == 1 ? "" : "es", unknown);
	else
		snprintf(text, sizeof(text), "%zu process%s", count, count == 1 ? "" : "es");
	line_add(l, "", *t->filter ? STYLE_WARN : STYLE_PLAIN, text);
}

static void draw_machine(struct top *t, int row)
{
	struct line l = line_begin(t, row, 1);
	size_t unknown;

	line_clock(t, &l);
	line_add(&l, "", STYLE_BOLD, "gbpf top");
	if (!t->s)
		return;
	sum_estimates(t->s, offsetof(struct snapshot_process, launches_per_s), &unknown);
	add_count(t, &l, unknown);
	add_sum(t, &l, offsetof(struct snapshot_process, launches_per_s), CELL_RATE, "launches/s",
		unknown);
	add_sum(t, &l, offsetof(struct snapshot_process, errors_per_s), CELL_RATE, "errors/s",
		unknown);
	add_sum(t, &l, offsetof(struct snapshot_process, copies_per_s), CELL_RATE, "copies/s",
		unknown);
	add_sum(t, &l, offsetof(struct snapshot_process, copy_bytes_per_s), CELL_BYTE_RATE,
		"copied/s", unknown);
}

static void draw_self(struct top *t, int row)
{
	const struct snapshot_self *self = &t->s->self;
	struct line l = line_begin(t, row, 1);
	char text[128], number[32];

	snprintf(text, sizeof(text), "%.2f %% (budget %g %%)", self->overhead_pct,
		 self->budget_pct);
	line_add(&l, "gbpf costs", self->overhead_pct > self->budget_pct ? STYLE_BAD : STYLE_GOOD,
		 text);
	snprintf(text, sizeof(text), "%.1f %%", 100 * self->coverage);
	line_add(&l, "coverage", STYLE_PLAIN, text);
	snprintf(text, sizeof(text), "%s", text_count(self->lost, number, sizeof(number)));
	line_add(&l, "lost", self->lost ? STYLE_BAD : STYLE_PLAIN, text);
	snprintf(text, sizeof(text), "%.1f %%", self->cpu_pct);
	line_add(&l, "own CPU", STYLE_PLAIN, text);
	format_bytes((double)self->rss_bytes + (double)self->maps_bytes, text, sizeof(text));
	line_add(&l, "memory", STYLE_PLAIN, text);
	snprintf(text, sizeof(text), "%u", self->windows);
	line_add(&l, "windows", STYLE_PLAIN, text);
	line_add(&l, "unmatched", self->unmatched ? STYLE_WARN : STYLE_PLAIN,
		 text_count(self->unmatched, number, sizeof(number)));
	if (self->worst_pid) {
		snprintf(text, sizeof(text), "pid %u tid %u", self->worst_pid, self->worst_tid);
		line_add(&l, "most of it", STYLE_PLAIN, text);
	}
}

int draw_header(struct top *t)
{
	char text[FIELD_BYTES];
	int row = 0;

	draw_machine(t, row++);
	if (!t->s)
		return row;
	draw_self(t, row++);
	if (t->s->self.limit) {
		text_printable(t->s->self.limit, text, sizeof(text),
			       (size_t)screen_columns(t->screen) - 2);
		screen_text(t->screen, row++, 1, screen_columns(t->screen), STYLE_WARN, text);
	}
	return row;
}
