/* SPDX-License-Identifier: BSD-2-Clause */
/* Layout, order, cursor and filter of top's tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "top/filter.h"
#include "top/table.h"

enum { ID, NAME, RATE, COLUMNS };

static const struct column columns[COLUMNS] = {
	[ID] = {"ID", "id", "", 4, .ascending = true},
	[NAME] = {"NAME", "name", "", 10, 30, .left = true, .ascending = true},
	[RATE] = {"RATE", "rate", "", 6, 12},
};

/* What matters most is not what stands first. */
static const struct column_set sets[] = {
	{"all", 3, {RATE, ID, NAME}},
	{"two", 2, {NAME, ID}},
};

struct row {
	unsigned id;
	const char *name;
	double rate; /* below 0: not known */
};

static void cell(const void *rows, size_t row, unsigned column, struct cell *c)
{
	const struct row *r = (const struct row *)rows + row;

	if (column == ID)
		*c = cell_value(CELL_NUMBER, r->id);
	else if (column == NAME)
		*c = cell_text(r->name);
	else
		*c = cell_if_known(CELL_RATE, r->rate);
}

static const struct row some[] = {
	{1, "beta", 10}, {2, "Alpha", -1}, {3, "", 30}, {4, "gamma", 10}, {5, "delta", 0},
};

static const struct table table = {
	.columns = columns, .columns_count = COLUMNS, .sets = sets, .sets_count = 2,
	.cell = cell, .rows = some, .count = sizeof(some) / sizeof(some[0]),
};

static void columns_fit_by_what_matters(void **state)
{
	struct layout l;

	table_layout(&table, 0, 5, &l);
	assert_int_equal(l.count, 0);
	table_layout(&table, 0, 6, &l);
	assert_int_equal(l.count, 1);
	assert_int_equal(l.column[0], RATE);
	/* Room for RATE and ID, which stand the other way round. */
	table_layout(&table, 0, 11, &l);
	assert_int_equal(l.count, 2);
	assert_int_equal(l.column[0], ID);
	assert_int_equal(l.column[1], RATE);
	assert_int_equal(l.width[1], 6);
	table_layout(&table, 0, 22, &l);
	assert_int_equal(l.count, 3);
	/* NAME of the second set does not fit: ID, which would, is dropped as well. */
	table_layout(&table, 1, 9, &l);
	assert_int_equal(l.count, 0);
}

static void what_is_left_over_goes_to_those_that_grow(void **state)
{
	struct layout l;

	table_layout(&table, 0, 22 + 4, &l);
	assert_int_equal(l.width[2], 10); /* RATE comes first in the set */
	table_layout(&table, 0, 22 + 10, &l);
	assert_int_equal(l.width[2], 12);
	assert_int_equal(l.width[1], 14);
	table_layout(&table, 0, 1000, &l);
	assert_int_equal(l.width[0], 4);
	assert_int_equal(l.width[1], 30);
	assert_int_equal(l.width[2], 12);
}

static void order_is(struct table_sort sort, const uint32_t *expected)
{
	uint32_t order[sizeof(some) / sizeof(some[0])];

	assert_int_equal(table_order(&table, sort, order), 0);
	assert_memory_equal(order, expected, sizeof(order));
}

static void rows_are_sorted(void **state)
{
	/* Unknown last, whichever way; equals by their id. */
	order_is((struct table_sort){RATE, false}, (const uint32_t[]){2, 0, 3, 4, 1});
	order_is((struct table_sort){RATE, true}, (const uint32_t[]){4, 0, 3, 2, 1});
	order_is((struct table_sort){NAME, true}, (const uint32_t[]){1, 0, 4, 3, 2});
	order_is((struct table_sort){NAME, false}, (const uint32_t[]){3, 4, 0, 1, 2});
	order_is((struct table_sort){ID, false}, (const uint32_t[]){4, 3, 2, 1, 0});
}

static void equals_are_ordered_by_the_tie(void **state)
{
	struct table by_rate = table;
	uint32_t order[5];
	const struct row equal[] = {
		{1, "a", 10}, {1, "b", -1}, {1, "c", 30}, {1, "d", 10}, {1, "e", 20},
	};

	by_rate.tie = RATE;
	by_rate.rows = equal;
	assert_int_equal(table_order(&by_rate, (struct table_sort){ID, true}, order), 0);
	assert_memory_equal(order, ((const uint32_t[]){2, 4, 0, 3, 1}), sizeof(order));
	assert_int_equal(table_order(&by_rate, (struct table_sort){ID, false}, order), 0);
	assert_memory_equal(order, ((const uint32_t[]){2, 4, 0, 3, 1}), sizeof(order));
}

static void columns_have_names(void **state)
{
	assert_int_equal(table_column(&table, "rate"), RATE);
	assert_int_equal(table_column(&table, "RATE"), -1);
	assert_int_equal(table_column(&table, ""), -1);
}

static void the_cursor_stays_inside(void **state)
{
	struct list l = {0};

	assert_true(list_key(&l, SCREEN_UP, 10, 4));
	assert_int_equal(l.cursor, 0);
	assert_true(list_key(&l, SCREEN_PAGE_DOWN, 10, 4));
	assert_int_equal(l.cursor, 3);
	assert_int_equal(l.top, 0);
	list_key(&l, SCREEN_DOWN, 10, 4);
	assert_int_equal(l.cursor, 4);
	assert_int_equal(l.top, 1);
	list_key(&l, SCREEN_END, 10, 4);
	assert_int_equal(l.cursor, 9);
	assert_int_equal(l.top, 6);
	list_key(&l, 'j', 10, 4);
	assert_int_equal(l.cursor, 9);
	list_key(&l, SCREEN_PAGE_UP, 10, 4);
	assert_int_equal(l.cursor, 6);
	list_key(&l, SCREEN_HOME, 10, 4);
	assert_int_equal(l.cursor, 0);
	assert_false(list_key(&l, 'x', 10, 4));
}

static void rows_that_go_take_the_cursor_along(void **state)
{
	struct list l = {.cursor = 9, .top = 6};

	list_fit(&l, 5, 4);
	assert_int_equal(l.cursor, 4);
	assert_int_equal(l.top, 1);
	list_fit(&l, 2, 4);
	assert_int_equal(l.cursor, 1);
	assert_int_equal(l.top, 0);
	list_fit(&l, 0, 4);
	assert_int_equal(l.cursor, 0);
	list_key(&l, SCREEN_DOWN, 0, 4);
	list_key(&l, SCREEN_PAGE_UP, 0, 0);
	assert_int_equal(l.cursor, 0);
}

static void filters(void **state)
{
	struct snapshot_process p = {.pid = 4242, .command = "python train.py --model GPT2"};

	strcpy(p.comm, "python");
	strcpy(p.labels.pod, "train-7f9c");
	strcpy(p.labels.rank, "3");
	strcpy(p.gpu_uuid, "GPU-1a2b");
	assert_true(filter_matches("", &p));
	assert_true(filter_matches("  ", &p));
	assert_true(filter_matches("gpt2", &p));
	assert_true(filter_matches("PYTHON 7F9C", &p));
	assert_true(filter_matches("424", &p));
	assert_true(filter_matches("1A2B", &p));
	assert_false(filter_matches("python nowhere", &p));
	assert_false(filter_matches("4243", &p));
	/* A word lies in one field. */
	assert_false(filter_matches("pythontrain", &p));
	p.command = NULL;
	assert_false(filter_matches("gpt2", &p));
	/* A name that fills its field. */
	memset(p.comm, 'x', sizeof(p.comm));
	assert_true(filter_matches("xxxxxxxxxxxxxxxx", &p));
	assert_false(filter_matches("xxxxxxxxxxxxxxxxx", &p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_fit_by_what_matters),
		cmocka_unit_test(what_is_left_over_goes_to_those_that_grow),
		cmocka_unit_test(rows_are_sorted),
		cmocka_unit_test(equals_are_ordered_by_the_tie),
		cmocka_unit_test(columns_have_names),
		cmocka_unit_test(the_cursor_stays_inside),
		cmocka_unit_test(rows_that_go_take_the_cursor_along),
		cmocka_unit_test(filters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
