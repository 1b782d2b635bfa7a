/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables: which columns fit into a width, in which order rows come, which row is
 * chosen and which part of them is seen. No terminal is needed for any of it.
 */
#ifndef GBPF_TOP_TABLE_H
#define GBPF_TOP_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "top/cell.h"

#define TABLE_COLUMNS 32
#define TABLE_WIDTH 400 /* columns of a terminal that one field uses at most */

struct column {
	const char *head;    /* "LAUNCHES/S" */
	const char *name;    /* "launches": for --sort and menus */
	const char *meaning; /* in the help */
	uint8_t width;	     /* at least */
	uint16_t max;	     /* grows to this where there is room; 0: does not */
	bool left;	     /* aligned; numbers are at the right */
	bool ascending;	     /* how it sorts at first */
};

/* Columns shown together, those that matter most first: dropped from the end. */
struct column_set {
	const char *name;
	uint8_t count;
	uint8_t columns[TABLE_COLUMNS];
};

struct table {
	const struct column *columns;
	size_t columns_count;
	const struct column_set *sets;
	size_t sets_count;
	uint8_t tie; /* column that orders rows that are equal, in its own direction */
	/* What stands there. */
	void (*cell)(const void *rows, size_t row, unsigned column, struct cell *c);
	/* A CELL_DRAWN in width columns; NULL where a table has none. */
	void (*drawn)(const void *rows, size_t row, size_t width, char *buf, size_t size);
	/* What stays the same of a row while others come and go. */
	uint64_t (*identity)(const void *rows, size_t row);
	const void *rows;
	size_t count;
};

struct layout {
	size_t count;
	uint8_t column[TABLE_COLUMNS]; /* from left to right */
	uint16_t width[TABLE_COLUMNS];
};

/*
 * As many columns of the set as fit, in its order: the first that does not fit
 * is dropped, and all after it. One blank between two. What is left over goes to
 * those that grow. They are shown in the order of the table, not of the set.
 */
void table_layout(const struct table *t, size_t set, size_t width, struct layout *out);

struct table_sort {
	uint8_t column;
	bool ascending;
};

/*
 * Indices of rows, in order: what is not known last, equals by the table's tie.
 * order has room for t->count. -ENOMEM: as they came.
 */
int table_order(const struct table *t, struct table_sort sort, uint32_t *order);

/* The column of this name, or -1. */
int table_column(const struct table *t, const char *name);

/* A cursor in count rows of which visible are seen. */
struct list {
	size_t cursor, top;
};

void list_fit(struct list *l, size_t count, size_t visible);
/* False: not a key that moves it. */
bool list_key(struct list *l, uint32_t key, size_t count, size_t visible);

#endif
