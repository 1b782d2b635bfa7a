/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of top share. */
#ifndef GBPF_TOP_INTERNAL_H
#define GBPF_TOP_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "monitor/snapshot.h"
#include "top/copy.h"
#include "top/filter.h"
#include "top/history.h"
#include "top/names.h"
#include "top/screen.h"
#include "top/table.h"
#include "top/top.h"

#define MIN_ROWS 12
#define MIN_COLUMNS 60
#define FIELD_BYTES (4 * TABLE_WIDTH + 1)

enum view {
	VIEW_PROCESSES = 0,
	VIEW_GPUS,
	VIEW_APIS, /* from here on: of one process */
	VIEW_KERNELS,
	VIEW_THREADS,
	VIEW_TABLES,
	VIEW_HISTOGRAM = VIEW_TABLES, /* of the API that is chosen among VIEW_APIS */
};

enum overlay { OVERLAY_NONE = 0, OVERLAY_HELP, OVERLAY_SORT };

/* How a table is looked at. */
struct table_view {
	struct list list;
	struct table_sort sort;
	size_t set;
	uint64_t chosen; /* identity of the row under the cursor */
	bool follows;	 /* the cursor stays with it; else with its place */
	uint32_t *order;
	size_t order_size, count, visible;
};

struct top {
	struct screen *screen;
	char version[32], host[64];
	int64_t interval_ns;

	struct copy *copy;
	const struct snapshot *s; /* what is shown; NULL: nothing yet */
	struct history *history;
	uint64_t history_until;
	struct names *names;

	enum view view;
	enum overlay overlay;
	struct table_view tables[VIEW_TABLES];
	struct list menu, help;
	size_t help_visible;
	char filter[FILTER_SIZE], filter_before[FILTER_SIZE];
	bool filtering; /* the filter is being typed */
	bool paused, quit, dirty;
	bool ever;	/* histogram: all that was seen */
	bool log_counts; /* histogram: scale of its bars */
	char message[160]; /* until the next key */

	uint32_t *matching; /* processes that the filter lets through */
	size_t matching_size, matching_count;
	uint32_t pid; /* the process looked into */
	int64_t start;
	char comm[16];
	const struct snapshot_process *process; /* NULL: it is gone */
};

/* ---- tables ---- */

extern const struct table processes_table, gpus_table, apis_table, kernels_table, threads_table;
/* That of a view (of the APIs for the histogram), with the rows there are now. */
struct table top_table(const struct top *t, enum view view);
struct table_view *top_table_view(struct top *t);
/* The process at this row of processes_table. */
const struct snapshot_process *top_process(const struct top *t, size_t row);
/* Its cell for a column by name, for views that show one process. */
struct cell process_cell(const struct top *t, const struct snapshot_process *p, const char *name);
/* "0", "0*" where others use it too, "M1" for a MIG instance. "" unknown. Into buf. */
const char *process_gpu(const struct top *t, const struct snapshot_process *p, char *buf,
			size_t size);
void process_spark(const struct top *t, const struct snapshot_process *p, size_t width, char *buf,
		   size_t size);
/* Name of an API as people know it. Into buf. */
const char *api_label(uint16_t api, char *buf, size_t size);
/* The API that is chosen; NULL: none. */
const struct snapshot_api *top_api(const struct top *t);

/* ---- state ---- */

/* Brings rows, order and cursors up to date after anything changed. */
void top_arrange(struct top *t);
void top_key(struct top *t, uint32_t key);

/* ---- drawing ---- */

/* Things said in a row, those that matter most first: what does not fit is left out. */
struct line {
	struct screen *screen;
	int row, column, end;
};

struct line line_begin(struct top *t, int row, int indent);
/* Keeps columns at the right for what is said there. */
void line_right(struct line *l, enum style style, const char *text);
/* label and value, either may be ""; false: did not fit. */
bool line_add(struct line *l, const char *label, enum style style, const char *value);

/* The time, and that it is held, at the right. */
void line_clock(struct top *t, struct line *l);

#define VALUE 64
/* As it reads where there is room. Into buf of VALUE bytes. */
const char *top_format(const struct top *t, struct cell c, char *buf);

void draw(struct top *t);
int draw_header(struct top *t);		/* returns the first free row, as all of these */
int draw_gpus(struct top *t, int row, int rows);
int draw_process(struct top *t);
void draw_table(struct top *t, int row, int rows);
void draw_histogram(struct top *t, int row, int rows);
void draw_help(struct top *t);
void draw_sort_menu(struct top *t, int row, int rows);
void draw_footer(struct top *t);
/* A line of text in the middle of an otherwise empty part of the screen. */
void draw_notice(struct top *t, int row, enum style style, const char *text);

/* Sum of what is known of processes; half intervals add as independent ones do. */
struct estimate sum_estimates(const struct snapshot *s, size_t offset, size_t *unknown);

#endif
