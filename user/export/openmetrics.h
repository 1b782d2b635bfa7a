/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the monitor knows as pages that Prometheus and its kin read: OpenMetrics 1.0,
 * Prometheus text 0.0.4 and Prometheus protobuf with native histograms.
 * docs/openmetrics.md lists the metrics.
 */
#ifndef GBPF_EXPORT_OPENMETRICS_H
#define GBPF_EXPORT_OPENMETRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "monitor/snapshot.h"

enum metrics_format {
	METRICS_TEXT = 0, /* Prometheus text 0.0.4 */
	METRICS_OPENMETRICS,
	METRICS_PROTOBUF,
	METRICS_FORMATS,
};

/* All zero bytes are good defaults. */
struct metrics_options {
	size_t max_sets;  /* label sets at most; 0: 500 */
	int64_t stale_ns; /* how long counters outlive their last process; 0: 5 minutes */
	bool include_pid; /* as a label: one label set a process */
};

struct metrics;

/* o NULL: the defaults. 0 or -ENOMEM. */
int metrics_new(struct metrics **out, const struct metrics_options *o);
void metrics_free(struct metrics *m); /* NULL is accepted; pages stay valid */

/*
 * Takes a snapshot in, once an interval, from one thread; the same snapshot again
 * changes nothing. Nothing of s is kept. 0; -ENOMEM: the pages stay as they were.
 */
int metrics_update(struct metrics *m, const struct snapshot *s);

/* A page; bytes are valid until it is released. */
struct metrics_page {
	const char *bytes;
	size_t size;
};

/*
 * The page of the last snapshot, compressed for Content-Encoding gzip if asked for;
 * made when it is first asked for after an update. From any thread. -ENOMEM.
 */
int metrics_page(struct metrics *m, enum metrics_format format, bool gzip,
		 const struct metrics_page **out);
void metrics_page_release(const struct metrics_page *page); /* NULL is accepted */

/* The format that an Accept header likes best; NULL and what is not understood: text. */
enum metrics_format metrics_negotiate(const char *accept);
/* Does an Accept-Encoding header accept gzip? NULL: no. */
bool metrics_accepts_gzip(const char *accept_encoding);
const char *metrics_content_type(enum metrics_format format);

#endif
