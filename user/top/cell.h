/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One value of a table: how it reads in a few columns, and how it sorts. What is
 * not known reads n/a; an estimate says how far it may be off.
 */
#ifndef GBPF_TOP_CELL_H
#define GBPF_TOP_CELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "monitor/snapshot.h"
#include "top/screen.h"

enum cell_kind {
	CELL_EMPTY = 0, /* there is nothing to be said */
	CELL_TEXT,
	CELL_COUNT,	 /* "1,234" */
	CELL_NUMBER,	 /* "1234": an id */
	CELL_RATE,	 /* "12.3k ±3 %": off by 3 % of the value; "10–80", "≤80" */
	CELL_BYTE_RATE,	 /* "3.41 GiB ±3 %" */
	CELL_SHARE,	 /* of 1, in percent: "61 ±3": 58 to 64 percent; "0–17" */
	CELL_PERCENT,	 /* "0.72" */
	CELL_DURATION,	 /* ns */
	CELL_BYTES,
	CELL_DRAWN,	 /* drawn by the table; sorts by its value */
};

struct cell {
	enum cell_kind kind;
	bool known;
	double value, low, high; /* numbers; equal bounds are not shown */
	const char *text;	 /* CELL_TEXT: hostile; NULL: it is in own */
	char own[256];
	enum style style;
};

struct cell cell_estimate(enum cell_kind kind, const struct estimate *e);
struct cell cell_value(enum cell_kind kind, double value);
/* n/a where value is negative, as snapshots mark what is not known. */
struct cell cell_if_known(enum cell_kind kind, double value);
/* Text that stays where it is; "" reads "-". */
struct cell cell_text(const char *text);
const char *cell_string(const struct cell *c);

/*
 * As shown, at most width columns; without utf8 in ASCII. A number that does not
 * fit is not cut but becomes '#'. Into buf.
 */
const char *cell_format(const struct cell *c, size_t width, bool utf8, char *buf, size_t size);

/* Below, at or above 0, as strcmp(). What is not known is below everything. */
int cell_compare(const struct cell *a, const struct cell *b);

/* 12345 as "12.3k", three digits that count; value >= 0. */
const char *format_short(double value, char *buf, size_t size);
/* 4213 ns as "4.21 µs", at most 8 columns; ns >= 0. */
const char *format_duration(double ns, bool utf8, char *buf, size_t size);
/* 1536 as "1.50 KiB", at most 8 columns. */
const char *format_bytes(double bytes, char *buf, size_t size);

#endif
