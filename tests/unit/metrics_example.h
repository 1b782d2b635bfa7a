/* SPDX-License-Identifier: BSD-2-Clause */
/* Snapshots whose numbers can be worked out by hand. Include after cmocka.h. */
#ifndef GBPF_TESTS_METRICS_EXAMPLE_H
#define GBPF_TESTS_METRICS_EXAMPLE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/openmetrics.h"
#include "probe/catalogue.h"

#define EXAMPLE_PROCESSES 80
#define EXAMPLE_APIS 80
#define EXAMPLE_SECOND INT64_C(1000000000)

struct example {
	struct snapshot s;
	struct snapshot_process p[EXAMPLE_PROCESSES];
	struct snapshot_api apis[EXAMPLE_PROCESSES][EXAMPLE_APIS];
	struct histogram launches[EXAMPLE_PROCESSES];
	struct snapshot_thread threads[2];
	struct gpu_sample gpus[3];
	struct metrics *m;
};

/* count processes that know nothing but their pid (from 100 on), comm and launches. */
static inline struct example *example_new(size_t count, const struct metrics_options *o)
{
	struct example *e = calloc(1, sizeof(*e));

	assert_non_null(e);
	assert_true(count <= EXAMPLE_PROCESSES);
	for (size_t i = 0; i < count; i++) {
		struct snapshot_process *p = &e->p[i];

		p->pid = (uint32_t)(100 + i);
		p->start = (int64_t)i;
		snprintf(p->comm, sizeof(p->comm), "job%u", (unsigned)(i % 1000));
		p->apis = e->apis[i];
		p->launch_ever = &e->launches[i];
		p->tree_cpu_pct = p->tree_io_bytes_per_s = p->throttled_share = -1;
		p->dispatch_p50_ns = p->dispatch_p99_ns = -1;
		p->coverage = p->overhead_pct = -1;
		p->verdict.verdict = VERDICT_OVERHEAD_BOUND;
	}
	e->s.processes = e->p;
	e->s.processes_count = count;
	e->s.gpus = e->gpus;
	e->s.time_ns = INT64_C(1700000000) * EXAMPLE_SECOND;
	e->s.window_ns = EXAMPLE_SECOND;
	assert_int_equal(metrics_new(&e->m, o), 0);
	return e;
}

static inline void example_free(struct example *e)
{
	metrics_free(e->m);
	free(e);
}

static inline void example_call(struct example *e, size_t process, uint16_t api, uint64_t calls)
{
	struct snapshot_process *p = &e->p[process];
	size_t i = 0;

	while (i < p->apis_count && p->apis[i].api != api)
		i++;
	assert_true(i < EXAMPLE_APIS);
	if (i == p->apis_count)
		p->apis_count++;
	p->apis[i].api = api;
	p->apis[i].calls += calls;
	p->apis[i].total_ns += calls * 2500;
}

static inline void example_launch(struct example *e, size_t process, int launches)
{
	for (int i = 0; i < launches; i++)
		histogram_count(&e->launches[process], 5000);
}

/* One interval on. */
static inline void example_update(struct example *e)
{
	e->s.mono_ns += e->s.window_ns;
	e->s.time_ns += e->s.window_ns;
	assert_int_equal(metrics_update(e->m, &e->s), 0);
}

/* The page of a format, as a string that is freed with free(). */
static inline char *example_page(struct example *e, enum metrics_format format)
{
	const struct metrics_page *page;
	char *text;

	assert_int_equal(metrics_page(e->m, format, false, &page), 0);
	text = strndup(page->bytes, page->size);
	assert_non_null(text);
	metrics_page_release(page);
	return text;
}

/* What stands after "series " in the OpenMetrics page; NULL: it is not there. In buf. */
static inline const char *example_value(struct example *e, const char *series, char *buf,
					size_t size)
{
	char *text = example_page(e, METRICS_OPENMETRICS), *line, *rest = text;
	const char *found = NULL;
	size_t length = strlen(series);

	while ((line = strsep(&rest, "\n")))
		if (!strncmp(line, series, length) && line[length] == ' ') {
			assert_null(found); /* no series is there twice */
			snprintf(buf, size, "%s", line + length + 1);
			found = buf;
		}
	free(text);
	return found;
}

#define assert_value(e, series, want) \
	do { \
		char value_[64]; \
		const char *got_ = example_value(e, series, value_, sizeof(value_)); \
		if (!got_) \
			fail_msg("%s is not there", series); \
		assert_string_equal(got_, want); \
	} while (0)

#define assert_no_value(e, series) \
	do { \
		char value_[64]; \
		assert_null(example_value(e, series, value_, sizeof(value_))); \
	} while (0)

#endif
