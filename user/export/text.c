/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * OpenMetrics 1.0 (https://prometheus.io/docs/specs/om/open_metrics_spec) and
 * Prometheus text 0.0.4 (https://prometheus.io/docs/instrumenting/exposition_formats).
 * They differ in what a family is named, in the unit, in escapes of help and in the end.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/page.h"

struct text {
	struct page *page;
	const struct series *series;
	bool openmetrics;
	char **sets; /* labels of each set, escaped: name="value",… */
	char **gpus;
};

/* In label values; in help too, but for quotes in 0.0.4. */
static void escaped(struct page *p, const char *s)
{
	for (; *s; s++) {
		size_t plain = strcspn(s, "\\\"\n");

		page_add(p, s, plain);
		s += plain;
		if (!*s)
			return;
		page_add(p, "\\", 1);
		page_add(p, *s == '\n' ? "n" : s, 1);
	}
}

static void label(struct page *p, const char *name, const char *value)
{
	if (!*value)
		return;
	if (p->size)
		page_add(p, ",", 1);
	page_string(p, name);
	page_add(p, "=\"", 2);
	escaped(p, value);
	page_add(p, "\"", 1);
}

/* Ends a string that was built as a page; its bytes are the caller's then. */
static char *taken(struct page *p, bool *failed)
{
	page_add(p, "", 1);
	*failed |= p->failed;
	if (!p->failed)
		return p->bytes;
	page_free(p);
	return NULL;
}

static char *set_labels(const struct series_set *set, bool *failed)
{
	struct page p = { .cap = 0 };

	for (int i = 0; i < SET_LABELS; i++)
		label(&p, set_label_name(i), set->labels.text[i]);
	if (set->labels.pid) {
		char pid[16];

		snprintf(pid, sizeof(pid), "%" PRIu32, set->labels.pid);
		label(&p, "pid", pid);
	}
	return taken(&p, failed);
}

static char *gpu_labels(const struct series_gpu *gpu, bool *failed)
{
	struct page p = { .cap = 0 };

	label(&p, "gpu", gpu->uuid);
	return taken(&p, failed);
}

static void put_uint(struct page *p, uint64_t v)
{
	char digits[24], *at = digits + sizeof(digits);

	do
		*--at = (char)('0' + v % 10);
	while (v /= 10);
	page_add(p, at, (size_t)(digits + sizeof(digits) - at));
}

/* Nanoseconds as seconds, exactly. */
static void put_seconds(struct page *p, uint64_t ns)
{
	uint64_t rest = ns % 1000000000;
	char fraction[10];
	int digits = 9;

	put_uint(p, ns / 1000000000);
	if (!rest)
		return;
	while (rest % 10 == 0) {
		rest /= 10;
		digits--;
	}
	fraction[0] = '.';
	for (int i = digits; i > 0; i--, rest /= 10)
		fraction[i] = (char)('0' + rest % 10);
	page_add(p, fraction, (size_t)digits + 1);
}

/* The shortest form that reads back as the same number. */
static void put_double(struct page *p, double v)
{
	char text[32];

	if (v >= 0 && v < 1e15 && v == floor(v)) {
		put_uint(p, (uint64_t)v);
		return;
	}
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	page_string(p, text);
}

static void comment(struct text *t, const char *what, const struct family *f, const char *text)
{
	struct page *p = t->page;

	page_string(p, "# ");
	page_string(p, what);
	page_add(p, " ", 1);
	page_string(p, f->name);
	if (!t->openmetrics)
		page_string(p, family_suffix(f));
	page_add(p, " ", 1);
	page_string(p, text);
	page_add(p, "\n", 1);
}

static void header(struct text *t, const struct family *f)
{
	bool info = f->type == FAMILY_INFO && !t->openmetrics;

	comment(t, "TYPE", f, info ? "gauge" : family_type_name(f->type));
	if (t->openmetrics && f->unit[0])
		comment(t, "UNIT", f, f->unit);
	comment(t, "HELP", f, f->help); /* ours, with nothing to escape */
}

/* name_suffix{labels,more="…"} up to the blank before the value. */
static void sample(struct text *t, const struct family *f, const char *suffix, const char *labels,
		   const char *more, const char *value)
{
	struct page *p = t->page;
	bool some = labels && *labels;

	page_string(p, f->name);
	page_string(p, suffix);
	if (some || more) {
		page_add(p, "{", 1);
		page_string(p, some ? labels : "");
		if (more && value) {
			page_string(p, some ? "," : "");
			page_string(p, more);
			page_add(p, "=\"", 2);
			escaped(p, value);
			page_add(p, "\"", 1);
		}
		page_add(p, "}", 1);
	}
	page_add(p, " ", 1);
}

static const char *row_labels(const struct text *t, enum family_scope scope,
			      const struct page_row *row)
{
	if (scope == SCOPE_SELF)
		return NULL;
	return scope == SCOPE_GPU ? t->gpus[row->at] : t->sets[row->at];
}

/* A bound as Go prints it, which for these is the shortest form with ".0" if it is whole. */
static void put_bound(char *text, size_t size, double bound)
{
	snprintf(text, size, "%g", bound);
	if (!strpbrk(text, ".e"))
		snprintf(text, size, "%g.0", bound);
}

static void histogram(struct text *t, const struct family *f, const struct histogram *h,
		      const char *labels)
{
	char bound[32];

	for (int i = 0; i < FAMILY_CLASSIC; i++) {
		put_bound(bound, sizeof(bound), f->classic[i]);
		sample(t, f, "_bucket", labels, "le", bound);
		put_uint(t->page, page_classic(h, f->classic[i]));
		page_add(t->page, "\n", 1);
	}
	sample(t, f, "_bucket", labels, "le", "+Inf");
	put_uint(t->page, h->count);
	page_add(t->page, "\n", 1);
	sample(t, f, "_sum", labels, NULL, NULL);
	put_seconds(t->page, h->sum_ns);
	page_add(t->page, "\n", 1);
	sample(t, f, "_count", labels, NULL, NULL);
	put_uint(t->page, h->count);
	page_add(t->page, "\n", 1);
}

static void info(struct text *t, const struct family *f, const struct page_row *row)
{
	struct page p = { .cap = 0 };
	bool failed = false;
	char index[16], *labels;

	if (row->gpu) {
		snprintf(index, sizeof(index), "%" PRIu32, row->gpu->index);
		label(&p, "gpu", row->gpu->uuid);
		label(&p, "index", index);
		label(&p, "name", row->gpu->name);
		label(&p, "pci", row->gpu->pci);
		label(&p, "mig_parent", row->gpu->mig_parent);
	} else {
		label(&p, "version", GBPF_VERSION);
	}
	labels = taken(&p, &failed);
	if (labels) {
		sample(t, f, "_info", labels, NULL, NULL);
		page_string(t->page, "1\n");
	}
	t->page->failed |= failed;
	free(labels);
}

static void api_sample(struct text *t, const struct family_walk *w, const struct page_row *row)
{
	const char *labels = row_labels(t, SCOPE_API, row);
	struct page *p = t->page;
	struct page_api api;

	page_api(row->api, &api);
	page_string(p, w->family->name);
	page_string(p, "_total{");
	page_string(p, labels);
	page_string(p, *labels ? ",api=\"" : "api=\"");
	page_string(p, api.name); /* the catalogue's: letters, digits and _ */
	page_string(p, "\",kind=\"");
	page_string(p, api.kind);
	page_string(p, "\"} ");
}

static void put_value(struct text *t, const struct family_walk *w, const struct page_row *row,
		      double value)
{
	uint64_t count;

	if (!page_count(row, w, &count))
		put_double(t->page, value);
	else if (w->family->scale != 0)
		put_seconds(t->page, count);
	else
		put_uint(t->page, count);
	page_add(t->page, "\n", 1);
}

static void values(struct text *t, const struct family_walk *w, const struct page_row *row,
		   bool *headed)
{
	const struct family *f = w->family;

	for (unsigned i = 0; i < family_values(f); i++) {
		double value;

		if (!page_value(row, w, i, &value))
			continue;
		if (!*headed)
			header(t, f);
		*headed = true;
		if (f->type == FAMILY_INFO) {
			info(t, f, row);
			continue;
		}
		if (f->scope == SCOPE_API)
			api_sample(t, w, row);
		else
			sample(t, f, family_suffix(f), row_labels(t, f->scope, row), f->label,
			       f->label ? f->variant(i) : NULL);
		put_value(t, w, row, value);
	}
}

static void family(struct text *t, const struct family_walk *w)
{
	struct page_row row = { 0 };
	bool headed = false;

	while (page_next_row(t->series, w->family->scope, &row)) {
		const struct histogram *h = page_histogram(&row, w);

		if (!h) {
			values(t, w, &row, &headed);
			continue;
		}
		if (!headed)
			header(t, w->family);
		headed = true;
		histogram(t, w->family, h, row_labels(t, w->family->scope, &row));
	}
}

void page_write_text(struct page *p, const struct series *s, bool openmetrics)
{
	struct text t = { .page = p, .series = s, .openmetrics = openmetrics };
	struct family_walk w = { 0 };

	t.sets = calloc(s->sets_count + 1, sizeof(char *));
	t.gpus = calloc(s->gpus_count + 1, sizeof(char *));
	p->failed |= !t.sets || !t.gpus;
	for (size_t i = 0; !p->failed && i < s->sets_count; i++)
		t.sets[i] = set_labels(s->sets[i], &p->failed);
	for (size_t i = 0; !p->failed && i < s->gpus_count; i++)
		t.gpus[i] = gpu_labels(&s->gpus[i], &p->failed);
	while (!p->failed && family_walk(&w))
		family(&t, &w);
	if (openmetrics)
		page_string(p, "# EOF\n");
	for (size_t i = 0; t.sets && i < s->sets_count; i++)
		free(t.sets[i]);
	for (size_t i = 0; t.gpus && i < s->gpus_count; i++)
		free(t.gpus[i]);
	free(t.sets);
	free(t.gpus);
}
