// SPDX-License-Identifier: BSD-2-Clause
#include "report/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/gpu.h"
#include "report/filter.h"
#include "report/row.h"
#include "util/nearest.h"

const char *const report_format_words[] = { "table", "csv", "tsv", "json", NULL };
const char *const report_names_words[] = { "demangled", "base", "mangled", NULL };
const char *const report_timeunit_words[] = { "auto", "ns", "us", "ms", "s", NULL };

static const struct view *const views[] = {
	&view_summary, &view_api,  &view_launch, &view_sync, &view_copy,
	&view_thread,  &view_cold, &view_open,	 &view_proc, &view_gpu,
	&view_kern,    &view_kern_gb, &view_kern_exec, &view_memory, &view_api_gpu,
	&view_trace,   &view_gap, &view_stream,
	&view_step,    &view_variation, &view_site, &view_mem, &view_leak,
};
#define VIEWS (sizeof(views) / sizeof(views[0]))

const struct report_view *report_view(size_t i)
{
	return i < VIEWS ? &views[i]->about : NULL;
}

/* Is name one of the words of list? */
static bool has_word(const char *list, const char *name)
{
	size_t len = strlen(name), word;

	for (; len && list && *list; list += word + (list[word] == ' ')) {
		word = strcspn(list, " ");
		if (word == len && !strncmp(list, name, len))
			return true;
	}
	return false;
}

const struct view *view_find(const char *name)
{
	for (size_t i = 0; i < VIEWS; i++)
		if (!strcmp(views[i]->about.name, name) || has_word(views[i]->about.alias, name))
			return views[i];
	return NULL;
}

void report_each_column(void (*each)(const char *view, const char *key, const char *header,
				     void *ctx),
			void *ctx)
{
	char header[128];

	for (size_t i = 0; i < VIEWS; i++)
		for (const struct column *c = views[i]->columns; c->key; c++)
			each(views[i]->about.name, c->key,
			     column_header(c, REPORT_NS, header, sizeof(header)), ctx);
}

static int find_view(const char *name, const struct view **out, char *err, size_t size)
{
	struct nearest n;
	size_t used;

	*out = view_find(name ? name : "summary");
	if (*out)
		return 0;
	nearest_init(&n, name);
	for (size_t i = 0; i < VIEWS; i++)
		nearest_offer(&n, views[i]->about.name);
	if (n.best) {
		snprintf(err, size, "no view is called '%s'; did you mean %s?", name, n.best);
		return -EINVAL;
	}
	used = (size_t)snprintf(err, size, "no view is called '%s'; there are", name);
	for (size_t i = 0; i < VIEWS && used < size; i++)
		used += (size_t)snprintf(err + used, size - used, "%s %s", i ? "," : "",
					 views[i]->about.name);
	return -EINVAL;
}

static int find_sort(const struct view *v, const char *text, const struct column **by,
		     bool *descending, char *err, size_t size)
{
	const char *key = *text == '+' || *text == '-' ? text + 1 : text;
	size_t used;

	*by = column_find(v, key);
	if (*by) {
		*descending = *text == '-' || (*text != '+' && (*by)->type != COLUMN_TEXT);
		return 0;
	}
	used = (size_t)snprintf(err, size, "%s has no column '%s' to sort by; it has",
				v->about.name, key);
	for (const struct column *c = v->columns; c->key && used < size; c++)
		used += (size_t)snprintf(err + used, size - used, "%s %s",
					 c == v->columns ? "" : ",", c->key);
	return -EINVAL;
}

static void keep_matching(struct rows *rows, const struct filter *f)
{
	size_t kept = 0;

	for (size_t i = 0; i < rows->count; i++)
		if (filter_match(f, &rows->items[i]))
			rows->items[kept++] = rows->items[i];
	rows->count = kept;
}

bool rows_next(struct report_ctx *c, const struct view *v)
{
	if (!c->batched)
		return false;
	c->printed += c->rows.count;
	c->rows.count = 0;
	return !v->build(c) && c->rows.count;
}

static void print_view(struct report_ctx *c, const struct view *v, FILE *out)
{
	switch (c->o->format) {
	case REPORT_CSV:
		print_separated(c, v, ',', out);
		return;
	case REPORT_TSV:
		print_separated(c, v, '\t', out);
		return;
	case REPORT_JSON:
		print_json(c, v, out);
		return;
	case REPORT_TABLE:
		break;
	}
	if (v->of_work && !session_has_work(c->s))
		quality_no_work(c, out);
	else if (v->print)
		v->print(c, out);
	else
		print_table(c, v, out);
	quality_lines(c, out);
}

int report_print(const struct session *s, const struct report_options *o, FILE *out, char *err,
		 size_t size)
{
	struct report_ctx c = { .s = s, .o = o };
	const struct column *by = NULL;
	struct filter *filter = NULL;
	const struct view *v;
	bool descending = false;
	int result = find_view(o->view, &v, err, size);

	if (!result)
		result = find_sort(v, o->sort && *o->sort ? o->sort : v->sort, &by, &descending,
				   err, size);
	if (!result && o->filter)
		result = filter_parse(&filter, o->filter, v, err, size);
	if (!result) {
		c.filter = filter;
		c.in_order = by == column_find(v, v->sort + 1) && descending == (*v->sort == '-');
		c.batched = v->batches && c.in_order && o->format != REPORT_TABLE &&
			    session_has_work(s);
		if (!v->of_work || session_has_work(s))
			result = v->build(&c);
		if (!result && filter)
			keep_matching(&c.rows, filter);
		if (!result)
			result = rows_sort(&c.rows, by, descending, o->top);
		if (result)
			snprintf(err, size, "not enough memory for view %s", v->about.name);
	}
	if (!result)
		print_view(&c, v, out);
	filter_free(filter);
	free(c.times);
	free(c.order);
	free(c.rows.items);
	return result;
}

void report_warn(const struct session *s, const struct report_options *o, FILE *out)
{
	const struct report_ctx c = { .s = s, .o = o };

	quality_warnings(&c, out);
}

void report_quality_json(const struct session *s, struct json *j)
{
	quality_json(s, j);
}
